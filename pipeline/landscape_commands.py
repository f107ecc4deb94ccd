"""Commands on landscapes: check a file, make a synthetic one, write the neighbour graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oracle.errors import ConfigurationError
from pipeline.terminal import File, JsonOption, RecipeOption, err, out, refusals, show

if TYPE_CHECKING:
    from oracle.landscape import Landscape
    from oracle.recipe import Recipe

landscape_app = typer.Typer(no_args_is_help=True, help="Check a file of polygons, or make a synthetic landscape.")
graph_app = typer.Typer()


def read_aloud(file: Path, recipe: Recipe) -> Landscape:
    """A file as a landscape; what was mended, left out or looks wrong is said on standard error.

    Raises
    ------
    LandscapeError
        As :func:`oracle.intake.read_landscape`.
    """
    from oracle.intake import read_landscape

    landscape, report = read_landscape(file, recipe)
    for remark in (*report.repairs, *report.dropped, *report.warnings):
        err.print(str(remark), style="dim", markup=False, soft_wrap=True)
    return landscape


@landscape_app.command("check")
def check(file: File, recipe: RecipeOption = None, as_json: JsonOption = False) -> None:
    """Read a file as a landscape and say what was matched, converted, repaired or refused.

    Exit code 0: usable as a landscape; 1: not, with every reason. `--json` prints the same, refused or not.

    Example: `landoracle landscape check farms.gpkg --recipe farms.yaml`
    """
    from oracle.intake import inspect_file
    from oracle.neighbours import neighbour_graph
    from pipeline.check_report import as_json_values, print_report

    with refusals():
        inspection = inspect_file(file, recipe)
        graph = neighbour_graph(inspection.landscape) if inspection.landscape is not None else None
    if as_json:
        typer.echo(json.dumps(as_json_values(inspection, graph), indent=2, ensure_ascii=False))
    else:
        print_report(inspection, graph, out)
    if not inspection.report.usable:
        raise typer.Exit(1)


@landscape_app.command("synth")
def synth(
    to: Annotated[Path, typer.Option("--out", help="GeoPackage, GeoJSON or .parquet to write.")],
    like: Annotated[str | None, typer.Option(help="Embedded landscape to vary; the first one by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of another landscape of that kind.")] = None,
    townships: Annotated[tuple[int, int], typer.Option(help="Townships north-south and east-west.")] = (2, 2),
) -> None:
    """Make a Dominion Land Survey landscape: quarter sections with yields, connectivity and current land use.

    Example: `landoracle landscape synth --seed 7 --out farms.gpkg`
    """
    from oracle.files import write_atomically
    from oracle.synthesis import embedded_landscapes, synthesise

    with refusals():
        embedded = {config.name: config for config in embedded_landscapes()}
        kind = embedded.get(like or next(iter(embedded)))
        if kind is None:
            raise ConfigurationError(f"no embedded landscape {like!r}; there are {', '.join(embedded)}")
        change = {"townships_ns": townships[0], "townships_ew": townships[1]} | ({} if seed is None else {"seed": seed})
        polygons = synthesise(kind.model_copy(update=change)).polygons
        if to.suffix in (".parquet", ".geoparquet"):
            write_atomically(to, lambda path: polygons.to_parquet(path, index=False))
        else:
            write_atomically(to, lambda path: polygons.to_file(path, engine="pyogrio"))
    out.print(f"{len(polygons):,} polygons -> {to}", markup=False, soft_wrap=True)


@graph_app.command()
def graph(
    file: File,
    to: Annotated[Path, typer.Option("--out", help="Parquet to write.")],
    recipe: RecipeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the neighbour graph: one row per ordered pair, with compass codes, borders and gaps.

    Example: `landoracle graph farms.gpkg --out graph.parquet`
    """
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for

    with refusals():
        landscape = read_aloud(file, recipe_for(file, recipe))
        built = neighbour_graph(landscape)
        built.save(to)
    first = built.table[built.table["order"] == 1]
    values = {
        "polygons": len(landscape),
        "first_order_pairs": {k: int(n) // 2 for k, n in first["kind"].value_counts().items()},
        "second_order_pairs": (len(built.table) - len(first)) // 2,
        "components": int(built.components.max()) + 1,
        "isolated_polygons": len(built.isolated),
        "written": str(to),
    }
    show(values, as_json, "Neighbour graph")
