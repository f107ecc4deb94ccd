"""One polygon of a plan, explained: its class, what others would cost, its neighbours, and what would flip it.

Costs are the certified regret intervals. The flips are local: at the certificate's prices (:mod:`oracle.certificate`)
a polygon's classes can be compared by themselves, and each flip changes one number until another class is worth as
much as the present one, with every price, credit and scale of the landscape held where it is.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np

from oracle.certificate import values
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import LandscapeError
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from oracle.regret import Proof
from oracle.solution import Solution

_RESTS_ON = {
    Proof.CERTIFICATE: ", by the certificate",
    Proof.SEARCH: ", by a search that found no other plan as good (the solver's word)",
    Proof.PLAN: ", another plan is as good",
    Proof.NONE: "",
}


@dataclass(frozen=True)
class Alternative:
    """What another class would cost the landscape: ``low`` to ``high`` (None: no plan with it is known)."""

    land_use: str
    allowed: bool
    low: float | None
    high: float | None
    """Objective units."""
    low_currency: float | None
    high_currency: float | None
    low_share: float | None
    high_share: float | None
    """Of the plan's objective."""


@dataclass(frozen=True)
class Neighbour:
    """A first-order neighbour."""

    id: str
    position: str
    kind: str
    length_m: float
    """Shared or facing; 0 for corners."""
    land_use: str


@dataclass(frozen=True)
class Pull:
    """What a crop's supply floor adds to growing it here."""

    crop: str
    shadow_price: float
    """Currency per tonne."""
    tonnes: float
    currency: float


@dataclass(frozen=True)
class Flip:
    """The value of one number from which another class would be worth as much here."""

    factor: str
    """``wheat yield``, ``connectivity`` or ``wheat price``."""
    unit: str
    now: float
    then: float
    becomes: str

    @property
    def relative(self) -> float:
        """Change as a share of the present value; infinite from 0."""
        return abs(self.then - self.now) / self.now if self.now > 0 else np.inf


@dataclass(frozen=True)
class Explanation:
    """One screen about one polygon."""

    id: str
    area_ha: float
    land_use: str
    current_land_use: str | None
    locked: bool
    """No other class is allowed here."""
    status: str
    proof: str
    """What the status rests on (:class:`oracle.regret.Proof`)."""
    alternatives: tuple[Alternative, ...]
    neighbours: tuple[Neighbour, ...]
    pulls: tuple[Pull, ...]
    worth: dict[str, float]
    """Each allowed class on this polygon at the certificate's prices, currency."""
    prices_prefer: str
    """The class worth most at these prices: ``land_use``, unless floors or whole polygons decided."""
    flips: tuple[Flip, ...]
    """The smallest change of a yield, of connectivity and of a price; none where ``prices_prefer`` differs."""

    def lines(self) -> dict[str, str | list[str]]:
        """Heading and text of each part, for people."""
        at_prices = ", ".join(f"{name} {x:,.0f}" for name, x in sorted(self.worth.items(), key=lambda item: -item[1]))
        lines: dict[str, str | list[str]] = {
            "label": f"{self.land_use}: {self.status}{_RESTS_ON[Proof(self.proof)]}",
            "area_ha": f"{self.area_ha:,.1f}",
            "current_land_use": self.current_land_use or "not stated",
            "another_class_would_cost": [_cost_line(a) for a in self.alternatives],
            "neighbours": [f"{n.position} {n.id}: {n.land_use}, {n.kind} {n.length_m:,.0f} m" for n in self.neighbours],
            "floors_that_pull": [
                f"{p.crop}: {p.shadow_price:,.2f} per t x {p.tonnes:,.1f} t = {p.currency:,.0f}" for p in self.pulls
            ],
            "worth_here_at_fixed_prices": at_prices,
        }
        if self.locked:
            lines["would_flip_it"] = "nothing: no other class is allowed here"
        elif self.prices_prefer != self.land_use:
            lines["would_flip_it"] = (
                f"at fixed prices {self.prices_prefer} is worth more here; floors, neighbours or whole polygons decided"
            )
        else:
            lines["would_flip_it (one alone, at fixed prices)"] = [_flip_line(f) for f in self.flips]
        return lines


def explain(landscape: Landscape, graph: NeighbourGraph, solution: Solution, polygon_id: str) -> Explanation:
    """Everything that this module's docstring names about one polygon.

    Raises
    ------
    LandscapeError
        Where the landscape has no such id; the message names similar ones.
    """
    found = np.flatnonzero(landscape.ids == polygon_id)
    if not len(found):
        alike = difflib.get_close_matches(polygon_id, landscape.ids.tolist(), n=5, cutoff=0.5)
        hint = f"similar: {', '.join(alike)}" if alike else f"its ids look like {landscape.ids[0]}"
        raise LandscapeError(f"no polygon {polygon_id!r} in {landscape.name}; {hint}")
    row = int(found[0])
    c = coefficients(landscape, graph, solution.config)
    v = values(c, solution.certificate)[row]
    choice = int(solution.choice[row])
    prefer = choice if v[choice] >= v.max() - 1e-12 else int(v.argmax())
    currency = c.currency_per_unit
    table = graph.table
    near = table[(table["source"] == polygon_id) & (table["order"] == 1)]
    use_of = dict(zip(solution.ids, solution.land_use, strict=True))
    credited = c.credited_t[row]
    return Explanation(
        id=polygon_id,
        area_ha=float(c.area_ha[row]),
        land_use=str(solution.land_use[row]),
        current_land_use=None if landscape.current is None else str(landscape.current[row]),
        locked=bool(c.allowed[row].sum() == 1),
        status=str(solution.status[row]),
        proof=str(solution.proof[row]),
        alternatives=tuple(
            _alternative(solution, row, k, bool(c.allowed[row, k]), currency)
            for k in range(len(c.classes))
            if k != choice
        ),
        neighbours=tuple(
            Neighbour(target, position, kind, float(length_m), str(use_of[target]))
            for target, position, kind, length_m in zip(
                *(near[column].tolist() for column in ("target", "position", "kind", "facing_m")), strict=True
            )
        ),
        pulls=tuple(
            Pull(crop, solution.shadow_price[crop], float(t), solution.shadow_price[crop] * float(t))
            for crop, t in zip(c.crops, credited, strict=True)
            if solution.shadow_price[crop] > 0 and t > 0
        ),
        worth={name: float(x * currency) for name, x in zip(c.classes, v, strict=True) if np.isfinite(x)},
        prices_prefer=c.classes[prefer],
        flips=_flips(landscape, graph, c, solution, row, v) if prefer == choice else (),
    )


def _alternative(s: Solution, row: int, k: int, allowed: bool, currency: float) -> Alternative:
    low, high = (float(x) if np.isfinite(x) else None for x in (s.regret_low[row, k], s.regret_high[row, k]))
    scaled = [None if x is None else x * f for f in (currency, _inverse(s.objective)) for x in (low, high)]
    return Alternative(s.classes[k], allowed, low, high, *scaled)


def _cost_line(a: Alternative) -> str:
    if not a.allowed:
        return f"{a.land_use}: not allowed here"
    low = (
        f"{a.land_use}: at least {a.low:.3g} ({a.low_currency:,.0f} in currency, {a.low_share:.2g} of the plan's worth)"
    )
    if a.high is None:
        return f"{low}; no plan with it was found"
    return f"{low}, at most {a.high:.3g} ({a.high_currency:,.0f})"


def _flip_line(f: Flip) -> str:
    relative = f" ({(f.then - f.now) / f.now:+.1%})" if f.now > 0 else ""
    return f"{f.factor} {f.now:.4g} -> {f.then:.4g} {f.unit}{relative}: {f.becomes}"


def _inverse(x: float) -> float:
    return 1.0 / x if x > 0 else 0.0


def _flips(
    landscape: Landscape, graph: NeighbourGraph, c: Coefficients, s: Solution, row: int, v: np.ndarray
) -> tuple[Flip, ...]:
    """The smallest flip of each kind; ``v`` (K + 1,) has the plan's class on top."""
    choice, habitat = int(s.choice[row]), len(c.crops)
    others = np.delete(np.arange(habitat + 1), choice)
    if c.allowed[row].sum() == 1 and landscape.yields[row].any():  # locked; without any yield, one may still flip it
        return ()
    second = int(others[v[others].argmax()])
    yields, prices, connected = [], [], []
    for k, crop in enumerate(c.crops):
        rise, becomes = (v[second] - v[choice], second) if k == choice else (v[choice] - v[k], k)
        if not np.isfinite(rise):  # not grown here: from a yield of 0, which still costs
            rise = v[choice] + c.area_ha[row] * c.costs[k] * c.unit_per_currency
        now_t = c.production_t[row, k]
        then_t = _tonnes(c, s, k, now_t, rise)
        if then_t is not None:
            area = c.area_ha[row]
            yields.append(Flip(f"{crop} yield", "t/ha", now_t / area, then_t / area, c.classes[becomes]))
        if now_t > 0:
            price = c.prices[k] + rise * c.currency_per_unit / now_t
            if price > 0:
                prices.append(Flip(f"{crop} price", "currency/t", float(c.prices[k]), price, c.classes[becomes]))
    rise, becomes = (v[second] - v[choice], second) if choice == habitat else (v[choice] - v[habitat], habitat)
    slope = _per_connectivity(graph, c, s, row)
    if c.allowed[row, habitat] and np.isfinite(rise) and slope > 0:
        now = float(landscape.connectivity[row])
        then = now + rise / slope
        if 0 <= then <= 1:
            connected.append(Flip("connectivity", "0..1", now, then, c.classes[becomes]))
    return tuple(min(kind, key=lambda f: (f.relative, f.then)) for kind in (yields, connected, prices) if kind)


def _tonnes(c: Coefficients, s: Solution, k: int, now_t: float, rise: float) -> float | None:
    """Tonnes of crop k at which its value here has risen by ``rise``; None where no amount of 0 or more does it.

    The value grows by price plus floor multiplier per tonne up to the floor, by the price alone beyond it.
    """
    price = float(c.prices[k] / c.currency_per_unit) if c.currency_per_unit > 0 else 0.0
    mu, floor = float(s.certificate.floor_multiplier[k]), float(c.floor_t[k])
    if price + mu <= 0:
        return None
    worth = price * now_t + mu * min(now_t, floor) + rise
    then_t = worth / (price + mu)
    if then_t > floor:
        then_t = (worth - mu * floor) / price if price > 0 else np.inf
    return then_t if 0 <= then_t < np.inf else None


def _per_connectivity(graph: NeighbourGraph, c: Coefficients, s: Solution, row: int) -> float:
    """Objective units of habitat's value here per unit of this polygon's connectivity."""
    unit = c.habitat_price / c.currency_per_unit if c.currency_per_unit > 0 else 0.0
    i, j, length_m = graph.shared
    share = s.certificate.pair_share
    pairs = (share * length_m)[i == row].sum() + ((1.0 - share) * length_m)[j == row].sum()
    return float(unit * (c.area_ha[row] + c.adjacency_ha_per_m * pairs / 2.0))
