"""The commands that launch training elsewhere than on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.terminal import DatasetArgument, ProfileOption, SetOption, StageOption, err, refusals, stages

launch_app = typer.Typer(no_args_is_help=True, help="Launch training on a cluster.")


@launch_app.callback()
def _launch() -> None:
    """Launch training on a cluster."""


@launch_app.command()
def slurm(
    dataset: DatasetArgument,
    to: Annotated[Path, typer.Option("--out", help="Folder for the runs and the job's log, shared by the nodes.")],
    profile: ProfileOption = "gpu",
    changes: SetOption = None,
    stage: StageOption = "all",
    cluster: Annotated[
        Path | None, typer.Option(help="YAML with a section `slurm`: resources and environment; the options below win.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs, and processes, on each node.")] = None,
    time: Annotated[
        str | None, typer.Option(help="Time limit, HH:MM:SS; the job is requeued and goes on after it.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Partition.")] = None,
    account: Annotated[str | None, typer.Option(help="Account.")] = None,
    modules: Annotated[list[str] | None, typer.Option("--module", help="Module to load; repeatable.")] = None,
    environment: Annotated[
        list[str] | None, typer.Option("--env", help="NAME=VALUE to set on the nodes; repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the script; write and submit nothing.")] = False,
) -> None:
    """Train as a Slurm job: SFT, then GRPO, one launcher per node, requeued with a checkpoint at the time limit.

    Example: `landoracle launch slurm dataset --out runs/mine --nodes 2 --gpus-per-node 4 --time 24:00:00 --dry-run`
    """
    from pipeline.trainer_settings import refuse_unknown_settings
    from training.config import Stage, load_profile
    from training.generation_batch import usable_batch
    from training.slurm import load_slurm, slurm_script, submit

    asked = stages(stage)
    given: dict[str, Any] = {
        "nodes": nodes,
        "gpus_per_node": gpus_per_node,
        "time": time,
        "partition": partition,
        "account": account,
        "modules": modules,
    }
    with refusals():
        refuse_unknown_settings(load_profile(profile, changes or []))
        config = load_slurm(cluster, {key: value for key, value in given.items() if value is not None})
        if environment:
            variables = config.environment | _variables(environment)
            config = load_slurm(None, config.model_dump() | {"environment": variables})
        if Stage.GRPO in asked:  # said before the job waits in a queue
            usable_batch(load_profile(profile, [*(changes or []), f"processes={config.processes}"]))
        script = slurm_script(config, dataset, profile, to, stages=asked, overrides=changes or [])
        if dry_run:
            typer.echo(script, nl=False)
            return
        job = submit(script, to)
    err.print(f"submitted; its log is {to / f'slurm-{job}.log'}")
    typer.echo(job)


def _variables(assignments: list[str]) -> dict[str, str]:
    wrong = [text for text in assignments if "=" not in text]
    if wrong:
        raise typer.BadParameter(f"--env takes NAME=VALUE, not {wrong[0]!r}")
    return dict(text.split("=", 1) for text in assignments)
