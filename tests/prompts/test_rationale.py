"""Rationales say what can be computed from the prompt, and nothing else."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.neighbourhood import neighbourhoods
from prompts.rationale import targets

CROPS = ("wheat", "oat", "corn", "soy")


def target(source: Source, polygon: str, **config: object) -> str:
    prompt_config = PromptConfig.model_validate(config)
    shown = neighbourhoods(source.landscape, source.graph, source.solution, prompt_config)
    rows = np.flatnonzero(source.landscape.ids == polygon)
    return targets(shown, source.solution.land_use, prompt_config, rows)[0]


def test_compact_states_hundreds_per_hectare(nine: Source) -> None:
    # 3.01 * 301 = 906.0, 2.51 * 266 = 667.7, 0.20 * 812 = 162.4 currency/ha
    assert target(nine, "r0c1") == "<think>wheat 9.1 oat 6.7 habitat 1.6</think><answer>wheat</answer>"
    # the prompt prints 11.3, so the rationale multiplies 11.3 and not 11.26
    assert target(nine, "r2c2") == "<think>wheat 34.0 oat 7.2 habitat 7.3</think><answer>wheat</answer>"


def test_without_prices_crops_are_ranked_by_yield(nine: Source) -> None:
    assert target(nine, "r1c1", context="none") == (
        "<think>wheat 3.11 oat 0.00 habitat 0.50</think><answer>wheat</answer>"
    )


def test_answer_only_has_no_think_block(nine: Source) -> None:
    assert target(nine, "r0c0", style="answer_only") == "<answer>wheat</answer>"


@pytest.mark.parametrize("order", [0, 1])
def test_compact_values_follow_from_the_prompt_s_own_text(source: Callable[..., Source], order: int) -> None:
    frame = build_dataset([source(12, 12, crops=CROPS)], PromptConfig(order=order)).frame
    for prompt, completion in zip(frame["prompt"], frame["target"], strict=True):
        central = prompt[0]["content"].split(" | ")[0]
        factors = {name: float(a) * float(b) for name, a, b in re.findall(r"(\w+) ([\d.]+)\*([\d.]+)", central)}
        stated = re.findall(r"(\w+) ([\d.]+)", completion.partition("</think>")[0])
        assert [name for name, _ in stated] == [*CROPS, "habitat"]
        for name, value in stated:
            assert abs(float(value) - factors[name] / 100) <= 0.05 + 1e-9
