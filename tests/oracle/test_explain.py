"""An explanation says what the certificate proves, and its flips really flip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.certificate import values
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import LandscapeError
from oracle.explain import explain
from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.solve import solve

from .conftest import build_grid_landscape

PRICES = {"wheat": 300.0, "oat": 260.0, "corn": 150.0, "soy": 400.0}


@pytest.fixture(scope="module")
def solved():
    landscape = build_grid_landscape(5, 5, seed=4, locked=["wheat", *[None] * 24])
    graph = neighbour_graph(landscape)
    floors = {"wheat": 0.8, "oat": 0.5, "soy": 0.4}
    config = GLMConfig(connectivity_weight=0.4, prices=PRICES, supply_floors=floors, gap=0)
    return landscape, graph, solve(landscape, graph, config)


def values_with(c: Coefficients, solution, **changes) -> np.ndarray:
    """Values at the certificate's prices after a change, with the landscape's scales held where they were."""
    changed = replace(c, **changes)
    changed.__dict__["crop_value_scale"] = c.crop_value_scale
    changed.__dict__["connectivity_scale"] = c.connectivity_scale
    return values(changed, solution.certificate)


def check_flips(landscape, graph, solution) -> set[str]:
    """Put each stated value into the model: there, and not before, the other class catches up. The factors seen."""
    c = coefficients(landscape, graph, solution.config)
    seen = set()
    for row, polygon in enumerate(landscape.ids):
        explanation = explain(landscape, graph, solution, polygon)
        own = c.classes.index(explanation.land_use)
        for flip in explanation.flips:
            kind = flip.factor.split()[-1]
            seen.add(kind)
            other = c.classes.index(flip.becomes)
            for step, sign in ((0.999, 1), (1.0, 0), (1.001, -1)):
                to = flip.now + step * (flip.then - flip.now)
                if kind == "connectivity":
                    e = landscape.connectivity.copy()
                    e[row] = to
                    pair_ha = c.adjacency_ha_per_m * graph.shared[2] * (e[c.pair_i] + e[c.pair_j]) / 2
                    v = values_with(c, solution, connectivity_ha=c.area_ha * e, pair_ha=pair_ha)
                elif kind == "yield":
                    production = c.production_t.copy()
                    production[row, c.crops.index(flip.factor.split()[0])] = to * c.area_ha[row]
                    grown = c.allowed.copy()
                    grown[row, c.crops.index(flip.factor.split()[0])] = True
                    v = values_with(c, solution, production_t=production, allowed=grown)
                else:
                    prices = c.prices.copy()
                    prices[c.crops.index(flip.factor.split()[0])] = to
                    v = values_with(c, solution, prices=prices)
                lead = v[row, own] - max(v[row, other], *np.delete(v[row], own))
                if sign == 0:
                    assert v[row, own] == pytest.approx(v[row, other], abs=1e-12), flip
                else:
                    assert np.sign(lead) == sign or abs(lead) < 1e-13, flip
    return seen


def test_flips_make_two_classes_worth_the_same(solved):
    assert check_flips(*solved) == {"yield", "connectivity", "price"}


def test_flips_hold_where_classes_cost_something():
    yields = np.random.default_rng(3).uniform(0.5, 4.0, size=(16, 2))
    yields[[2, 7, 11], 1] = 0.0  # what would it take to grow oat there: a yield that pays its cost first
    landscape = build_grid_landscape(4, 4, crops=("wheat", "oat"), yields=yields, seed=6)
    costs = {"wheat": 250.0, "oat": 150.0, "habitat": 30.0}
    config = GLMConfig(connectivity_weight=0.3, prices=PRICES, costs=costs, supply_floors={"oat": 0.4}, gap=0)
    graph = neighbour_graph(landscape)
    assert check_flips(landscape, graph, solve(landscape, graph, config)) == {"yield", "connectivity", "price"}


def test_tonnes_beyond_the_floor_earn_the_price_alone():
    """A floor of 100 t, less than a field grows: its price counts for 100 t of each field and no more."""
    landscape = build_grid_landscape(2, 3, crops=("wheat", "oat"), seed=5)
    graph = neighbour_graph(landscape)
    prices = {"wheat": 100.0, "oat": 260.0}
    config = GLMConfig(
        prices=prices, supply_floors={"wheat": 100.0}, floor_kind="tonnes", connectivity_weight=0.1, gap=0
    )
    solution = solve(landscape, graph, config)
    assert solution.shadow_price["wheat"] > 0
    assert "yield" in check_flips(landscape, graph, solution)


def test_costs_are_the_regret_intervals_in_three_units(solved):
    landscape, graph, solution = solved
    scale = coefficients(landscape, graph, solution.config).currency_per_unit
    row = 12
    explanation = explain(landscape, graph, solution, landscape.ids[row])
    assert {a.land_use for a in explanation.alternatives} == set(solution.classes) - {explanation.land_use}
    for a in explanation.alternatives:
        k = solution.classes.index(a.land_use)
        assert a.low == solution.regret_low[row, k]
        assert a.low_currency == pytest.approx(a.low * scale)
        assert a.low_share == pytest.approx(a.low / solution.objective)
        assert (a.high is None) == bool(np.isinf(solution.regret_high[row, k]))


def test_neighbours_carry_their_classes_and_lengths(solved):
    landscape, graph, solution = solved
    explanation = explain(landscape, graph, solution, "r2c2")
    found = {n.position: n for n in explanation.neighbours}
    assert {p: n.id for p, n in found.items()} == {
        "N": "r3c2", "NE": "r3c3", "E": "r2c3", "SE": "r1c3", "S": "r1c2", "SW": "r1c1", "W": "r2c1", "NW": "r3c1",
    }  # fmt: skip
    assert found["N"].length_m == pytest.approx(800, rel=2e-3)
    assert found["NE"].kind == "corner"
    by_id = dict(zip(solution.ids, solution.land_use, strict=True))
    assert all(n.land_use == by_id[n.id] for n in explanation.neighbours)


def test_a_binding_floor_pulls_by_price_times_tonnes(solved):
    landscape, graph, solution = solved
    binding = [crop for crop, price in solution.shadow_price.items() if price > 0]
    assert binding
    explanation = explain(landscape, graph, solution, "r2c2")
    assert [p.crop for p in explanation.pulls] == binding
    for pull in explanation.pulls:
        tonnes = landscape.yields[12, landscape.crops.index(pull.crop)] * landscape.areas_ha[12]
        assert pull.currency == pytest.approx(solution.shadow_price[pull.crop] * tonnes)


def test_a_lock_cannot_be_flipped(solved):
    explanation = explain(*solved, "r0c0")
    assert explanation.locked
    assert explanation.flips == ()
    assert not any(a.allowed for a in explanation.alternatives)
    assert "no other class is allowed" in str(explanation.lines())


def test_an_unknown_id_names_similar_ones(solved):
    with pytest.raises(LandscapeError, match=r"no polygon 'r2c9' in grid; similar: .*r2c"):
        explain(*solved, "r2c9")
    with pytest.raises(LandscapeError, match="its ids look like r0c0"):
        explain(*solved, "????")


def test_where_the_prices_prefer_another_class_it_says_so_and_names_no_flip(solved):
    """Without the floors' prices some polygons that only a floor keeps in its crop look better in another."""
    landscape, graph, solution = solved
    free = replace(solution.certificate, floor_multiplier=np.zeros(4))
    v = values(coefficients(landscape, graph, solution.config), free)
    kept = np.flatnonzero(v.argmax(axis=1) != solution.choice)
    assert len(kept)
    explanation = explain(landscape, graph, replace(solution, certificate=free), landscape.ids[kept[0]])
    assert explanation.prices_prefer == solution.classes[v[kept[0]].argmax()] != explanation.land_use
    assert explanation.flips == ()
    assert f"{explanation.prices_prefer} is worth more here" in explanation.lines()["would_flip_it"]
