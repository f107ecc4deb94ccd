"""Runs that do collapse, and what the guard leaves of them; and a run killed at any moment with all its new state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from oracle.errors import TrainingError
from training.checkpoint import newest_complete
from training.config import Stage, load_profile
from training.curves import draw_curves
from training.grpo import run_grpo
from training.launch import environment, training_command
from training.run import weights_sha256
from training.sft import run_sft
from training.step_time import PREFIX
from training.turn import text_of

SMALL = [
    *("model.hidden=48", "model.layers=2", "model.heads=2", "model.intermediate=96", "model.max_length=256"),
    *("sft.per_device_train_batch_size=32", "sft.max_steps=110", "sft.save_steps=110", "sft.warmup_steps=5"),
    *("grpo.per_device_train_batch_size=32", "grpo.num_generations=8", "grpo.max_steps=40", "grpo.save_steps=20"),
    *("grpo.beta=0.002", "grpo.lr_scheduler_type=constant", "grpo.warmup_steps=0"),
    *("grpo.max_completion_length=16", "guard.window=3", "guard.evaluate_every=4", "guard.rows=80", "threads=1"),
]
SOUND_RATE = 3e-4
"""A model of this size learns from it in forty steps; at three times as much it ends with one answer for all."""
STEERED = [
    *("draw.by=uncertainty", "draw.first_votes=8", "kl.control=target", "kl.target=0.01", "kl.reset_every=3"),
    *("grpo.max_steps=10", "grpo.save_steps=2", "grpo.learning_rate=1e-3", "grpo.beta=0.05", "guard.evaluate_every=4"),
]


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Targets that think of nothing but the answer: ten tokens, so that a step takes a quarter of a second."""
    frame = make_frame(landscapes=8, rows=40, held_out=2)
    return frame.assign(target=[f"<think>{a}</think><answer>{a}</answer>" for a in frame["answer"]])


@pytest.fixture(scope="module")
def sft(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the format's outline and the commonest class."""
    return run_sft(frame, load_profile("pocket", SMALL), tmp_path_factory.mktemp("collapse") / "sft")


@pytest.fixture(scope="module")
def sound(frame: pd.DataFrame, sft: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GRPO at a rate that suits this model."""
    config = load_profile("pocket", [*SMALL, f"grpo.learning_rate={SOUND_RATE}"])
    return run_grpo(frame, config, tmp_path_factory.mktemp("sound") / "grpo", sft)


def pays_for_length(prompts: Any, completions: list[Any], **_: Any) -> list[float]:
    """Tokens are money: what a reward model with a taste for long texts does."""
    return [float(len(text_of(said))) / 20 for said in completions]


def _stopped(run: Path) -> dict[str, Any]:
    evidence: dict[str, Any] = json.loads((run / "guard.json").read_text())
    record = json.loads((run / "run.json").read_text())
    assert record["stopped"] == evidence["reason"]
    assert evidence["completions"]
    held_out = pd.read_parquet(run / "held_out.parquet")
    best = held_out.loc[held_out["accuracy"].idxmax()]
    assert (evidence["best"]["step"], evidence["best"]["accuracy"]) == (best["step"], best["accuracy"])
    return evidence


def test_a_sound_run_is_left_alone_and_learns(sft: Path, sound: Path, tmp_path: Path) -> None:
    assert json.loads((sound / "run.json").read_text())["stopped"] is None
    assert not (sound / "guard.json").exists()
    held_out = pd.read_parquet(sound / "held_out.parquet")
    assert held_out["step"].tolist() == list(range(0, 41, 4))
    assert held_out["accuracy"].iloc[-1] >= held_out["accuracy"].iloc[0]
    figures = pd.read_parquet(sound / "metrics.parquet")
    for name in ("reward", "rewards/lu_reward/mean"):
        assert figures[name].tail(10).mean() > 1.2 * figures[name].head(10).mean()
    assert list((sound / "tensorboard").rglob("events.*"))
    draw_curves(sound, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TrainingError, match="no figures of a GRPO run"):
        draw_curves(sft, tmp_path / "none.png")


def test_ten_times_too_fast(frame: pd.DataFrame, sft: Path, tmp_path: Path) -> None:
    """The same run as the sound one, but for the rate: it loses the end of its turn within a few steps."""
    config = load_profile("pocket", [*SMALL, f"grpo.learning_rate={10 * SOUND_RATE}"])
    run = run_grpo(frame, config, tmp_path / "grpo", sft)
    evidence = _stopped(run)
    assert evidence["breach"]["step"] < 20
    if evidence["best"]["step"] == 0:
        assert weights_sha256(run) == weights_sha256(sft)


def test_without_an_anchor(frame: pd.DataFrame, sft: Path, tmp_path: Path) -> None:
    """Beta 0 at a rate between the two: every prompt gets the same answer in the end, though the reward rises."""
    loose = [*SMALL, "grpo.beta=0", "allow_zero_beta=true", f"grpo.learning_rate={3 * SOUND_RATE}"]
    run = run_grpo(frame, load_profile("pocket", loose), tmp_path / "grpo", sft)
    evidence = _stopped(run)
    assert evidence["breach"]["figure"] in {"answer_entropy", "commonest", "well_formed", "clipped", "repetition"}


def test_a_reward_that_pays_for_length(
    frame: pd.DataFrame, sft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.grpo.profile_rewards", lambda config, prefill: [pays_for_length] * 3)
    greedy = [*SMALL, "grpo.learning_rate=2e-3", "gate_on_decision=false"]
    run = run_grpo(frame, load_profile("pocket", greedy), tmp_path / "grpo", sft)
    evidence = _stopped(run)
    assert evidence["breach"]["figure"] in {"clipped", "kl", "repetition", "well_formed"}
    figures = pd.read_parquet(run / "metrics.parquet")
    assert figures["reward"].iloc[-1] > figures["reward"].iloc[0]  # and the reward rose all the while


def test_votes_beta_and_reference_survive_kill_nine(
    frame: pd.DataFrame, sft: Path, save_frame: Callable[..., Any], tmp_path: Path
) -> None:
    dataset, killed = tmp_path / "dataset", tmp_path / "killed"
    saved = save_frame(frame, dataset)
    overrides = [*SMALL, *STEERED]
    command = training_command(Stage.GRPO, dataset, "pocket", killed, start=sft, overrides=overrides)
    checkpoints = tmp_path / ".killed.partial" / "trainer"
    child = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 90
        while not list(checkpoints.glob("checkpoint-4")) and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        os.killpg(child.pid, signal.SIGKILL)  # perhaps in the middle of writing checkpoint-4
        child.wait()
    assert newest_complete(checkpoints) is not None
    config = load_profile("pocket", overrides)
    run_grpo(saved.frame, config, killed, sft, dataset_sha256=saved.sha256)
    whole = run_grpo(saved.frame, config, tmp_path / "whole", sft, dataset_sha256=saved.sha256)
    assert weights_sha256(killed) == weights_sha256(whole) != weights_sha256(sft)
    tables = [pd.read_parquet(run / "metrics.parquet") for run in (killed, whole)]
    tables = [t.drop(columns=[c for c in t if c == "step_time" or c.startswith(PREFIX)]) for t in tables]
    pd.testing.assert_frame_equal(*tables)
    assert tables[1]["beta"].nunique() > 3
    pd.testing.assert_frame_equal(*(pd.read_parquet(run / "held_out.parquet") for run in (killed, whole)))
