"""Solve the GLM: the least bound, a plan close to it, and what is left open.

1. Prices and one minimum cut give the certificate, whose bound is recomputed (:mod:`oracle.lagrangian`).
2. HiGHS searches for the plan among the polygons that these prices decide least clearly (:mod:`oracle.core`); where
   that plan is not certified to lie within the gap, among all classes that a better plan could have. Exchanges of one
   or two polygons polish it; ties fall to the earlier class (:func:`oracle.regret.settle_ties`).
3. A search for the best plan that differs decides labels that the certificate leaves open (:mod:`oracle.runner_up`).
4. Feasibility and every term are recomputed with numpy; the solver's word counts only where a label says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from oracle.canonical import canonical
from oracle.certificate import MARGIN, Certificate, balanced, bound
from oracle.coefficients import Coefficients, SharedLengths, coefficients
from oracle.core import core, losses, open_closest, open_to_better
from oracle.errors import SolveError
from oracle.feasibility import check_possible, jointly_infeasible
from oracle.glm_arrays import GLMArrays, glm_arrays
from oracle.glm_config import GLMConfig, Method
from oracle.highs import Answer, Status, run
from oracle.lagrangian import least_bound
from oracle.landscape import Landscape
from oracle.plan import relative_gap, supply_t, terms, violations
from oracle.regret import Searched, exchanges, regret, settle_ties
from oracle.runner_up import runner_up
from oracle.solution import Hashes, Solution

Progress = Callable[[str], None]

_AGREEMENT = 1e-6  # objective units, between the solver's objective and the recomputed one
_IMPROVEMENT = 1e-10
_CORE_POLYGONS = 400
_CORE_NODES = 1  # the root's heuristics find what there is; where they do not, the wider search takes over
_POLISHED_BEYOND_THE_GOAL = 2_000  # polygons
_SAID_EVERY_S = 1.0


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

    deadline = started + config.time_limit_s
    certificate, least = _least_bound(c, config, deadline, say)
    upper_bound = bound(c, certificate)
    say(f"bound: no plan exceeds {upper_bound:.6f}")

    search = _Search(c, arrays, config, certificate, upper_bound, deadline, say)
    choice, solver_bound = _plan(search)
    plan_time_s = time.monotonic() - started
    if config.proof_nodes and not search.stopped and search.left > 0:
        choice, searched = runner_up(
            c, arrays, choice, certificate, upper_bound, config.proof_nodes, lambda a, nodes: search.run(a, nodes=nodes)
        )
    else:
        searched = Searched()
    wrong = violations(c, choice)
    if wrong:
        raise SolveError("the solver's plan is not feasible:\n" + "\n".join(f"  - {w}" for w in wrong))
    plan = terms(c, choice)
    if plan.objective > upper_bound + 1e-9:
        raise SolveError(f"the plan's objective {plan.objective:.9f} is above the certified bound {upper_bound:.9f}")
    below = relative_gap(plan.objective, upper_bound)
    say(f"plan: objective {plan.objective:.6f}, at most {100 * below:.2g} % below the optimum")

    judged = sorted_by_id.regret_back(regret(c, choice, certificate, searched))
    counts = {s: int((judged.status == s).sum()) for s in np.unique(judged.status)}
    say("labels: " + ", ".join(f"{count:,} {status}" for status, count in counts.items()))
    return Solution(
        landscape=landscape.name,
        classes=c.classes,
        ids=landscape.ids,
        land_use=np.array(c.classes, dtype=object)[sorted_by_id.back(choice)],
        status=judged.status,
        proof=judged.proof,
        regret_low=judged.low,
        regret_high=judged.high,
        terms=plan,
        upper_bound=max(upper_bound, plan.objective),
        solver_bound=min(solver_bound, least),
        supply_t=supply_t(c, choice),
        floor_t=c.floor_t,
        shadow_price=dict(zip(c.crops, (certificate.floor_multiplier * c.currency_per_unit).tolist(), strict=True)),
        habitat_price=c.habitat_price,
        adjacency_price=c.adjacency_price,
        certificate=sorted_by_id.certificate_back(certificate),
        searched=sorted_by_id.searched_back(searched),
        hashes=Hashes(landscape.sha256, graph.sha256, config.sha256),
        config=config,
        plan_time_s=plan_time_s,
        wall_time_s=time.monotonic() - started,
        solver=f"HiGHS {version('highspy')}",
        versions={p: version(p) for p in ("highspy", "pulp", "numpy", "geopandas", "shapely", "pyproj")},
    )


@dataclass(eq=False)
class _Search:
    """The whole programme, how far the search for its plan is to go, and how long it may."""

    c: Coefficients
    arrays: GLMArrays
    config: GLMConfig
    certificate: Certificate
    upper_bound: float
    deadline: float
    say: Progress
    stopped: bool = False
    """By Ctrl-C."""

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    @property
    def goal(self) -> float:
        return self.upper_bound - self.config.gap * abs(self.upper_bound) - MARGIN

    def run(self, arrays: GLMArrays, *, gap: float = 0.0, nodes: int | None = None, constant: float = 0.0) -> Answer:
        """Search for whole plans; ``gap`` in objective units, ``constant`` what is settled, in the arrays' units."""

        def moved(plan: float, bound_: float) -> None:
            worth, at_most = ((v + constant) / len(self.c) for v in (plan, bound_))
            found = f"plan {worth:.6f}, gap {relative_gap(worth, at_most):.1e}" if plan > -np.inf else "no plan yet"
            self.say(f"search: {found}, solver's bound {at_most:.6f}")

        answer = run(
            arrays,
            self.config,
            self.left,
            whole=True,
            gap=gap * len(self.c),
            nodes=nodes,
            moved=moved,
        )
        self.stopped |= answer.stopped
        return answer

    def within(
        self, narrowed: Coefficients, *, gap: float, nodes: int | None = None
    ) -> tuple[Answer, np.ndarray, float]:
        """Search among the classes that ``narrowed`` allows: the answer, its plan if any, the solver's bound on all."""
        part = core(narrowed, self.arrays)
        answer = self.run(part.arrays, gap=gap, nodes=nodes, constant=part.constant)
        if not answer.has_plan:
            return answer, np.empty(0, dtype=int), np.inf
        choice = self.arrays.choice(part.column(answer.column))
        reported = (answer.objective + part.constant) / len(self.c)
        recomputed = terms(self.c, choice).objective
        if abs(reported - recomputed) > _AGREEMENT:
            raise SolveError(f"the solver reports objective {reported:.9f}, its plan is worth {recomputed:.9f}")
        bound_ = (answer.bound + part.constant) / len(self.c)
        return answer, settle_ties(self.c, polish(self.c, choice, self.goal)[0]), bound_


def polish(c: Coefficients, choice: np.ndarray, goal: float = math.inf, at_most: int = 200) -> tuple[np.ndarray, int]:
    """Take the best feasible exchange of one or two polygons until none improves the plan; (plan, exchanges made).

    Beyond 2,000 polygons it ends as soon as the objective reaches ``goal``.
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


def _least_bound(c: Coefficients, config: GLMConfig, deadline: float, say: Progress) -> tuple[Certificate, float]:
    """The certificate of the least bound, and its value as the search for it counts."""
    said = time.monotonic()

    def moved(value: float) -> None:
        nonlocal said
        if time.monotonic() - said >= _SAID_EVERY_S:
            said = time.monotonic()
            say(f"bound: {value:.6f} so far")

    found = least_bound(c, deadline=deadline, moved=moved)
    if found.infeasible:
        raise jointly_infeasible(c, config)
    return balanced(c, found.certificate), found.value


def _plan(search: _Search) -> tuple[np.ndarray, float]:
    """A plan and the solver's own bound, infinite where it has none on the whole programme.

    First from the core. Where that plan is not certified to lie within the gap, from the classes that a better plan
    could have: one that loses more at the certificate's prices than bound less plan cannot. Else from the whole.
    """
    c, config = search.c, search.config
    gap = config.gap * abs(search.upper_bound)
    plans, wider = [], c
    if config.method is Method.CORE:
        loss = losses(c, search.certificate)
        answer, choice, _ = search.within(open_closest(c, loss, _CORE_POLYGONS), gap=0.0, nodes=_CORE_NODES)
        if answer.has_plan:
            plans.append(choice)
            objective = terms(c, choice).objective
            if objective >= search.goal or answer.stopped:
                return choice, np.inf
            wider = open_to_better(c, loss, search.upper_bound - objective)
        elif answer.stopped:
            raise KeyboardInterrupt
    answer, choice, solver_bound = search.within(wider, gap=gap)
    if answer.has_plan:
        plans.append(choice)
    if not plans:
        if answer.stopped:
            raise KeyboardInterrupt
        if answer.infeasible:
            raise jointly_infeasible(c, config)
        raise SolveError(_ended(answer, "the search for a plan", config))
    best = max(plans, key=lambda choice: terms(c, choice).objective)
    return best, max(solver_bound, terms(c, best).objective)


def _ended(answer: Answer, what: str, config: GLMConfig) -> str:
    if answer.status in (Status.kTimeLimit, Status.kInterrupt):
        return f"{what} found nothing within {config.time_limit_s:g} s: raise time_limit_s, or lower the supply floors"
    return f"{what} ended with the solver's status {answer.ended!r}"
