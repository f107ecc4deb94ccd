"""Commands around training: what comes before a run, and what is made of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.terminal import DatasetArgument, JsonOption, ProfileOption, err, refusals

training_app = typer.Typer()


@training_app.command()
def migrate(
    recipe: Annotated[Path, typer.Argument(help="YAML of an open-r1 GRPO run.")],
    to: Annotated[
        Path | None, typer.Option("--out", help="Write the profile there; standard output by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn an open-r1 recipe into today's profile, and say what became of every key.

    Example: `landoracle migrate farm_grpo.yaml --out farm.yaml`, then, with GRPO from the recipe's model as there,
    `landoracle train dataset --out runs/farm --profile farm.yaml --stage grpo --start MODEL`
    """
    import json

    import yaml

    from oracle.errors import ConfigurationError
    from oracle.files import write_text
    from pipeline.trainer_settings import refuse_unknown_settings
    from training.config import validated
    from training.migrate import migrate as migrated

    with refusals():
        migration = migrated(recipe)
        refuse_unknown_settings(validated(migration.profile, recipe))
        text = yaml.safe_dump(migration.profile, sort_keys=False)
        if to is not None:
            if to.exists():
                raise ConfigurationError(f"{to} is there already; choose another name with --out")
            write_text(to, text)
    if as_json:
        changes = [asdict(change) for change in migration.changes]
        typer.echo(json.dumps({"profile": migration.profile, "changes": changes}, indent=2))
        return
    table = Table()
    for heading in ("old key", "today", "why"):
        table.add_column(heading, overflow="fold")  # names are there to be copied
    for change in migration.changes:
        table.add_row(escape(change.key), change.today or "dropped", escape(change.reason))
    err.print(table)
    if to is None:
        typer.echo(text, nl=False)


@training_app.command()
def curves(
    run: Annotated[Path, typer.Argument(help="Folder of a finished GRPO run, as OUT/grpo of `landoracle train`.")],
    to: Annotated[Path | None, typer.Option("--out", help="PNG; RUN/curves.png by default.")] = None,
) -> None:
    """Draw a GRPO run: reward and its parts, signal, held-out decisions, length, entropy, KL, seconds, samples.

    Example: `landoracle curves runs/mine/grpo`
    """
    from training.curves import draw_curves

    path = to or run / "curves.png"
    with refusals():
        draw_curves(run, path)
    typer.echo(path)


@training_app.command()
def ablate(
    dataset: DatasetArgument,
    to: Annotated[Path, typer.Option("--out", help="Folder for the runs, results.json and results.md.")],
    arms: Annotated[str | None, typer.Option(help="Arms, with commas between; all by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each arm, with seeds 0, 1, ...")] = 3,
    profile: ProfileOption = "pocket",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting of every arm, or of one: ARM:key=value; repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What GRPO adds to SFT, and what becomes of it without its parts: every arm with several seeds, paired.

    Arms: sft, sft_grpo, sft_grpo_drawn, beta_zero, shuffled_labels, answer_only, answer_only_grpo, format_only,
    format_only_grpo.
    What is finished is not run again: the same command goes on.

    Example: `landoracle ablate runs/demo/dataset --out runs/ablation --seeds 3`
    """
    import json

    from pipeline.trainer_settings import refuse_unknown_settings
    from training.ablate import ARMS, Ablation, Run
    from training.ablate import ablate as run_arms
    from training.ablation_results import PAGE, RESULTS, results

    chosen = [name.strip() for name in arms.split(",")] if arms else list(ARMS)
    with refusals():
        ablation = Ablation(dataset, to, profile, tuple(changes or []))
        for arm in ARMS:
            refuse_unknown_settings(ablation.config(Run(arm, 0)))
        finished = run_arms(ablation, chosen, seeds, say=lambda line: err.print(line, markup=False))
        found = results(to, finished)
    typer.echo(json.dumps(asdict(found), indent=2) if as_json else found.to_markdown())
    err.print(f"{to / RESULTS} and {to / PAGE} hold the same")
