"""The life of a training run's folder: locked while it is written, resumed where it was cut off, complete or absent.

While a run works, everything lies in ``.<name>.partial`` beside the folder that was asked for: checkpoints, figures
of every step (``metrics.jsonl``, readable while it grows) and sampled completions. When the run is done, the
checkpoints go and the folder is moved into place:

=======================  =============================================================================
``model.safetensors``    final weights, with configuration and tokenizer beside them
``metrics.parquet``      one row per logged step
``completions.parquet``  sampled completions by step and group: decision, rewards by part as they were before the gate,
                         their weighted total, and the advantage that the policy learned from (GRPO)
``held_out.parquet``     share of a small held-out sample decided rightly, by step (GRPO with its guard)
``guard.json``           why the guard stopped the run, with the evidence (:mod:`training.guard`); mostly absent
``run.json``             configuration, seed, versions, hashes of dataset and start weights, wall time
=======================  =============================================================================

A run of the same configuration, dataset and start weights goes on from its last complete checkpoint and ends with the
weights that it would have had uninterrupted; one that is finished already is kept as it is. A partial run of anything
else is discarded.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_atomically, write_json, write_text
from training.checkpoint import newest_complete, step_of
from training.config import Stage, TrainingConfig

VERSIONS = (
    *("landoracle", "torch", "transformers", "trl", "peft", "tokenizers", "accelerate", "datasets", "numpy"),
    *("vllm", "flash-attn"),
)
METRICS, COMPLETIONS, HELD_OUT, RUN = "metrics", "completions", "held_out", "run.json"
TABLES = (METRICS, COMPLETIONS, HELD_OUT)
CONFIGURED = "as configured"
"""Start weights that the profile names."""


class RunInterrupted(TrainingError):
    """The run was asked to stop; its checkpoint is complete and the same command goes on from there."""


@dataclass
class StopRequest:
    """Set by a signal handler, read by the trainer after every step."""

    requested: bool = False


@dataclass(frozen=True)
class RunIdentity:
    """What a run depends on; two runs of one identity end with the same weights."""

    stage: Stage
    config_sha256: str
    dataset_sha256: str
    start: str
    """Hash of the start weights, or the hub's name of them."""


@dataclass
class RunFolder:
    """The folder of one run while it is written; made by :func:`open_run`."""

    out: Path
    identity: RunIdentity
    config: TrainingConfig
    started: float = field(default_factory=time.monotonic)

    @property
    def partial(self) -> Path:
        """Where the run works."""
        return self.out.with_name(f".{self.out.name}.partial")

    @property
    def name(self) -> str:
        """For trackers: ``mine/sft`` of ``runs/mine/sft``."""
        return f"{self.out.parent.name}/{self.out.name}"

    @property
    def trainer_dir(self) -> Path:
        """TRL's output folder: checkpoints, event files."""
        return self.partial / "trainer"

    @cached_property
    def finished(self) -> bool:
        """Whether ``out`` holds this very run: of this identity, by these releases, with the weights that it recorded.

        Never where something may have changed that the identity does not cover: a reward of one's own, a model that the
        profile takes from a folder.
        """
        own_rewards = self.identity.stage is Stage.GRPO and any(":" in name for name in self.config.rewards)
        model = self.config.model.name if self.identity.start == CONFIGURED else None
        own_model = model is not None and Path(model).is_dir()
        if own_rewards or own_model or not (self.out / RUN).is_file():
            return False
        record = json.loads((self.out / RUN).read_text(encoding="utf-8"))
        weights = {"weights_sha256": weights_sha256(self.out), "versions": installed_versions()}
        return bool((asdict(self.identity) | weights).items() <= record.items())

    def checkpoint(self) -> Path | None:
        """The checkpoint to go on from; figures written after it are forgotten, as they will come again."""
        found = newest_complete(self.trainer_dir) if self.trainer_dir.is_dir() else None
        last = step_of(found) if found else -1
        for name in TABLES:
            self._write(name, [row for row in self._read(name) if row["step"] <= last])
        return found

    def append(self, name: str, row: dict[str, Any]) -> None:
        """Add a row with a ``step`` to one of the tables."""
        with (self.partial / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def finish(self, stopped: str | None = None) -> Path:
        """Turn the partial folder, into which the final weights were written, into the finished run.

        ``stopped`` says why it did not train to its last step.
        """
        for name in TABLES:
            rows = self._read(name)
            if rows:
                table = pd.DataFrame(rows)
                write_atomically(self.partial / f"{name}.parquet", partial(table.to_parquet, index=False))
            (self.partial / f"{name}.jsonl").unlink(missing_ok=True)
        events = self.trainer_dir / "runs"
        if events.is_dir():
            shutil.move(events, self.partial / "tensorboard")
        for spent in (self.trainer_dir, self.partial / "start"):
            shutil.rmtree(spent, ignore_errors=True)
        record = {
            **asdict(self.identity),
            "weights_sha256": weights_sha256(self.partial),
            "profile": self.config.profile,
            "seed": self.config.seed,
            "stopped": stopped,
            "wall_time_s": round(time.monotonic() - self.started, 1),
            "versions": installed_versions(),
            "config": self.config.model_dump(mode="json"),
        }
        write_json(self.partial / RUN, record)
        (self.partial / "identity.json").unlink(missing_ok=True)
        replaced = self.out.with_name(f".{self.out.name}.replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        if self.out.exists():
            self.out.rename(replaced)
        self.partial.rename(self.out)
        shutil.rmtree(replaced, ignore_errors=True)
        return self.out

    def _read(self, name: str) -> list[dict[str, Any]]:
        path = self.partial / f"{name}.jsonl"
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off

    def _write(self, name: str, rows: list[dict[str, Any]]) -> None:
        write_text(self.partial / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def open_run(
    out: Path, stage: Stage, config: TrainingConfig, dataset_sha256: str, start: str | Path | None
) -> Iterator[RunFolder]:
    """Lock ``out`` and prepare its partial folder: that of an interrupted run of the same identity, or an empty one.

    A run that is :attr:`RunFolder.finished` gets none: there is nothing left to train.

    Raises
    ------
    TrainingError
        Where another process works on the same folder.
    """
    out = Path(out).absolute()
    identity = RunIdentity(stage, config.sha256, dataset_sha256, _start_identity(start))
    run = RunFolder(out, identity, config)
    if os.environ.get("RANK", "0") != "0":  # of several processes the first one keeps the folder
        yield run
        return
    with locked(out):
        if run.finished:
            print(f"{out}: this run is finished, and kept; to train it again, remove the folder", file=sys.stderr)
            yield run
            return
        described = json.dumps(asdict(identity), sort_keys=True)
        kept = run.partial / "identity.json"
        if run.partial.is_dir() and not (kept.is_file() and kept.read_text(encoding="utf-8") == described):
            print(f"{run.partial}: left by a run with other settings, discarded", file=sys.stderr)
            shutil.rmtree(run.partial)
        run.trainer_dir.mkdir(parents=True, exist_ok=True)
        write_text(kept, described)
        yield run


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold ``.<name>.lock`` beside ``out``; the lock goes with the process, however that ends.

    Raises
    ------
    TrainingError
        Where another process holds it.
    """
    path = out.with_name(f".{out.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TrainingError(
                f"another process is writing {out}; wait for it, or choose another folder with --out"
            ) from error
        yield


def weights_sha256(folder: Path) -> str:
    """Hash over the names and contents of a folder's safetensors."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def installed_versions() -> dict[str, str]:
    """Releases of the packages that a run's outcome depends on."""
    found = {}
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _start_identity(start: str | Path | None) -> str:
    if start is None:
        return CONFIGURED
    folder = Path(start)
    return weights_sha256(folder) if folder.is_dir() else str(start)
