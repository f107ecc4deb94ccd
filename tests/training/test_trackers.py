"""trackio and wandb really follow a run, with no network to be had, and leave their files beside the run's folder."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from training.config import Stage, load_profile
from training.launch import environment, training_command
from training.sft import run_sft

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=256"),
    *("sft.per_device_train_batch_size=8", "sft.max_steps=2", "sft.save_steps=2", "sft.warmup_steps=1", "threads=1"),
    *("grpo.per_device_train_batch_size=8", "grpo.num_generations=4", "grpo.max_steps=3", "grpo.save_steps=3"),
    *("grpo.max_completion_length=32", "guard.on=false"),
]
# A process without a network card, where the system lets an ordinary user have one.
WITHOUT_NETWORK = ["unshare", "--user", "--map-root-user", "--net"]


def _cut_off() -> list[str]:
    possible = (
        shutil.which("unshare") and not subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True).returncode
    )
    return WITHOUT_NETWORK if possible else []


@pytest.fixture
def followed(
    request: pytest.FixtureRequest,
    make_frame: Callable[..., pd.DataFrame],
    save_frame: Callable[[pd.DataFrame, Path], object],
    tmp_path: Path,
) -> Path:
    """The folder of the runs, of which the GRPO run was reported to a tracker."""
    tracker = request.param
    if not find_spec(tracker):
        pytest.skip(f"{tracker} is not installed (pip install 'landoracle[tracking]')")
    frame, runs = make_frame(landscapes=2, rows=20), tmp_path / "mine"
    save_frame(frame, tmp_path / "dataset")
    sft = run_sft(frame, load_profile("pocket", TINY), runs / "sft")
    settings = [*TINY, f"grpo.report_to={tracker}"]
    command = training_command(Stage.GRPO, tmp_path / "dataset", "pocket", runs / "grpo", start=sft, overrides=settings)
    subprocess.run([*_cut_off(), *command], env=environment(), cwd=tmp_path, check=True, timeout=120)
    return runs


@pytest.mark.parametrize("followed", ["trackio"], indirect=True)
def test_trackio(followed: Path) -> None:
    with closing(sqlite3.connect(followed / "trackio" / "landoracle.db")) as database:
        rows = database.execute("select run_name, step, metrics from metrics order by step").fetchall()
    logged = {step: json.loads(text) for name, step, text in rows if name == "mine/grpo" and b"train/reward" in text}
    assert sorted(logged) == [1, 2, 3]
    figures = pd.read_parquet(followed / "grpo" / "metrics.parquet")
    assert [logged[step]["train/entropy"] for step in (1, 2, 3)] == pytest.approx(figures["entropy"].tolist())


@pytest.mark.parametrize("followed", ["wandb"], indirect=True)
def test_wandb(followed: Path) -> None:
    (run,) = (followed / "wandb").glob("offline-run-*")
    (record,) = run.glob("run-*.wandb")
    assert record.stat().st_size > 1000
    assert b"train/reward" in record.read_bytes()
    assert not [p for p in followed.parent.iterdir() if p.name == "wandb"]  # not where the command was given


def test_where_they_write_is_ours_unless_the_environment_says_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_DIR", "TRACKIO_DIR"):
        monkeypatch.delenv(name, raising=False)
    found = environment(tmp_path / "mine" / "grpo")
    assert (found["WANDB_DIR"], found["TRACKIO_DIR"]) == (str(tmp_path / "mine"), str(tmp_path / "mine" / "trackio"))
    monkeypatch.setenv("TRACKIO_DIR", "elsewhere")
    assert environment(tmp_path / "mine" / "grpo")["TRACKIO_DIR"] == "elsewhere"
