"""The best plan that differs: what a certificate leaves open about labels, a search may close.

The certificate proves a label unique where every other class loses more than bound less plan. Of all other labels
together one question remains: how good is the best plan that has at least one of the classes still open? Asked as a
programme of its own (the core with one more row, sum of the open x >= 1):

- it finds a better plan: that becomes the plan, and the question is asked again of fewer classes;
- it finds an equal one: the labels in which they differ are tied, and the question is asked without them;
- it finds one that is worse by less than the solver's tolerance: those labels stay open, and it is asked without them;
- nothing open reaches the plan: every label still open is unique, by what the solver's bound lacks of the plan.

The last is the solver's word, unlike the certificate; so labels carry what their status rests on
(:class:`oracle.regret.Proof`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, vstack

from oracle.certificate import Certificate
from oracle.coefficients import Coefficients
from oracle.core import Core, core, losses, open_to_better
from oracle.errors import SolveError
from oracle.glm_arrays import GLMArrays
from oracle.highs import Answer
from oracle.plan import terms, violations
from oracle.regret import Searched, settle_ties

MOST_OPEN = 1_000
"""Open classes beyond which the question is not asked: the first relaxation alone would take minutes."""
_SOLVER_TOLERANCE = 1e-6  # arrays' units, in which a polygon is worth about 1
_BETTER = 1e-12
_QUESTIONS = 50
_WIDER = 1.1

Ask = Callable[[GLMArrays, int], Answer]
"""Maximise over whole plans with at most so many nodes."""


def runner_up(
    c: Coefficients,
    arrays: GLMArrays,
    choice: np.ndarray,
    certificate: Certificate,
    upper_bound: float,
    nodes: int,
    ask: Ask,
) -> tuple[np.ndarray, Searched]:
    """Ask for the best plan that differs, until nothing is open, the nodes are used up, or Ctrl-C.

    Parameters
    ----------
    c, arrays : Coefficients, GLMArrays
        The whole programme.
    choice : (n,) array of int
        A feasible plan.
    certificate : Certificate
    upper_bound : float
        Its bound.
    nodes : int
        Budget over all questions: the same everywhere, unlike seconds.
    ask : callable
        The solver.

    Returns
    -------
    (n,) array of int, Searched
        The best plan known, and what is shown about all that differ from it.
    """
    loss, classes = losses(c, certificate), np.arange(len(c.classes))
    known = np.zeros(c.allowed.shape, dtype=bool)  # classes of another plan as good, or nearly
    least = np.inf  # a bound below this speaks of no class of theirs
    others: list[np.ndarray] = []
    for _ in range(_QUESTIONS):
        objective = terms(c, choice).objective
        within = max(_WIDER * (upper_bound - objective), 10 * _SOLVER_TOLERANCE / len(c))
        narrowed = open_to_better(c, loss, within)
        narrowed = replace(narrowed, allowed=narrowed.allowed | (classes == choice[:, None]))
        opened = narrowed.allowed & (classes != choice[:, None]) & ~known
        if not opened.any() or opened.sum() > MOST_OPEN or nodes <= 0:
            break
        programme = _with_one_of(core(narrowed, arrays), opened)
        answer = ask(programme.arrays, nodes)
        nodes -= max(answer.nodes, 1)
        outside = upper_bound - float(loss[c.allowed & ~narrowed.allowed].min(initial=np.inf))
        if answer.infeasible:
            return choice, Searched(tuple(others), outside) if outside < least else Searched(tuple(others))
        if not answer.has_plan:
            break
        other = arrays.choice(programme.column(answer.column))
        if violations(c, other):
            raise SolveError("the solver's second-best plan is not feasible")
        worth = terms(c, other).objective
        if worth > objective + _BETTER:
            others.append(choice)
            choice = settle_ties(c, other)
            known[:], least = False, np.inf
        else:
            others.append(other)
            bound = max((answer.bound + programme.constant + _SOLVER_TOLERANCE) / len(c), outside)
            if bound < min(objective, least):
                return choice, Searched(tuple(others), bound)
            if worth < objective - _SOLVER_TOLERANCE / len(c):
                break
            differs = np.flatnonzero(other != choice)
            known[differs, other[differs]], least = True, min(least, worth - _BETTER)
        if answer.stopped:
            break
    return choice, Searched(tuple(others))


def _with_one_of(small: Core, opened: np.ndarray) -> Core:
    """The core with the row that at least one open class is taken."""
    columns = np.searchsorted(small.free, np.flatnonzero(opened.ravel()))
    row = csc_array((np.ones(len(columns)), (np.zeros(len(columns), dtype=np.int64), columns)), (1, len(small.free)))
    arrays = replace(
        small.arrays,
        matrix=csc_array(vstack([small.arrays.matrix, row], format="csc")),
        row_lower=np.append(small.arrays.row_lower, 1.0),
        row_upper=np.append(small.arrays.row_upper, np.inf),
    )
    return replace(small, arrays=arrays)
