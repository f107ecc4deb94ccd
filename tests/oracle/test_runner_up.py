"""The search for the best plan that differs, against the list of all plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.coefficients import coefficients
from oracle.core import core, losses, open_closest
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import GLMConfig
from oracle.highs import run
from oracle.lagrangian import least_bound
from oracle.neighbours import neighbour_graph
from oracle.plan import terms, violations
from oracle.solution import save_solution
from oracle.solve import solve
from oracle.verify import verify

from .brute_force import assert_stands, every_plan
from .conftest import FOUR_CROPS, build_grid_graph, build_grid_landscape

FLOORS = dict.fromkeys(FOUR_CROPS[:2], 0.7)


@pytest.mark.parametrize("seed", range(15))
def test_no_plan_but_this_one_reaches_the_searchs_bound(seed):
    landscape, graph = build_grid_landscape(2, 4, crops=FOUR_CROPS[:2], seed=seed), build_grid_graph(2, 4)
    config = GLMConfig(supply_floors=FLOORS, prices={"wheat": 300.0, "oat": 250.0})
    solution = solve(landscape, graph, config)
    c = coefficients(landscape, graph, config)
    every = every_plan(c)
    assert solution.objective == pytest.approx(every.best, abs=1e-12)
    differs = every.feasible & (every.choice != solution.choice).any(axis=1)
    second = every.objective[differs].max(initial=-np.inf)
    if second < every.best - 1e-6 / len(c):
        assert (solution.status == "unique").all()
        assert second <= max(solution.searched.bound, every.best - solution.regret_low[solution.regret_low > 0].min())
    else:
        assert (solution.status == "tied").any()
    for other in solution.searched.others:
        assert not violations(c, other)
        assert terms(c, other).objective <= every.best + 1e-12


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 8, 10])
def test_two_fields_that_could_nearly_be_exchanged_leave_no_other_label_open(tmp_path, seed):
    """Yields with two decimals at round prices often allow that; what the solver cannot tell apart stays undecided."""
    random = build_grid_landscape(2, 4, crops=FOUR_CROPS[:2], seed=seed)
    yields, area = random.yields.copy(), random.areas_ha
    yields[1] = yields[0] * area[0] / area[1]
    yields[1, 0] += 6e-7
    connectivity = np.r_[0.1, 0.1, random.connectivity[2:]]
    landscape = build_grid_landscape(2, 4, crops=FOUR_CROPS[:2], yields=yields, connectivity=connectivity)
    graph = neighbour_graph(landscape)
    solution = solve(landscape, graph, GLMConfig(supply_floors=FLOORS, prices={"wheat": 300.0, "oat": 250.0}))
    assert solution.land_use[0] != solution.land_use[1]
    assert solution.status.tolist() == ["undecided"] * 2 + ["unique"] * 6
    c = coefficients(landscape, graph, solution.config)
    assert_stands(c, every_plan(c), solution)
    save_solution(tmp_path, landscape, graph, solution)
    assert verify(tmp_path).undecided == 2


def test_it_decides_what_the_certificate_leaves_open_and_says_on_whose_word():
    landscape, graph = build_grid_landscape(20, 20, seed=5), build_grid_graph(20, 20)
    config = GLMConfig(supply_floors={"wheat": 0.5})
    without = solve(landscape, graph, config.model_copy(update={"proof_nodes": 0}))
    with_search = solve(landscape, graph, config)
    assert (without.status == "undecided").any()
    assert not (without.proof == "search").any()
    assert (with_search.status == "undecided").sum() < (without.status == "undecided").sum()
    assert ((with_search.proof == "search") <= (with_search.status == "unique")).all()
    assert with_search.objective >= without.objective - 1e-12


def test_the_core_with_everything_open_is_the_whole_programme():
    c = coefficients(build_grid_landscape(4, 5), build_grid_graph(4, 5), GLMConfig(supply_floors=FLOORS))
    arrays, loss = glm_arrays(c), losses(c, least_bound(c).certificate)
    whole = run(arrays, GLMConfig(), 30.0, whole=True)
    part = core(open_closest(c, loss, 10_000), arrays)
    answer = run(part.arrays, GLMConfig(), 30.0, whole=True)
    assert answer.objective + part.constant == pytest.approx(whole.objective, abs=1e-9)
    np.testing.assert_array_equal(arrays.choice(part.column(answer.column)), arrays.choice(whole.column))


def test_a_core_whose_settled_part_breaks_a_floor_has_no_plan():
    """Everything settled on habitat: the floor's row stays, so the solver says that there is no plan."""
    c = coefficients(build_grid_landscape(2, 2), build_grid_graph(2, 2), GLMConfig(supply_floors={"wheat": 0.5}))
    settled = np.zeros_like(c.allowed)
    settled[:, -1] = True
    part = core(replace(c, allowed=settled), glm_arrays(c))
    assert not run(part.arrays, GLMConfig(), 10.0, whole=True).has_plan
