"""What forcing a class on a polygon costs the landscape, and whether its label is the only one.

The regret of class c on polygon i is OPT - OPT(i in c): the best plan's objective less that of the best plan in which
i has class c. Neither optimum is known exactly, so it is given as an interval that contains it, from three numbers:
the plan's objective LB <= OPT, the certified bound UB >= OPT, and per class

- the bound with the class forced, UB(i in c) >= OPT(i in c):    low  = LB - UB(i in c), at least 0;
- the best plan found with i in c, LB(i in c) <= OPT(i in c):    high = UB - LB(i in c).

LB(i in c) is the plan after moving i to c alone, or together with one other polygon that pays for it (keeps the floors
and habitat share, or raises the objective); where no such pair of moves is feasible, high is infinite. The plan's own
class has low 0 and high UB - LB. A class that the polygon may not have has low = high = infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.sparse import csr_array

from oracle.certificate import Certificate, bound, values
from oracle.coefficients import Coefficients
from oracle.plan import TOLERANCE, habitat_area_share, supply_t, terms

ROUNDING = 1e-12
"""Taken off every low, so that rounding in sums of about 1 cannot make it too high."""
TIE = 1e-8
"""Polygons of average worth (objective units times n) within which two plans count as equally good."""
_MOST_PARTNERS = 4_000
_BLOCK = 4_000_000
_FIRST_CHUNK = 16
_TIE_PASSES = 100


class Status(StrEnum):
    """How sure a label is."""

    UNIQUE = "unique"
    """Every other class is proven worse than the plan: each has low > 0."""
    TIED = "tied"
    """Another class does as well: a plan with it reaches the plan's objective, so its high is UB - LB (within TIE)."""
    UNDECIDED = "undecided"
    """Neither, at this gap."""


class Proof(StrEnum):
    """What a status rests on."""

    CERTIFICATE = "certificate"
    """Unique by the certificate: anybody can recompute it."""
    SEARCH = "search"
    """Unique by the bound of a search that ended: the solver's word."""
    PLAN = "plan"
    """Tied: a plan as good is given, or an exchange of one or two polygons."""
    NONE = "none"
    """Undecided."""


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search for the best plan that differs has shown."""

    others: tuple[np.ndarray, ...] = ()
    """Feasible plans, (n,) class positions each."""
    bound: float = np.inf
    """No plan is worth more that has a class which neither the certificate rules out nor one of ``others`` that is
    worth more has; infinite where the search did not end."""


@dataclass(frozen=True, eq=False)
class Regret:
    """Intervals and status of n polygons and K + 1 classes, objective units."""

    low: np.ndarray
    high: np.ndarray
    status: np.ndarray
    """(n,) str, a :class:`Status`."""
    proof: np.ndarray
    """(n,) str, a :class:`Proof`."""


def regret(c: Coefficients, choice: np.ndarray, certificate: Certificate, searched: Searched | None = None) -> Regret:
    """Regret intervals of every class on every polygon (this module's docstring).

    Parameters
    ----------
    c : Coefficients
    choice : (n,) array of int
        A feasible plan.
    certificate : Certificate
    searched : Searched, optional
        Its ``others`` must be feasible.

    Raises
    ------
    CertificateError
        Where the certificate proves nothing, see :func:`oracle.certificate.values`.
    """
    v = values(c, certificate)
    objective = terms(c, choice).objective
    gap = bound(c, certificate) - objective
    chosen = choice[:, None] == np.arange(len(c.classes))

    low = np.maximum(v.max(axis=1, keepdims=True) - v - gap - ROUNDING, 0.0)
    low[chosen] = 0.0
    best = exchanges(c, choice)
    high = np.where(c.allowed, np.maximum(gap, 0.0) - best.gain, np.inf)
    high[chosen] = max(gap, 0.0)

    searched = searched or Searched()
    for other in searched.others:
        rows = np.flatnonzero(other != choice)
        worse = objective - terms(c, other).objective
        high[rows, other[rows]] = np.minimum(high[rows, other[rows]], max(gap, 0.0) + worse)
    by_certificate = low > 0
    by_search = objective - searched.bound
    low = np.where(searchable(choice, high, by_search), np.maximum(low, by_search), low)
    high = np.maximum(high, low)
    status = judge(choice, low, high)
    return Regret(low, high, status, _proof(status, (by_certificate | chosen).all(axis=1)))


def searchable(choice: np.ndarray, high: np.ndarray, by_search: float) -> np.ndarray:
    """(n, K + 1) bool: classes about which a search's bound speaks.

    Not the plan's own, nor those that a known plan has which is as good, or loses less than ``by_search``, the plan's
    objective less that bound.
    """
    lost = _lost(choice, high)
    return (lost > TIE / len(choice)) & (lost >= by_search)


def _lost(choice: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n, K + 1) what the best known plan with each class is worth less than the plan; -inf for the plan's own."""
    chosen = choice[:, None] == np.arange(high.shape[1])
    return np.where(chosen, -np.inf, high - high[chosen][:, None])


def judge(choice: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n,) status of each label, from the (n, K + 1) intervals; the plan's own class carries high = UB - LB."""
    chosen = choice[:, None] == np.arange(low.shape[1])
    unique = ((low > 0) | chosen).all(axis=1)
    tied = (~chosen & (_lost(choice, high) <= TIE / len(choice))).any(axis=1)
    return np.select([unique, tied], [Status.UNIQUE.value, Status.TIED.value], Status.UNDECIDED.value).astype(object)


def _proof(status: np.ndarray, by_certificate: np.ndarray) -> np.ndarray:
    unique = np.where(by_certificate, Proof.CERTIFICATE.value, Proof.SEARCH.value)
    other = np.where(status == Status.TIED, Proof.PLAN.value, Proof.NONE.value)
    return np.where(status == Status.UNIQUE, unique, other).astype(object)


@dataclass(frozen=True, eq=False)
class Exchanges:
    """For every polygon and class the best feasible move found: alone, or with one partner."""

    gain: np.ndarray
    """(n, K + 1) objective after less before; -inf where none is feasible, 0 for the class it has."""
    partner: np.ndarray
    """(n, K + 1) row position of the polygon that moves along, -1 for none."""
    partner_class: np.ndarray
    """(n, K + 1) the class that it moves to."""

    def apply(self, choice: np.ndarray, polygon: int, to: int) -> np.ndarray:
        """The plan after one of the moves."""
        moved = choice.copy()
        moved[polygon] = to
        if self.partner[polygon, to] >= 0:
            moved[self.partner[polygon, to]] = self.partner_class[polygon, to]
        return moved


def exchanges(c: Coefficients, choice: np.ndarray) -> Exchanges:
    """The best feasible move of every polygon to every class, alone or with the cheapest partner that makes it so.

    Partners are tried in order of their own gain, the 4,000 best moves of the landscape at most.
    """
    n, habitat = len(c), len(c.crops)
    is_habitat = choice == habitat
    neighbours = _neighbours(c)
    here = c.own.copy()
    here[:, habitat] += neighbours @ is_habitat.astype(float)
    alone = here - here[np.arange(n), choice][:, None]

    movable = c.allowed & (choice[:, None] != np.arange(habitat + 1))
    polygon, to = np.nonzero(movable)
    gain = alone[polygon, to]
    change, slack = _resources(c, choice, polygon, to)

    order = np.argsort(-gain.round(12), kind="stable")[:_MOST_PARTNERS]  # rounded: the same order on any machine
    stay = int(np.count_nonzero(gain[order].round(12) > 0))  # "nobody" has gain 0 and changes nothing
    partner = np.insert(polygon[order], stay, -1)
    partner_class = np.insert(to[order], stay, -1)
    partner_gain = np.insert(gain[order], stay, 0.0)
    partner_change = np.insert(change[order], stay, 0.0, axis=0)

    found = _first_feasible(polygon, change, partner, partner_change, slack)
    ok = found >= 0
    i, k, f = polygon[ok], to[ok], found[ok]
    total = gain[ok] + partner_gain[f]
    j = partner[f]
    turned_i = (k == habitat).astype(float) - is_habitat[i]
    turned_j = np.where(j >= 0, (partner_class[f] == habitat).astype(float) - is_habitat[j], 0.0)
    both = np.flatnonzero((turned_i != 0) & (turned_j != 0))
    if len(both):
        total[both] += neighbours[i[both], j[both]] * turned_i[both] * turned_j[both]

    result = Exchanges(np.where(movable, -np.inf, alone), np.full(alone.shape, -1), np.full(alone.shape, -1))
    result.gain[~c.allowed] = -np.inf
    result.gain[i, k], result.partner[i, k], result.partner_class[i, k] = total, j, partner_class[f]
    return result


def _first_feasible(
    polygon: np.ndarray, change: np.ndarray, partner: np.ndarray, partner_change: np.ndarray, slack: np.ndarray
) -> np.ndarray:
    """(moves,) position of the first partner that makes each move feasible, -1 where none does.

    Most moves need only the first few partners, so these are tried in growing chunks on what is still open.
    """
    found = np.full(len(polygon), -1)
    open_moves, start, size = np.arange(len(polygon)), 0, _FIRST_CHUNK
    while len(open_moves) and start < len(partner):
        chunk = slice(start, start + size)
        block = max(1, _BLOCK // size)
        for first in range(0, len(open_moves), block):
            rows = open_moves[first : first + block]
            feasible = partner[chunk] != polygon[rows, None]
            for r in range(len(slack)):
                feasible &= change[rows, r, None] + partner_change[None, chunk, r] >= -slack[r]
            found[rows] = np.where(feasible.any(axis=1), start + feasible.argmax(axis=1), -1)
        open_moves = open_moves[found[open_moves] < 0]
        start, size = start + size, 2 * size
    return found


def settle_ties(c: Coefficients, choice: np.ndarray) -> np.ndarray:
    """The written rule for ties: where a polygon alone may change to an earlier class without loss, it does.

    Classes stand in the landscape's order of crops, habitat last; polygons move in the order of the rows. What only
    several polygons together could exchange stays as found.
    """
    habitat, neighbours = len(c.crops), _neighbours(c)
    for _ in range(_TIE_PASSES):
        is_habitat = choice == habitat
        here = c.own.copy()
        here[:, habitat] += neighbours @ is_habitat.astype(float)
        alone = here - here[np.arange(len(c)), choice][:, None]
        earlier = np.arange(habitat + 1) < choice[:, None]
        polygon, to = np.nonzero(c.allowed & earlier & (alone >= -ROUNDING / 10))
        change, slack = _resources(c, choice, polygon, to)
        moved, settled = choice.copy(), np.zeros(len(c), dtype=bool)
        for p, k, by in zip(polygon.tolist(), to.tolist(), change, strict=True):
            near = neighbours.indices[neighbours.indptr[p] : neighbours.indptr[p + 1]]
            beside = is_habitat[p] and (settled[near] & is_habitat[near]).any()  # its gain has changed: next pass
            if settled[p] or beside or (by < -slack).any():
                continue
            moved[p], settled[p] = k, True
            slack = slack + by
        if not settled.any():
            break
        choice = moved
    return choice


def _neighbours(c: Coefficients) -> csr_array:
    """(n, n) pair gains, both ways."""
    rows, cols = np.concatenate([c.pair_i, c.pair_j]), np.concatenate([c.pair_j, c.pair_i])
    return csr_array((np.tile(c.pair_gain, 2), (rows, cols)), shape=(len(c), len(c)))


def _resources(
    c: Coefficients, choice: np.ndarray, polygon: np.ndarray, to: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each move adds to every constrained quantity (moves, R), and how far each may fall (R,)."""
    habitat, total_area = len(c.crops), c.area_ha.sum()
    amounts = np.column_stack([c.production_t, c.area_ha])  # (n, K + 1): what class k on polygon i adds to quantity k
    least = np.array([*c.floor_t * (1.0 - TOLERANCE), (c.habitat_share[0] - TOLERANCE) * total_area])
    now = np.array([*supply_t(c, choice), habitat_area_share(c, choice) * total_area])
    kinds = np.arange(habitat + 1)
    change = amounts[polygon] * ((to[:, None] == kinds).astype(float) - (choice[polygon, None] == kinds))
    bound_kinds = least > 0
    changes, slacks = [change[:, bound_kinds]], [(now - least)[bound_kinds]]
    if c.habitat_share[1] < 1:
        changes.append(-change[:, [habitat]])
        slacks.append(np.array([(c.habitat_share[1] + TOLERANCE) * total_area - now[habitat]]))
    return np.column_stack(changes), np.concatenate(slacks)
