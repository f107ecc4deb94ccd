"""Easy prompts first: in what order a run reads a dataset, and how runs over orders of neighbours follow each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oracle.errors import ConfigurationError, TrainingError
from training.config import Stage, load_profile
from training.curriculum import CurriculumSection, draws_of, easiest_first, easiest_share, margins, run_order
from training.grpo import run_grpo
from training.preflight import problems
from training.run import RunInterrupted, StopRequest, weights_sha256
from training.sft import run_sft

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=256"),
    *("sft.per_device_train_batch_size=8", "sft.max_steps=6", "sft.save_steps=2", "sft.warmup_steps=1", "threads=1"),
    *("grpo.per_device_train_batch_size=8", "grpo.num_generations=4", "grpo.max_steps=4", "grpo.save_steps=2"),
    *("grpo.max_completion_length=32", "guard.on=false", "completions_every=1"),
]
CURRICULUM = ["curriculum.by=regret", "curriculum.start=0.1", "curriculum.pace=1.0"]


def _rows(margins_of: dict[str, list[float]]) -> pd.DataFrame:
    """A row for each margin: class a is right, b costs the margin, c more."""
    return pd.DataFrame(
        [
            {"landscape": name, "answer": "a", "classes": ["a", "b", "c"], "regret_low": [0.0, m, m + 1.0]}
            for name, given in margins_of.items()
            for m in given
        ]
    )


def _with_margins(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose rows get harder from first to last."""
    regret = [
        [0.0 if c == answer else 1.0 / (1 + position) for c in classes]
        for position, (classes, answer) in enumerate(zip(frame["classes"], frame["answer"], strict=True))
    ]
    return frame.assign(regret_low=regret)


def test_a_wide_margin_is_easy_and_landscapes_are_ranked_apart() -> None:
    rows = _rows({"rich": [50.0, 10.0], "poor": [0.0, 0.2, 0.1]})
    assert margins(rows).tolist() == [50.0, 10.0, 0.0, 0.2, 0.1]  # what the second best class costs
    # Ranks: rich 1/2 and 2/2, poor 3/3, 1/3 and 2/3; so the poor landscape's clear row leads.
    assert easiest_first(rows).tolist() == [3, 0, 4, 1, 2]
    with pytest.raises(TrainingError, match="regret_low"):
        margins(rows.drop(columns="regret_low"))


def test_the_share_grows_to_all_rows_at_the_pace_and_every_draw_keeps_to_it() -> None:
    section = CurriculumSection(by="regret", start=0.2, pace=0.5)
    assert easiest_share(section, np.array([0.0, 0.25, 0.5, 1.0])) == pytest.approx([0.2, 0.6, 1.0, 1.0])
    rows = _rows({"one": list(range(100, 0, -1))})  # position = rank of difficulty
    order = run_order(rows, section, 4000, seed=3)
    assert order[:40].max() < 25
    for early, late, mean in ((900, 1100, 0.6 / 2), (2000, 4000, 0.5)):
        assert order[early:late].mean() / 100 == pytest.approx(mean, abs=0.03)
    assert set(order) == set(range(100))
    assert (order == run_order(rows, section, 4000, seed=3)).all()
    assert (order != run_order(rows, section, 4000, seed=4)).any()


def test_a_run_reads_as_many_rows_as_its_steps_need() -> None:
    config = load_profile("pocket", TINY)
    assert draws_of(config, Stage.SFT, 100) == 6 * 8
    assert draws_of(config, Stage.GRPO, 100) == 4 * 8 // 4
    reused = load_profile("pocket", [*TINY, "grpo.num_iterations=2"])
    assert draws_of(reused, Stage.GRPO, 100) == 2 * 8 // 4  # two steps on each generation
    epochs = load_profile("pocket", [*TINY, "sft.max_steps=-1", "sft.num_train_epochs=1.5"])
    assert draws_of(epochs, Stage.SFT, 101) == 152


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("curriculum.order=1", "curriculum.order"),
        ("sft.packing=true", "undoes the order"),
        ("draw.by=uncertainty", "both choose the prompts"),
        ("curriculum.pace=0", "curriculum.pace"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(change: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_profile("pocket", [*TINY, *CURRICULUM, change])


class StopAfter(StopRequest):
    """Asks to stop after so many steps."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def requested(self) -> bool:  # type: ignore[override]
        self._left -= 1
        return self._left <= 0


def test_runs_read_easy_rows_first_and_an_interrupted_one_goes_on_in_the_order(
    make_frame: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    frame = _with_margins(make_frame(landscapes=2, rows=40))
    config = load_profile("pocket", [*TINY, *CURRICULUM])
    whole = run_sft(frame, config, tmp_path / "whole")
    with pytest.raises(RunInterrupted):
        run_sft(frame, config, tmp_path / "parts", stop=StopAfter(3))
    parts = run_sft(frame, config, tmp_path / "parts")
    assert weights_sha256(parts) == weights_sha256(whole)
    assert weights_sha256(whole) != weights_sha256(run_sft(frame, load_profile("pocket", TINY), tmp_path / "uniform"))
    grpo = run_grpo(frame, config, tmp_path / "grpo", whole)
    first = pd.read_parquet(grpo / "completions.parquet").query("step == 1")
    assert set(first["prompt_id"].str.split(":").str[1].astype(int)) <= set(range(4 + 1))  # of 40, the easiest tenth


def test_orders_of_neighbours_are_a_chain_of_runs(make_frame: Callable[..., pd.DataFrame], tmp_path: Path) -> None:
    """Order 0 first; order 1 starts with its weights and vocabulary, and knows the turn from the first step on."""
    alone = make_frame(landscapes=3, rows=40)
    beside = alone.assign(
        order=1,
        prompt=[[{"role": "user", "content": f"N wheat 2.10 {m[0]['content']}"}] for m in alone["prompt"]],
    )
    steps = ["sft.max_steps=40", "sft.per_device_train_batch_size=16"]
    first = run_sft(alone, load_profile("pocket", [*TINY, *steps]), tmp_path / "order_0")
    config = load_profile("pocket", [*TINY, "prompts.order=1"])
    assert problems(beside, config, Stage.SFT, start=first) == []
    (mixed_up,) = problems(beside, load_profile("pocket", TINY), Stage.SFT, start=first)
    assert "order 1, the profile says 0" in mixed_up
    second = run_sft(beside, config, tmp_path / "order_1", start=first)
    afresh = run_sft(beside, config, tmp_path / "afresh")
    losses = [pd.read_parquet(run / "metrics.parquet")["loss"].iloc[0] for run in (second, afresh)]
    assert losses[0] < 0.85 * losses[1]
    assert (second / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()
