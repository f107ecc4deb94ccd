"""A code server with real run workers, and Dagster's daemon one turn at a time, on storage of their own."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.auto_run_reexecution.event_log_consumer import EventLogConsumerDaemon
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster_graphql.test.utils import execute_dagster_graphql

from pipeline.sources import PROJECT

LAUNCH = """
mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
TERMINATE = """
mutation($run: String!) { terminateRun(runId: $run) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""


def storage(home: Path) -> Path:
    """A copy of the project's ``dagster.yaml`` whose folders lie in ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    text = (PROJECT / "dagster.yaml").read_text(encoding="utf-8")
    settings = yaml.safe_load(text.replace("base_dir: .dagster", f"base_dir: {home}"))
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return home


def environment(home: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | more


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of a condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.2)
    return value


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes(*words: str) -> list[int]:
    """Ids of living processes whose command line has all the words."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if all(any(word == part or (len(word) > 12 and word in part) for part in line) for word in words):
            found.append(int(entry.name))
    return [pid for pid in found if alive(pid)]


class Operations:
    """What an operator's machine runs: killed with :meth:`power_cut`, started again with :meth:`start`."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.home, self._variables = storage(home), variables
        self.instance = dg.DagsterInstance.from_config(str(self.home))
        self.start()

    def start(self) -> None:
        socket = self.home / f"server{time.monotonic_ns()}"
        self._log = (self.home / "server.log").open("a")
        self.server = subprocess.Popen(
            [
                *(sys.executable, "-m", "dagster", "api", "grpc", "--socket", str(socket)),
                *("-m", "pipeline.definitions", "--location-name", "landoracle"),
            ],
            env=environment(self.home, **self._variables),
            cwd=PROJECT,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        until(socket.exists, 60, "the code server's start")
        target = GrpcServerTarget(host="localhost", port=None, socket=str(socket), location_name="landoracle")
        self._context = WorkspaceProcessContext(self.instance, target)
        self._queue = QueuedRunCoordinatorDaemon(interval_seconds=1)
        self._retries = EventLogConsumerDaemon()
        self.turn()

    def power_cut(self) -> None:
        """kill -9 of the server's whole process group."""
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()
        self._context.__exit__(None, None, None)

    def close(self) -> None:
        for run in self.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            self.instance.run_launcher.terminate(run.run_id)
        self.power_cut()
        self._queue.__exit__(None, None, None)
        self.instance.dispose()
        self._log.close()

    def launch(self, job: str, config: dict[str, Any], *assets: str, partition: str | None = None) -> str:
        """Launch as the UI does; returns the run's id."""
        selector: dict[str, Any] = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "landoracle",
            "pipelineName": job,
        }
        if assets:
            selector |= {"assetSelection": [{"path": [name]} for name in assets], "assetCheckSelection": []}
        tags = [{"key": "dagster/partition", "value": partition}] if partition else []
        params = {"selector": selector, "runConfigData": config, "executionMetadata": {"tags": tags}, "mode": "default"}
        answer = self._ask(LAUNCH, {"params": params})["launchPipelineExecution"]
        assert "run" in answer, answer
        return str(answer["run"]["runId"])

    def terminate(self, run: str) -> str:
        """Terminate as the UI does."""
        return str(self._ask(TERMINATE, {"run": run})["terminateRun"]["__typename"])

    def turn(self) -> None:
        """One turn of the daemon: run monitoring, retries, the queue."""
        log = logging.getLogger("daemon")
        for errors in (
            execute_run_monitoring_iteration(self._context, log),
            self._retries.run_iteration(self._context),
            self._queue.run_iteration(self._context),
        ):
            for error in errors:
                assert error is None, error

    def status(self, run: str) -> str:
        return self.instance.get_run_by_id(run).status.value

    def turned_to(self, run: str, status: str, seconds: float = 60) -> None:
        """Turn until a run has a status."""

        def reached() -> bool:
            self.turn()
            return self.status(run) == status

        until(reached, seconds, f"run {run} {status} (log {self.home}/server.log)")

    def worker(self, run: str) -> int:
        """Process that executes a run."""
        found = until(lambda: self.instance.run_launcher._worker(run), 60, "a worker")
        return int(found[0])

    def retry_of(self, run: str) -> str | None:
        """The run that was started automatically after another one."""
        self.turn()
        runs = self.instance.get_runs(dg.RunsFilter(tags={"dagster/parent_run_id": run}))
        return runs[0].run_id if runs else None

    def failure(self, run: str) -> str:
        """What the run's failed steps say."""
        events = self.instance.all_logs(run, of_type=dg.DagsterEventType.STEP_FAILURE)
        return "\n".join(
            e.dagster_event.step_failure_data.user_failure_data.description or "" for e in events if e.dagster_event
        )

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        return execute_dagster_graphql(self._context.create_request_context(), query, variables).data
