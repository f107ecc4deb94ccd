"""Reading a common beginning once changes nothing that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM

from training.generate import Writer
from training.models import pocket_tokenizer
from training.shared_prefix import can_share, common_prefix, read_once, saved_share

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
MORE = {"max_position_embeddings": 256, "tie_word_embeddings": True, "initializer_range": 0.4, "pad_token_id": 0}
"""Weights drawn wide, so that what is written depends on what was read."""

Rows = list[list[int]]


@pytest.fixture(scope="module")
def tokenizer(make_frame: Callable[..., pd.DataFrame]) -> Any:
    return pocket_tokenizer(make_frame(landscapes=2, rows=5), 256)


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def model(tokenizer: Any, request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    ends = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    if request.param == "llama":
        return LlamaForCausalLM(LlamaConfig(**SIZES, **MORE, **ends)).eval()
    return Qwen2ForCausalLM(Qwen2Config(**SIZES, **MORE, **ends, num_key_value_heads=2)).eval()


def batch(vocabulary: int, prompts: int, prefix: int, samples: int, seed: int = 0) -> Rows:
    """``samples`` rows of each of so many prompts of unequal length that begin alike."""
    random = np.random.default_rng(seed)
    begin = random.integers(3, vocabulary, prefix).tolist()
    different = [begin + random.integers(3, vocabulary, 5 + 3 * k).tolist() for k in range(prompts)]
    return [row for row in different for _ in range(samples)]


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    ("prompts", "prefix", "samples"),
    [(6, 20, 1), (4, 0, 3), (3, 15, 4), (1, 10, 5), (1, 0, 1)],
    ids=["common beginning", "samples", "both", "samples of one prompt", "nothing in common"],
)
def test_the_same_is_written_as_when_every_prompt_is_read_whole(
    model: Any, tokenizer: Any, prompts: int, prefix: int, samples: int, temperature: float
) -> None:
    rows = batch(len(tokenizer), prompts, prefix, samples)
    written = {}
    for least_saved in (0.0, 2.0):  # always and never
        writer = Writer(model, tokenizer, max_new_tokens=16, temperature=temperature, least_saved=least_saved)
        torch.manual_seed(7)
        written[least_saved] = writer.write(rows)
    assert written[0.0] == written[2.0]
    if temperature == 0 and prompts > 1:
        assert len({one.text for one in written[0.0]}) == prompts  # each prompt has a completion of its own


def test_every_next_token_has_the_probability_that_the_whole_prompt_gives_it(model: Any, tokenizer: Any) -> None:
    rows = batch(len(tokenizer), prompts=5, prefix=12, samples=2)
    with torch.inference_mode():
        begun = read_once(model, rows, tokenizer.pad_token_id)
        position = begun["attention_mask"].cumsum(dim=1) - 1
        last = model(
            input_ids=begun["input_ids"][:, -1:],
            attention_mask=begun["attention_mask"],
            position_ids=position[:, -1:],
            past_key_values=begun["past_key_values"],
        ).logits[:, -1]
        alone = torch.stack([model(input_ids=torch.tensor([row])).logits[0, -1] for row in rows])
    torch.testing.assert_close(last.log_softmax(-1), alone.log_softmax(-1), atol=1e-4, rtol=0)


def test_what_is_read_once_is_counted_by_hand() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 5, 6, 7]]
    assert common_prefix(rows) == 2
    assert saved_share(rows) == pytest.approx(1 - (2 + 2 + 3) / 13)
    assert common_prefix([[1, 2], [1, 2, 3]]) == 1  # a token of each is left, to write after
    assert common_prefix([[1, 2, 3]]) == 2
    assert saved_share([[1, 2, 3]]) == 0


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=5))
def test_the_common_beginning_is_common_and_no_longer_one_is(rows: Sequence[Sequence[int]]) -> None:
    found, shortest = common_prefix(rows), min(map(len, rows))
    assert len({tuple(row[:found]) for row in rows}) == 1
    assert found == shortest - 1 or len({row[found] for row in rows}) > 1


def test_a_model_that_forgets_what_left_its_window_is_read_whole(tokenizer: Any) -> None:
    torch.manual_seed(0)
    sliding = MistralForCausalLM(
        MistralConfig(**SIZES, **MORE, vocab_size=len(tokenizer), num_key_value_heads=2, sliding_window=8)
    ).eval()
    assert not can_share(sliding)
    rows = batch(len(tokenizer), prompts=2, prefix=12, samples=2)
    writers = [Writer(sliding, tokenizer, max_new_tokens=4, least_saved=least) for least in (0.0, 2.0)]
    assert writers[0].write(rows) == writers[1].write(rows)
