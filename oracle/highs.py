"""HiGHS on the GLM's arrays: one run, its answer, and how it is stopped.

The solver's status is kept apart from whether it has a plan: a time limit with a plan is not an optimum, and without
one every column reads 0. Ctrl-C and a deadline that HiGHS oversleeps cancel the run; what it has found by then counts.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

import highspy
import numpy as np

from oracle.glm_arrays import GLMArrays
from oracle.glm_config import GLMConfig
from oracle.plan import TOLERANCE

Status = highspy.HighsModelStatus
Moved = Callable[[float, float], None]
"""Receives the best plan's objective (-inf: none) and the solver's bound, both as the arrays count them."""

_OVERSLEPT_S = 2.0
_POLL_S = 0.05
_PROGRESS_EVERY_S = 1.0


@dataclass(frozen=True, eq=False)
class Answer:
    """What HiGHS returned, in the arrays' units."""

    status: highspy.HighsModelStatus
    has_plan: bool
    objective: float
    bound: float
    """Of a search for whole plans: the solver's own bound."""
    column: np.ndarray
    stopped: bool
    """By Ctrl-C."""
    nodes: int
    """Of the search for whole plans."""
    seconds: float

    @property
    def infeasible(self) -> bool:
        return self.status in (Status.kInfeasible, Status.kUnboundedOrInfeasible)

    @property
    def ended(self) -> str:
        return highspy.Highs().modelStatusToString(self.status)


def run(
    arrays: GLMArrays,
    config: GLMConfig,
    seconds: float,
    *,
    whole: bool,
    gap: float = 0.0,
    nodes: int | None = None,
    moved: Moved | None = None,
) -> Answer:
    """Maximise over whole plans, or over the relaxation.

    Parameters
    ----------
    arrays : GLMArrays
    config : GLMConfig
        Its threads and seed.
    seconds : float
        Time limit.
    whole : bool
        Over whole plans.
    gap : float
        The search ends with a plan within this of the solver's bound, in the arrays' units.
    nodes : int, optional
        The search ends after so many nodes of its tree: unlike a time limit the same everywhere.
    moved : callable, optional
        Told about better plans and bounds, at most every second.
    """
    _print_banner_on_stderr()
    began = time.monotonic()
    highspy.Highs.resetGlobalScheduler(True)  # else another number of threads in one process is an error
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    options = {
        "time_limit": max(seconds, 0.01),
        "threads": config.threads,
        "random_seed": config.seed,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": gap,
        "mip_feasibility_tolerance": TOLERANCE / 10,
    }
    if nodes is not None:
        options["mip_max_nodes"] = nodes
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(_highs_lp(arrays, whole))
    if moved is not None and whole:
        highs.cbMipInterrupt += _throttled(moved)  # cbMipLogging is silent where the output is
    stopped = _run_until(highs, began + max(seconds, 0.01) + _OVERSLEPT_S)
    info, solution = highs.getInfo(), highs.getSolution()
    return Answer(
        status=highs.getModelStatus(),
        has_plan=info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible),
        objective=info.objective_function_value,
        bound=info.mip_dual_bound if whole else info.objective_function_value,
        column=np.array(solution.col_value),
        stopped=stopped,
        nodes=max(int(info.mip_node_count), 0),
        seconds=time.monotonic() - began,
    )


def _highs_lp(arrays: GLMArrays, whole: bool) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = arrays.matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = arrays.gain
    lp.col_lower_, lp.col_upper_ = np.zeros(len(arrays.gain)), arrays.upper
    lp.row_lower_, lp.row_upper_ = arrays.row_lower, arrays.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = arrays.matrix.indptr
    lp.a_matrix_.index_ = arrays.matrix.indices
    lp.a_matrix_.value_ = arrays.matrix.data
    if whole:
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger] * arrays.integer + [kinds.kContinuous] * (len(arrays.gain) - arrays.integer)
    return lp


def _run_until(highs: highspy.Highs, deadline: float) -> bool:
    """Run in a thread, so that this one hears Ctrl-C; whether it did."""
    stopped = False
    highs.HandleUserInterrupt = True
    with ThreadPoolExecutor(max_workers=1) as executor:
        running = executor.submit(highs.run)
        while not running.done():
            try:
                wait([running], timeout=_POLL_S)
            except KeyboardInterrupt:
                stopped = True
            if stopped or time.monotonic() > deadline:
                highs.cancelSolve()
        running.result()
    return stopped


def _throttled(moved: Moved) -> Callable[[Any], None]:
    last = time.monotonic()

    def tell(event: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_EVERY_S:
            last = time.monotonic()
            plan = event.data_out.mip_primal_bound
            moved(plan if np.isfinite(plan) else -np.inf, event.data_out.mip_dual_bound)

    return tell


@cache
def _print_banner_on_stderr() -> None:
    """HiGHS prints two lines on standard output, once per process and whatever its options: keep that for results."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        highspy.Highs()
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
