"""solve() against the list of all plans, on landscapes small enough to list them."""

from __future__ import annotations

import signal

import highspy
import numpy as np
import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.certificate import bound
from oracle.coefficients import coefficients
from oracle.errors import ConfigurationError, SolveError
from oracle.glm import pulp_model
from oracle.glm_config import FloorKind, GLMConfig, HabitatShare, Method
from oracle.landscape import Landscape
from oracle.neighbours import neighbour_graph
from oracle.plan import terms, violations
from oracle.regret import settle_ties
from oracle.solve import polish, solve

from .brute_force import assert_solved, every_plan
from .conftest import FOUR_CROPS, build_grid_graph, build_grid_landscape

PRICES = {"wheat": 300.0, "oat": 250.0, "corn": 200.0, "soy": 400.0}


@st.composite
def small_cases(draw):
    """A landscape of up to 6 polygons and 3 crops, with ties, zeros, locks, costs, floors and habitat shares."""
    rows, cols = draw(st.sampled_from([(1, 1), (1, 3), (2, 2), (2, 3), (1, 6)]))
    n, crops = rows * cols, FOUR_CROPS[: draw(st.integers(1, 3))]
    yields = draw(
        st.lists(
            st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, 7.0]), min_size=len(crops), max_size=len(crops)),
            min_size=n,
            max_size=n,
        )
    )
    connectivity = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=n, max_size=n))
    locked = []
    for row in yields:
        growable = [crop for crop, y in zip(crops, row, strict=True) if y > 0]
        locked.append(draw(st.sampled_from([None, None, None, "habitat", *growable])))
    low, high = sorted(draw(st.tuples(st.sampled_from([0.0, 0.2, 0.5]), st.sampled_from([0.4, 0.7, 1.0]))))
    config = GLMConfig(
        connectivity_weight=draw(st.sampled_from([0.0, 0.3, 0.5, 0.8])),
        adjacency_gain=draw(st.sampled_from([0.0, 1.0, 3.0])),
        prices=PRICES,
        costs={use: draw(st.sampled_from([0.0, 0.0, 300.0, 900.0])) for use in (*crops, "habitat")},
        supply_floors={crop: draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.6])) for crop in crops},
        habitat_share=HabitatShare(min=low, max=high),
        gap=0.0,
    )
    landscape = build_grid_landscape(
        rows, cols, crops=crops, yields=np.array(yields), connectivity=np.array(connectivity), locked=locked
    )
    return landscape, build_grid_graph(rows, cols), config


@settings(max_examples=150, deadline=None, derandomize=True)
@given(small_cases())
def test_the_plan_is_the_best_of_all_plans_and_every_interval_contains_the_true_regret(case):
    landscape, graph, config = case
    assert_solved(landscape, graph, config)


def test_a_plan_worked_out_by_hand():
    """Two fields of 64 ha, one good for wheat, one rich in habitat; w = 0.5, no adjacency.

    V = 64 ha * 300 * (4 + 2), C = 64 ha * (0.1 + 0.9): wheat and habitat take 4/6 and 0.9 of the two halves.
    """
    landscape = build_grid_landscape(
        1, 2, crops=("wheat",), yields=np.array([[4.0], [2.0]]), connectivity=np.array([0.1, 0.9])
    )
    config = GLMConfig(adjacency_gain=0.0, prices={"wheat": 300.0})
    solution = solve(landscape, build_grid_graph(1, 2), config)
    assert solution.land_use.tolist() == ["wheat", "habitat"]
    assert solution.objective == pytest.approx(0.5 * 4 / 6 + 0.5 * 0.9, abs=1e-6)
    # swapping the first to habitat costs 0.5 * (4/6 - 0.1), the second to wheat 0.5 * (0.9 - 2/6)
    np.testing.assert_allclose(solution.regret_low[0, 1], 0.5 * (4 / 6 - 0.1), atol=1e-6)
    np.testing.assert_allclose(solution.regret_high[1, 0], 0.5 * (0.9 - 2 / 6), atol=1e-6)
    assert solution.status.tolist() == ["unique", "unique"]
    assert solution.habitat_price == pytest.approx(300 * 6 / 1.0, rel=1e-5)  # w V / ((1 - w) C), currency/ha


def test_equal_fields_are_tied_and_the_plan_is_the_same_every_time():
    landscape = build_grid_landscape(1, 4, crops=("wheat",), yields=np.full((4, 1), 3.0), connectivity=np.full(4, 0.5))
    config = GLMConfig(adjacency_gain=0.0, prices={"wheat": 300.0}, connectivity_weight=0.5)
    first, again = (solve(landscape, build_grid_graph(1, 4), config) for _ in range(2))
    assert set(first.status) == {"tied"}
    assert first.land_use.tolist() == again.land_use.tolist()


def test_the_shadow_price_is_what_a_tonne_more_costs():
    """Wheat earns 300/t, soy 400/t at the same yield: each tonne of wheat asked for costs 100 of soy forgone."""
    n = 40
    landscape = build_grid_landscape(
        1, n, crops=("wheat", "soy"), yields=np.full((n, 2), 3.0), connectivity=np.zeros(n)
    )
    config = GLMConfig(prices=PRICES, supply_floors={"wheat": 0.5}, connectivity_weight=0.2)
    solution = solve(landscape, build_grid_graph(1, n), config)
    assert solution.shadow_price["wheat"] == pytest.approx(100.0, rel=1e-6)
    assert solution.shadow_price["soy"] == 0.0
    assert solution.supply_t[0] >= solution.floor_t[0] * (1 - 1e-6)


def test_at_the_shadow_prices_nearly_every_polygon_decides_as_the_plan_does():
    """What the prompts rest on: y (p + mu) against e times the habitat price, polygon by polygon."""
    landscape, graph = build_grid_landscape(12, 12, seed=3), build_grid_graph(12, 12)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), adjacency_gain=0.0, gap=1e-4)
    solution = solve(landscape, graph, config)
    prices = np.array([config.prices[c] + solution.shadow_price[c] for c in FOUR_CROPS])
    worth = np.column_stack([landscape.yields * prices, landscape.connectivity * solution.habitat_price])
    assert (worth.argmax(axis=1) == solution.choice).mean() > 0.93


def test_current_floors_keep_the_current_production():
    landscape = build_grid_landscape(3, 4, crops=("wheat", "oat"), current=["wheat"] * 4 + ["habitat"] * 8, seed=1)
    config = GLMConfig(floor_kind=FloorKind.CURRENT, supply_floors={"wheat": 1.0}, connectivity_weight=0.9)
    solution = solve(landscape, build_grid_graph(3, 4), config)
    expected = (landscape.areas_ha * landscape.yields[:, 0])[:4].sum()
    assert solution.floor_t.tolist() == pytest.approx([expected, 0.0])
    assert solution.supply_t[0] >= expected * (1 - 1e-6)


def test_current_floors_need_the_current_land_use():
    with pytest.raises(ConfigurationError, match="current_land_use"):
        solve(
            build_grid_landscape(2, 2),
            build_grid_graph(2, 2),
            GLMConfig(floor_kind=FloorKind.CURRENT, supply_floors={"wheat": 1.0}),
        )


def test_no_plan_within_the_time_limit_is_an_error_never_a_plan_of_zeros():
    landscape, graph = build_grid_landscape(30, 30), build_grid_graph(30, 30)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.9), time_limit_s=0.01)
    with pytest.raises(SolveError, match=r"within 0\.01 s"):
        solve(landscape, graph, config)


def test_a_time_limit_with_a_plan_returns_it_with_an_honest_gap():
    landscape, graph = build_grid_landscape(20, 20), build_grid_graph(20, 20)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), time_limit_s=3.0, gap=0.0)
    solution = solve(landscape, graph, config)
    assert not violations(coefficients(landscape, graph, config), solution.choice)
    assert 0 < solution.gap < 1e-3
    assert solution.wall_time_s < 6.0


def test_a_solver_that_oversleeps_its_time_limit_is_cancelled_and_its_plan_counts(monkeypatch):
    """HiGHS never hears of the limit: the watchdog beside it ends the search."""
    real, asked = highspy.Highs.setOptionValue, []

    def deaf(highs, name, value):
        if name != "time_limit":
            return real(highs, name, value)
        asked.append(value)
        return highspy.HighsStatus.kOk

    monkeypatch.setattr(highspy.Highs, "setOptionValue", deaf)
    landscape, graph = build_grid_landscape(24, 24), build_grid_graph(24, 24)
    floors = dict.fromkeys(FOUR_CROPS, 0.6)
    config = GLMConfig(supply_floors=floors, time_limit_s=1.0, gap=0.0, method=Method.MILP)
    solution = solve(landscape, graph, config)
    assert asked
    assert config.time_limit_s < solution.wall_time_s < config.time_limit_s + 5.0
    assert not violations(coefficients(landscape, graph, config), solution.choice)
    assert 0 < solution.gap < 1e-2


def test_the_core_gives_a_plan_within_the_gap_that_the_whole_search_does_not_beat_by_more():
    landscape, graph = build_grid_landscape(20, 25, seed=11), build_grid_graph(20, 25)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), gap=2e-4)
    c = coefficients(landscape, graph, config)
    solution = solve(landscape, graph, config)
    assert solution.gap <= config.gap
    model, _ = pulp_model(c)
    model.solve(pulp.HiGHS(msg=False, gapRel=2e-4, threads=1))
    whole = pulp.value(model.objective) / len(c)
    assert solution.objective >= whole * (1 - config.gap)
    assert whole <= solution.upper_bound + 1e-9


def test_polish_repairs_what_one_exchange_can_mend():
    landscape, graph = build_grid_landscape(1, 3, crops=("wheat",)), build_grid_graph(1, 3)
    c = coefficients(landscape, graph, GLMConfig(adjacency_gain=0.0))
    start = np.array([1, 1, 1])
    choice, _ = polish(c, start)
    assert terms(c, choice).objective == pytest.approx(every_plan(c).best)


def test_another_number_of_threads_in_the_same_process_works():
    landscape, graph = build_grid_landscape(4, 4), build_grid_graph(4, 4)
    one, two = (solve(landscape, graph, GLMConfig(threads=t)).objective for t in (1, 2))
    assert one == pytest.approx(two, rel=1e-6)


def test_progress_tells_the_stages_in_readable_lines():
    lines: list[str] = []
    solve(build_grid_landscape(2, 2), build_grid_graph(2, 2), GLMConfig(), lines.append)
    assert [line.split(":")[0] for line in lines] == ["GLM of grid", "bound", "plan", "labels"]


def test_the_solver_in_use_has_not_the_false_optimum_of_highspy_1_14_0():
    """Minimise 2 x + 3 z with x + z >= 4.5, z whole, both in 0..10: 9 at x = 4.5; that release says 15."""
    model = pulp.LpProblem()
    x, z = pulp.LpVariable("x", 0, 10), pulp.LpVariable("z", 0, 10, pulp.LpInteger)
    model += 2 * x + 3 * z
    model += x + z >= 4.5
    model.solve(pulp.HiGHS(msg=False))
    assert pulp.value(model.objective) == pytest.approx(9.0)
    assert highspy.Highs().version() != "1.14.0"


def shuffled(landscape: Landscape, seed: int) -> tuple[Landscape, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(landscape))
    return Landscape(landscape.name, landscape.polygons.iloc[order].reset_index(drop=True), landscape.crops), order


@pytest.mark.parametrize(("seed", "threads"), [(0, 1), (1, 1), (2, 2)])
def test_labels_do_not_depend_on_the_order_of_the_rows_nor_on_threads(seed, threads):
    landscape = build_grid_landscape(15, 16, seed=4)
    other, order = shuffled(landscape, seed)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), gap=2e-3)
    first = solve(landscape, neighbour_graph(landscape), config)
    second = solve(other, neighbour_graph(other), config.model_copy(update={"threads": threads}))
    assert second.land_use.tolist() == first.land_use[order].tolist()
    assert second.status.tolist() == first.status[order].tolist()
    np.testing.assert_allclose(second.regret_low, first.regret_low[order], rtol=0, atol=1e-12)
    assert second.upper_bound == pytest.approx(first.upper_bound, abs=1e-14)


def test_the_certificate_of_shuffled_rows_proves_the_same_bound_in_the_files_order():
    landscape, _ = shuffled(build_grid_landscape(6, 6, seed=2), 3)
    graph, config = neighbour_graph(landscape), GLMConfig(supply_floors={"wheat": 0.8})
    solution = solve(landscape, graph, config)
    c = coefficients(landscape, graph, config)
    assert bound(c, solution.certificate) == pytest.approx(solution.upper_bound, abs=1e-14)


def test_a_tie_falls_to_the_earlier_class():
    """Wheat and oat are worth the same on every field, so the rule says wheat, whatever was found."""
    landscape = build_grid_landscape(
        2, 3, crops=("wheat", "oat"), yields=np.full((6, 2), 3.0), connectivity=np.zeros(6)
    )
    c = coefficients(landscape, build_grid_graph(2, 3), GLMConfig(prices={"wheat": 200.0, "oat": 200.0}))
    assert settle_ties(c, np.array([1, 0, 1, 1, 0, 1])).tolist() == [0] * 6
    floor = GLMConfig(prices={"wheat": 200.0, "oat": 200.0}, supply_floors={"oat": 0.99})
    asked = coefficients(landscape, build_grid_graph(2, 3), floor)  # oat on half of the fields: three must stay
    assert settle_ties(asked, np.ones(6, dtype=int)).tolist() == [0, 0, 0, 1, 1, 1]


def test_both_methods_find_a_plan_within_the_gap_of_one_bound():
    landscape, graph = build_grid_landscape(16, 16, seed=8), build_grid_graph(16, 16)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), gap=2e-3)
    core = solve(landscape, graph, config)
    milp = solve(landscape, graph, config.model_copy(update={"method": Method.MILP}))
    assert core.upper_bound == pytest.approx(milp.upper_bound, abs=1e-12)
    assert core.objective == pytest.approx(milp.objective, rel=2 * config.gap)


def test_ctrl_c_returns_the_best_plan_found_with_its_proof():
    """Ctrl-C is sent as soon as the search for whole plans tells of a plan."""
    landscape, graph = build_grid_landscape(20, 20), build_grid_graph(20, 20)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), gap=0.0, method=Method.MILP, time_limit_s=20.0)

    def interrupt(line: str) -> None:
        if "search: plan" in line:
            signal.raise_signal(signal.SIGINT)

    solution = solve(landscape, graph, config, interrupt)
    assert solution.wall_time_s < 15.0
    assert not violations(coefficients(landscape, graph, config), solution.choice)
    assert 0 < solution.gap < 1e-2
