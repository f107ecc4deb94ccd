"""Commands around training: what comes before a run, and what is made of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.terminal import JsonOption, err, refusals

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

    Example: `landoracle migrate farm_grpo.yaml --out farm.yaml`, then `landoracle train dataset --profile farm.yaml`
    """
    import json

    import yaml

    from oracle.errors import ConfigurationError
    from oracle.files import write_text
    from training.migrate import migrate as migrated

    with refusals():
        migration = migrated(recipe)
        text = yaml.safe_dump(migration.profile, sort_keys=False)
        if to is not None:
            if to.exists():
                raise ConfigurationError(f"{to} is there already; choose another name with --out")
            write_text(to, text)
    if as_json:
        changes = [asdict(change) for change in migration.changes]
        typer.echo(json.dumps({"profile": migration.profile, "changes": changes}, indent=2))
        return
    table = Table("old key", "today", "why")
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
    """Draw a GRPO run: reward and its parts, signal, held-out decisions, length, entropy, KL.

    Example: `landoracle curves runs/mine/grpo`
    """
    from training.curves import draw_curves

    path = to or run / "curves.png"
    with refusals():
        draw_curves(run, path)
    typer.echo(path)
