"""Turned and mirrored prompts are those of the turned and mirrored landscape, and the oracle decides alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import affinity

from oracle.compass import COMPASS
from oracle.glm_config import GLMConfig
from oracle.landscape import Landscape
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from prompts.config import Layout, PromptConfig
from prompts.dataset import Source
from prompts.neighbourhood import neighbourhoods
from prompts.render import render
from prompts.split import Split
from prompts.transforms import SYMMETRIES, AugmentConfig, augmented_rows, transformed, turned

CONFIG = GLMConfig(connectivity_weight=0.45, supply_floors={"wheat": 0.6, "oat": 0.5}, gap=1e-6)


def moved(landscape: Landscape, name: str) -> Landscape:
    """The landscape itself, mirrored and turned in the plane."""
    centre = landscape.polygons.geometry.union_all().centroid
    geometry = landscape.polygons.geometry
    if name.startswith("m"):
        geometry = geometry.map(lambda g: affinity.scale(g, xfact=-1, origin=centre))
    angle = -int(name.lstrip("mr") or 0)  # clockwise
    geometry = geometry.map(lambda g: affinity.rotate(g, angle, origin=centre))
    return Landscape(landscape.name, landscape.polygons.set_geometry(geometry), landscape.crops)


def with_holes(landscape: Landscape, holes: set[str]) -> Landscape:
    kept = landscape.polygons[~landscape.polygons["id"].isin(holes)].reset_index(drop=True)
    return Landscape(landscape.name, kept, landscape.crops)


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("name", SYMMETRIES)
def test_the_turned_prompt_is_the_turned_landscape_s_prompt(
    source: Callable[..., Source], name: str, layout: Layout
) -> None:
    whole = source(6, 7).landscape
    landscape = with_holes(whole, {"r2c2", "r2c3", "r4c5", "r0c6"})
    config = PromptConfig(order=2, context="none", layout=layout)
    there = moved(landscape, name)
    expected = neighbourhoods(there, neighbour_graph(there), None, config)
    found = transformed(neighbourhoods(landscape, neighbour_graph(landscape), None, config), name)
    assert [found.positions(i) for i in range(len(found))] == [expected.positions(i) for i in range(len(found))]
    assert render(found, config) == render(expected, config)


@pytest.mark.parametrize("name", SYMMETRIES[1:])
def test_the_oracle_decides_the_turned_landscape_alike(source: Callable[..., Source], name: str) -> None:
    landscape = source(7, 6, connectivity=np.random.default_rng(5).uniform(0.2, 1, 42)).landscape
    there = moved(landscape, name)
    here_plan = solve(landscape, neighbour_graph(landscape), CONFIG)
    there_plan = solve(there, neighbour_graph(there), CONFIG)
    assert there_plan.land_use.tolist() == here_plan.land_use.tolist()
    assert there_plan.objective == pytest.approx(here_plan.objective, rel=1e-6)
    assert len(set(here_plan.land_use)) == 3


def test_a_quarter_turn_by_hand() -> None:
    assert turned(["central", "N", "NE2", "C", "E-E"], "r90") == ["central", "E", "SE2", "C", "S-S"]
    assert turned(["N", "NE", "SW-W"], "m") == ["N", "NW", "SE-E"]
    assert turned(["N", "NE", "E", "SW-W"], "mr90") == ["E", "NE", "N", "SW-S"]
    # one of two paths: half round it starts in the south, where the rule names it from the other end
    assert turned(["N", "NE", "N-NE"], "r180") == ["S", "SW", "SW-S"]
    # where NE is no neighbour there is no other path
    assert turned(["N", "N-NE"], "r180") == ["S", "S-SW"]


NEAR = st.lists(st.sampled_from([f"{c}{n}" for c in (*COMPASS, "C") for n in ("", "2")]), unique=True, max_size=8)
FAR = st.lists(
    st.sampled_from([f"{a}-{b}{n}" for a in COMPASS for b in COMPASS for n in ("", "2")]), unique=True, max_size=16
)


@given(near=NEAR, far=FAR, name=st.sampled_from(SYMMETRIES))
def test_different_neighbours_keep_different_codes(near: list[str], far: list[str], name: str) -> None:
    codes = ["central", *near, *far]
    after = turned(codes, name)
    assert len(set(after)) == len(codes)
    assert [c[-1] == "2" for c in after] == [c[-1] == "2" for c in codes]


@pytest.mark.parametrize("name", SYMMETRIES)
def test_turned_and_turned_back(source: Callable[..., Source], name: str) -> None:
    landscape = source(6, 6).landscape
    shown = neighbourhoods(landscape, neighbour_graph(landscape), None, PromptConfig(order=2, context="none"))
    back = {"r90": "r270", "r270": "r90"}.get(name, name)
    again = transformed(transformed(shown, name), back)
    assert again.position.tolist() == shown.position.tolist()
    assert again.member.tolist() == shown.member.tolist()


def test_a_shuffled_list_holds_the_same_neighbours(source: Callable[..., Source]) -> None:
    landscape = source(6, 6).landscape
    shown = neighbourhoods(landscape, neighbour_graph(landscape), None, PromptConfig(order=2, context="none"))
    one, again, two = (transformed(shown, name) for name in ("s1", "s1", "s2"))
    assert one.position.tolist() == again.position.tolist() != two.position.tolist()
    for i in range(len(shown)):
        pairs = {tuple(p) for p in zip(shown.rows(i), shown.positions(i), strict=True)}
        assert {tuple(p) for p in zip(one.rows(i), one.positions(i), strict=True)} == pairs
        assert one.rows(i)[0] == i
    assert one.position.tolist() != shown.position.tolist()


def test_only_training_rows_are_copied_and_ids_say_how(source: Callable[..., Source]) -> None:
    landscape = source(3, 3).landscape
    config = PromptConfig(order=1, context="none")
    shown = neighbourhoods(landscape, neighbour_graph(landscape), None, config)
    split = np.array([Split.TRAIN.value, Split.BUFFER.value, Split.HELD_OUT_BLOCK.value] * 3, dtype=object)
    rows = np.array([0, 1, 2, 4, 5, 6])

    def rows_of(of: object, wanted: np.ndarray) -> pd.DataFrame:
        prompts = [messages[0]["content"] for messages in render(of, config, wanted)]  # type: ignore[arg-type]
        return pd.DataFrame({"prompt_id": [f"grid:{landscape.ids[i]}" for i in wanted], "prompt": prompts})

    copies = pd.concat(augmented_rows(rows_of, shown, split, rows, AugmentConfig(rotations=True, shuffles=2), config))
    names = [*SYMMETRIES[1:], "s1", "s2"]
    assert copies["prompt_id"].tolist() == [f"grid:{polygon}~{name}" for name in names for polygon in ("r0c0", "r2c0")]
    # r0c0 is the south-west corner: neighbours N, NE, E; a quarter turn makes it the north-west one
    turned_corner = copies.loc[copies["prompt_id"] == "grid:r0c0~r90", "prompt"].item()
    assert [part.split()[0] for part in turned_corner.split(" | ")[1:]] == ["E", "SE", "S"]
    assert not list(augmented_rows(rows_of, shown, split, rows, AugmentConfig(), config))
