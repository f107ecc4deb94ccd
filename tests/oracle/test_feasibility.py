"""What cannot be met is named, and what is said to be possible is the most that is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oracle.coefficients import Coefficients, coefficients
from oracle.errors import InfeasibleError
from oracle.feasibility import check_possible, common_factor, jointly_infeasible, smallest_relaxation
from oracle.glm_config import FloorKind, GLMConfig, HabitatShare
from oracle.plan import TOLERANCE, floor_met, habitat_met
from oracle.solve import solve

from .brute_force import every_plan
from .conftest import build_grid_graph, build_grid_landscape


def test_a_floor_beyond_the_possible_names_crop_and_tonnes():
    landscape = build_grid_landscape(1, 2, crops=("wheat",), yields=np.array([[5.0], [0.0]]))
    config = GLMConfig(floor_kind=FloorKind.TONNES, supply_floors={"wheat": 900_000.0})
    with pytest.raises(InfeasibleError, match=r"wheat: asked 900,000 t, at most 3\d\d t here"):
        solve(landscape, build_grid_graph(1, 2), config)


@pytest.mark.parametrize(
    ("share", "locked", "reason"),
    [
        (HabitatShare(min=0.8), ["wheat", None], r"habitat: asked 80\.00% of the area, at most 50"),
        (
            HabitatShare(max=0.1),
            ["habitat", None],
            r"habitat: asked at most 10\.00% of the area, but 50.* nothing else",
        ),
    ],
)
def test_a_habitat_share_that_locks_forbid_is_named(share, locked, reason):
    landscape = build_grid_landscape(1, 2, crops=("wheat",), locked=locked)
    with pytest.raises(InfeasibleError, match=reason):
        solve(landscape, build_grid_graph(1, 2), GLMConfig(habitat_share=share))


def test_floors_that_only_clash_together_say_how_much_of_each_can_be_met():
    """Three fields of 192 t of wheat or oat each, asked for two and nearly two: half of the latter is less."""
    landscape = build_grid_landscape(1, 3, crops=("wheat", "oat"), yields=np.full((3, 2), 3.0))
    config = GLMConfig(floor_kind=FloorKind.TONNES, supply_floors={"wheat": 384.0, "oat": 383.0})
    with pytest.raises(InfeasibleError) as refused:
        solve(landscape, build_grid_graph(1, 3), config)
    lines = str(refused.value).splitlines()
    assert lines[0] == "each supply floor can be met alone, but not all together; giving up the least:"
    assert lines[1] == "  - wheat: asked 384 t, which can be met"
    assert lines[2] == "  - oat: asked 383 t, 192 t can be met together with the rest"
    assert re.match(r"or all of them times 0\.50\d; lower some, or widen habitat_share", lines[3])


def clashing(seed: int) -> tuple[Coefficients, GLMConfig]:
    """Up to 8 polygons whose crops do not all fit, some locked, some without yield, with habitat to keep."""
    rng = np.random.default_rng(seed)
    n, crops = int(rng.integers(3, 9)), ("wheat", "oat", "corn")[: int(rng.integers(2, 4))]
    yields = rng.choice([0.0, 1.0, 2.0, 3.5], size=(n, len(crops)))
    yields[0] = 2.0
    locked = ["habitat" if rng.uniform() < 0.1 and i else None for i in range(n)]
    floors = dict(zip(crops, rng.choice([0.0, 0.7, 1.2, 1.8], size=len(crops)).tolist(), strict=True))
    share = HabitatShare(min=float(rng.choice([0.0, 0.2, 0.4])), max=1.0)
    config = GLMConfig(prices=dict.fromkeys(crops, 200.0), supply_floors=floors, habitat_share=share, gap=0.0)
    landscape = build_grid_landscape(1, n, crops=crops, yields=yields, locked=locked)
    return coefficients(landscape, build_grid_graph(1, n), config), config


@pytest.mark.parametrize("seed", range(40))
def test_the_relaxation_gives_up_as_little_as_the_best_of_all_plans(seed):
    c, config = clashing(seed)
    plans = every_plan(c)
    found = smallest_relaxation(c, config)
    if not plans.habitat_fits.any():
        assert found is None
        return
    asked = c.floor_t > 0
    missing = np.clip(1.0 - plans.supply_t[:, asked] / c.floor_t[asked], 0.0, None)
    missing[missing <= TOLERANCE] = 0.0
    least = missing[plans.habitat_fits].sum(axis=1).min()
    assert found is not None
    assert found.smallest
    assert found.given_up == pytest.approx(least, abs=1e-5)
    assert (least == 0) == plans.feasible.any()
    together = plans.habitat_fits & (plans.supply_t >= found.met_t * (1.0 - TOLERANCE)).all(axis=1)
    assert together.any()  # what is said to be possible is
    factor = common_factor(c, config)
    best = (plans.supply_t[plans.habitat_fits][:, asked] / c.floor_t[asked]).min(axis=1, initial=1.0).max()
    assert factor == pytest.approx(min(best, 1.0), abs=1e-5)


def test_asking_for_what_the_error_says_works():
    landscape, graph = build_grid_landscape(4, 5, seed=3), build_grid_graph(4, 5)
    asked = GLMConfig(supply_floors={"wheat": 1.6, "oat": 1.3, "corn": 1.2, "soy": 1.9}, gap=1e-3)
    c = coefficients(landscape, graph, asked)
    check_possible(c)  # each alone
    message = str(jointly_infeasible(c, asked))
    met = dict(re.findall(r"(\w+): asked [\d,]+ t, ([\d,]+) t can be met", message))
    tonnes = {crop: float(f"{floor:.0f}") for crop, floor in zip(c.crops, c.floor_t * 0.999, strict=True)}
    tonnes |= {crop: float(text.replace(",", "")) for crop, text in met.items()}
    assert 0 < len(met) < 4
    config = asked.model_copy(update={"supply_floors": tonnes, "floor_kind": FloorKind.TONNES})
    assert (solve(landscape, graph, config).supply_t >= np.array(list(tonnes.values())) * (1 - TOLERANCE)).all()


def test_a_floor_at_its_tolerance_is_decided_without_rounding():
    """0.1 + 0.2 is 0.3 and a bit in floats; the floor that lies between that sum and the exact one is missed."""
    parts = np.array([0.1, 0.2])
    least = 0.3 / (1.0 - TOLERANCE)
    floors = [np.nextafter(least, 0), least, np.nextafter(least, 1), np.nextafter(np.nextafter(least, 1), 1)]
    verdicts = [floor_met(parts, float(f)) for f in floors]
    assert verdicts[0]
    assert not verdicts[-1]
    assert verdicts == sorted(verdicts, reverse=True)


def test_the_habitat_share_allows_its_tolerance_and_no_more():
    c = coefficients(
        build_grid_landscape(1, 4, crops=("wheat",)),
        build_grid_graph(1, 4),
        GLMConfig(habitat_share=HabitatShare(min=0.5, max=0.5)),
    )
    c.area_ha[:] = [1.0, 1.0, 1.0, 1.0 + 7.9e-6]
    assert habitat_met(c, np.array([True, True, False, False])) == (True, True)
    c.area_ha[:] = [1.0, 1.0, 1.0, 1.0 + 8.1e-6]  # the first two are 0.5 less 1.01e-6 of the area
    assert habitat_met(c, np.array([True, True, False, False])) == (False, True)
    assert habitat_met(c, np.array([False, False, True, True])) == (True, False)


def test_a_floor_that_the_habitat_share_leaves_no_room_for_is_told_with_it():
    landscape = build_grid_landscape(2, 3, crops=("wheat",), seed=1)
    config = GLMConfig(supply_floors={"wheat": 0.5}, habitat_share={"min": 0.8})
    with pytest.raises(InfeasibleError, match=r"not all together with habitat on 80\.00% to 100\.00% of the area; "):
        solve(landscape, build_grid_graph(2, 3), config)
