"""Counterfactuals: labels that a fresh solve gives again, edits that are minimal, pairs that stay in one split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from oracle.errors import DatasetError
from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import CONNECTIVITY, Landscape
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from prompts.config import PromptConfig
from prompts.counterfactuals import counterfactuals
from prompts.dataset import Source, build_dataset
from prompts.edits import Field, dial, edited
from prompts.neighbourhood import neighbourhoods
from prompts.render import render
from prompts.split import Role, Split, SplitConfig

GLM = GLMConfig(
    connectivity_weight=0.45,
    prices={"wheat": 290.0, "oat": 260.0},
    supply_floors={"wheat": 0.9, "oat": 0.7},
    gap=1e-6,
)
CONFIG = PromptConfig(order=1, layout="full")


@pytest.fixture(scope="module")
def solved(source_once: Callable[[int, int], Source]) -> Source:
    grid = source_once(8, 8).landscape
    rng = np.random.default_rng(3)
    polygons = grid.polygons.copy()
    polygons[["wheat_yield", "oat_yield"]] = rng.uniform(2.0, 6.0, (64, 2)).round(3)
    polygons[CONNECTIVITY] = rng.uniform(0.2, 0.9, 64).round(3)
    landscape = Landscape("grid", polygons, grid.crops)
    graph = neighbour_graph(landscape)
    return Source(landscape, graph, solve(landscape, graph, GLM), Role.TRAIN)


@pytest.fixture(scope="module")
def split_of(solved: Source) -> dict[str, tuple[str, str]]:
    frame = build_dataset([solved], CONFIG, SplitConfig(block_share=0.2)).frame
    return dict(zip(frame["polygon_id"], zip(frame["split"], frame["block"], strict=True), strict=True))


@pytest.fixture(scope="module")
def pairs(solved: Source, split_of: dict[str, tuple[str, str]]) -> pd.DataFrame:
    return counterfactuals(solved, CONFIG, split_of, 8)


def from_scratch(solved: Source, row: pd.Series, steps: int) -> tuple[str, str, Landscape, GLMConfig]:
    """Class and status of the polygon after an edit of so many steps, with the graph computed anew."""
    number = dial(solved.landscape, GLM, CONFIG, Field(row["field"]), crop=row["crop"], polygon=row["edited_polygon"])
    landscape, config = edited(solved.landscape, GLM, number, steps)
    plan = solve(landscape, neighbour_graph(landscape), config)
    at = landscape.ids.tolist().index(row["polygon_id"])
    return str(plan.land_use[at]), str(plan.status[at]), landscape, config


def test_solving_the_edited_landscape_from_scratch_gives_the_stored_label(solved: Source, pairs: pd.DataFrame) -> None:
    assert len(pairs) == 16
    for _, row in pairs.iterrows():
        assert from_scratch(solved, row, row["steps"])[:2] == (row["edited_answer"], "unique")
        at = solved.landscape.ids.tolist().index(row["polygon_id"])
        assert (row["answer"], "unique") == (solved.solution.land_use[at], solved.solution.status[at])
        assert (row["edited_answer"] != row["answer"]) == (row["kind"] == "flip")


def test_half_of_a_flip_flips_nothing_and_one_step_less_proves_nothing(solved: Source, pairs: pd.DataFrame) -> None:
    flips = pairs[pairs["kind"] == "flip"]
    assert (flips["steps"].abs() > 2).any()
    for _, row in flips.iterrows():
        sign, size = np.sign(row["steps"]), abs(row["steps"])
        if size >= 2:
            assert from_scratch(solved, row, int(sign * (size // 2)))[0] == row["answer"]
        less, status, _, _ = from_scratch(solved, row, int(sign * (size - 1)))
        assert less == row["answer"] or status != "unique"


def test_flip_and_non_flip_are_matched(pairs: pd.DataFrame) -> None:
    for _, couple in pairs.groupby("couple"):
        flip, other = couple[couple["kind"] == "flip"].iloc[0], couple[couple["kind"] == "non_flip"].iloc[0]
        for column in ("prompt_id", "field", "split", "block", "prompt", "answer"):
            assert flip[column] == other[column]
        assert flip["edited_polygon"] == other["edited_polygon"] or flip["field"] in ("price", "floor")
        assert abs(flip["steps"]) == abs(other["steps"])
        assert (flip["crop"], flip["to"]) != (other["crop"], other["to"])
    assert pairs["pair_id"].is_unique
    assert pairs.groupby("prompt_id")["couple"].nunique().eq(1).all()


def test_several_kinds_of_numbers_are_edited(pairs: pd.DataFrame) -> None:
    flips = pairs[pairs["kind"] == "flip"]
    assert {"yield", "connectivity"} < set(flips["field"])  # and a price or a floor
    assert set(flips["edited_position"].dropna()) > {"central"}


def test_a_pair_stays_in_the_split_of_its_original(pairs: pd.DataFrame, split_of: dict[str, tuple[str, str]]) -> None:
    assert {Split.TRAIN.value, Split.HELD_OUT_BLOCK.value} <= set(pairs["split"])
    assert Split.BUFFER.value not in set(pairs["split"])
    for _, row in pairs.iterrows():
        assert (row["split"], row["block"]) == split_of[row["polygon_id"]]


def test_prompts_are_those_of_the_two_landscapes_and_show_the_edit(solved: Source, pairs: pd.DataFrame) -> None:
    for _, row in pairs.iloc[1::4].iterrows():
        _, _, landscape, config = from_scratch(solved, row, row["steps"])
        at = np.array([landscape.ids.tolist().index(row["polygon_id"])])
        graph = neighbour_graph(landscape)
        shown = neighbourhoods(landscape, graph, solve(landscape, graph, config), CONFIG)
        assert render(shown, CONFIG, at)[0] == row["edited_prompt"]
        assert row["edited_prompt"][1]["content"] != row["prompt"][1]["content"]
        assert row["edited_prompt"][0] == row["prompt"][0]
        assert f"{row['to']:.2f}" in row["edited_prompt"][1]["content"] or row["field"] in ("price", "floor")
        assert row["edited_target"].endswith(f"<answer>{row['edited_answer']}</answer>")


def test_without_a_row_outside_of_the_buffer_it_says_so(solved: Source) -> None:
    everywhere = {polygon: (Split.BUFFER.value, "b") for polygon in solved.landscape.ids}
    with pytest.raises(DatasetError, match="no polygon with a proven label outside of the buffer"):
        counterfactuals(solved, CONFIG, everywhere, 3)


def test_dials_move_by_printed_digits(solved: Source) -> None:
    landscape = solved.landscape
    first = str(landscape.ids[0])
    polygons = landscape.polygons.copy()
    polygons.loc[0, ["wheat_yield", "oat_yield", CONNECTIVITY]] = [4.376, 11.26, 0.505]
    landscape = Landscape("grid", polygons, landscape.crops)

    wheat = dial(landscape, GLM, CONFIG, Field.YIELD, crop="wheat", polygon=first)
    assert (wheat.now, wheat.step, wheat.after(-3)) == (4.38, 0.01, 4.35)
    assert (wheat.steps_to(4.351), wheat.steps_to(4.40), wheat.steps_to(4.381)) == (-3, 2, 1)
    oat = dial(landscape, GLM, CONFIG, Field.YIELD, crop="oat", polygon=first)
    assert (oat.now, oat.step, oat.after(2)) == (11.3, 0.1, 11.5)
    assert not wheat.reaches(-438)  # 0 would say that wheat cannot be grown
    connectivity = dial(landscape, GLM, CONFIG, Field.CONNECTIVITY, polygon=first)
    assert not connectivity.reaches(60)
    price = dial(landscape, GLM, CONFIG, Field.PRICE, crop="wheat")
    assert (price.now, price.after(-1)) == (290, 289)
    floor = dial(landscape, GLM, CONFIG, Field.FLOOR, crop="wheat")
    assert (floor.now, floor.after(2)) == (0.9, 0.92)
    tonnes = GLM.model_copy(update={"floor_kind": FloorKind.TONNES, "supply_floors": {"wheat": 1234.0}})
    assert dial(landscape, tonnes, CONFIG, Field.FLOOR, crop="wheat").after(1) == 1244

    changed, config = edited(landscape, GLM, wheat, -3)
    assert changed.yields[0, 0] == 4.35
    assert landscape.yields[0, 0] == 4.376
    assert np.array_equal(np.delete(changed.yields, 0, axis=0), np.delete(landscape.yields, 0, axis=0))
    assert config == GLM
