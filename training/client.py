"""One small client for every place where a training step can run: this machine, its GPUs, a Slurm cluster.

``train`` runs a stage to its end with live lines; an interrupt cancels it, with a checkpoint; ``metrics`` reads its
figures while it works. After a restart of whoever launched it, the same call goes on: on this machine from the last
checkpoint, on a cluster with the job that is still there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from oracle.errors import TrainingError
from oracle.files import write_json
from training.config import Stage
from training.launch import KEPT, run_command, training_command
from training.slurm import SlurmConfig, slurm_script, submit

POLL_S = 2.0
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "STOPPED", "RESIZING")
AT_WORK = (*WAITING, "RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT")


class Client(Protocol):
    """Where and how a training step runs."""

    def train(
        self,
        stage: Stage,
        dataset: Path,
        profile: str | Path,
        models: Path,
        *,
        overrides: Sequence[str] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """Train a stage into ``models/<stage>``, GRPO from ``models/sft``, and return when it is done.

        Raises
        ------
        ConfigurationError
            Where the profile or an override is not usable.
        TrainingError
            Where the run fails, with its last lines, or was stopped.
        """
        ...


def metrics(out: Path) -> list[dict[str, Any]]:
    """The figures of every step logged so far by the run that works on ``out``."""
    file = out.with_name(f".{out.name}.partial") / "metrics.jsonl"
    if not file.is_file():
        return []
    return [
        json.loads(line) for line in file.read_text(encoding="utf-8").splitlines(keepends=True) if line[-1:] == "\n"
    ]


class LocalClient:
    """This machine; several processes, one per GPU, run under ``accelerate``."""

    def train(
        self,
        stage: Stage,
        dataset: Path,
        profile: str | Path,
        models: Path,
        *,
        overrides: Sequence[str] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """See :class:`Client`."""
        start = models / Stage.SFT if stage is Stage.GRPO else None
        command = training_command(stage, dataset, profile, models / stage, start=start, overrides=overrides)
        run_command(command, on_line=on_line)


@dataclass(frozen=True)
class SlurmClient:
    """A Slurm cluster that shares the file system of dataset and models.

    The number of the job stands in ``models/.slurm-<stage>.json`` beside a hash of what was asked for, so the same
    request finds its job again after a restart, running or finished meanwhile.
    """

    config: SlurmConfig

    def train(
        self,
        stage: Stage,
        dataset: Path,
        profile: str | Path,
        models: Path,
        *,
        overrides: Sequence[str] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """See :class:`Client`; an interrupt cancels the job, the end of this process does not."""
        script = slurm_script(self.config, dataset, profile, models, stages=[stage], overrides=overrides)
        asked = hashlib.sha256((script + _state_of(dataset) + _state_of(models / Stage.SFT)).encode()).hexdigest()
        record = models / f".slurm-{stage}.json"
        job = _job_of(record, asked)
        if job is None:
            job = submit(script, models)
            write_json(record, {"job": job, "asked": asked})
        elif on_line:
            on_line(f"job {job} is still there: following it")
        try:
            state = follow(job, models / f"slurm-{job}.log", on_line or (lambda line: None))
        except BaseException:  # an interrupt, or whatever on_line raises
            cancel(job)
            record.unlink(missing_ok=True)
            raise
        record.unlink(missing_ok=True)
        if state != "COMPLETED":
            raise TrainingError(f"job {job} ended as {state}; its log is {models / f'slurm-{job}.log'}. {KEPT}")


def follow(job: str, log: Path, on_line: Callable[[str], None]) -> str:
    """Pass on the lines of a job's log as they come until the job has ended; returns Slurm's word for how.

    Raises
    ------
    TrainingError
        Where Slurm no longer knows the job.
    """
    seen, rest = 0, b""
    while True:
        state = state_of(job)
        if log.is_file():
            with log.open("rb") as file:
                file.seek(seen)
                content = file.read()
            seen += len(content)
            *lines, rest = (rest + content).split(b"\n")
            for line in lines:
                on_line(line.decode(errors="replace"))
        if state not in AT_WORK:
            if state is None:
                raise TrainingError(f"Slurm does not know job {job} any more; its log is {log}")
            return state
        time.sleep(POLL_S)


def state_of(job: str) -> str | None:
    """Slurm's state of a job, e.g. RUNNING; None where it does not know the job.

    Raises
    ------
    TrainingError
        Where Slurm's controller cannot be asked.
    """
    done = subprocess.run(["scontrol", "show", "job", "-o", job], capture_output=True, text=True, check=False)
    if done.returncode:
        if "Invalid job id" in done.stderr:
            return None
        raise TrainingError(f"scontrol show job {job}: {done.stderr.strip()}")
    fields = dict(field.partition("=")[::2] for field in done.stdout.split())
    return fields.get("JobState")


def cancel(job: str) -> None:
    """End a job; its training is told first and writes a checkpoint."""
    subprocess.run(["scancel", job], capture_output=True, check=False)


def _job_of(record: Path, asked: str) -> str | None:
    """The job that was submitted for the same request, where Slurm still knows it."""
    if not record.is_file():
        return None
    kept = json.loads(record.read_text(encoding="utf-8"))
    return str(kept["job"]) if kept["asked"] == asked and state_of(str(kept["job"])) is not None else None


def _state_of(folder: Path) -> str:
    """What tells one dataset or run from another of the same path."""
    return "".join(
        p.read_text(encoding="utf-8") for p in (folder / "manifest.json", folder / "run.json") if p.is_file()
    )
