"""What cannot be met, in the words of whoever asked for it.

A single floor or habitat share that no plan meets is found by adding up (:func:`check_possible`). Floors that can each
be met, but not together, are relaxed: with r_k in 0..1 the share of crop k's floor that is given up ::

    minimise    sum_k r_k
    subject to  supply_k + r_k F_k >= F_k,  and everything else of the GLM (:mod:`oracle.glm`)

over whole plans, not over the relaxation, so what it says can be met can be met.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csc_array, hstack

from oracle.coefficients import Coefficients
from oracle.errors import InfeasibleError
from oracle.exact import exact_sum
from oracle.glm_arrays import GLMArrays, glm_arrays
from oracle.glm_config import GLMConfig
from oracle.highs import Answer, Status, run
from oracle.plan import TOLERANCE, floor_met, habitat_met, supply_t

_TIME_LIMIT_S = 10.0
"""Of each of the two searches for what can be met."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The floors that can be met together, K crops."""

    met_t: np.ndarray
    """(K,) tonnes: each crop's floor, or what the best plan has of it."""
    given_up: float
    """Sum over the crops of the share of the floor given up."""
    smallest: bool
    """No plan gives up less (by the solver's word); else the time limit passed."""


def check_possible(c: Coefficients) -> None:
    """Refuse what a single floor or the habitat share alone makes impossible.

    Raises
    ------
    InfeasibleError
        Naming each such crop with the tonnes asked and possible.
    """
    crops = len(c.crops)
    grown = np.where(c.allowed[:, :crops], c.production_t, 0.0)
    reasons = [
        f"{crop}: asked {asked:,.0f} t, at most {math.fsum(grown[:, k]):,.0f} t here"
        for k, (crop, asked) in enumerate(zip(c.crops, c.floor_t, strict=True))
        if not floor_met(grown[:, k], asked)
    ]
    possible = c.allowed[:, crops]
    forced = possible & ~c.allowed[:, :crops].any(axis=1)
    share = [float(exact_sum(c.area_ha[rows]) / exact_sum(c.area_ha)) for rows in (possible, forced)]
    least, greatest = c.habitat_share
    if not habitat_met(c, possible)[0]:
        reasons.append(f"habitat: asked {least:.2%} of the area, at most {share[0]:.2%} here (the rest is locked)")
    if not habitat_met(c, forced)[1]:
        reasons.append(f"habitat: asked at most {greatest:.2%} of the area, but {share[1]:.2%} can be nothing else")
    if reasons:
        raise InfeasibleError(
            "no plan can meet what is asked:\n"
            + "\n".join(f"  - {r}" for r in reasons)
            + "\nlower these supply floors or habitat shares, or free locked polygons"
        )


def jointly_infeasible(c: Coefficients, config: GLMConfig) -> InfeasibleError:
    """The error for floors that can each be met alone but not all together: what of them can."""
    found = smallest_relaxation(c, config)
    least, greatest = c.habitat_share
    if found is None:
        return InfeasibleError(
            f"no plan has {least:.2%} to {greatest:.2%} of the area in habitat with these polygons and locks: "
            "widen habitat_share or free locked polygons"
        )
    together = "\n".join(
        f"  - {crop}: asked {asked:,.0f} t, "
        + (f"{math.floor(met):,} t can be met together with the rest" if met < asked else "which can be met")
        for crop, asked, met in zip(c.crops, c.floor_t, found.met_t, strict=True)
        if asked > 0
    )
    how = "giving up the least" if found.smallest else f"the best found within {_TIME_LIMIT_S:g} s"
    beside = f" with habitat on {least:.2%} to {greatest:.2%} of the area" if (least, greatest) != (0.0, 1.0) else ""
    common = common_factor(c, config)
    return InfeasibleError(
        f"each supply floor can be met alone, but not all together{beside}; {how}:\n{together}\n"
        + (f"or all of them times {math.floor(common * 1000) / 1000:.3f}; " if common is not None else "")
        + "lower some, or widen habitat_share"
    )


def smallest_relaxation(c: Coefficients, config: GLMConfig) -> Relaxation | None:
    """The floors whose relative shortfalls add up to the least; None where no plan meets even the habitat share."""
    arrays = glm_arrays(c)
    rows, asked = _floor_rows(arrays), arrays.row_lower[_floor_rows(arrays)]
    given_up = csc_array((asked, (rows, np.arange(len(rows)))), shape=(arrays.matrix.shape[0], len(rows)))
    answer = _search(arrays, given_up, np.full(len(rows), -1.0), arrays.row_lower, config)
    if not answer.has_plan:
        return None
    supply = supply_t(c, arrays.choice(answer.column))
    floors = c.floor_t[arrays.floors]
    met = supply[arrays.floors] >= floors * (1.0 - TOLERANCE)
    met_t = np.zeros(len(c.crops))
    met_t[arrays.floors] = np.where(met, floors, supply[arrays.floors])
    shortfall = 1.0 - met_t[arrays.floors] / floors
    return Relaxation(met_t, math.fsum(shortfall), answer.status == Status.kOptimal)


def common_factor(c: Coefficients, config: GLMConfig) -> float | None:
    """The largest factor found, up to 1, with which all floors can be met; None where no plan was found."""
    arrays = glm_arrays(c)
    rows, lower = _floor_rows(arrays), arrays.row_lower.copy()
    lower[rows] = 0.0
    at = (-arrays.row_lower[rows], (rows, np.zeros(len(rows), dtype=int)))
    answer = _search(arrays, csc_array(at, shape=(arrays.matrix.shape[0], 1)), np.ones(1), lower, config)
    return min(float(answer.column[-1]), 1.0) if answer.has_plan else None


def _floor_rows(arrays: GLMArrays) -> np.ndarray:
    return arrays.first_floor + np.arange(len(arrays.floors))


def _search(
    arrays: GLMArrays, columns: csc_array, gain: np.ndarray, row_lower: np.ndarray, config: GLMConfig
) -> Answer:
    """Maximise ``gain`` over further ``columns`` in 0..1 alone, under the GLM's constraints."""
    extended = replace(
        arrays,
        gain=np.append(np.zeros(len(arrays.gain)), gain),
        upper=np.append(arrays.upper, np.ones(len(gain))),
        matrix=hstack([arrays.matrix, columns], format="csc"),
        row_lower=row_lower,
    )
    return run(extended, config, min(_TIME_LIMIT_S, config.time_limit_s), whole=True, gap=config.gap)
