"""Commands on plans: solve a landscape, check the proof, explain a polygon, trade crop value for connectivity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.markup import escape
from rich.table import Table

from oracle.errors import ConfigurationError
from oracle.glm_config import GLMConfig
from pipeline.landscape_commands import read_aloud
from pipeline.terminal import (
    File,
    JsonOption,
    PlanArgument,
    RecipeOption,
    as_text,
    err,
    out,
    refusals,
    show,
)

if TYPE_CHECKING:
    from oracle.landscape import Landscape
    from oracle.neighbours import NeighbourGraph
    from oracle.solution import Solution

DispersalOption = Annotated[
    float,
    typer.Option("--dispersal-m", min=1.0, help="Distance at which a step between patches has probability 0.5, m."),
]

plan_app = typer.Typer()


@plan_app.command("solve")
def solve_command(
    file: File,
    to: Annotated[Path, typer.Option("--out", help="Folder for labels, solution, certificate and map.")],
    recipe: RecipeOption = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a GLM setting, e.g. connectivity_weight=0.3; repeatable.")
    ] = None,
    dispersal_m: DispersalOption = 1_000.0,
    as_json: JsonOption = False,
) -> None:
    """Find the optimum of a whole landscape and prove it: labels, supply, shadow prices, certificate, map.

    Example: `landoracle solve farms.gpkg --out plan --set supply_floors.wheat=0.5`
    """
    from oracle.connectivity import CONNECTIVITY_FILE
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for
    from oracle.solution import read_json, save_solution
    from oracle.solve import solve
    from pipeline.plans import refuse_folder

    with refusals():
        refuse_folder(to, file)
        chosen = recipe_for(file, recipe)
        config = changed(chosen.glm, changes or [])
        with err.status("reading ...") as status:
            landscape = read_aloud(file, chosen)
            status.update("looking for neighbours ...")
            built = neighbour_graph(landscape)
            solution = solve(landscape, built, config, progress=lambda line: status.update(line))
            status.update("writing the plan and its map ...")
            save_solution(to, landscape, built, solution, dispersal_m)
    connected, figures = read_json(to / CONNECTIVITY_FILE), _plan_figures(solution, to)
    if not as_json:
        connected = _side_by_side(connected)
        figures["supply"] = {crop: _supply_line(**each) for crop, each in figures["supply"].items()}
    show(figures | connected, as_json, f"Plan of {landscape.name}")


def changed(config: GLMConfig, changes: Sequence[str]) -> GLMConfig:
    """``config`` with changes written ``key=value`` or ``key.crop=value`` applied.

    Raises
    ------
    ConfigurationError
        Where a key or value is not one.
    """
    from oracle.recipe import explain as in_words

    values = config.model_dump(mode="json")
    for change in changes:
        key, equals, text = change.partition("=")
        *parents, leaf = key.strip().split(".")
        section: Any = values
        for parent in parents:
            section = section.get(parent) if isinstance(section, dict) else None
        if not equals or not isinstance(section, dict):
            raise ConfigurationError(f"--set {change!r}: write key=value, e.g. gap=1e-5 or prices.wheat=280")
        try:
            section[leaf] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:  # a date such as 2024-13-45 is a ValueError
            raise ConfigurationError(f"--set {change!r}: {text!r} is no value in YAML, e.g. 0.5") from error
    try:
        return GLMConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(f"--set: {in_words(error, GLMConfig)}") from error


def _plan_figures(solution: Any, folder: Path) -> dict[str, Any]:
    names, counts = _counts(solution.land_use)
    return {
        "polygons_per_class": dict(zip(names, counts, strict=True)),
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "solver_bound": solution.solver_bound,
        "supply": {
            crop: {"supply_t": float(supply), "floor_t": float(floor), "shadow_price": solution.shadow_price[crop]}
            for crop, supply, floor in zip(solution.crops, solution.supply_t, solution.floor_t, strict=True)
        },
        "labels": {s: n for s, n in zip(*_counts(solution.status), strict=True)},
        "wall_time_s": round(solution.wall_time_s, 2),
        "written": str(folder),
    }


def _supply_line(supply_t: float, floor_t: float, shadow_price: float) -> str:
    return f"{supply_t:,.0f} t, floor {floor_t:,.0f} t, shadow price {shadow_price:,.2f} per t"


def _counts(values: Any) -> tuple[list[str], list[int]]:
    import numpy as np

    names, counts = np.unique(values.astype(str), return_counts=True)
    return names.tolist(), counts.tolist()


def _side_by_side(figures: dict[str, dict[str, Any]]) -> dict[str, str]:
    """A row per figure: the plan's, and in brackets that of the current land use where it is known."""
    from oracle.connectivity import NOW, OF_PLAN

    planned, now = figures[OF_PLAN], figures.get(NOW)
    return {key: as_text(value) + (f" (now {as_text(now[key])})" if now else "") for key, value in planned.items()}


def _open_plan(folder: Path) -> tuple[Landscape, NeighbourGraph, Solution]:
    from prompts.plan_folder import read_plan

    plan = read_plan(folder)
    return plan.landscape, plan.graph, plan.solution


@plan_app.command("connectivity")
def connectivity_command(
    folder: PlanArgument,
    dispersal_m: DispersalOption,
    as_json: JsonOption = False,
) -> None:
    """Connectivity of a plan's habitat at another dispersal distance, beside that of the current land use.

    Example: `landoracle connectivity plan --dispersal-m 500`
    """
    from oracle.connectivity import save_connectivity

    with refusals():
        landscape, built, solution = _open_plan(folder)
        figures = save_connectivity(folder, landscape, built, solution.land_use, dispersal_m)
    show(figures if as_json else _side_by_side(figures), as_json, f"Connectivity of {landscape.name}")


@plan_app.command("explain")
def explain_command(
    folder: PlanArgument,
    polygon_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the polygon.")],
    as_json: JsonOption = False,
) -> None:
    """One screen about one polygon: class, what others would cost, neighbours, floors, and what would flip it.

    Example: `landoracle explain plan NE-12-17-20-W2`
    """
    from dataclasses import asdict

    from oracle.explain import explain

    with refusals():
        explanation = explain(*_open_plan(folder), polygon_id)
    if as_json:
        typer.echo(json.dumps(asdict(explanation), indent=2, ensure_ascii=False))
    else:
        show(explanation.lines(), False, f"{polygon_id}: {explanation.land_use}, {explanation.status}")


@plan_app.command("tradeoff")
def tradeoff_command(
    file: File,
    to: Annotated[Path, typer.Option("--out", help="Folder for the table, the plot and the solved points.")],
    recipe: RecipeOption = None,
    points: Annotated[int, typer.Option(min=3, help="Connectivity weights from 0 to 0.95.")] = 11,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a GLM setting, e.g. supply_floors.wheat=0.5; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Crop value against connectivity over the connectivity weight, every point certified, the knee marked.

    Example: `landoracle tradeoff farms.gpkg --out curve` (an interrupted run goes on where it was)
    """
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for
    from oracle.tradeoff import tradeoff
    from pipeline.plans import refuse_folder

    with refusals():
        refuse_folder(to, file)
        chosen = recipe_for(file, recipe)
        config = changed(chosen.glm, changes or [])
        with err.status("reading ...") as status:
            landscape = read_aloud(file, chosen)
            status.update("looking for neighbours ...")
            built = neighbour_graph(landscape)
            curve = tradeoff(landscape, built, config, to, points, lambda line: status.update(line))
    if as_json:
        typer.echo(json.dumps(curve.to_dict(), indent=2, ensure_ascii=False))
        return
    table = Table("w", "crop value", "connectivity, ha", "at most, ha", "habitat", "gap", "", title=escape(f"-> {to}"))
    for k, (p, most) in enumerate(zip(curve.points, curve.bound_ha(curve.crop_value_currency), strict=True)):
        knee = "knee" if k == curve.knee else ""
        value, connected = f"{p.crop_value_currency:,.0f}", f"{p.connectivity_ha:,.1f}"
        weight = f"{p.connectivity_weight:.3g}"
        table.add_row(weight, value, connected, f"{most:,.1f}", f"{p.habitat_share:.1%}", f"{p.gap:.1e}", knee)
    out.print(table)


@plan_app.command("verify")
def verify_command(
    folder: Annotated[Path, typer.Argument(help="Folder that `landoracle solve` wrote.")], as_json: JsonOption = False
) -> None:
    """Check a plan from the landscape up without any solver: feasible, worth what it says, bounded as it says.

    Example: `landoracle verify plan`
    """
    from dataclasses import asdict

    from oracle.verify import verify

    with refusals():
        verified = verify(folder)
    show(asdict(verified), as_json, f"{folder}: the certificate holds")
