"""The list of all plans as judge of everything that a solve claims, on landscapes of up to 12 polygons."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.coefficients import coefficients
from oracle.glm_config import GLMConfig, HabitatShare, Method
from oracle.landscape import Landscape
from oracle.solve import solve

from .brute_force import assert_solved, every_plan
from .conftest import FOUR_CROPS, GridGraph, build_grid_graph, build_grid_landscape

PRICES = {"wheat": 300.0, "oat": 250.0, "corn": 200.0, "soy": 400.0}
SHAPES = {
    "up to 3 crops": [(1, 5, 3), (2, 3, 3), (2, 4, 2), (3, 3, 2)],
    "12 polygons": [(3, 4, 2), (2, 6, 2), (1, 12, 1)],
}


def case(seed: int, shapes: list[tuple[int, int, int]]) -> tuple[Landscape, GridGraph, GLMConfig]:
    """Seeded, with equal and absent yields, locks, costs, floors and habitat shares; every other one correlated."""
    rng = np.random.default_rng(seed)
    rows, cols, k = shapes[seed % len(shapes)]
    n, crops = rows * cols, FOUR_CROPS[:k]
    if seed % 2:
        yields = rng.choice([0.0, 1.0, 2.0, 3.5, 7.0], size=(n, k))
    else:
        yields = rng.normal(1.0, 0.25, (n, 1)).clip(0.3) * np.array([3.6, 3.4, 7.5][:k]) * rng.normal(1, 0.05, (n, k))
    locked = [
        str(rng.choice(["habitat", *(c for c, y in zip(crops, row, strict=True) if y > 0)]))
        if rng.uniform() < 0.1
        else None
        for row in yields
    ]
    low, high = sorted((float(rng.choice([0.0, 0.0, 0.3])), float(rng.choice([0.5, 0.7, 1.0]))))
    config = GLMConfig(
        connectivity_weight=float(rng.choice([0.0, 0.3, 0.5, 0.8])),
        adjacency_gain=float(rng.choice([0.0, 1.0, 4.0])),
        prices=PRICES,
        costs={use: float(rng.choice([0.0, 0.0, 200.0, 800.0])) for use in (*crops, "habitat")},
        supply_floors={crop: float(rng.choice([0.0, 0.4, 0.8, 1.1])) for crop in crops},
        habitat_share=HabitatShare(min=low, max=high),
        gap=0.0,
    )
    connectivity = rng.choice([0.0, 0.25, 0.5, 1.0], size=n) if seed % 3 == 0 else rng.uniform(size=n)
    landscape = build_grid_landscape(rows, cols, crops=crops, yields=yields, connectivity=connectivity, locked=locked)
    return landscape, build_grid_graph(rows, cols), config


@pytest.mark.parametrize("size", list(SHAPES))
@pytest.mark.parametrize("seed", range(24))
def test_plan_bound_regret_and_status_stand_before_the_list_of_all_plans(size, seed):
    landscape, graph, config = case(seed, SHAPES[size])
    assert_solved(landscape, graph, config)


def test_the_cases_have_what_they_should():
    """Infeasible ones, ties, labels of each status: a judge that never sees them judges nothing."""
    feasible, tied, statuses = 0, 0, set()
    for seed in range(24):
        landscape, graph, config = case(seed, SHAPES["up to 3 crops"])
        plans = every_plan(coefficients(landscape, graph, config))
        feasible += bool(plans.feasible.any())
        if plans.feasible.any():
            worth = np.sort(plans.objective[plans.feasible])[-2:]
            tied += len(worth) == 2 and worth[1] - worth[0] < 1e-12
            statuses |= set(solve(landscape, graph, config).status)
    assert 12 <= feasible < 24
    assert tied > 0
    assert statuses >= {"unique", "tied"}


@pytest.mark.parametrize("seed", range(24))
def test_both_methods_find_the_same_optimum(seed):
    """At gap 0, on landscapes too large to list: small with every floor, larger with one."""
    side, floors = ((5, 5), FOUR_CROPS) if seed % 4 else ((16, 16), FOUR_CROPS[:1])
    landscape, graph = build_grid_landscape(*side, seed=seed), build_grid_graph(*side)
    config = GLMConfig(
        connectivity_weight=0.4,
        prices=PRICES,
        costs={"corn": 60.0, "habitat": 10.0},
        supply_floors=dict.fromkeys(floors, 0.7),
        gap=0.0,
        time_limit_s=60.0,
    )
    core, milp = (
        solve(landscape, graph, config.model_copy(update={"method": method})) for method in (Method.CORE, Method.MILP)
    )
    assert core.objective == pytest.approx(milp.objective, abs=1e-9)
    assert core.objective <= min(core.upper_bound, milp.upper_bound)
