"""Whole runs with a tiny model: interrupted or not they end with the same weights, and the stages fit together."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from oracle.errors import TrainingError
from training.checkpoint import newest_complete, step_of
from training.config import Stage, TrainingConfig, load_profile
from training.evaluate import evaluate
from training.grpo import run_grpo
from training.launch import environment, evaluation_command, run_command, training_command
from training.run import RunFolder, RunInterrupted, StopRequest, weights_sha256
from training.sft import run_sft
from training.step_time import OPTIMIZER, PARTS, PREFIX
from training.turn import text_of

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=256"),
    *("sft.per_device_train_batch_size=8", "sft.max_steps=8", "sft.save_steps=2", "sft.warmup_steps=2"),
    *("grpo.per_device_train_batch_size=8", "grpo.num_generations=4", "grpo.max_steps=6", "grpo.save_steps=2"),
    *("grpo.learning_rate=1e-3", "evaluation.max_rows=20", "threads=1", "completions_every=2"),
]
TWICE = ["grpo.num_iterations=2"]
ACCUMULATED = ["grpo.gradient_accumulation_steps=2"]


class StopAfter(StopRequest):
    """Asks to stop after so many steps."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def requested(self) -> bool:  # type: ignore[override]
        self._left -= 1
        return self._left <= 0


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=4, rows=30)


@pytest.fixture(scope="module")
def config() -> TrainingConfig:
    return load_profile("pocket", TINY)


@pytest.fixture(scope="module")
def sft(frame: pd.DataFrame, config: TrainingConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SFT run that nobody interrupted."""
    return run_sft(frame, config, tmp_path_factory.mktemp("runs") / "sft", dataset_sha256="d")


def _length_reward(prompts: Any, completions: list[Any], **_: Any) -> list[float]:
    return [float(len(text_of(said)) % 7) for said in completions]


def _figures(run: Path) -> pd.DataFrame:
    figures = pd.read_parquet(run / "metrics.parquet")
    return figures.drop(columns=[c for c in figures if c == "step_time" or c.startswith(PREFIX)])


def test_a_finished_run_holds_what_it_came_from_and_nothing_else(sft: Path, config: TrainingConfig) -> None:
    record = json.loads((sft / "run.json").read_text())
    assert record["stage"] == "sft"
    assert (record["dataset_sha256"], record["config_sha256"]) == ("d", config.sha256)
    assert record["weights_sha256"] == weights_sha256(sft)
    assert TrainingConfig.model_validate(record["config"]) == config
    assert _figures(sft)["step"].tolist() == list(range(1, 9))
    assert not [
        p for p in sft.rglob("*") if p.suffix in {".bin", ".pt", ".pth", ".pkl"} or p.name.startswith("checkpoint")
    ]
    assert [p.name for p in sft.parent.iterdir() if p != sft] == [".sft.lock"]


def test_sft_goes_on_after_a_stop_and_a_broken_checkpoint_as_if_nothing_had_been(
    frame: pd.DataFrame, config: TrainingConfig, sft: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sft"
    with pytest.raises(RunInterrupted, match="after step 5"):
        run_sft(frame, config, out, dataset_sha256="d", stop=StopAfter(5))
    assert not out.exists()
    trainer = out.with_name(".sft.partial") / "trainer"
    (trainer / "checkpoint-5" / "optimizer.pt").write_bytes(b"cut off")  # as if killed while writing
    run_sft(frame, config, out, dataset_sha256="d")
    assert weights_sha256(out) == weights_sha256(sft)
    pd.testing.assert_frame_equal(_figures(out), _figures(sft))


@pytest.mark.parametrize("more", [[], TWICE, ACCUMULATED], ids=["plain", "two iterations", "accumulated"])
def test_grpo_goes_on_after_a_stop_as_if_nothing_had_been(
    frame: pd.DataFrame, sft: Path, tmp_path: Path, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A model that has learned nothing earns nothing, and would not move: reward it for something else.
    monkeypatch.setattr("training.grpo.profile_rewards", lambda config, prefill: [_length_reward] * len(config.rewards))
    config = load_profile("pocket", [*TINY, *more, "guard.max_clipped=null"])
    whole = run_grpo(frame, config, tmp_path / "whole", sft)
    with pytest.raises(RunInterrupted):
        run_grpo(frame, config, tmp_path / "parts", sft, stop=StopAfter(3))
    kept = newest_complete(tmp_path / ".parts.partial" / "trainer")
    assert kept is not None
    assert step_of(kept) == (4 if more == TWICE else 3)  # generations are not cut in two
    parts = run_grpo(frame, config, tmp_path / "parts", sft)
    assert weights_sha256(parts) == weights_sha256(whole) != weights_sha256(sft)
    pd.testing.assert_frame_equal(_figures(parts), _figures(whole))
    pd.testing.assert_frame_equal(*(pd.read_parquet(r / "completions.parquet") for r in (parts, whole)))


def test_grpo_logs_the_rewards_apart_and_the_kl_to_the_sft_run(
    frame: pd.DataFrame, config: TrainingConfig, sft: Path, tmp_path: Path
) -> None:
    run = run_grpo(frame, config, tmp_path / "grpo", sft)
    figures = _figures(run)
    assert figures["kl"].iloc[0] == pytest.approx(0.0, abs=1e-6)
    for name in ("lu_reward", "format_reward", "repetition_penalty"):
        assert f"rewards/{name}/mean" in figures
    times = pd.read_parquet(run / "metrics.parquet")
    assert (times[[f"{PREFIX}{part}" for part in PARTS]] > 0).all(axis=None)
    inside = times[[f"{PREFIX}{part}" for part in PARTS if part != OPTIMIZER]].sum(axis=1)
    assert inside.to_numpy() == pytest.approx(times["step_time"].to_numpy(), rel=0.1)  # TRL times the same passes
    assert figures["no_decision_signal_frac"].between(0, 1).all()
    kept = pd.read_parquet(run / "completions.parquet")
    assert set(kept["step"]) == {1, 3, 5}
    assert set(kept.groupby(["step", "group"]).size()) == {4}  # whole groups: the first, and one whose decisions differ
    weights = config.rewards
    assert kept["total"].to_numpy() == pytest.approx(kept[list(weights)].to_numpy() @ list(weights.values()))
    assert kept.groupby(["step", "group"])["advantage"].sum().abs().max() < 1e-4  # each beside its group's mean
    assert json.loads((run / "run.json").read_text())["start"] == weights_sha256(sft)


def test_a_reward_without_a_number_stops_the_run(
    frame: pd.DataFrame, config: TrainingConfig, sft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(prompts: Any, completions: list[Any], **_: Any) -> list[None]:
        return [None] * len(completions)

    monkeypatch.setattr("training.grpo.profile_rewards", lambda config, prefill: [silent] * len(config.rewards))
    with pytest.raises(TrainingError, match="gave no number"):
        run_grpo(frame, config, tmp_path / "grpo", sft)


def test_a_finished_run_is_not_trained_again(
    frame: pd.DataFrame, config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = load_profile("pocket", [*TINY, "sft.max_steps=1"])
    run = run_sft(frame, short, tmp_path / "sft", dataset_sha256="d")

    def trained(**changes: Any) -> bool:
        """Whether the same command, with changes, trains."""
        before = (run / "run.json").stat().st_mtime_ns
        run_sft(frame, **{"config": short, "out": run, "dataset_sha256": "d", **changes})
        return (run / "run.json").stat().st_mtime_ns != before

    assert not trained()
    assert [p.name for p in tmp_path.iterdir() if p != run] == [".sft.lock"]
    assert trained(config=load_profile("pocket", [*TINY, "sft.max_steps=1", "seed=1"]))
    assert trained()  # back to the first seed
    assert trained(dataset_sha256="e")
    assert trained()
    (run / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:-1] + b"x")
    assert trained()  # the weights were no longer those of the record
    monkeypatch.setattr("training.run.installed_versions", lambda: {"torch": "0"})
    assert trained()  # by another release


def test_a_run_that_waited_for_the_very_same_one_keeps_it(
    make_frame: Callable[..., pd.DataFrame], save_frame: Callable[..., Any], tmp_path: Path
) -> None:
    """One command, started twice: the second waits for the device, and finds the run done."""
    save_frame(make_frame(), tmp_path / "dataset")
    settings = ["model.hidden=32", "model.layers=1", "model.intermediate=64", "threads=1", "sft.max_steps=20"]
    command = training_command(Stage.SFT, tmp_path / "dataset", "pocket", tmp_path / "sft", overrides=settings)
    own = environment() | {"LANDORACLE_LOCKS": str(tmp_path / "locks")}
    both = [subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("20/20" in text for text in said) == [False, True]  # one of them trained
    assert sorted("this run is finished" in text for text in said) == [False, True]


def test_a_failed_run_leaves_the_finished_one_alone(
    frame: pd.DataFrame, config: TrainingConfig, sft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights_sha256(sft)

    def fail(self: RunFolder, stopped: str | None = None) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(RunFolder, "finish", fail)
    with pytest.raises(OSError, match="disk full"):
        run_sft(frame, load_profile("pocket", [*TINY, "seed=1"]), sft)
    assert weights_sha256(sft) == before
    assert (sft / "run.json").is_file()


def test_evaluation_counts_what_the_predictions_say(
    frame: pd.DataFrame, config: TrainingConfig, sft: Path, tmp_path: Path
) -> None:
    evaluation = evaluate(frame, {"sft": sft, "again": sft}, config, tmp_path)
    table = pd.read_parquet(tmp_path / "predictions.parquet")
    counts = table.groupby("model")["prompt_id"].agg(["size", "nunique"])
    assert (counts == 20).all().all()  # everybody on the same rows, each once
    for name, splits in (evaluation.models | evaluation.baselines).items():
        assert splits["held_out_landscape"].accuracy == table.loc[table["model"] == name, "correct"].mean()
    assert evaluation.models["sft"] == evaluation.models["again"]
    assert evaluation.baselines["largest_value"]["held_out_landscape"].accuracy == 1.0
    same = next(c for c in evaluation.comparisons if (c.first, c.second) == ("sft", "again"))
    assert (same.difference, same.mcnemar_p) == (0.0, 1.0)
    saved = json.loads((tmp_path / "evaluation.json").read_text())
    assert saved["models"]["sft"]["held_out_landscape"]["text"]["mean_rewards"].keys() == config.rewards.keys()


def test_nothing_held_out_is_said(frame: pd.DataFrame, config: TrainingConfig, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="hold out blocks"):
        evaluate(frame.assign(split="train"), {}, config, tmp_path)


def test_the_three_stages_as_processes_and_what_they_teach(
    make_frame: Callable[..., pd.DataFrame], save_frame: Callable[..., Any], tmp_path: Path
) -> None:
    dataset, sft, grpo, figures = (tmp_path / name for name in ("dataset", "sft", "grpo", "evaluation"))
    saved = save_frame(make_frame(landscapes=40, rows=60, held_out=4), dataset)
    more = [
        *("model.hidden=64", "model.layers=2", "model.intermediate=128", "sft.max_steps=220", "sft.save_steps=100"),
        *("sft.per_device_train_batch_size=32", "grpo.learning_rate=1e-5", "grpo.max_steps=2", "threads=1"),
        *("evaluation.max_rows=200", "evaluation.cited_rows=0"),  # these prompts are no renderings of their rows
    ]
    lines: list[str] = []
    run_command(training_command(Stage.SFT, dataset, "pocket", sft, overrides=more), on_line=lines.append)
    assert any(line.startswith("sft  220/220") for line in lines)
    run_command(training_command(Stage.GRPO, dataset, "pocket", grpo, start=sft, overrides=more), on_line=lines.append)
    models = {"sft": sft, "grpo": grpo}
    run_command(evaluation_command(dataset, "pocket", figures, models, overrides=more), on_line=lines.append)
    evaluation = json.loads((figures / "evaluation.json").read_text())
    assert evaluation["dataset_sha256"] == saved.sha256
    for name in models:
        found = evaluation["models"][name]["held_out_landscape"]
        assert found["text"]["format_share"] >= 0.95
        assert found["accuracy"] > 0.3  # chance is 0.2; to learn the arithmetic takes more steps than a test has


def test_adapters_on_every_linear_layer_end_up_in_the_weights(frame: pd.DataFrame, sft: Path, tmp_path: Path) -> None:
    """LoRA from the SFT weights: what moved is the linear layers and nothing else, and no adapter is left behind."""
    from safetensors.torch import load_file

    config = load_profile("pocket", [*TINY, "model.lora={rank: 4}", "sft.max_steps=2"])
    run = run_sft(frame, config, tmp_path / "lora", start=sft)
    before, after = load_file(sft / "model.safetensors"), load_file(run / "model.safetensors")
    assert before.keys() == after.keys()
    moved = {name for name in before if not before[name].equal(after[name])}
    assert moved == {name for name in before if name.endswith("proj.weight")}
    assert not list(run.glob("adapter*"))
