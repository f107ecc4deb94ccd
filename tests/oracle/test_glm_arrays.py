"""The arrays handed to the solver are the PuLP model, entry by entry."""

from __future__ import annotations

import numpy as np
import pulp
from hypothesis import given, settings

from oracle.coefficients import Coefficients, coefficients
from oracle.glm import pulp_model
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import GLMConfig, HabitatShare
from oracle.plan import terms

from .conftest import FOUR_CROPS, build_grid_graph, build_grid_landscape
from .test_solve import small_cases


def assert_same_model(c: Coefficients) -> None:
    arrays, (model, variables) = glm_arrays(c), pulp_model(c)
    columns = [v for row in variables.x for v in row] + list(variables.z)
    assert len(columns) == len(arrays.gain)
    position = {v.name: j for j, v in enumerate(columns)}
    assert [v.upBound for v in columns] == arrays.upper.tolist()
    assert {v.lowBound for v in columns} == {0}
    assert [v.cat == pulp.LpInteger for v in columns] == [j < arrays.integer for j in range(len(columns))]
    assert [model.objective.get(v, 0.0) for v in columns] == arrays.gain.tolist()

    rows = model.constraints()
    assert [row.name for row in rows] == arrays.row_names
    matrix = arrays.matrix.toarray()
    for found, row in zip(matrix, rows, strict=True):
        expected = np.zeros(len(columns))
        for v, entry in row.items():
            expected[position[v.name]] = entry
        np.testing.assert_array_equal(found, expected, err_msg=row.name)
    lower = [-np.inf if row.getLb() is None else row.getLb() for row in rows]
    upper = [np.inf if row.getUb() is None else row.getUb() for row in rows]
    np.testing.assert_array_equal(arrays.row_lower, lower)
    np.testing.assert_array_equal(arrays.row_upper, upper)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(small_cases())
def test_arrays_and_pulp_agree_on_matrix_bounds_gains_and_names(case):
    assert_same_model(coefficients(*case))


def test_they_agree_on_a_landscape_with_every_kind_of_row():
    config = GLMConfig(supply_floors=dict.fromkeys(FOUR_CROPS, 0.6), habitat_share=HabitatShare(min=0.1, max=0.5))
    c = coefficients(build_grid_landscape(6, 7, seed=3), build_grid_graph(6, 7), config)
    assert glm_arrays(c).row_names[-6:] == [*(f"floor_{k}" for k in range(4)), "habitat_least", "habitat_greatest"]
    assert_same_model(c)


def test_a_plan_as_columns_is_worth_its_objective_and_comes_back_as_the_same_plan():
    c = coefficients(build_grid_landscape(4, 4, seed=1), build_grid_graph(4, 4), GLMConfig())
    arrays = glm_arrays(c)
    choice = np.random.default_rng(0).integers(0, 5, len(c))
    column = arrays.column(choice, c)
    np.testing.assert_allclose(arrays.gain @ column / len(c), terms(c, choice).objective, rtol=1e-12)
    assert arrays.choice(column).tolist() == choice.tolist()
