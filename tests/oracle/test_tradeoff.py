"""The curve's plans are feasible, certified and nowhere dominated; its knee and bound follow from geometry."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oracle import tradeoff as module
from oracle.coefficients import coefficients
from oracle.errors import ConfigurationError, LandscapeError
from oracle.glm_config import GLMConfig
from oracle.landscape import Landscape
from oracle.plan import terms
from oracle.tradeoff import knee_of, tradeoff

from .conftest import build_grid_graph, build_grid_landscape

CONFIG = GLMConfig(prices={"wheat": 300.0, "oat": 260.0}, gap=0)


def six_fields():
    return build_grid_landscape(2, 3, crops=("wheat", "oat"), seed=2), build_grid_graph(2, 3)


def test_the_knee_is_farthest_from_the_chord():
    assert knee_of(np.array([10.0, 9.0, 5.0, 0.0]), np.array([0.0, 60.0, 80.0, 100.0])) == 1  # 0.5 against 0.3 above
    assert knee_of(np.array([10.0, 5.0, 0.0]), np.array([0.0, 50.0, 100.0])) is None  # on the chord
    assert knee_of(np.array([10.0, 10.0, 10.0]), np.array([3.0, 3.0, 3.0])) is None


@pytest.mark.parametrize("nothing", ["yields", "connectivity"])
def test_where_one_side_is_0_there_is_nothing_to_trade(tmp_path, nothing):
    landscape = build_grid_landscape(2, 2, crops=("wheat", "oat"))
    zeros = {"yields": ["wheat_yield", "oat_yield"], "connectivity": ["ecological_connectivity"]}[nothing]
    landscape = Landscape("flat", landscape.polygons.assign(**dict.fromkeys(zeros, 0.0)), landscape.crops)
    with pytest.raises(LandscapeError, match=f"no polygon of flat has (a )?{nothing[:5]}.* above 0"):
        tradeoff(landscape, build_grid_graph(2, 2), CONFIG, tmp_path)


@pytest.mark.parametrize("costs", [{}, {"wheat": 300.0, "oat": 350.0, "habitat": 25.0}])
def test_no_plan_lies_above_the_curve(tmp_path, costs):
    """Every one of the 729 plans: none better than a point in both, none above the proven bound at its crop value."""
    landscape, graph = six_fields()
    config = CONFIG.model_copy(update={"costs": costs})
    curve = tradeoff(landscape, graph, config, tmp_path, points=5)
    c = coefficients(landscape, graph, config)
    plans = [terms(c, np.array(p)) for p in itertools.product(range(3), repeat=6)]
    for plan in plans:  # between the points too
        assert plan.connectivity_ha <= curve.bound_ha(np.array([plan.crop_value_currency]))[0] + 1e-6
    for point, most in zip(curve.points, curve.bound_ha(curve.crop_value_currency), strict=True):
        assert point.upper_bound >= point.objective
        assert most >= point.connectivity_ha - 1e-9
        if point.connectivity_weight > 0:  # without floors the bound is tight
            assert most == pytest.approx(point.connectivity_ha, abs=1e-6)  # bounds are stated 1e-12 too high
        for plan in plans:
            if plan.crop_value_currency >= point.crop_value_currency - 1e-6:
                assert plan.connectivity_ha <= most + 1e-6
            weight = point.connectivity_weight
            worth = (1 - weight) * plan.crop_value_currency / c.crop_value_scale
            assert worth + weight * plan.connectivity_ha / c.connectivity_scale <= point.upper_bound + 1e-9
    value = [p.crop_value_currency for p in curve.points]
    assert value == sorted(value, reverse=True)
    assert curve.points[0].connectivity_ha < curve.points[-1].connectivity_ha


def test_the_folder_holds_the_table_and_a_plot_with_the_knee(tmp_path):
    landscape, graph = build_grid_landscape(6, 6, seed=1), build_grid_graph(6, 6)
    config = GLMConfig(prices={"wheat": 300.0, "oat": 260.0, "corn": 150.0, "soy": 400.0})
    curve = tradeoff(landscape, graph, config, tmp_path, points=5)
    assert curve.knee is not None
    table = pd.read_parquet(tmp_path / "tradeoff.parquet")
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "tradeoff.csv"))
    assert table["connectivity_weight"].tolist() == pytest.approx([0, 0.2375, 0.475, 0.7125, 0.95])
    assert np.flatnonzero(table["knee"]).tolist() == [curve.knee]
    pixels = np.array(Image.open(tmp_path / "tradeoff.png").convert("RGB")).reshape(-1, 3)
    assert (pixels == (0xD5, 0x5E, 0x00)).all(axis=1).sum() > 50  # the knee's diamond


def test_solved_points_are_not_solved_again_unless_something_changed(tmp_path, monkeypatch):
    landscape, graph = six_fields()
    solved: list[float] = []
    real = module.solve

    def counting(landscape, graph, config, progress):
        if len(solved) == 2:
            solved.append(-1)
            raise KeyboardInterrupt
        solved.append(config.connectivity_weight)
        return real(landscape, graph, config)

    monkeypatch.setattr(module, "solve", counting)
    with pytest.raises(KeyboardInterrupt):
        tradeoff(landscape, graph, CONFIG, tmp_path, points=3)
    again = tradeoff(landscape, graph, CONFIG, tmp_path, points=3)
    assert solved == [0.0, 0.475, -1, 0.95]  # only the point that was cut off
    assert tradeoff(landscape, graph, CONFIG, tmp_path, points=3) == again
    assert len(solved) == 4
    tradeoff(landscape, graph, CONFIG.model_copy(update={"adjacency_gain": 2.0}), tmp_path, points=3)
    assert solved[4:] == [0.0, 0.475, 0.95]


def test_two_points_make_no_curve(tmp_path):
    with pytest.raises(ConfigurationError, match="ask for 3 or more"):
        tradeoff(*six_fields(), CONFIG, tmp_path, points=2)
