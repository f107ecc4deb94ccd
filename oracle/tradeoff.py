"""The trade-off between crop value and connectivity: certified plans over the connectivity weight w.

Each point's bound UB proves that no plan at all has (1 - w) X / V + w Y / C > UB, X its crop value (currency) and Y its
connectivity (ha). ``bound_ha`` is what these lines together leave: no plan with at least a given crop value has more
connectivity than that. Weights find the plans on the curve's convex hull; others may lie between it and the bound.
The knee is the point farthest above the chord between the two ends, with both axes scaled to 0..1 (Satopaa et al. 2011,
Finding a "Kneedle" in a Haystack).

A folder holds tradeoff.csv, .parquet, .json and .png, and one file per point in ``points/``; a point whose landscape,
graph and configuration are the same is not solved again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oracle.coefficients import SharedLengths, coefficients
from oracle.errors import ConfigurationError, LandscapeError
from oracle.files import write_atomically, write_json
from oracle.glm_config import GLMConfig
from oracle.landscape import HABITAT, Landscape
from oracle.solution import Solution
from oracle.solve import solve

GREATEST_WEIGHT = 0.95
_NO_LABELS = {"proof_nodes": 0}  # the curve needs plans and bounds, not what each label rests on


@dataclass(frozen=True)
class Point:
    """One certified plan of the curve."""

    connectivity_weight: float
    crop_value_currency: float
    connectivity_ha: float
    habitat_share: float
    """Of the area, 0..1."""
    objective: float
    upper_bound: float
    gap: float
    wall_time_s: float


@dataclass(frozen=True)
class Tradeoff:
    """The curve, by rising connectivity weight."""

    landscape: str
    crop_value_scale: float
    """V of the GLM, currency."""
    connectivity_scale: float
    """C of the GLM, ha."""
    points: tuple[Point, ...]
    knee: int | None
    """Position of the knee in ``points``; None where no point lies above the chord."""

    @property
    def crop_value_currency(self) -> np.ndarray:
        """(points,)"""
        return np.array([p.crop_value_currency for p in self.points])

    @property
    def connectivity_ha(self) -> np.ndarray:
        """(points,)"""
        return np.array([p.connectivity_ha for p in self.points])

    def bound_ha(self, crop_value_currency: np.ndarray) -> np.ndarray:
        """(m,) connectivity that no plan with at least these crop values exceeds: the lowest of all points' lines."""
        w = np.array([p.connectivity_weight for p in self.points])[:, None]
        bound = np.array([p.upper_bound for p in self.points])[:, None]
        share = crop_value_currency / self.crop_value_scale if self.crop_value_scale > 0 else 0.0 * crop_value_currency
        with np.errstate(divide="ignore", invalid="ignore"):
            lines = np.where(w > 0, (bound - (1.0 - w) * share) * self.connectivity_scale / w, np.inf)
        return np.minimum(lines.min(axis=0), self.connectivity_scale)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the fields, and ``bound_ha`` at every point."""
        return asdict(self) | {"bound_ha": self.bound_ha(self.crop_value_currency).tolist()}

    def table(self) -> pd.DataFrame:
        """One row per point: its fields, ``bound_ha`` and ``knee`` (bool)."""
        table = pd.DataFrame([asdict(p) for p in self.points])
        bound_ha = self.bound_ha(self.crop_value_currency)
        return table.assign(bound_ha=bound_ha, knee=[k == self.knee for k in range(len(self.points))])


def tradeoff(
    landscape: Landscape,
    graph: SharedLengths,
    config: GLMConfig,
    folder: Path,
    points: int = 11,
    progress: Callable[[str], None] | None = None,
) -> Tradeoff:
    """Solve ``config`` at ``points`` weights from 0 to 0.95 and write the curve into ``folder``.

    Raises
    ------
    ConfigurationError
        Where fewer than 3 points are asked for.
    LandscapeError
        Where no polygon has a yield, or none has connectivity: then there is nothing to trade.
    InfeasibleError, SolveError
        As :func:`oracle.solve.solve`.
    """
    if points < 3:
        raise ConfigurationError(f"{points} point(s) make no curve: ask for 3 or more")
    c = coefficients(landscape, graph, config)
    for scale, what in ((c.crop_value_scale, "a yield"), (c.connectivity_scale, "connectivity")):
        if scale <= 0:
            raise LandscapeError(f"no polygon of {landscape.name} has {what} above 0, so there is nothing to trade")
    say = progress or (lambda _: None)
    found = []
    for k, weight in enumerate(np.linspace(0.0, GREATEST_WEIGHT, points).round(6).tolist()):
        here = f"point {k + 1} of {points}: connectivity weight {weight:g}"
        say(here)
        at_weight = config.model_copy(update={"connectivity_weight": weight, **_NO_LABELS})
        found.append(_point(landscape, graph, at_weight, folder, _after(here, say)))
    curve = Tradeoff(landscape.name, c.crop_value_scale, c.connectivity_scale, tuple(found), None)
    curve = replace(curve, knee=knee_of(curve.crop_value_currency, curve.connectivity_ha))
    _save(curve, folder)
    return curve


def knee_of(x: np.ndarray, y: np.ndarray) -> int | None:
    """Position of the point farthest above the chord from (greatest x, its y) to (its x, greatest y), axes 0..1."""
    width, height = np.ptp(x), np.ptp(y)
    if width <= 0 or height <= 0:
        return None
    above = (x - x.min()) / width + (y - y.min()) / height - 1.0  # the distance times sqrt(2)
    best = int(above.argmax())
    return best if above[best] > 1e-9 else None


def _after(head: str, say: Callable[[str], None]) -> Callable[[str], None]:
    return lambda line: say(f"{head}; {line}")


def _point(
    landscape: Landscape, graph: SharedLengths, config: GLMConfig, folder: Path, progress: Callable[[str], None]
) -> Point:
    file = folder / "points" / f"w{config.connectivity_weight:.6f}.json"
    source = {"landscape": landscape.sha256, "graph": graph.sha256, "config": config.sha256}
    if file.is_file():
        stated = json.loads(file.read_text(encoding="utf-8"))
        if stated["source"] == source:
            return Point(**stated["point"])
    point = _as_point(landscape, solve(landscape, graph, config, progress))
    write_json(file, {"source": source, "point": asdict(point)})
    return point


def _as_point(landscape: Landscape, s: Solution) -> Point:
    area = landscape.areas_ha
    return Point(
        connectivity_weight=s.config.connectivity_weight,
        crop_value_currency=s.terms.crop_value_currency,
        connectivity_ha=s.terms.connectivity_ha,
        habitat_share=float(area[s.land_use == HABITAT].sum() / area.sum()),
        objective=s.objective,
        upper_bound=s.upper_bound,
        gap=s.gap,
        wall_time_s=s.wall_time_s,
    )


def _save(curve: Tradeoff, folder: Path) -> None:
    table = curve.table()
    write_atomically(folder / "tradeoff.csv", lambda p: table.to_csv(p, index=False))
    write_atomically(folder / "tradeoff.parquet", lambda p: table.to_parquet(p, index=False))
    write_json(folder / "tradeoff.json", curve.to_dict())
    write_atomically(folder / "tradeoff.png", lambda p: _draw(curve).savefig(p, dpi=130, format="png"))


def _draw(curve: Tradeoff) -> Figure:
    x, y = curve.crop_value_currency, curve.connectivity_ha
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.subplots()
    across = np.union1d(np.linspace(x.min(), x.max(), 500), x)
    top = curve.bound_ha(across)
    ceiling = 1.05 * max(top.max(), y.max())
    axes.fill_between(across, top, ceiling, color="#d9d9d9", label="proven out of reach", linewidth=0)
    axes.plot(x, y, "o--", color="#0072b2", linewidth=1, label="certified plans")
    apart = 0.04 * max(np.ptp(x), 1e-9), 0.04 * max(np.ptp(y), 1e-9)
    written: list[int] = []
    for k, p in enumerate(curve.points):
        if all(abs(x[k] - x[o]) > apart[0] or abs(y[k] - y[o]) > apart[1] for o in written):
            text = f"w {p.connectivity_weight:.3g}"
            axes.annotate(text, (x[k], y[k]), textcoords="offset points", xytext=(-8, -12), size=8, ha="right")
            written.append(k)
    if curve.knee is not None:
        k = curve.knee
        axes.plot(
            x[k], y[k], "D", color="#d55e00", markersize=11, label=f"knee, w {curve.points[k].connectivity_weight:g}"
        )
    worst = max(p.gap for p in curve.points)
    below = 100 * max(worst, 1e-12)  # nobody needs the last bits of rounding
    axes.set_title(f"{curve.landscape}: every point is at most {below:.2g} % below its optimum", fontsize=11)
    axes.set_xlabel("crop value, currency")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}" if ceiling >= 10 else "{x:g}")
    axes.set_ylabel("connectivity, ha")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
    return figure
