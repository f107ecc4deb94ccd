"""The least bound that prices can prove: the GLM's Lagrangian dual, minimised by cutting planes.

Multipliers mu on what ties all polygons together (supply floors, habitat shares) turn the GLM into a best class per
polygon and one minimum cut (:mod:`oracle.min_cut`). The value of that, D(mu), is an upper bound on every plan for any
mu >= 0; it is convex and piecewise linear, and its least value is the optimum of the LP relaxation, since the rest of
the GLM has an integral relaxation (Geoffrion 1974).

Every evaluation yields a plan, and every plan a line below D. The next multipliers minimise the upper envelope of all
lines within a box around the best ones so far; the box shrinks where the envelope misleads and grows where it ends
(Kelley 1960, cutting planes; Marsten, Hogan and Blankenship 1975, boxstep). A handful of multipliers need some tens of
evaluations, each a few passes over the polygons, where a simplex needs a pivot or more per polygon.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from oracle.certificate import Certificate, values
from oracle.coefficients import Coefficients
from oracle.min_cut import habitat_cut
from oracle.plan import TOLERANCE

_PRECISION = 1e-9  # relative to the bound
_EVALUATIONS = 400
_FIRST_RADIUS, _LAST_RADIUS = 0.01, 1e7
_LEAST_SCALE = 1e-15
_FAR = 1e4  # lines so far below the envelope, in units of the current gap, cannot matter within the box
_EDGE = 1e-9


@dataclass(frozen=True, eq=False)
class Dual:
    """The best multipliers found."""

    certificate: Certificate
    value: float
    """D, objective units; recompute with :func:`oracle.certificate.bound` before relying on it."""
    precision: float
    """At most so much above the least value, objective units."""
    evaluations: int
    infeasible: bool
    """D fell below what any plan is worth: no plan meets the constraints."""


@dataclass(eq=False)
class _Lines:
    """Lines below D, ``height + slope @ x``; one unit of a multiplier x is one objective unit per whole floor."""

    height: list[float] = field(default_factory=list)
    slope: list[np.ndarray] = field(default_factory=list)

    def lowest(
        self, best: float, center: np.ndarray, radius: float, scale: float
    ) -> tuple[np.ndarray, float, bool] | None:
        """Where in the box the envelope is least, its value there, and whether the box has no part in that.

        None where the numbers are too far apart for an answer.
        """
        slope = np.array(self.slope)
        steep = slope * (radius / scale)
        height = (np.array(self.height) + slope @ center - best) / scale
        near = height + np.abs(steep).sum(axis=1) > -_FAR
        low = np.maximum(-1.0, -center / radius)
        found = linprog(
            np.append(np.zeros(len(center)), 1.0),
            A_ub=np.column_stack([steep, -np.ones(len(steep))])[near],
            b_ub=-height[near],
            bounds=[*((start, 1.0) for start in low), (None, None)],
            method="highs",
        )
        if found.status != 0:
            return None
        step = found.x[:-1]
        free = bool((((step > low + _EDGE) | (low > -1.0)) & (step < 1.0 - _EDGE)).all())
        return np.maximum(center + radius * step, 0.0), best + scale * float(found.x[-1]), free


def least_bound(
    c: Coefficients,
    *,
    deadline: float = np.inf,
    precision: float = _PRECISION,
    moved: Callable[[float], None] | None = None,
) -> Dual:
    """Minimise the bound over all multipliers and splits.

    Parameters
    ----------
    c : Coefficients
    deadline : float
        ``time.monotonic()`` at which the best multipliers so far are returned.
    precision : float
        Ends where the bound is within this, relative, of the least.
    moved : callable, optional
        Receives every better bound.
    """
    problem = _Problem(c)
    worst = problem.worst_objective
    x, lines = np.zeros(len(problem.asked)), _Lines()
    best, best_value, center, evaluations = None, np.inf, x, 0
    radius, predicted, free = _FIRST_RADIUS, np.inf, True
    while evaluations < _EVALUATIONS:
        evaluations += 1
        certificate, value, height, slope = problem.evaluate(x)
        lines.height.append(height)
        lines.slope.append(slope)
        gained = best_value - value
        if best is not None and -gained > predicted:
            radius /= 2
        elif best is not None and gained > predicted / 2 and not free:
            radius *= 2
        if gained > 0:
            best, best_value, center = certificate, value, x
            if moved is not None:
                moved(value)
        infeasible = best_value < worst - _PRECISION * (1 + abs(worst))
        if infeasible or not len(x) or time.monotonic() > deadline:
            break
        goal = precision * abs(best_value)
        scale = max(predicted if np.isfinite(predicted) else abs(best_value), _LEAST_SCALE)
        while (found := lines.lowest(best_value, center, radius, scale)) is not None:
            x, envelope, free = found
            predicted = max(best_value - envelope, 0.0)
            if predicted <= goal and not free and radius < _LAST_RADIUS:
                radius *= 4  # nothing to win in this box: look beyond
            elif predicted < scale / 100 and scale > _LEAST_SCALE:
                scale = max(predicted, _LEAST_SCALE)
            else:
                break
        if found is None or predicted <= goal:
            break
    assert best is not None
    return Dual(best, best_value, predicted, evaluations, infeasible)


class _Problem:
    """What is dualised: each crop's floor, least and greatest habitat area; and D at given multipliers."""

    def __init__(self, c: Coefficients) -> None:
        self.c = c
        least, greatest = c.habitat_share
        area = float(c.area_ha.sum())
        self.asked = [(k, floor * (1.0 - TOLERANCE)) for k, floor in enumerate(c.floor_t.tolist()) if floor > 0]
        """Of each dualised constraint: the crop (K: least habitat, K + 1: greatest), and the amount."""
        if least > 0:
            self.asked.append((len(c.crops), (least - TOLERANCE) * area))
        if greatest < 1:
            self.asked.append((len(c.crops) + 1, (greatest + TOLERANCE) * area))
        self.unit = np.array([max(abs(amount), _LEAST_SCALE) for _, amount in self.asked])

    @property
    def worst_objective(self) -> float:
        """No plan is worth less, objective units."""
        own = np.where(self.c.allowed, self.c.own, np.inf)
        return float(own.min(axis=1).sum())

    def evaluate(self, x: np.ndarray) -> tuple[Certificate, float, float, np.ndarray]:
        """The certificate at multipliers x, its D, and the line of the plan found: height, slope."""
        c, habitat = self.c, len(self.c.crops)
        multiplier = np.zeros(habitat + 2)
        multiplier[[k for k, _ in self.asked]] = x / self.unit
        half = Certificate(multiplier[:habitat], multiplier[habitat], multiplier[habitat + 1], np.zeros(len(c.pair_i)))
        alone = np.where(c.allowed[:, :habitat], c.crop + half.floor_multiplier * c.credited_t, -np.inf)
        crop = alone.argmax(axis=1)
        best_crop = alone[np.arange(len(c)), crop]
        as_habitat = c.habitat + (half.habitat_least - half.habitat_greatest) * c.area_ha
        as_habitat = np.where(c.allowed[:, habitat], as_habitat, -np.inf)
        found = habitat_cut(as_habitat - best_crop, c.pair_i, c.pair_j, c.pair_gain)
        share = np.divide(found.credit, c.pair_gain, out=np.full(len(c.pair_i), 0.5), where=c.pair_gain > 0)
        certificate = Certificate(
            half.floor_multiplier, half.habitat_least, half.habitat_greatest, np.clip(share, 0.0, 1.0)
        )

        rows = np.flatnonzero(~found.habitat)
        grown = crop[rows]
        supplied = np.bincount(grown, c.credited_t[rows, grown], habitat)
        in_habitat = float(c.area_ha[found.habitat].sum())
        surplus = [
            supplied[k] - amount if k < habitat else (in_habitat - amount) * (1 if k == habitat else -1)
            for k, amount in self.asked
        ]
        slope = np.array(surplus) / self.unit if surplus else np.zeros(0)
        both = found.habitat[c.pair_i] & found.habitat[c.pair_j]
        height = float(c.own[rows, grown].sum() + c.habitat[found.habitat].sum() + c.pair_gain[both].sum())
        at_prices = float(values(c, certificate).max(axis=1).sum())
        constant = sum(
            price * amount * (1 if k == habitat + 1 else -1)
            for (k, amount), price in zip(self.asked, (x / self.unit).tolist(), strict=True)
        )
        return certificate, at_prices + constant, height, slope
