"""Launching a run in a process of its own: the command as a list of arguments, and a child that ends with its parent.

One process runs ``python -m training``; several (GPUs) run it under ``accelerate launch``. A shell never reads the
command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from oracle.errors import TrainingError
from training.config import Stage, TrainingConfig, load_profile

INTERRUPTED = 75
"""Exit status of a run that was stopped and can go on (EX_TEMPFAIL of sysexits.h)."""
REFUSED = 2
"""Exit status after one of Landoracle's own errors, which stands on standard error."""
SHOWN_AFTER_FAILURE = 20
KEPT = "What was finished is kept: mend the cause, and the same command goes on from the last complete checkpoint."
PATIENCE_S = {signal.SIGINT: 60.0, signal.SIGTERM: 10.0, signal.SIGKILL: 10.0}
"""How long a child may take after each signal: a step and a checkpoint, an exit, nothing."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None  # loaded before any fork


def training_command(
    stage: Stage,
    dataset: Path,
    profile: str | Path,
    out: Path,
    *,
    start: str | Path | None = None,
    overrides: Sequence[str] = (),
) -> list[str]:
    """The command of one training run.

    Parameters
    ----------
    stage : Stage
        SFT or GRPO.
    dataset : Path
        Folder of a prompt dataset.
    profile : str or Path
        Profile name or YAML file; its ``processes`` decides between one process and ``accelerate launch``.
    out : Path
        The run's folder.
    start : str or Path, optional
        Start weights; GRPO needs them.
    overrides : sequence of str
        ``key=value`` on top of the profile.

    Raises
    ------
    ConfigurationError
        Where the profile or an override is not usable.
    """
    config = load_profile(profile, overrides)
    arguments = [stage.value, "--dataset", str(dataset), "--config", str(profile), "--out", str(out)]
    if start is not None:
        arguments += ["--start", str(start)]
    return [*_launcher(config, stage), "training", *arguments, *_set_arguments(overrides)]


def check_command(
    stage: Stage,
    dataset: Path,
    profile: str | Path,
    *,
    start: str | Path | None = None,
    overrides: Sequence[str] = (),
) -> list[str]:
    """The command that says all that would stop a training run (:mod:`training.preflight`), and trains nothing."""
    load_profile(profile, overrides)
    arguments = ["check", "--stage", stage.value, "--dataset", str(dataset), "--config", str(profile)]
    if start is not None:
        arguments += ["--start", str(start)]
    return [sys.executable, "-m", "training", *arguments, *_set_arguments(overrides)]


def evaluation_command(
    dataset: Path,
    profile: str | Path,
    out: Path,
    models: Mapping[str, Path],
    *,
    plans: Sequence[Path] = (),
    pairs: Path | None = None,
    overrides: Sequence[str] = (),
) -> list[str]:
    """The command of one evaluation, in one process.

    Parameters
    ----------
    dataset, profile, out, overrides
        As of :func:`training_command`.
    models : mapping of str to Path
        Finished runs by their names.
    plans : sequence of Path
        Plans of held-out landscapes, or folders of plans: then whole plans are decided and priced.
    pairs : Path, optional
        ``counterfactuals.parquet``.

    Raises
    ------
    ConfigurationError
        Where the profile or an override is not usable.
    """
    load_profile(profile, overrides)
    arguments = ["evaluate", "--dataset", str(dataset), "--config", str(profile), "--out", str(out)]
    for name, folder in models.items():
        arguments += ["--model", f"{name}={folder}"]
    for folder in plans:
        arguments += ["--plans", str(folder)]
    if pairs is not None:
        arguments += ["--pairs", str(pairs)]
    return [sys.executable, "-m", "training", *arguments, *_set_arguments(overrides)]


def run_command(command: Sequence[str], *, on_line: Callable[[str], None] | None = None) -> None:
    """Run a command of this module to its end; when this process ends first, the child saves and ends too.

    The child gets a session of its own. When this process is interrupted, the child is asked to stop (SIGINT: a
    checkpoint is written), then told (SIGTERM), then made to (SIGKILL), with everything that it started. When this
    process is killed outright, the child's own parent-death signal asks it to stop.

    Parameters
    ----------
    command : sequence of str
        From :func:`training_command` or :func:`evaluation_command`.
    on_line : callable, optional
        Gets every line of progress; without it the child writes to this process's own standard error.

    Raises
    ------
    TrainingError
        Where the command fails, with its last lines; where it was stopped, that it can go on.
    """
    last: deque[str] = deque(maxlen=SHOWN_AFTER_FAILURE)
    child = subprocess.Popen(
        list(command),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE if on_line else None,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=partial(end_with_parent, os.getpid()),
    )
    rest = Thread(target=_end_what_is_left, args=[child], daemon=True)
    rest.start()
    try:
        if on_line and child.stderr is not None:
            for line in child.stderr:
                last.append(line.rstrip())
                on_line(line.rstrip())
        status = child.wait()
    finally:
        _end(child)
        rest.join()
    if status == INTERRUPTED:
        raise TrainingError("the run was stopped after a checkpoint; the same command goes on from there")
    if status:
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        kept = [] if status == REFUSED else [KEPT]
        raise TrainingError("\n".join([f"{' '.join(command[1:4])} ... {how}", *last, *kept]))


def _end(child: subprocess.Popen[str]) -> None:
    """Stop a child that still runs, ever more firmly."""
    for number, patience_s in PATIENCE_S.items():
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=patience_s)


def _end_what_is_left(child: subprocess.Popen[str]) -> None:
    """Kill what outlives the child in its session: the workers of a launcher that was killed."""
    child.wait()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def end_with_parent(parent: int | None = None) -> None:
    """On Linux, have SIGTERM sent to this process when its parent ends, or end now where ``parent`` has ended."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if parent is not None and os.getppid() != parent:
            os._exit(INTERRUPTED)


def environment(out: Path | None = None) -> dict[str, str]:
    """The child's environment: ours, with this checkout importable, threads that sleep while they wait (spinning ones
    slow down tenfold on a busy machine) and libraries that do not phone home.

    Where a profile reports to trackio or wandb, they write beside the run's folder ``out``, into ``trackio/`` and
    ``wandb/``, one project for all runs there. ``HF_HUB_OFFLINE`` and everything else that is set stays as it is.
    """
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    if find_spec("wandb"):  # else transformers says on every start that it runs offline
        quiet |= {"WANDB_MODE": "offline", "WANDB_PROJECT": "landoracle"}
    if out is not None:
        beside = out.absolute().parent
        quiet |= {"TRACKIO_DIR": str(beside / "trackio"), "WANDB_DIR": str(beside)}
    return quiet | os.environ | {"PYTHONPATH": path}


def _launcher(config: TrainingConfig, stage: Stage) -> list[str]:
    if config.processes == 1:
        return [sys.executable, "-m"]
    precision = "bf16" if config.section(stage).get("bf16") else "no"
    return [
        *(sys.executable, "-m", "accelerate.commands.launch"),
        *("--multi_gpu", "--num_machines", "1", "--num_processes", str(config.processes)),
        *("--mixed_precision", precision, "--dynamo_backend", "no"),
        "--module",
    ]


def _set_arguments(overrides: Sequence[str]) -> list[str]:
    return [argument for override in overrides for argument in ("--set", override)]
