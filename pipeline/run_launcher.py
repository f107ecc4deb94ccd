"""Runs on this machine whose death is noticed.

Dagster's default launcher cannot say whether a run's process still lives, so after a power cut a run counts as
started for ever, and ending it by hand fails. This one looks the process up; Dagster's run monitoring then marks the
run as failed, and its run retries start it again (both are switched on in ``dagster.yaml``).

Built on internals of dagster 1.13, which ``pyproject.toml`` pins.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._core.storage.dagster_run import DagsterRun

STARTS = ("Started process for run", "Executing steps in process")  # a worker's, and one inside another program
SLACK_S = 2.0  # between the clocks of the kernel's boot time and of Dagster's events


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's default launcher, for one machine, that reports dead runs."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Running while the process that the run's last start names is alive and no younger than that start."""
        found = self._worker(run.run_id)
        if found is None:  # it has not said its process yet
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        pid, said_at = found
        started_at = process_start(pid)
        if started_at is not None and started_at <= said_at + SLACK_S:
            return CheckRunHealthResult(WorkerStatus.RUNNING, run_worker_id=str(pid))
        return CheckRunHealthResult(
            WorkerStatus.FAILED,
            f"process {pid}, which executed the run, is gone (killed, out of memory, or the machine went down)",
            run_worker_id=str(pid),
        )

    def terminate(self, run_id: str) -> bool:
        """Ask the run's process to stop; a run whose process is gone is marked as canceled."""
        run = self._instance.get_run_by_id(run_id)
        if (
            run is not None
            and not run.is_finished
            and self._worker(run_id) is not None
            and self.check_run_worker_health(run).status is WorkerStatus.FAILED
        ):
            self._instance.report_run_canceling(run)
            self._instance.report_run_canceled(run, "its process was gone already")
            return True
        return bool(super().terminate(run_id))

    def _worker(self, run_id: str) -> tuple[int, float] | None:
        """Process id and time (s since 1970) of the run's last start."""
        events = self._instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        for event in reversed(events):
            if event.dagster_event is not None and (event.dagster_event.message or "").startswith(STARTS):
                pid = event.dagster_event.engine_event_data.metadata["pid"].value
                return int(str(pid)), event.timestamp
        return None


def process_start(pid: int) -> float | None:
    """When a process started, s since 1970; None where there is none, or only its remains. Linux."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in "ZX":
        return None
    boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
