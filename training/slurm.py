"""Slurm: the training stages as one batch job, from configuration to script to ``sbatch``.

Every stage is one ``srun`` step with one launcher per node. One GPU needs no launcher, several on one node run under
``accelerate launch``, several nodes meet at a c10d rendezvous on the first node, at a port that depends on the job.

Slurm warns the job ``grace_s`` before its time is up: the stage writes a checkpoint and ends, and the job goes back
into the queue under its own number. A finished stage leaves a mark, so the job goes on where it was.

Nothing in the script is read by a shell unquoted: values of ``#SBATCH`` lines are held to patterns, everything else
is quoted.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from oracle.errors import ConfigurationError, TrainingError
from oracle.files import write_text
from training.config import Stage
from training.launch import training_command

SCRIPT = "slurm.sh"
OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
"""Compute nodes often reach no network: weights and data are taken from disk, figures stay there."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.,-]*$")]
Module = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+/-]*$")]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIME = r"^(\d+|\d+:[0-5]\d|\d+:[0-5]\d:[0-5]\d|\d+-\d{1,2}(:[0-5]\d){0,2})$"


class SlurmConfig(BaseModel):
    """What a job asks of the cluster, and the environment that it runs in; the section ``slurm`` of a YAML file.

    Four A100 of one node for four days::

        slurm:
          {nodes: 1, gpus_per_node: 4, gpu_type: a100, cpus_per_task: 16, memory: 64G, time: 4-00:00,
           modules: [cuda], activate: env/bin/activate}
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    job_name: Name = "landoracle"
    nodes: int = Field(default=1, ge=1)
    gpus_per_node: int = Field(default=1, ge=0, description="0: on CPUs, one process a node")
    gpu_type: Name | None = Field(default=None, description="kind of GPU, as the cluster names it, e.g. a100")
    cpus_per_task: int = Field(default=8, ge=1, description="CPU cores of a node's launcher and its processes")
    memory: Annotated[str, Field(pattern=r"^\d+[KMGT]?$")] | None = Field(
        default=None, description="memory per node, e.g. 64G; absent: the cluster's default"
    )
    time: str = Field(default="24:00:00", pattern=_TIME, description="HH:MM:SS, D-HH:MM or any form that Slurm takes")
    partition: Name | None = None
    account: Name | None = None
    modules: tuple[Module, ...] = Field(default=(), description="environment modules to load, in order")
    activate: Path | None = Field(default=None, description="script of a virtual environment to source")
    environment: dict[str, str] = Field(
        default_factory=dict, description="variables to set; they win over the defaults"
    )
    python: str | None = Field(
        default=None, description="interpreter; absent: python of `activate`, else the one that launches"
    )
    offline: bool = Field(default=True, description="reach for no hub: HF_HUB_OFFLINE=1, WANDB_MODE=offline")
    grace_s: int = Field(default=300, ge=60, le=3600, description="seconds before the time limit to stop and requeue")

    @field_validator("environment")
    @classmethod
    def _variables(cls, value: dict[str, str]) -> dict[str, str]:
        wrong = [name for name in value if not _VARIABLE.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no name of a variable")
        return value

    @model_validator(mode="after")
    def _time_to_work(self) -> SlurmConfig:
        if self.time_s <= 2 * self.grace_s:
            raise ValueError(
                f"time {self.time} is not twice grace_s ({self.grace_s} s): the job would only be stopped and requeued"
            )
        return self

    @property
    def time_s(self) -> int:
        """The time limit in seconds."""
        days, dash, clock = self.time.rpartition("-")
        numbers = [int(number) for number in clock.split(":")]
        if dash:  # D-HH[:MM[:SS]]
            hours, minutes, seconds = [*numbers, 0, 0][:3]
        elif len(numbers) == 3:
            hours, minutes, seconds = numbers
        else:  # MM[:SS]
            hours, (minutes, seconds) = 0, [*numbers, 0][:2]
        return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds

    @property
    def processes(self) -> int:
        """Processes of a stage on all nodes together."""
        return self.nodes * max(self.gpus_per_node, 1)

    @property
    def interpreter(self) -> str:
        """Python on the nodes."""
        return self.python or ("python" if self.activate else sys.executable)


def load_slurm(file: Path | None = None, given: Mapping[str, Any] | None = None) -> SlurmConfig:
    """The section ``slurm`` of a YAML file, with ``given`` values on top.

    Raises
    ------
    ConfigurationError
        Where the file or a value is not usable; names file and key.
    """
    section: Any = {}
    if file is not None:
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise ConfigurationError(f"{file} cannot be read as YAML: {error}") from error
        section = content.get("slurm") if isinstance(content, dict) else None
        if not isinstance(section, dict):
            raise ConfigurationError(f"{file} must hold a section `slurm:` with keys such as nodes, time, modules")
    try:
        return SlurmConfig.model_validate(section | dict(given or {}))
    except ValidationError as error:
        problems = "\n".join(f"  - {'.'.join(map(str, p['loc'])) or 'slurm'}: {p['msg']}" for p in error.errors())
        raise ConfigurationError(f"{file or 'the job'} is not a usable Slurm configuration:\n{problems}") from error


def slurm_script(
    config: SlurmConfig,
    dataset: Path,
    profile: str | Path,
    out: Path,
    *,
    stages: Sequence[Stage] = tuple(Stage),
    overrides: Sequence[str] = (),
) -> str:
    """The batch script that trains the stages into ``out/sft`` and ``out/grpo``.

    Parameters
    ----------
    config : SlurmConfig
        Resources and environment.
    dataset : Path
        Folder of a prompt dataset, on a file system that the nodes share; so is ``out``.
    profile : str or Path
        Training profile; its ``processes`` become those of the job.
    out : Path
        Folder for the runs and the job's log.
    stages : sequence of Stage
        In their order; GRPO starts from ``out/sft``.
    overrides : sequence of str
        ``key=value`` on top of the profile.

    Raises
    ------
    ConfigurationError
        Where the profile or an override is not usable, or sets ``processes``, which follows from nodes and GPUs.
    """
    if any(override.partition("=")[0].strip() == "processes" for override in overrides):
        raise ConfigurationError("processes follows from nodes and gpus_per_node here: drop it")
    out, dataset = out.absolute(), dataset.absolute()
    profile = Path(profile).absolute() if Path(profile).is_file() else profile
    steps = [_step(config, stage, dataset, profile, out, overrides) for stage in stages]
    return "\n".join([*_head(config), "", *_prelude(config, out), "", _STAGE, "", *steps]) + "\n"


def submit(script: str, out: Path) -> str:
    """Write the script to ``out/slurm.sh`` and hand it to ``sbatch``; returns the number of the job.

    Raises
    ------
    TrainingError
        Where ``sbatch`` is not there or refuses the job, with its reason.
    """
    file = out.absolute() / SCRIPT
    write_text(file, script)
    log = f"{file.parent}/slurm-".replace("%", "%%") + "%j.log"  # also for what goes wrong before the script starts
    command = ["sbatch", "--parsable", f"--output={log}", str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise TrainingError(f"sbatch is not installed here; {file} is written: submit it on the cluster") from error
    if done.returncode:
        raise TrainingError(f"sbatch refuses {file}: {done.stderr.strip()}")
    return done.stdout.strip().partition(";")[0]


def _head(config: SlurmConfig) -> list[str]:
    gpus = f"{config.gpu_type}:{config.gpus_per_node}" if config.gpu_type else str(config.gpus_per_node)
    asked = {
        "job-name": config.job_name,
        "time": config.time,
        "nodes": config.nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": config.cpus_per_task,
        "mem": config.memory,
        "gpus-per-node": gpus if config.gpus_per_node else None,
        "partition": config.partition,
        "account": config.account,
        "signal": f"B:USR1@{config.grace_s}",
    }
    lines = [f"#SBATCH --{name}={value}" for name, value in asked.items() if value is not None]
    return ["#!/bin/bash -l", *lines, "#SBATCH --requeue", "#SBATCH --open-mode=append"]


def _prelude(config: SlurmConfig, out: Path) -> list[str]:
    variables = (OFFLINE if config.offline else {}) | config.environment
    meeting = [
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "port=$((20000 + SLURM_JOB_ID % 20000))",
    ]
    return [
        "set -eo pipefail",
        f"out={shlex.quote(str(out))}",
        'mkdir -p "$out"',
        'exec >>"$out/slurm-$SLURM_JOB_ID.log" 2>&1',
        'echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, start ${SLURM_RESTART_COUNT:-0}, $(date)"',
        *(f"module load {module}" for module in config.modules),
        *([f"source {shlex.quote(str(config.activate.expanduser()))}"] if config.activate else []),
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        *(meeting if config.nodes > 1 else []),
    ]


_STAGE = """\
# Near the time limit the step is told to stop; it writes a checkpoint, and the job goes back into the queue.
limit=
trap 'limit=1; scancel --signal=TERM "$SLURM_JOB_ID"' USR1

stage() {
    local mark="$out/.slurm-$SLURM_JOB_ID-$1.done" status=0
    if [[ -e $mark ]]; then return; fi
    "${@:2}" &
    local step=$!
    wait "$step" || status=$?
    while kill -0 "$step" 2>/dev/null; do status=0; wait "$step" || status=$?; done  # a signal ends `wait` early
    if ((status == 0)); then
        touch "$mark"
    elif [[ $limit ]]; then
        echo "stopped before the time limit, $(date); requeued"
        scontrol requeue "$SLURM_JOB_ID"
        exit 0
    else
        echo "$1 ended with status $status, $(date)"
        exit "$status"
    fi
}"""


def _step(
    config: SlurmConfig, stage: Stage, dataset: Path, profile: str | Path, out: Path, overrides: Sequence[str]
) -> str:
    """One stage: ``srun`` with the command of :func:`training.launch.training_command`, told of all nodes."""
    command = training_command(
        stage,
        dataset,
        profile,
        out / stage,
        start=out / Stage.SFT if stage is Stage.GRPO else None,
        overrides=[*overrides, f"processes={config.processes}"],
    )
    words = [shlex.quote(word) for word in (config.interpreter, *command[1:])]
    if config.nodes > 1:
        words = _rendezvous(words, config.nodes)
    # since Slurm 22.05 a step does not take over the job's --cpus-per-task
    return _wrapped(
        ["stage", stage.value, "srun", "--kill-on-bad-exit=1", f"--cpus-per-task={config.cpus_per_task}", *words]
    )


def _rendezvous(words: list[str], nodes: int) -> list[str]:
    """The same command on every node, each with its rank; the first node is where they meet."""
    interpreter, launcher, rest = words[0], words[1:3], words[3:]
    rest[rest.index("--num_machines") + 1] = str(nodes)
    module = rest.index("--module")
    meet = ["--rdzv_backend", "c10d", "--main_process_ip", '"$head"', "--main_process_port", '"$port"']
    rank = '--machine_rank "$SLURM_NODEID" --rdzv_conf is_host=$((SLURM_NODEID == 0))'  # hosts by number: names differ
    ranked = f"""'exec "$0" {" ".join(launcher)} {rank} "$@"'"""
    return ["bash", "-c", ranked, interpreter, *rest[:module], *meet, *rest[module:]]


def _wrapped(words: Sequence[str]) -> str:
    lines: list[str] = []
    for word in words:
        if lines and not word.startswith("--"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n    ".join(lines)
