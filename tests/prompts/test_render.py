"""Prompts of a 3 x 3 grid, written out by hand (text fixtures in ``expected/``)."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oracle.errors import DatasetError
from prompts.config import PromptConfig
from prompts.dataset import Source
from prompts.neighbourhood import neighbourhoods
from prompts.render import render

EXPECTED = Path(__file__).parent / "expected"


def messages(source: Source, polygon: str, config: PromptConfig) -> list[dict[str, str]]:
    shown = neighbourhoods(source.landscape, source.graph, source.solution, config)
    return render(shown, config, np.flatnonzero(source.landscape.ids == polygon))[0]


def as_text(chat: list[dict[str, str]]) -> str:
    return "".join(f"[{message['role']}]\n{message['content']}\n" for message in chat)


def line(source: Source, polygon: str, **config: object) -> str:
    (message,) = messages(source, polygon, PromptConfig.model_validate(config))
    assert message["role"] == "user"
    return message["content"]


def test_compact_order_0_is_yield_times_price(nine: Source) -> None:
    assert line(nine, "r0c0") == "wheat 3.00*0301 oat 2.50*0266 habitat 0.10*0812\n"
    assert line(nine, "r2c2") == "wheat 11.3*0301 oat 2.72*0266 habitat 0.90*0812\n"


def test_compact_without_prices(nine: Source) -> None:
    assert line(nine, "r0c0", context="none") == "wheat 3.00 oat 2.50 habitat 0.10\n"


def test_compact_order_1_goes_round_the_compass(nine: Source) -> None:
    assert line(nine, "r1c1", order=1) == (
        "wheat 3.11*0301 oat 0.00*0266 habitat 0.50*0812+4.06"
        " | N 3.21 2.71 0.80 | NE 11.3 2.72 0.90 | E 3.12 2.62 0.60 | SE 3.02 2.52 0.30"
        " | S 3.01 2.51 0.20 | SW 3.00 2.50 0.10 | W 3.10 2.60 0.40 | NW 3.20 2.70 0.70\n"
    )


def test_compact_order_2_appends_two_step_codes(nine: Source) -> None:
    assert line(nine, "r0c0", order=2, context="none") == (
        "wheat 3.00 oat 2.50 habitat 0.10 | N 3.10 2.60 0.40 | NE 3.11 0.00 0.50 | E 3.01 2.51 0.20"
        " | N-N 3.20 2.70 0.70 | N-NE 3.21 2.71 0.80 | NE-NE 11.3 2.72 0.90"
        " | E-NE 3.12 2.62 0.60 | E-E 3.02 2.52 0.30\n"
    )


def test_digits_are_those_asked_for(nine: Source) -> None:
    assert line(nine, "r2c2", context="none", yield_digits=1, connectivity_digits=3) == (
        "wheat 011 oat 2.7 habitat 0.900\n"
    )


@pytest.mark.parametrize(
    ("fixture", "config"),
    [
        (
            "full_order0_no_prices_r0c0.txt",
            PromptConfig(order=0, context="none", style="answer_only", layout="full"),
        ),
        ("full_order2_prices_r0c0.txt", PromptConfig(order=2, context="prices", style="think", layout="full")),
        ("full_order1_supply_r0c0.txt", PromptConfig(order=1, context="supply", style="think", layout="full")),
    ],
)
def test_full_prompt_is_the_one_written_out(nine: Source, fixture: str, config: PromptConfig) -> None:
    assert as_text(messages(nine, "r0c0", config)) == (EXPECTED / fixture).read_text()


def test_isolated_polygon_is_told_that_it_has_no_neighbours(source: Callable[..., Source]) -> None:
    alone = source(1, 1, crops=("barley",), yields=np.array([[4.0]]), connectivity=np.array([0.25]))
    config = PromptConfig(order=1, context="none", style="answer_only", layout="full")
    assert as_text(messages(alone, "r0c0", config)) == (EXPECTED / "full_order1_isolated.txt").read_text()
    assert line(alone, "r0c0", order=1, context="none") == "barley 4.00 habitat 0.25\n"


def test_only_first_order_is_shown_at_order_1(source: Callable[..., Source]) -> None:
    row = source(1, 4, crops=("flax",))
    assert [part.split()[0] for part in line(row, "r0c0", order=1).split(" | ")[1:]] == ["E"]
    assert [part.split()[0] for part in line(row, "r0c1", order=2).split(" | ")[1:]] == ["E", "W", "E-E"]


@pytest.mark.parametrize("name", ["{{ 7 * 7 }}", "100% oat", "%s", "{% raw %}", '"oat"'])
@pytest.mark.parametrize("layout", ["full", "compact"])
def test_names_from_files_are_data(source: Callable[..., Source], name: str, layout: str) -> None:
    odd = source(2, 2, crops=(name, "rye"))
    text = as_text(messages(odd, "r0c0", PromptConfig(order=1, layout=layout)))
    if layout == "full":
        assert f"Allowed answers: {name} | rye | habitat\n" in text
        assert f"- {name}: 301 per tonne" in text
        assert json.dumps(f"{name}_yield") in text
    else:
        assert text.startswith(f"[user]\n{name} ")


def test_graph_of_another_landscape_is_refused(nine: Source, source: Callable[..., Source]) -> None:
    other = source(2, 2)
    with pytest.raises(DatasetError, match="not of landscape 'grid'"):
        neighbourhoods(nine.landscape, other.graph, nine.solution, PromptConfig())


def test_prices_need_a_solution(nine: Source) -> None:
    with pytest.raises(DatasetError, match="context: none"):
        neighbourhoods(nine.landscape, nine.graph, None, PromptConfig())
