"""The smallest repair of a plan that misses supply floors: as few polygons as possible change their class.

Binary x_ik of the GLM (:mod:`oracle.glm`) with its constraints, and another objective: with k(i) the plan's class of
polygon i and J the GLM's objective, scaled to 0..1 between the least and the most that any plan has ::

    maximise    J' / 2 - sum_i (1 - x_i,k(i))

J' / 2 never outweighs a polygon, so among the smallest repairs one of great worth is taken. The count is proven to be
the smallest where the solver's bound rules out one polygon less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from oracle.coefficients import Coefficients
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import GLMConfig
from oracle.highs import run
from oracle.plan import violations

_WORTH = 0.5
_GAP = 0.01
"""Of J' / 2: the search for worth ends here, that for the count does not (1 polygon is 1)."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A plan that meets everything."""

    choice: np.ndarray
    """(n,) int class positions."""
    changed: int
    """Polygons with another class than before."""
    smallest: bool
    """No repair changes fewer (by the solver's word); else the time limit passed."""


def smallest_repair(c: Coefficients, choice: np.ndarray, config: GLMConfig, seconds: float) -> Repair | None:
    """Repair a plan; None where the time passed without one.

    Parameters
    ----------
    c : Coefficients
        Of n polygons.
    choice : (n,) array of int
        The plan, whose classes are all allowed.
    config : GLMConfig
        Its threads and seed.
    seconds : float
        Time limit.
    """
    if not violations(c, choice):
        return Repair(choice, 0, True)
    arrays, n = glm_arrays(c), len(c)
    own = np.where(c.allowed, c.own, np.nan)
    least, most = math.fsum(np.nanmin(own, axis=1)), math.fsum(np.nanmax(own, axis=1)) + math.fsum(c.pair_gain)
    scale = _WORTH / max(most - least, 1e-12)
    kept = (np.arange(n), choice)
    gain = np.concatenate([(c.own * scale).ravel(), c.pair_gain * scale])
    gain[np.ravel_multi_index(kept, c.own.shape)] += 1.0
    answer = run(replace(arrays, gain=gain), config, seconds, whole=True, gap=_GAP)
    if not answer.has_plan:
        return None
    repaired = arrays.choice(answer.column)
    if violations(c, repaired):
        return None
    changed = int((repaired != choice).sum())
    bound = answer.bound - n - scale * least  # of J' / 2 - changed
    return Repair(repaired, changed, bound < 1 - changed)
