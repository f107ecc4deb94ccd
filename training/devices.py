"""One training at a time on a device: a lock file per GPU, and one for the CPU, held by the process that computes.

The lock goes with its process, however that ends, so a dead run never holds a device. A run that wants a taken device
says who has it and waits; after ``LANDORACLE_DEVICE_WAIT_S`` seconds (3600 where it is not set; 0 does not wait) it is
refused. The files lie in the folder ``LANDORACLE_LOCKS``, by default one per user among the temporary files.

Jobs of a cluster claim nothing: there the scheduler hands the devices out.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from oracle.errors import TrainingError
from training.config import Stage, TrainingConfig

CPU = "cpu"
WAIT_S = 3600.0
POLL_S = 0.5
SAID_EVERY_S = 60.0


def devices_of(config: TrainingConfig, stage: Stage) -> tuple[str, ...]:
    """``("cpu",)``, or the GPUs that the run's processes will take, as ``gpu0``, ``gpu1``."""
    if config.section(stage).get("use_cpu"):
        return (CPU,)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        names = [p.name.removeprefix("nvidia") for p in Path("/dev").glob("nvidia[0-9]*")]
        names.sort(key=int)
    else:
        names = [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    return tuple(f"gpu{name}" for name in names[: config.processes]) or (CPU,)


@contextmanager
def claimed(devices: Sequence[str], run: Path) -> Iterator[None]:
    """Hold the devices while the block runs.

    Parameters
    ----------
    devices : sequence of str
        From :func:`devices_of`.
    run : Path
        Folder of the run that wants them; the one that waits is told it.

    Raises
    ------
    TrainingError
        Where a device stays taken; names the process and the run that hold it.
    """
    with ExitStack() as held:
        for device in sorted(devices) if "SLURM_JOB_ID" not in os.environ else ():
            held.enter_context(_lock(device, run))
        yield


@contextmanager
def _lock(device: str, run: Path) -> Iterator[None]:
    patience_s = float(os.environ.get("LANDORACLE_DEVICE_WAIT_S", WAIT_S))
    started, said = time.monotonic(), -float("inf")
    with _lock_file(device).open("a+", encoding="utf-8") as file:
        while not _taken(file.fileno()):
            file.seek(0)
            owner = file.read().strip() or "another run"
            waited = time.monotonic() - started
            if waited >= patience_s:
                raise TrainingError(
                    f"{device} is taken by {owner}; end that run or wait for it (waited {waited:.0f} s; "
                    "LANDORACLE_DEVICE_WAIT_S sets how long)"
                )
            if time.monotonic() - said >= SAID_EVERY_S:
                said = time.monotonic()
                print(f"{device} is taken by {owner}: waiting", file=sys.stderr, flush=True)
            time.sleep(POLL_S)
        file.truncate(0)
        file.write(f"process {os.getpid()} (run {run.absolute()}, since {time.strftime('%Y-%m-%d %H:%M:%S')})\n")
        file.flush()
        yield


def _taken(descriptor: int) -> bool:
    """Whether this process now has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_file(device: str) -> Path:
    named = os.environ.get("LANDORACLE_LOCKS")
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"landoracle-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{device}.lock"
