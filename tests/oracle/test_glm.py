"""The GLM's numbers against a calculation by hand, and the PuLP model row by row."""

from __future__ import annotations

import numpy as np
import pulp
import pytest
from pydantic import ValidationError

from oracle.coefficients import coefficients
from oracle.errors import ConfigurationError
from oracle.glm import pulp_model
from oracle.glm_config import FloorKind, GLMConfig, HabitatShare
from oracle.plan import habitat_area_share, relative_gap, supply_t, terms, violations

from .conftest import GridGraph, build_grid_graph, build_grid_landscape

PRICES = {"wheat": 300.0, "oat": 200.0}


def two_by_one(**config):
    """Two neighbours; wheat 4 and 2 t/ha, oat 3 and 0 t/ha, connectivity 0.2 and 0.6, 800 m in common."""
    landscape = build_grid_landscape(
        1, 2, crops=("wheat", "oat"), yields=np.array([[4.0, 3.0], [2.0, 0.0]]), connectivity=np.array([0.2, 0.6])
    )
    settings = {"prices": PRICES, "connectivity_weight": 0.25, "adjacency_gain": 2.0, "adjacency_depth_m": 50.0}
    return landscape, coefficients(landscape, build_grid_graph(1, 2), GLMConfig(**settings | config))


def test_every_coefficient_by_hand():
    landscape, c = two_by_one(supply_floors={"wheat": 0.5})
    a = landscape.areas_ha
    assert a == pytest.approx([64.0, 64.0], rel=1e-3)  # 800 m squares, measured on the ellipsoid
    v = a[0] * 4 * 300 + a[1] * 2 * 300
    pair_ha = 2.0 * 800.0 * (0.2 + 0.6) / 2 * 50.0 / 10_000
    assert pair_ha == pytest.approx(3.2)
    total_ha = a[0] * 0.2 + a[1] * 0.6 + pair_ha
    assert c.crop_value_scale == pytest.approx(v)
    assert c.connectivity_scale == pytest.approx(total_ha)
    np.testing.assert_allclose(c.crop, 0.75 / v * np.array([[a[0] * 1200, a[0] * 600], [a[1] * 600, 0.0]]))
    np.testing.assert_allclose(c.habitat, 0.25 / total_ha * a * [0.2, 0.6])
    np.testing.assert_allclose(c.pair_gain, [0.25 / total_ha * pair_ha])
    np.testing.assert_allclose(c.floor_t, [0.5 * (a[0] * 4 + a[1] * 2) / 2, 0.0])
    assert c.allowed.tolist() == [[True, True, True], [True, False, True]]
    assert c.habitat_price == pytest.approx(0.25 * v / (0.75 * total_ha))
    assert c.adjacency_price == pytest.approx(2.0 * 50.0 / 10_000 * c.habitat_price)


def test_costs_by_hand():
    """Costs come off both crops and habitat in the crop-value term; V, and so everything else, stays as it was."""
    landscape, free = two_by_one()
    _, c = two_by_one(costs={"wheat": 500.0, "habitat": 40.0})
    a, v = landscape.areas_ha, free.crop_value_scale
    assert (c.crop_value_scale, c.connectivity_scale) == (v, free.connectivity_scale)
    np.testing.assert_allclose(c.value, [[a[0] * 700, a[0] * 600, -a[0] * 40], [a[1] * 100, 0.0, -a[1] * 40]])
    np.testing.assert_allclose(c.crop, 0.75 / v * c.value[:, :2])
    np.testing.assert_allclose(c.habitat, free.habitat - 0.75 / v * a * 40)
    assert c.pair_gain.tolist() == free.pair_gain.tolist()
    assert (c.habitat_price, c.adjacency_price) == (free.habitat_price, free.adjacency_price)
    mixed = terms(c, np.array([0, 2]))
    assert mixed.crop_value_currency == pytest.approx(a[0] * 700 - a[1] * 40)
    assert mixed.crop_value == pytest.approx(0.75 / v * (a[0] * 700 - a[1] * 40))
    assert mixed.connectivity_ha == pytest.approx(a[1] * 0.6)
    assert mixed.objective == pytest.approx(c.crop[0, 0] + c.habitat[1])
    model, variables = pulp_model(c)
    assert model.objective[variables.x[1][2]] == pytest.approx(2 * c.habitat[1])


def test_a_cost_of_no_class_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"costs names lentil, which is no class .* wheat, oat, habitat"):
        two_by_one(costs={"lentil": 3.0, "habitat": 2.0})


def test_a_floor_of_no_crop_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"supply_floors names lentil.* its crops are wheat, oat"):
        two_by_one(supply_floors={"lentil": 0.5})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connectivity_weight", 1.0),
        ("connectivity_weight", -0.1),
        ("adjacency_gain", -2.0),
        ("adjacency_depth_m", 0.0),
        ("prices", {"wheat": 0.0}),
        ("prices", {"wheat": float("inf")}),
        ("costs", {"habitat": -1.5}),
        ("supply_floors", {"wheat": -0.25}),
        ("supply_floors", {"wheat": float("nan")}),
        ("habitat_share", {"min": 1.25}),
        ("habitat_share", {"min": 0.6, "max": 0.4}),
        ("gap", 1.0),
        ("time_limit_s", 0.0),
        ("threads", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_with_its_key_and_value(key, value):
    with pytest.raises(ValidationError) as refused:
        GLMConfig.model_validate({key: value})
    numbers = value.values() if isinstance(value, dict) else [value]
    text = str(refused.value)
    assert key in text
    assert all(str(number) in text for number in numbers)


def test_the_gap_is_relative_to_whichever_is_larger_in_size():
    assert relative_gap(0.9, 1.0) == pytest.approx(0.1)
    assert relative_gap(-0.5, -0.4) == pytest.approx(0.2)  # costs may leave no plan that earns anything
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(-0.1, 0.0) == 1.0


def test_all_crop_and_all_habitat_reach_exactly_their_weights():
    _, c = two_by_one()
    crops, wild = terms(c, np.array([0, 0])), terms(c, np.array([2, 2]))
    assert (crops.crop_value, crops.connectivity) == (pytest.approx(0.75), 0.0)
    assert (wild.crop_value, wild.connectivity) == (0.0, pytest.approx(0.25))
    assert crops.crop_value_currency == pytest.approx(c.crop_value_scale)
    assert wild.connectivity_ha == pytest.approx(c.connectivity_scale)
    assert habitat_area_share(c, np.array([2, 0])) == pytest.approx(0.5, rel=1e-3)


def test_a_term_without_scale_is_zero():
    landscape = build_grid_landscape(1, 2, crops=("wheat",), yields=np.zeros((2, 1)), connectivity=np.zeros(2))
    c = coefficients(landscape, build_grid_graph(1, 2), GLMConfig(prices=PRICES))
    assert not c.own.any()
    assert not c.pair_gain.any()
    assert (c.habitat_price, c.adjacency_price) == (0.0, 0.0)
    assert terms(c, np.array([1, 1])).objective == 0.0


def test_violations_name_floors_habitat_and_forbidden_classes():
    _, c = two_by_one(
        floor_kind=FloorKind.TONNES, supply_floors={"wheat": 200.0}, habitat_share=HabitatShare(min=0.3, max=0.6)
    )
    assert violations(c, np.array([0, 2])) == []
    assert supply_t(c, np.array([0, 2])) == pytest.approx([4 * 64.05, 0.0], rel=1e-4)
    broken = violations(c, np.array([2, 1]))
    assert len(broken) == 2
    assert "1 polygon(s)" in broken[0]
    assert "wheat: 0.000 t are below the floor of 200.000 t" in broken[1]
    assert "habitat on 0.0000%" in violations(c, np.array([0, 0]))[0]


def test_the_pulp_model_has_the_rows_and_entries_of_the_equations():
    _, c = two_by_one(supply_floors={"wheat": 0.5, "oat": 0.4}, habitat_share=HabitatShare(min=0.1, max=0.9))
    model, variables = pulp_model(c)
    rows = {row.name: row for row in model.constraints()}
    assert sorted(rows) == sorted(
        ["class_0", "class_1", "pair_0_i", "pair_0_j", "floor_0", "floor_1", "habitat_least", "habitat_greatest"]
    )
    x, z = variables.x, variables.z
    assert {v.name: k for v, k in rows["pair_0_j"].items()} == {"z_0": 1, "x_1_2": -1}
    assert dict(rows["class_1"].items()) == dict.fromkeys(x[1], 1)
    assert rows["class_1"].getLb() == 1
    wheat = {v.name: k for v, k in rows["floor_0"].items()}  # a field counts up to the floor, scaled to at most 1
    floor, production = c.floor_t[0], c.production_t[:, 0]
    scale = min(production[0], floor)
    assert wheat == pytest.approx({"x_0_0": 1.0, "x_1_0": min(production[1], floor) / scale})
    assert rows["floor_0"].getLb() == pytest.approx(floor / scale)
    assert (x[1][1].upBound, x[0][1].upBound) == (0, 1)  # no oat where its yield is 0
    assert model.objective[z[0]] == pytest.approx(2 * c.pair_gain[0])
    assert model.objective[x[0][0]] == pytest.approx(2 * c.crop[0, 0])
    relaxed, _ = pulp_model(c, relaxed=True)
    assert relaxed.isMIP() == 0
    assert model.isMIP() == 1


def test_without_floors_the_relaxation_is_whole():
    """Pair gains are supermodular, so the relaxation is a minimum cut."""
    landscape = build_grid_landscape(8, 8, seed=5)
    c = coefficients(landscape, build_grid_graph(8, 8), GLMConfig(adjacency_gain=4.0))
    model, variables = pulp_model(c, relaxed=True)
    model.solve(pulp.HiGHS(msg=False))
    values = np.array([[v.value() for v in row] for row in variables.x])
    assert np.abs(values - values.round()).max() < 1e-9
    choice = values.argmax(axis=1)
    assert pulp.value(model.objective) / len(c) == pytest.approx(terms(c, choice).objective)


def test_a_crop_without_price_is_refused():
    with pytest.raises(ConfigurationError, match=r"no price for canola: .*--set prices\.canola=\.\.\."):
        coefficients(
            build_grid_landscape(1, 2, crops=("wheat", "canola")), build_grid_graph(1, 2), GLMConfig(prices=PRICES)
        )


def test_isolated_polygons_need_no_pairs():
    nothing = np.array([], dtype=int)
    c = coefficients(
        build_grid_landscape(1, 3, seed=2), GridGraph((nothing, nothing, nothing.astype(float))), GLMConfig()
    )
    assert len(c.pair_gain) == 0
    assert c.connectivity_scale == pytest.approx(c.connectivity_ha.sum())
