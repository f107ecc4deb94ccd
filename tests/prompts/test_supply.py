"""Supply floors and reference supply as the prompt states them, against the oracle's own floors."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from oracle.coefficients import coefficients
from oracle.errors import DatasetError
from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import CURRENT, Landscape
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.neighbourhood import neighbourhoods
from prompts.supply import reference_supply_t

SUPPLY = PromptConfig.model_validate({"context": "supply", "layout": "full", "style": "answer_only"})


def with_current(landscape: Landscape, land_use: list[str]) -> Landscape:
    return replace(landscape, polygons=landscape.polygons.assign(**{CURRENT: land_use}))


@pytest.mark.parametrize("kind", [FloorKind.POTENTIAL, FloorKind.CURRENT])
@pytest.mark.parametrize("stated", [True, False])
def test_a_floor_is_its_share_of_the_reference(nine: Source, kind: FloorKind, stated: bool) -> None:
    if kind is FloorKind.CURRENT and not stated:
        pytest.skip("the oracle refuses shares of a current land use that nobody stated")
    landscape = with_current(nine.landscape, ["wheat", "oat", "other"] * 3) if stated else nine.landscape
    config = GLMConfig(prices={"wheat": 294, "oat": 260}, supply_floors={"wheat": 0.5, "oat": 0.25}, floor_kind=kind)
    reference = reference_supply_t(landscape, config)
    assert coefficients(landscape, nine.graph, config).floor_t == pytest.approx(reference * [0.5, 0.25])


def test_floors_in_tonnes_stand_beside_the_current_supply_or_an_even_share(nine: Source) -> None:
    config = GLMConfig(prices={"wheat": 294, "oat": 260}, floor_kind=FloorKind.TONNES)
    tonnes = nine.landscape.areas_ha[:, None] * nine.landscape.yields
    assert reference_supply_t(nine.landscape, config) == pytest.approx(tonnes.sum(axis=0) / 2)
    grown = with_current(nine.landscape, ["wheat"] * 4 + ["habitat"] * 5)
    assert reference_supply_t(grown, config) == pytest.approx([tonnes[:4, 0].sum(), 0.0])


def test_prompt_states_whole_tonnes_and_the_columns_hold_them(nine: Source) -> None:
    frame = build_dataset([nine], SUPPLY).frame
    text = frame["prompt"][0][1]["content"]
    stated = re.findall(r"- (\w+): at least (\d+) t \(reference (\d+) t\)", text)
    assert [name for name, *_ in stated] == ["wheat", "oat"]
    assert frame["floor_t"][0] == [float(floor) for _, floor, _ in stated]
    assert frame["reference_supply_t"][0] == [float(reference) for *_, reference in stated]
    assert frame["floor_t"][0] == pytest.approx(nine.solution.floor_t, abs=0.5)
    assert "what an even share of the land's potential would supply" in text
    assert frame["habitat_price"].isna().all()
    assert "per tonne" not in text


def test_compact_line_has_floor_and_reference_behind_each_yield(nine: Source) -> None:
    config = SUPPLY.model_copy(update={"layout": "compact", "order": 1})
    frame = build_dataset([nine], PromptConfig.model_validate(config.model_dump())).frame
    (floor, _), (reference, _) = frame["floor_t"][0], frame["reference_supply_t"][0]
    (message,) = frame["prompt"][0]
    assert message["content"].startswith(f"wheat 3.00>{floor:06.0f}/{reference:06.0f} oat 2.50>")
    assert re.search(r" habitat 0\.10 \| N 3\.10 2\.60 0\.40 ", message["content"])


def test_other_contexts_state_no_supply(source: Callable[..., Source]) -> None:
    for context in ("none", "prices"):
        frame = build_dataset([source(2, 2)], PromptConfig.model_validate({"context": context, "layout": "full"})).frame
        assert frame["floor_t"].isna().all()
        assert "reference" not in frame["prompt"][0][1]["content"]


def test_supply_needs_a_solution(nine: Source) -> None:
    with pytest.raises(DatasetError, match="cannot state supply"):
        neighbourhoods(nine.landscape, nine.graph, None, SUPPLY)


def test_a_landscape_that_grows_none_of_a_crop_has_a_reference_of_0(source: Callable[..., Source]) -> None:
    bare = source(2, 2, yields=np.column_stack([np.full(4, 3.0), np.zeros(4)]))
    frame = build_dataset([bare], SUPPLY).frame
    assert (frame["floor_t"][0][1], frame["reference_supply_t"][0][1]) == (0.0, 0.0)
