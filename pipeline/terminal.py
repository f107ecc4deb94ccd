"""What the commands share on the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oracle.errors import LandoracleError

if TYPE_CHECKING:
    from training.config import Stage

out, err = Console(), Console(stderr=True, highlight=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
File = Annotated[
    Path,
    typer.Argument(help="Polygons: GeoPackage, GeoJSON, Shapefile, File Geodatabase (or a zip of them), GeoParquet."),
]
RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="YAML that names columns, units, crops and the GLM's settings.")
]
ProfileOption = Annotated[str, typer.Option(help="Training profile: pocket, smollm2, gpu, or a YAML file.")]
PlanArgument = Annotated[Path, typer.Argument(help="Folder that `landoracle solve` wrote.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting, e.g. grpo.beta=0.01; repeatable.")
]
StageOption = Annotated[str, typer.Option(help="all, sft, or grpo (which starts from OUT/sft).")]
DatasetArgument = Annotated[Path, typer.Argument(help="Folder that `landoracle prompts` wrote.")]


@contextmanager
def refusals() -> Iterator[None]:
    """End with exit code 1 and one clear message where the input or the result is not good."""
    try:
        yield
    except (LandoracleError, OSError) as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error


def stages(name: str) -> list[Stage]:
    """What ``--stage`` asks for, in the order of training; a usage error where it is none of them."""
    from training.config import Stage

    if name not in ("all", *Stage):
        raise typer.BadParameter(f"--stage must be all, sft or grpo, not {name!r}")
    return list(Stage) if name == "all" else [Stage(name)]


def show(values: dict[str, Any], as_json: bool, title: str) -> None:
    """Print figures as a two-column table, or as JSON; names from files are shown as they are."""
    if as_json:
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    table = Table(title=escape(title), show_header=False, title_justify="left", title_style="bold")
    for key, value in values.items():
        table.add_row(escape(key.replace("_", " ")), escape(as_text(value)))
    out.print(table)


def as_text(value: Any) -> str:
    """A figure, or a structure of them, as a cell of a table."""
    if isinstance(value, dict):
        return "\n".join(f"{k}: {as_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list | tuple):
        return "\n".join(map(as_text, value)) or "none"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2e}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
