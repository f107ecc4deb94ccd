"""The least bound by prices and cuts is the optimum of the LP relaxation, which HiGHS solves on its own."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.certificate import bound
from oracle.coefficients import coefficients
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import FloorKind, GLMConfig, HabitatShare
from oracle.highs import run
from oracle.lagrangian import least_bound

from .conftest import FOUR_CROPS, build_grid_graph, build_grid_landscape


def relaxation(c, config) -> float:
    return run(glm_arrays(c), config, 60.0, whole=False).objective / len(c)


@pytest.mark.parametrize("seed", range(12))
def test_the_least_bound_is_the_optimum_of_the_relaxation(seed):
    rng = np.random.default_rng(seed)
    landscape, graph = build_grid_landscape(12, 12, seed=seed), build_grid_graph(12, 12)
    least, greatest = sorted(rng.uniform(0.0, 1.0, 2).round(2).tolist())
    config = GLMConfig(
        supply_floors={crop: float(rng.uniform(0.0, 0.8)) for crop in FOUR_CROPS},
        connectivity_weight=float(rng.uniform(0.1, 0.9)),
        adjacency_gain=float(rng.choice([0.0, 1.0, 5.0])),
        costs={"wheat": float(rng.choice([0.0, 200.0])), "habitat": float(rng.choice([0.0, 30.0]))},
        habitat_share=HabitatShare(min=least / 3, max=max(greatest, 0.5)),
    )
    c = coefficients(landscape, graph, config)
    found = least_bound(c)
    assert not found.infeasible
    assert found.value == pytest.approx(relaxation(c, config), rel=1e-6)  # HiGHS is asked at half the tolerance
    assert bound(c, found.certificate) == pytest.approx(found.value, abs=1e-9)


def test_without_anything_that_ties_polygons_together_one_evaluation_is_enough():
    c = coefficients(build_grid_landscape(8, 8), build_grid_graph(8, 8), GLMConfig())
    found = least_bound(c)
    assert found.evaluations == 1
    assert found.value == pytest.approx(relaxation(c, GLMConfig()), rel=1e-9)


def test_floors_that_no_plan_meets_drive_the_bound_below_every_plan():
    """Two equal fields and all of both crops asked: the bound falls without end."""
    landscape = build_grid_landscape(1, 2, crops=("wheat", "oat"), yields=np.full((2, 2), 3.0))
    config = GLMConfig(supply_floors={"wheat": 2.0, "oat": 2.0})
    assert least_bound(coefficients(landscape, build_grid_graph(1, 2), config)).infeasible


def test_a_deadline_gives_the_best_multipliers_so_far_and_they_still_prove_a_bound():
    landscape, graph = build_grid_landscape(15, 15, seed=1), build_grid_graph(15, 15)
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.7), floor_kind=FloorKind.POTENTIAL)
    c = coefficients(landscape, graph, config)
    early = least_bound(c, deadline=0.0)
    assert early.evaluations == 1
    assert bound(c, early.certificate) >= relaxation(c, config) - 1e-9
