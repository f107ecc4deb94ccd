"""Landscapes solved by Celery workers, and the settings of other executors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
import pytest

from oracle.errors import ConfigurationError
from pipeline.executors import load_executor
from pipeline.sources import PROJECT
from tests.pipeline.conftest import write_landscape
from tests.pipeline.operations import Operations, environment, until
from tests.pipeline.test_postgres import SERVER, database

__all__ = ["database"]  # a fixture

CELERY = PROJECT / "docs" / "executor_celery.yaml"


@pytest.fixture
def variables(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What the operator sets: a broker in a Postgres (in a file where there is none), and a store for the workers."""
    address = request.getfixturevalue("database") if SERVER else None
    (tmp_path / "landscapes").mkdir()
    (tmp_path / "store").mkdir()
    return {
        "LANDORACLE_EXECUTOR": str(CELERY),
        "LANDORACLE_BROKER": f"sqla+{address or f'sqlite:///{tmp_path}/broker.db'}",
        "LANDORACLE_BROKER_RESULTS": f"db+{address or f'sqlite:///{tmp_path}/results.db'}",
        "LANDORACLE_STORE": f"file://{tmp_path}/store",
        "LANDORACLE_LANDSCAPES": str(tmp_path / "landscapes"),
    }


@pytest.fixture
def operations(tmp_path: Path, variables: dict[str, str]) -> Iterator[Operations]:
    """The UI's machine."""
    running = Operations(tmp_path / "dagster", LANDORACLE_WORKSPACE=str(tmp_path / "ui"), **variables)
    yield running
    running.close()


def ready_or_dead(worker: subprocess.Popen[bytes], log: Path) -> bool:
    return " ready." in log.read_text() or worker.poll() is not None


@pytest.fixture
def workers(operations: Operations, tmp_path: Path, variables: dict[str, str]) -> Iterator[None]:
    """Two workers, each with a folder of its own as on a machine of its own, started as the file says."""
    names, started = ("one", "two"), []
    scripts = Path(sys.executable).parent
    path = os.pathsep.join([str(scripts), os.environ["PATH"]])  # as in an activated environment
    try:
        for name in names:
            command = [
                *(str(scripts / "dagster-celery"), "worker", "start", "-A", "dagster_celery.app"),
                *("-n", name, "-y", str(CELERY), "--", "--pool", "solo"),
            ]
            own = environment(operations.home, LANDORACLE_WORKSPACE=str(tmp_path / name), PATH=path, **variables)
            log = tmp_path / f"{name}.log"
            with log.open("w") as out:
                worker = subprocess.Popen(command, env=own, cwd=PROJECT, stdout=out, stderr=out, start_new_session=True)
            started.append(worker)
            # the first makes the tables of an empty broker, which two at once cannot (docs/operations.md)
            until(partial(ready_or_dead, worker, log), 90, f"worker {name}")
            assert worker.poll() is None, log.read_text()
        yield
    finally:
        for worker in started:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


@pytest.mark.skipif(find_spec("dagster_celery") is None, reason="needs the extra celery")
def test_two_workers_solve_two_landscapes(operations: Operations, workers: None, tmp_path: Path) -> None:
    """Steps of two runs on two workers with a disk each; the plans are whole in the store."""
    keys = ("farm", "second")
    for seed, key in enumerate(keys):
        write_landscape(tmp_path / "landscapes", key, seed + 1, "train")
    operations.instance.add_dynamic_partitions("landscapes", list(keys))
    runs = [operations.launch("solve_landscape", {}, partition=key) for key in keys]
    for run in runs:
        operations.turned_to(run, "SUCCESS", seconds=150)
    events = [e for run in runs for e in operations.instance.all_logs(run, of_type=dg.DagsterEventType.ENGINE_EVENT)]
    by = {
        str(e.dagster_event.engine_event_data.metadata["Celery worker"].value).partition("@")[0]
        for e in events
        if e.dagster_event and "Celery worker" in e.dagster_event.engine_event_data.metadata
    }
    assert by == {"one", "two"}
    assert not (tmp_path / "ui" / "plans").exists()  # the runs' own processes solved nothing
    for key in keys:
        assert any((tmp_path / name / "plans" / key).is_dir() for name in ("one", "two"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("executor: dagster.multiprocess_executor\nexecution: {config: {max_concurrent: 2}}", None),
        ("executor: dagster.multiprocess_executor\nexecution: {config: {max_concurent: 2}}", "max_concurent"),
        ("executor: dagster_nowhere.executor", "No module named 'dagster_nowhere'"),
        ("executor: dagster.asset", "is no executor of Dagster"),
        ("config: {}", "KeyError: 'executor'"),
        ("[", "is a YAML file"),
    ],
)
def test_an_executor_is_named_with_its_settings(text: str, reason: str | None, tmp_path: Path) -> None:
    file = tmp_path / "executor.yaml"
    file.write_text(text, encoding="utf-8")
    if reason is None:
        assert load_executor(file).name == "multiprocess"
        return
    with pytest.raises(ConfigurationError, match=reason) as refused:
        load_executor(file)
    assert "executor.yaml" in str(refused.value)
