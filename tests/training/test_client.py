"""The client on a real Slurm: live lines, cancel, and the job found again after a restart of whoever launched it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.errors import TrainingError
from tests.training.test_slurm_real import _out, _script, _state, _until, pytestmark, slurm
from training import client
from training.client import SlurmClient, metrics, state_of
from training.config import Stage
from training.launch import environment
from training.slurm import SlurmConfig

__all__ = ["pytestmark", "slurm"]

FOLLOW = """
import sys
from pathlib import Path
from training import client
from training.config import Stage
from training.slurm import SlurmConfig
client.POLL_S = 0.1
config = SlurmConfig.model_validate_json(sys.argv[1])
slurm, models = client.SlurmClient(config), Path(sys.argv[2])
slurm.train(Stage.SFT, Path("data"), "pocket", models, on_line=lambda line: print(line, flush=True))
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "POLL_S", 0.1)


def configured(tmp_path: Path, body: str) -> SlurmConfig:
    """A job whose ``python`` is a script, since nothing is trained here."""
    settings = {"gpus_per_node": 0, "cpus_per_task": 1, "time": "10", "grace_s": 60}
    return SlurmConfig.model_validate({**settings, "python": str(_script(tmp_path / "python", body))})


def train(config: SlurmConfig, models: Path, lines: list[str]) -> None:
    SlurmClient(config).train(Stage.SFT, models / "data", "pocket", models, on_line=lines.append)


def test_lines_come_live_and_a_failing_job_says_so(slurm: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    config = configured(tmp_path, f"echo first; while [[ ! -e {go} ]]; do sleep 0.1; done; echo second")

    class Watched(list):
        def append(self, line: str) -> None:
            super().append(line)
            if line == "first":
                go.touch()

    lines = Watched()
    train(config, tmp_path / "models", lines)
    assert [line for line in lines if line in ("first", "second")] == ["first", "second"]
    with pytest.raises(TrainingError, match=r"job \d+ ended as FAILED; its log is .*goes on from the last"):
        train(configured(tmp_path, "exit 3"), tmp_path / "models", [])
    assert not list((tmp_path / "models").glob(".slurm-sft.json"))


def test_an_interrupt_cancels_the_job(slurm: Path, tmp_path: Path) -> None:
    config = configured(tmp_path, "echo started; sleep 60")

    def interrupt(line: str) -> None:
        if line == "started":
            raise KeyboardInterrupt

    models = tmp_path / "models"
    with pytest.raises(KeyboardInterrupt):
        SlurmClient(config).train(Stage.SFT, models / "data", "pocket", models, on_line=interrupt)
    (log,) = models.glob("slurm-*.log")
    job = log.stem.removeprefix("slurm-")
    _until(lambda: _state(job) == "CANCELLED", 30)


def test_after_a_kill_the_same_request_finds_its_job_again(slurm: Path, tmp_path: Path) -> None:
    go, models = tmp_path / "go", tmp_path / "models"
    config = configured(tmp_path, f"echo started; while [[ ! -e {go} ]]; do sleep 0.1; done; echo done")
    first = subprocess.Popen(
        [sys.executable, "-c", FOLLOW, config.model_dump_json(), str(models)],
        env=environment(),
        cwd=models.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    while first.stdout.readline() != "started\n":
        pass
    job = json.loads((models / ".slurm-sft.json").read_text())["job"]
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert state_of(job) == "RUNNING"  # the cluster has not noticed
    second = subprocess.Popen(
        [sys.executable, "-c", FOLLOW, config.model_dump_json(), str(models)],
        env=environment(),
        cwd=models.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert second.stdout is not None
    assert second.stdout.readline() == f"job {job} is still there: following it\n"
    go.touch()
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert said.split()[-1] == "done"
    assert len(_out("squeue", "--noheader").splitlines()) == 0
    assert len(list(models.glob("slurm-*.log"))) == 1  # one job in all


def test_metrics_of_a_run_at_work(tmp_path: Path) -> None:
    partial = tmp_path / ".sft.partial"
    partial.mkdir()
    assert metrics(tmp_path / "sft") == []
    (partial / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert metrics(tmp_path / "sft") == [{"step": 1, "loss": 2.0}]
