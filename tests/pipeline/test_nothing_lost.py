"""What an operator's months bring: killed workers, killed trainings, a power cut, Terminate. Each is really done.

Afterwards nobody trains on unseen, no half-written file looks whole, and the next run goes on where it was: in the end
the weights are those of a training that nothing disturbed.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle.errors import LandoracleError
from oracle.verify import verify
from pipeline.launchpad import as_settings
from pipeline.workspace import Workspace
from prompts.plan_folder import read_plan
from tests.pipeline.conftest import write_landscape
from tests.pipeline.operations import Operations, alive, processes, until
from training.checkpoint import is_complete, step_of
from training.config import Stage
from training.launch import run_command, training_command

SETTINGS = [
    "model.hidden=32",
    "model.layers=1",
    "model.intermediate=64",
    "sft.per_device_train_batch_size=16",
    "sft.max_steps=160",
    "sft.save_steps=8",
    "max_train_rows=200",
    "threads=1",
]
CONFIG = {"resources": {"training": {"config": as_settings(SETTINGS)}}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("months")
    (folder / "landscapes").mkdir()
    write_landscape(folder / "landscapes", "farm", 1, "train")
    write_landscape(folder / "landscapes", "second", 2, "train")
    return folder


@pytest.fixture(scope="module")
def workspace(place: Path) -> Workspace:
    return Workspace(root=str(place / "runs"))


@pytest.fixture(scope="module")
def operations(place: Path) -> Iterator[Operations]:
    running = Operations(
        place / "dagster",
        LANDORACLE_WORKSPACE=str(place / "runs"),
        LANDORACLE_LANDSCAPES=str(place / "landscapes"),
    )
    yield running
    running.close()


def test_kill_of_one_of_two_solvers(operations: Operations, workspace: Workspace) -> None:
    """Two landscapes on two workers; one is killed, retried, and ends with a plan whose proof holds."""
    operations.instance.add_dynamic_partitions("landscapes", ["farm", "second"])
    run, other = (operations.launch("solve_landscape", {}, partition=key) for key in ("farm", "second"))
    operations.turn()
    workers = {operations.worker(run), operations.worker(other)}
    assert len(workers) == 2
    assert all(map(alive, workers))  # at the same time
    until(lambda: workspace.graph("farm").is_file(), 60, "the neighbour graph")
    os.kill(operations.worker(run), signal.SIGKILL)
    operations.turned_to(run, "FAILURE")
    with pytest.raises(LandoracleError):
        read_plan(workspace.plan("farm"))
    retry = until(lambda: operations.retry_of(run), 30, "a retry")
    for each in (retry, other):
        operations.turned_to(each, "SUCCESS")
    for key in ("farm", "second"):
        assert verify(workspace.plan(key)).gap >= 0


def _dataset(operations: Operations) -> None:
    run = operations.launch("retrain", {}, "prompt_dataset")
    operations.turned_to(run, "SUCCESS")


def _checkpoint(workspace: Workspace) -> int:
    """Step of the newest complete checkpoint; -1 where there is none."""
    folder = workspace.path / "models" / ".sft.partial" / "trainer"
    return max((step_of(path) for path in folder.glob("checkpoint-*") if is_complete(path)), default=-1)


def _trainer(workspace: Workspace) -> int:
    """The one process that trains, once it has gone beyond the last checkpoint."""
    before = _checkpoint(workspace)
    until(lambda: _checkpoint(workspace) > before, 90, "a new checkpoint")
    (pid,) = processes("training", "sft", str(workspace.path / "dataset"))
    return pid


def test_kill_of_the_worker_then_terminate(operations: Operations, workspace: Workspace) -> None:
    _dataset(operations)
    run = operations.launch("retrain", CONFIG, "sft_model")
    operations.turn()
    trainer = _trainer(workspace)
    os.kill(operations.worker(run), signal.SIGKILL)
    operations.turned_to(run, "FAILURE")
    retry = until(lambda: operations.retry_of(run), 30, "a retry")
    reached = _checkpoint(workspace)
    operations.turned_to(retry, "STARTED")
    second = _trainer(workspace)  # the only one: the first has gone
    assert not alive(trainer)
    assert operations.terminate(retry) == "TerminateRunSuccess"
    operations.turned_to(retry, "CANCELED")
    assert not alive(second)
    assert _checkpoint(workspace) > reached >= 0
    assert not workspace.model("sft").exists()  # what is not finished does not look so


def test_kill_of_the_training(operations: Operations, workspace: Workspace) -> None:
    run = operations.launch("retrain", CONFIG, "sft_model")
    operations.turn()
    os.kill(_trainer(workspace), signal.SIGKILL)
    operations.turned_to(run, "FAILURE")
    assert "was killed by SIGKILL" in operations.failure(run)
    assert "goes on from the last complete checkpoint" in operations.failure(run)
    assert operations.retry_of(run) is None  # a person looks first: it may have been the memory


def test_power_cut_and_a_corrupt_checkpoint(operations: Operations, workspace: Workspace, tmp_path: Path) -> None:
    """kill -9 of the process group; the newest checkpoint is cut short, too, as a dying disk would leave it."""
    run = operations.launch("retrain", CONFIG, "sft_model")
    operations.turn()
    trainer, worker = _trainer(workspace), operations.worker(run)
    operations.power_cut()
    until(lambda: not alive(worker) and not alive(trainer), 30, "an end of all")
    assert operations.status(run) == "STARTED"  # nobody was left to say otherwise
    newest = _checkpoint(workspace)
    weights = workspace.path / f"models/.sft.partial/trainer/checkpoint-{newest}/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])

    operations.start()
    operations.turned_to(run, "FAILURE")
    retry = until(lambda: operations.retry_of(run), 30, "a retry")
    operations.turned_to(retry, "SUCCESS")

    undisturbed = tmp_path / "sft"
    command = training_command(Stage.SFT, workspace.dataset, "pocket", undisturbed, overrides=SETTINGS)
    run_command(command, on_line=lambda line: None)
    assert _weights(workspace.model("sft")) == _weights(undisturbed)
    assert not list((workspace.path / "models").glob(".*.partial"))


def _weights(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())["weights_sha256"]
