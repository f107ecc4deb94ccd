"""Commands on learning: prompts, training, and the demo of everything."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from pipeline.terminal import (
    DatasetArgument,
    JsonOption,
    ProfileOption,
    SetOption,
    StageOption,
    err,
    out,
    refusals,
    show,
    stages,
)

learning_app = typer.Typer()


@learning_app.command("prompts")
def prompts_command(
    plans: Annotated[list[Path], typer.Argument(help="Folders that `landoracle solve` wrote.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for the dataset.")],
    held_out: Annotated[
        list[Path] | None, typer.Option(help="A plan to hold out as a whole landscape; repeatable.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Take the prompt's form and the copies from this training profile (the options below win), and refuse "
            "prompts that are too long for it."
        ),
    ] = None,
    order: Annotated[int | None, typer.Option(min=0, max=2, help="Neighbours shown: 0, 1 or 2 steps.")] = None,
    context: Annotated[str | None, typer.Option(help="none, supply or prices.")] = None,
    style: Annotated[str | None, typer.Option(help="think or answer_only.")] = None,
    layout: Annotated[str | None, typer.Option(help="full or compact.")] = None,
    labels: Annotated[str | None, typer.Option(help="Tied labels: keep, drop_tied or accept_set.")] = None,
    block_m: Annotated[
        float | None, typer.Option(help="Side of the held-out blocks, m; by default the range of the yields.")
    ] = None,
    buffer: Annotated[
        int | None, typer.Option(help="Neighbour steps between training and a held-out block, at least.")
    ] = None,
    random_share: Annotated[
        float | None, typer.Option(help="Share held out at random, beside blocks and landscapes.")
    ] = None,
    rotations: Annotated[
        bool | None,
        typer.Option(
            "--rotations/--no-rotations", help="Add the seven turned and mirrored copies of every training prompt."
        ),
    ] = None,
    shuffles: Annotated[
        int | None, typer.Option(min=0, help="Add so many copies of every training prompt with shuffled neighbours.")
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(min=0, help="Add so many copies of every training prompt in other units of currency and mass."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a labelled, split prompt of every polygon of solved landscapes.

    Example: `landoracle prompts plan-a plan-b --held-out plan-c --out dataset --profile pocket`
    """
    from pipeline.token_audit import audit_if_possible
    from prompts.config import PromptConfig
    from prompts.dataset import build_dataset
    from prompts.plan_folder import read_plan
    from prompts.split import Role, SplitConfig
    from prompts.transforms import AugmentConfig
    from training.config import load_profile

    with refusals():
        training = load_profile(profile) if profile else None
        base = training.prompts if training else PromptConfig()
        standing = training.augment if training else AugmentConfig()
        form = {"order": order, "context": context, "style": style, "layout": layout, "labels": labels}
        copies = {"rotations": rotations, "shuffles": shuffles, "units": units}
        splitting = {"block_m": block_m, "buffer": buffer, "random_share": random_share}
        try:
            config = PromptConfig.model_validate(base.model_dump() | _given(form))
            split_config = SplitConfig.model_validate(_given(splitting))
            augment = AugmentConfig.model_validate(standing.model_dump() | _given(copies))
        except ValidationError as error:
            raise typer.BadParameter("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors())) from error
        sources = [read_plan(p, Role.TRAIN) for p in plans] + [read_plan(p, Role.HELD_OUT) for p in held_out or []]
        audit = audit_if_possible(training, err.print) if training else None
        with err.status("making prompts ..."):
            dataset = build_dataset(sources, config, split_config, audit, augment)
        dataset.save(to)
    tokens = dataset.manifest.tokens
    values = {
        "prompts_per_split": {name: record.prompts for name, record in dataset.manifest.splits.items()},
        "tokens_per_prompt": tokens.model_dump() if tokens else "not counted",
        "notes": list(dataset.manifest.notes),
        "written": str(to),
    }
    show(values, as_json, "Prompt dataset")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@learning_app.command()
def train(
    dataset: DatasetArgument,
    to: Annotated[Path, typer.Option("--out", help="Folder for the runs: OUT/sft and OUT/grpo.")],
    profile: ProfileOption = "pocket",
    changes: SetOption = None,
    stage: StageOption = "all",
    start: Annotated[
        Path | None,
        typer.Option(
            help="Weights that the first stage starts from: a finished run, of an easier dataset say; by default those "
            "that the profile names."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands and check all that could stop them; train nothing.")
    ] = False,
) -> None:
    """Train a model on a dataset: SFT, then GRPO. An interrupted run goes on where it was.

    Example: `landoracle train dataset --out runs/mine --profile pocket`
    """
    from pipeline.trainer_settings import refuse_unknown_settings
    from training.config import Stage, load_profile
    from training.generation_batch import usable_batch
    from training.launch import check_command, run_command, training_command

    asked = stages(stage)
    with refusals():
        config = load_profile(profile, changes or [])
        refuse_unknown_settings(config)
        if Stage.GRPO in asked:
            usable_batch(config)  # said before SFT has trained for hours
        for each in asked:
            begin = start if each is asked[0] else None
            if begin is None and each is Stage.GRPO:
                begin = to / Stage.SFT
            command = training_command(each, dataset, profile, to / each, start=begin, overrides=changes or [])
            if not dry_run:
                run_command(command)
                continue
            typer.echo(shlex.join(command))
            if begin is None or begin.is_dir():
                run_command(check_command(each, dataset, profile, start=begin, overrides=changes or []))


@learning_app.command()
def demo(
    to: Annotated[str, typer.Option("--out", help="Folder below the project.")] = "runs/demo",
    profile: ProfileOption = "pocket",
    changes: SetOption = None,
) -> None:
    """The whole chain on the embedded landscapes: from polygons to held-out accuracy and a report.

    Example: `landoracle demo` (a quarter of an hour on two CPU cores; Ctrl-C is safe, the same command goes on)
    """
    from pipeline.demo import run_demo

    with refusals():
        try:
            run_demo(to, profile, changes or [], out)
        except KeyboardInterrupt:
            err.print("stopped; the same command goes on from here")
            raise
