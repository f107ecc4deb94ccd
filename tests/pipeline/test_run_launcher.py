"""Which runs count as dead: the process is gone, or its number now belongs to another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.launcher import WorkerStatus

from pipeline.run_launcher import LocalRunLauncher, process_start
from tests.pipeline.operations import storage


@pytest.fixture
def started(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A function that records a started run of a process."""
    with dg.DagsterInstance.from_config(str(storage(tmp_path))) as instance:

        def record(pid: int | None) -> tuple[dg.DagsterInstance, dg.DagsterRun]:
            run = dg.DagsterRun("retrain", status=dg.DagsterRunStatus.STARTED)
            instance.add_run(run)
            if pid is not None:
                instance.report_engine_event(
                    f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid)
                )
            return instance, run

        yield record


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> WorkerStatus:
    assert isinstance(instance.run_launcher, LocalRunLauncher)  # as dagster.yaml says
    return instance.run_launcher.check_run_worker_health(run).status


def test_a_living_process_and_one_not_yet_known_count_as_running(started) -> None:  # type: ignore[no-untyped-def]
    assert status(*started(os.getpid())) is WorkerStatus.RUNNING
    assert status(*started(None)) is WorkerStatus.RUNNING


def test_a_run_of_a_gone_process_is_dead_and_can_be_terminated(started) -> None:  # type: ignore[no-untyped-def]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    instance, run = started(gone.pid)
    assert status(instance, run) is WorkerStatus.FAILED
    assert instance.run_launcher.terminate(run.run_id)
    assert instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.CANCELED


def test_a_younger_process_of_the_same_number_is_another_one(started, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    instance, run = started(os.getpid())
    monkeypatch.setattr("pipeline.run_launcher.process_start", lambda pid: time.time() + 60)
    assert status(instance, run) is WorkerStatus.FAILED


def test_start_of_a_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_start(child.pid) == pytest.approx(time.time(), abs=2)
    child.kill()
    child.wait()
    assert process_start(child.pid) is None
