"""Several rows in one sequence: the same loss without padding, and log-probabilities that need no logits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from oracle.errors import ConfigurationError
from training.config import load_profile
from training.sft import run_sft

TINY = [
    *("model.hidden=32", "model.layers=2", "model.heads=2", "model.intermediate=64", "model.max_length=512"),
    *("sft.max_steps=1", "sft.save_steps=1", "sft.warmup_steps=0", "threads=1"),
]


def test_packed_rows_do_not_see_each_other(make_frame: Callable[..., pd.DataFrame], tmp_path: Path) -> None:
    """One step on all rows: the mean loss over the same tokens, with three times fewer and fuller sequences."""
    frame = make_frame(landscapes=2, rows=12)

    def losses(name: str, *more: str) -> pd.Series:
        run = run_sft(frame, load_profile("pocket", [*TINY, *more]), tmp_path / name)
        return pd.read_parquet(run / "metrics.parquet").iloc[0]

    apart = losses("apart", "sft.per_device_train_batch_size=12")
    together = losses("together", "sft.packing=true", "sft.per_device_train_batch_size=12")
    assert together["loss"] == pytest.approx(apart["loss"], rel=1e-5)
    assert together["grad_norm"] == pytest.approx(apart["grad_norm"], rel=1e-3)


def test_rows_are_packed_whole(make_frame: Callable[..., pd.DataFrame]) -> None:
    from datasets import Dataset

    from training.encode import packed, sft_examples
    from training.models import pocket_tokenizer

    frame = make_frame(landscapes=2, rows=12)
    tokenizer: Any = pocket_tokenizer(frame, 512)
    examples = sft_examples(tokenizer, frame)
    joined = packed(Dataset.from_dict(examples), 512)
    assert len(joined) < len(frame) / 2
    pieces = []
    for row in joined:
        ends = [sum(row["seq_lengths"][: k + 1]) for k in range(len(row["seq_lengths"]))]
        pieces += [row["input_ids"][end - n : end] for end, n in zip(ends, row["seq_lengths"], strict=True)]
        assert ends[-1] == len(row["input_ids"]) == len(row["labels"]) <= 512
    assert sorted(pieces) == sorted(examples["input_ids"])


@pytest.mark.parametrize("key", ["packing_strategy=wrapped", "max_length=100", "padding_free=true"])
def test_settings_that_would_cut_rows_are_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match=key.partition("=")[0]):
        load_profile("pocket", [f"sft.{key}"])


def test_log_probabilities_are_taken_without_the_logits(
    make_frame: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    """What stands in memory for a large vocabulary is a tile, in TRL's own head; its figures are the logits'."""
    import torch
    from trl.trainer.utils import add_fused_lm_head

    from training.models import load_model, save_pocket

    config = load_profile("pocket", TINY)
    save_pocket(config.model, make_frame(landscapes=2, rows=5), tmp_path, seed=0)
    model = load_model(tmp_path, config.model)
    tokens = torch.arange(3, 23).reshape(2, 10)
    logits = model(input_ids=tokens).logits[:, :-1]
    expected = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    add_fused_lm_head(model, outputs=("log_probs",))
    fused = model(input_ids=tokens, labels=tokens, fused_lm_head=True)
    assert getattr(fused, "logits", None) is None
    torch.testing.assert_close(fused.log_probs, expected)
