"""Solve the GLM: relaxation, certificate, whole-polygon plan, check.

1. The relaxation's duals become the certificate, whose bound is recomputed without the solver.
2. HiGHS searches for the plan among the polygons that the relaxation's prices leave open (the core); only where that
   plan is not certified to lie within the gap, among all. Exchanges of one or two polygons polish it.
3. Feasibility and every term are recomputed with numpy; the solver's word counts for nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

import highspy
import numpy as np
import pulp

from oracle.certificate import Certificate, balanced, bound, values
from oracle.coefficients import Coefficients, SharedLengths, coefficients
from oracle.errors import InfeasibleError, SolveError
from oracle.glm import PulpVariables, floor_row_scale, pulp_model
from oracle.glm_config import GLMConfig
from oracle.landscape import Landscape
from oracle.plan import TOLERANCE, supply_t, terms, violations
from oracle.regret import exchanges, regret
from oracle.solution import Hashes, Solution

Progress = Callable[[str], None]

_AGREEMENT = 1e-6  # objective units, between the solver's objective and the recomputed one
_IMPROVEMENT = 1e-10
_CORE_AT_MOST = 400
_NO_MARGIN = 1e-12  # objective units: the relaxation's pair duals are degenerate
_CORE_WORTHWHILE_FROM = 200  # polygons; below, the whole is as fast
_FACTOR_TIME_LIMIT_S = 10.0
_Status = highspy.HighsModelStatus


def solve(
    landscape: Landscape,
    graph: SharedLengths,
    config: GLMConfig | None = None,
    progress: Progress | None = None,
) -> Solution:
    """The best plan found for a landscape, a certified bound on every other plan, and regret per polygon and class.

    Parameters
    ----------
    landscape : Landscape
    graph : NeighbourGraph
        Or anything with ``shared`` and ``sha256``.
    config : GLMConfig, optional
        Prices, floors, weights; and the relative gap and time limit at which the search ends.
    progress : callable, optional
        Receives a readable line per stage.

    Raises
    ------
    InfeasibleError
        Where no plan meets the floors, habitat share and locks; names the crops, the tonnes asked and possible.
    SolveError
        Where the time limit passes without a plan, or the solver's answer does not stand up to recomputation.
    ConfigurationError
        As :func:`oracle.coefficients.coefficients`.
    """
    started = time.monotonic()
    config = config or GLMConfig()
    say = progress or (lambda _: None)

    c = coefficients(landscape, graph, config)
    check_possible(c)
    say(f"GLM of {landscape.name}: {len(c):,} polygons, {len(c.classes)} classes, {len(c.pair_i):,} neighbour pairs")
    model, variables = pulp_model(c)

    certificate, relaxed_optimum = _relax(c, model, config)
    certificate = balanced(c, certificate)
    upper_bound = bound(c, certificate)
    say(f"relaxation: no plan exceeds {upper_bound:.6f}")

    search = _Search(config, upper_bound, started + config.time_limit_s)
    choice, solver_bound = _plan(c, model, variables, certificate, search)
    wrong = violations(c, choice)
    if wrong:
        raise SolveError("the solver's plan is not feasible:\n" + "\n".join(f"  - {w}" for w in wrong))
    plan = terms(c, choice)
    if plan.objective > upper_bound + 1e-9:
        raise SolveError(f"the plan's objective {plan.objective:.9f} is above the certified bound {upper_bound:.9f}")
    below = (upper_bound - plan.objective) / upper_bound if upper_bound > 0 else 0.0
    say(f"plan: objective {plan.objective:.6f}, at most {100 * below:.2g} % below the optimum")

    judged = regret(c, choice, certificate)
    counts = {s: int((judged.status == s).sum()) for s in np.unique(judged.status)}
    say("labels: " + ", ".join(f"{count:,} {status}" for status, count in counts.items()))
    return Solution(
        landscape=landscape.name,
        classes=c.classes,
        ids=landscape.ids,
        land_use=np.array(c.classes, dtype=object)[choice],
        status=judged.status,
        regret_low=judged.low,
        regret_high=judged.high,
        terms=plan,
        upper_bound=max(upper_bound, plan.objective),
        solver_bound=min(solver_bound, relaxed_optimum),
        supply_t=supply_t(c, choice),
        floor_t=c.floor_t,
        shadow_price=dict(zip(c.crops, (certificate.floor_multiplier * c.currency_per_unit).tolist(), strict=True)),
        habitat_price=c.habitat_price,
        adjacency_price=c.adjacency_price,
        certificate=certificate,
        hashes=Hashes(landscape.sha256, graph.sha256, config.sha256),
        config=config,
        wall_time_s=time.monotonic() - started,
        solver=f"HiGHS {version('highspy')}",
        versions={p: version(p) for p in ("highspy", "pulp", "numpy", "geopandas", "shapely", "pyproj")},
    )


@dataclass(frozen=True)
class _Search:
    config: GLMConfig
    upper_bound: float
    deadline: float

    def left(self) -> float:
        return self.deadline - time.monotonic()


def check_possible(c: Coefficients) -> None:
    """Refuse what a single floor or the habitat share alone makes impossible.

    Raises
    ------
    InfeasibleError
        Naming each such crop with the tonnes asked and possible.
    """
    crops = len(c.crops)
    most = np.where(c.allowed[:, :crops], c.production_t, 0.0).sum(axis=0)
    reasons = [
        f"{crop}: asked {asked:,.0f} t, at most {at_most:,.0f} t here"
        for crop, asked, at_most in zip(c.crops, c.floor_t, most, strict=True)
        if at_most < asked * (1.0 - TOLERANCE)
    ]
    least, greatest = c.habitat_share
    area = c.area_ha.sum()
    possible = c.area_ha[c.allowed[:, crops]].sum() / area
    forced = c.area_ha[c.allowed[:, crops] & ~c.allowed[:, :crops].any(axis=1)].sum() / area
    if possible < least - TOLERANCE:
        reasons.append(f"habitat: asked {least:.2%} of the area, at most {possible:.2%} here (the rest is locked)")
    if forced > greatest + TOLERANCE:
        reasons.append(f"habitat: asked at most {greatest:.2%} of the area, but {forced:.2%} can be nothing else")
    if reasons:
        raise InfeasibleError(
            "no plan can meet what is asked:\n"
            + "\n".join(f"  - {r}" for r in reasons)
            + "\nlower these supply floors or habitat shares, or free locked polygons"
        )


def polish(c: Coefficients, choice: np.ndarray, at_most: int = 200) -> tuple[np.ndarray, int]:
    """Take the best feasible exchange of one or two polygons until none improves the plan; (plan, exchanges made)."""
    for step in range(at_most):
        best = exchanges(c, choice)
        polygon, to = np.unravel_index(int(np.argmax(best.gain)), best.gain.shape)
        if best.gain[polygon, to] <= _IMPROVEMENT:
            return choice, step
        choice = best.apply(choice, int(polygon), int(to))
    return choice, at_most


def _relax(c: Coefficients, model: pulp.LpProblem, config: GLMConfig) -> tuple[Certificate, float]:
    """The relaxation's duals, clipped to what a certificate may be, and its optimum."""
    highs = _run(model, config, config.time_limit_s, mip=False)
    status = highs.getModelStatus()
    if status == _Status.kInfeasible:
        raise _jointly_infeasible(c, config)
    if status != _Status.kOptimal:
        raise SolveError(_ended(highs, "the relaxation", config))
    dual = np.array(highs.getSolution().row_dual)
    rows, n = _rows(model), len(c)

    def price(name: str) -> float:  # the model's objective is n times the GLM's
        return abs(float(dual[rows[name].index])) / n if name in rows else 0.0

    scale = floor_row_scale(c)
    first = np.array([price(f"pair_{e}_i") for e in range(len(c.pair_i))])
    share = np.divide(first, c.pair_gain, out=np.full(len(first), 0.5), where=c.pair_gain > 0)
    mean_area = c.area_ha.mean()
    certificate = Certificate(
        floor_multiplier=np.array([price(f"floor_{k}") / scale[k] for k in range(len(c.crops))]),
        habitat_least=price("habitat_least") / mean_area,
        habitat_greatest=price("habitat_greatest") / mean_area,
        pair_share=np.clip(share, 0.0, 1.0),
    )
    return certificate, -highs.getInfo().objective_function_value / n


def _core(c: Coefficients, certificate: Certificate) -> Coefficients | None:
    """The GLM with only those polygons open whose class the prices decide least clearly; None where not much smaller.

    A polygon's margin is what its second best class lacks at the certificate's prices. Open stay all without margin
    and, of the others, the closest quarter (400 at most); there every class within the largest such margin is allowed.
    """
    v = values(c, certificate)
    loss = v.max(axis=1, keepdims=True) - v
    margin = np.sort(loss, axis=1)[:, 1]
    clear = np.sort(margin[(margin > _NO_MARGIN) & np.isfinite(margin)])
    if len(clear) < _CORE_WORTHWHILE_FROM:
        return None
    return replace(c, allowed=loss <= clear[min(len(clear) // 4, _CORE_AT_MOST)])


def _plan(
    c: Coefficients, model: pulp.LpProblem, variables: PulpVariables, certificate: Certificate, search: _Search
) -> tuple[np.ndarray, float]:
    """A plan and the solver's own bound: from the core, if certified to lie within the gap, else from the whole."""
    core = _core(c, certificate)
    from_core = None
    if core is not None:
        core_model, core_variables = pulp_model(core)
        highs = _run(core_model, search.config, search.left() / 4, mip=True, gap=search.config.gap / 2)
        if _has_plan(highs):
            from_core, _ = polish(c, _choice(highs, core_variables, core))
            if terms(c, from_core).objective >= search.upper_bound * (1.0 - search.config.gap):
                return from_core, np.inf
    highs = _run(model, search.config, search.left(), mip=True)
    if highs.getModelStatus() == _Status.kInfeasible and from_core is None:
        raise _jointly_infeasible(c, search.config)
    plans = [] if from_core is None else [from_core]
    if _has_plan(highs):
        plans.append(polish(c, _choice(highs, variables, c))[0])
    if not plans:
        raise SolveError(_ended(highs, "the search for a plan", search.config))
    return max(plans, key=lambda choice: terms(c, choice).objective), -highs.getInfo().mip_dual_bound / len(c)


def _has_plan(highs: highspy.Highs) -> bool:
    """Whether there is a whole-polygon plan at all; without one every variable reads 0."""
    return highs.getInfo().primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)


def _choice(highs: highspy.Highs, variables: PulpVariables, c: Coefficients) -> np.ndarray:
    column = np.array(highs.getSolution().col_value)
    index = np.array([[v.index for v in row] for row in variables.x])
    choice = column[index].argmax(axis=1)
    reported, recomputed = -highs.getInfo().objective_function_value / len(c), terms(c, choice).objective
    if abs(reported - recomputed) > _AGREEMENT:
        raise SolveError(f"the solver reports objective {reported:.9f}, its plan is worth {recomputed:.9f}")
    return choice


def _rows(model: pulp.LpProblem) -> dict[str, pulp.LpConstraint]:
    return {row.name: row for row in model.constraints()}


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


def _run(
    model: pulp.LpProblem, config: GLMConfig, seconds: float, *, mip: bool, gap: float | None = None
) -> highspy.Highs:
    """Run HiGHS on the PuLP model and return HiGHS itself: PuLP's status says "optimal" after a time limit too."""
    _print_banner_on_stderr()
    highspy.Highs.resetGlobalScheduler(True)  # else another number of threads in one process is an error
    model.solve(
        pulp.HiGHS(
            mip=mip,
            msg=False,
            timeLimit=max(seconds, 0.01),
            threads=config.threads,
            gapRel=config.gap if gap is None else gap,
            gapAbs=0.0,
            random_seed=config.seed,
            mip_feasibility_tolerance=TOLERANCE / 10,
        )
    )
    return model.solverModel


def _ended(highs: highspy.Highs, what: str, config: GLMConfig) -> str:
    status = highs.getModelStatus()
    if status == _Status.kTimeLimit:
        return f"{what} found nothing within {config.time_limit_s:g} s: raise time_limit_s, or lower the supply floors"
    return f"{what} ended with the solver's status {highs.modelStatusToString(status)!r}"


def _jointly_infeasible(c: Coefficients, config: GLMConfig) -> InfeasibleError:
    """Each floor can be met alone, all together cannot: the largest common factor of the floors that can."""
    model, _ = pulp_model(c)
    factor = pulp.LpVariable("factor", 0, 1)
    scale = floor_row_scale(c)
    rows = _rows(model)
    for k in np.flatnonzero(c.floor_t > 0).tolist():
        row = rows[f"floor_{k}"]
        row.addInPlace(-c.floor_t[k] / scale[k] * factor)
        row.changeRHS(0.0)
    model.setObjective(1.0 * factor)
    highs = _run(model, config, min(_FACTOR_TIME_LIMIT_S, config.time_limit_s), mip=True)
    asked = ", ".join(f"{crop} {floor:,.0f} t" for crop, floor in zip(c.crops, c.floor_t, strict=True) if floor > 0)
    if not _has_plan(highs):
        least, greatest = c.habitat_share
        return InfeasibleError(
            f"no plan has {least:.2%} to {greatest:.2%} of the area in habitat with these polygons and locks: "
            "widen habitat_share or free locked polygons"
        )
    common = min(float(highs.getSolution().col_value[factor.index]), 1.0)
    return InfeasibleError(
        f"each supply floor can be met alone, but not all together ({asked}): "
        f"all of them times {np.floor(common * 1000) / 1000:.3f} can be met; lower some, or widen habitat_share"
    )
