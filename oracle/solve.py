"""Solve the GLM: relaxation, certificate, whole-polygon plan, check.

1. The relaxation's duals become the certificate, whose bound is recomputed without the solver.
2. HiGHS searches for the plan among the polygons that the relaxation's prices leave open (the core); only where that
   plan is not certified to lie within the gap, among the classes that a better plan could have. Exchanges of one or
   two polygons polish it; ties fall to the earlier class (:func:`oracle.regret.settle_ties`).
3. Feasibility and every term are recomputed with numpy; the solver's word counts for nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from oracle.canonical import canonical
from oracle.certificate import Certificate, balanced, bound, values
from oracle.coefficients import Coefficients, SharedLengths, coefficients
from oracle.errors import SolveError
from oracle.feasibility import check_possible, jointly_infeasible
from oracle.glm import floor_row_scale
from oracle.glm_arrays import GLMArrays, glm_arrays
from oracle.glm_config import GLMConfig, Method
from oracle.highs import Answer, Status, run
from oracle.landscape import Landscape
from oracle.plan import supply_t, terms, violations
from oracle.regret import exchanges, regret, settle_ties
from oracle.solution import Hashes, Solution

Progress = Callable[[str], None]

_AGREEMENT = 1e-6  # objective units, between the solver's objective and the recomputed one
_IMPROVEMENT = 1e-10
_CORE_AT_MOST = 400
_POLISHED_BEYOND_THE_GOAL = 20_000  # polygons
_NO_MARGIN = 1e-12  # objective units: the relaxation's pair duals are degenerate
_CORE_WORTHWHILE_FROM = 200  # polygons; below, the whole is as fast


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

    The same landscape, configuration and versions give the same labels whatever the order of the rows, unless the time
    limit cuts the search short. Ctrl-C ends it with the best plan found, or with KeyboardInterrupt before there is one.

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

    sorted_by_id = canonical(coefficients(landscape, graph, config), landscape.ids)
    c = sorted_by_id.coefficients
    check_possible(c)
    say(f"GLM of {landscape.name}: {len(c):,} polygons, {len(c.classes)} classes, {len(c.pair_i):,} neighbour pairs")
    arrays = glm_arrays(c)

    certificate, relaxed_optimum = _relax(c, arrays, config)
    certificate = balanced(c, certificate)
    upper_bound = bound(c, certificate)
    say(f"relaxation: no plan exceeds {upper_bound:.6f}")

    search = _Search(config, upper_bound, started + config.time_limit_s, say)
    choice, solver_bound = _plan(c, arrays, certificate, search)
    wrong = violations(c, choice)
    if wrong:
        raise SolveError("the solver's plan is not feasible:\n" + "\n".join(f"  - {w}" for w in wrong))
    plan = terms(c, choice)
    if plan.objective > upper_bound + 1e-9:
        raise SolveError(f"the plan's objective {plan.objective:.9f} is above the certified bound {upper_bound:.9f}")
    below = (upper_bound - plan.objective) / upper_bound if upper_bound > 0 else 0.0
    say(f"plan: objective {plan.objective:.6f}, at most {100 * below:.2g} % below the optimum")

    judged = sorted_by_id.regret_back(regret(c, choice, certificate))
    counts = {s: int((judged.status == s).sum()) for s in np.unique(judged.status)}
    say("labels: " + ", ".join(f"{count:,} {status}" for status, count in counts.items()))
    return Solution(
        landscape=landscape.name,
        classes=c.classes,
        ids=landscape.ids,
        land_use=np.array(c.classes, dtype=object)[sorted_by_id.back(choice)],
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
        certificate=sorted_by_id.certificate_back(certificate),
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
    say: Progress

    def left(self) -> float:
        return self.deadline - time.monotonic()

    @property
    def goal(self) -> float:
        return self.upper_bound * (1.0 - self.config.gap)

    def run(self, c: Coefficients, arrays: GLMArrays, seconds: float, gap: float) -> Answer:
        def moved(plan: float, bound_: float) -> None:
            found = f"plan {plan / len(c):.6f}, gap {(bound_ - plan) / bound_:.1e}" if plan > 0 else "no plan yet"
            self.say(f"search: {found}, solver's bound {bound_ / len(c):.6f}")

        return run(arrays, self.config, seconds, whole=True, gap=gap, moved=moved)


def polish(c: Coefficients, choice: np.ndarray, goal: float = math.inf, at_most: int = 200) -> tuple[np.ndarray, int]:
    """Take the best feasible exchange of one or two polygons until none improves the plan; (plan, exchanges made).

    Beyond 20,000 polygons it ends as soon as the objective reaches ``goal``.
    """
    for step in range(at_most):
        if len(c) > _POLISHED_BEYOND_THE_GOAL and terms(c, choice).objective >= goal:
            return choice, step
        best = exchanges(c, choice)
        polygon, to = np.unravel_index(int(np.argmax(best.gain)), best.gain.shape)
        if best.gain[polygon, to] <= _IMPROVEMENT:
            return choice, step
        choice = best.apply(choice, int(polygon), int(to))
    return choice, at_most


def _relax(c: Coefficients, arrays: GLMArrays, config: GLMConfig) -> tuple[Certificate, float]:
    """The relaxation's duals, clipped to what a certificate may be, and its optimum."""
    answer = run(arrays, config, config.time_limit_s, whole=False)
    if answer.stopped:
        raise KeyboardInterrupt
    if answer.infeasible:
        raise jointly_infeasible(c, config)
    if answer.status != Status.kOptimal:
        raise SolveError(_ended(answer, "the relaxation", config))
    n = len(c)
    price = np.abs(answer.row_dual) / n  # the model's objective is n times the GLM's
    first, floors, habitat = np.split(price[n:], [2 * len(c.pair_i), 2 * len(c.pair_i) + len(arrays.floors)])
    multiplier = np.zeros(len(c.crops))
    multiplier[arrays.floors] = floors / floor_row_scale(c)[arrays.floors]
    share = np.divide(first[::2], c.pair_gain, out=np.full(len(c.pair_i), 0.5), where=c.pair_gain > 0)
    of_habitat = dict(zip(arrays.habitat_rows, (habitat / c.area_ha.mean()).tolist(), strict=True))
    certificate = Certificate(
        floor_multiplier=multiplier,
        habitat_least=of_habitat.get("habitat_least", 0.0),
        habitat_greatest=of_habitat.get("habitat_greatest", 0.0),
        pair_share=np.clip(share, 0.0, 1.0),
    )
    return certificate, answer.objective / n


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


def _plan(c: Coefficients, arrays: GLMArrays, certificate: Certificate, search: _Search) -> tuple[np.ndarray, float]:
    """A plan and the solver's own bound.

    First from the core. Where that plan is not certified to lie within the gap, from the classes that a better plan
    could have: one that loses more at the certificate's prices than bound less plan cannot. Else from the whole.
    """
    gap, plans, wider = search.config.gap, [], arrays
    core = _core(c, certificate) if search.config.method is Method.CORE else None
    if core is not None:
        core_arrays = glm_arrays(core)
        answer = search.run(c, core_arrays, search.left() / 4, gap / 2)
        if answer.has_plan:
            plans.append(_polished(c, core_arrays, answer, search.goal))
            objective = terms(c, plans[0]).objective
            if objective >= search.goal or answer.stopped:
                return plans[0], np.inf
            wider = glm_arrays(_open_to_better(c, certificate, search.upper_bound - objective))
        elif answer.stopped:
            raise KeyboardInterrupt
    answer = search.run(c, wider, search.left(), gap)
    if answer.has_plan:
        plans.append(_polished(c, wider, answer, search.goal))
    if not plans:
        if answer.stopped:
            raise KeyboardInterrupt
        if answer.infeasible:
            raise jointly_infeasible(c, search.config)
        raise SolveError(_ended(answer, "the search for a plan", search.config))
    best = max(plans, key=lambda choice: terms(c, choice).objective)
    return best, max(answer.bound / len(c), terms(c, best).objective)


def _open_to_better(c: Coefficients, certificate: Certificate, gap: float) -> Coefficients:
    """The GLM with only the classes that a plan better by up to ``gap`` objective units could have."""
    v = values(c, certificate)
    return replace(c, allowed=c.allowed & (v.max(axis=1, keepdims=True) - v <= gap + _AGREEMENT / len(c)))


def _polished(c: Coefficients, arrays: GLMArrays, answer: Answer, goal: float) -> np.ndarray:
    choice = arrays.choice(answer.column)
    reported, recomputed = answer.objective / len(c), terms(c, choice).objective
    if abs(reported - recomputed) > _AGREEMENT:
        raise SolveError(f"the solver reports objective {reported:.9f}, its plan is worth {recomputed:.9f}")
    return settle_ties(c, polish(c, choice, goal)[0])


def _ended(answer: Answer, what: str, config: GLMConfig) -> str:
    if answer.status in (Status.kTimeLimit, Status.kInterrupt):
        return f"{what} found nothing within {config.time_limit_s:g} s: raise time_limit_s, or lower the supply floors"
    return f"{what} ended with the solver's status {answer.ended!r}"
