"""``landoracle``: every stage from the command line, thin over the same functions as the Dagster assets.

Exit codes: 0 done, 1 the input or the result is not good (the reason stands on standard error), 2 wrong usage.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.table import Table

from oracle.errors import ConfigurationError, TrainingError
from oracle.glm_config import GLMConfig
from pipeline.bench import bench_app
from pipeline.terminal import JsonOption, as_text, err, out, refusals, show

if TYPE_CHECKING:
    import numpy as np

    from oracle.landscape import Landscape
    from oracle.neighbours import NeighbourGraph
    from oracle.solution import Solution

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn a map of farm polygons into proven land-use labels, and a small language model into a planner.\n\n"
    "Start with `landoracle demo`, or with your own file: `landoracle landscape check farms.gpkg`, then "
    "`landoracle solve farms.gpkg --out plan`.",
)
landscape_app = typer.Typer(no_args_is_help=True, help="Check a file of polygons, or make a synthetic landscape.")
app.add_typer(landscape_app, name="landscape")
app.add_typer(bench_app, name="bench")

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
DatasetArgument = Annotated[Path, typer.Argument(help="Folder that `landoracle prompts` wrote.")]


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
    out.print(f"{len(polygons):,} polygons -> {to}")


@app.command()
def graph(
    file: File,
    to: Annotated[Path, typer.Option("--out", help="Parquet to write.")],
    recipe: RecipeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the neighbour graph: one row per ordered pair, with compass codes, borders and gaps.

    Example: `landoracle graph farms.gpkg --out graph.parquet`
    """
    from oracle.intake import read_landscape
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for

    with refusals():
        landscape, _ = read_landscape(file, recipe_for(file, recipe))
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


@app.command("solve")
def solve_command(
    file: File,
    to: Annotated[Path, typer.Option("--out", help="Folder for labels, solution, certificate and map.")],
    recipe: RecipeOption = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a GLM setting, e.g. connectivity_weight=0.3; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the optimum of a whole landscape and prove it: labels, supply, shadow prices, certificate, map.

    Example: `landoracle solve farms.gpkg --out plan --set supply_floors.wheat=0.5`
    """
    from oracle.intake import read_landscape
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for
    from oracle.solution import save_solution
    from oracle.solve import solve

    with refusals():
        chosen = recipe_for(file, recipe)
        landscape, report = read_landscape(file, chosen)
        for remark in (*report.repairs, *report.dropped, *report.warnings):
            err.print(str(remark), style="dim", markup=False, soft_wrap=True)
        built = neighbour_graph(landscape)
        config = changed(chosen.glm, changes or [])
        with err.status("solving ...") as status:
            solution = solve(landscape, built, config, progress=lambda line: status.update(line))
        save_solution(to, landscape, built, solution)
        connected = _connectivity_figures(to, landscape, built, solution.land_use)
    connected = connected if as_json else _side_by_side(connected)
    show(_plan_figures(solution, to) | connected, as_json, f"Plan of {landscape.name}")


def changed(config: GLMConfig, changes: Sequence[str]) -> GLMConfig:
    """``config`` with changes written ``key=value`` or ``key.crop=value`` applied.

    Raises
    ------
    ConfigurationError
        Where a key or value is not one.
    """
    values = config.model_dump(mode="json")
    for change in changes:
        key, equals, text = change.partition("=")
        *parents, leaf = key.strip().split(".")
        section: Any = values
        for parent in parents:
            section = section.get(parent) if isinstance(section, dict) else None
        if not equals or not isinstance(section, dict):
            raise ConfigurationError(f"--set {change!r}: write key=value, e.g. gap=1e-5 or prices.wheat=280")
        section[leaf] = yaml.safe_load(text)
    try:
        return GLMConfig.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigurationError(f"--set: {problems}") from error


def _plan_figures(solution: Any, folder: Path) -> dict[str, Any]:
    names, counts = _counts(solution.land_use)
    return {
        "polygons_per_class": dict(zip(names, counts, strict=True)),
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "supply": {
            crop: f"{supply:,.0f} t, floor {floor:,.0f} t, shadow price {solution.shadow_price[crop]:,.2f} per t"
            for crop, supply, floor in zip(solution.crops, solution.supply_t, solution.floor_t, strict=True)
        },
        "labels": {s: n for s, n in zip(*_counts(solution.status), strict=True)},
        "wall_time_s": round(solution.wall_time_s, 2),
        "written": str(folder),
    }


def _counts(values: Any) -> tuple[list[str], list[int]]:
    import numpy as np

    names, counts = np.unique(values.astype(str), return_counts=True)
    return names.tolist(), counts.tolist()


def _connectivity_figures(
    folder: Path, landscape: Landscape, graph: NeighbourGraph, land_use: np.ndarray, dispersal_m: float | None = None
) -> dict[str, Any]:
    """Connectivity of a plan and, where it is known, of the current land use; also written beside the plan."""
    from dataclasses import asdict

    from oracle.connectivity import DISPERSAL_M, connectivity
    from oracle.files import write_json

    distance = DISPERSAL_M if dispersal_m is None else dispersal_m
    figures = {"connectivity_of_plan": asdict(connectivity(landscape, graph, land_use, distance))}
    if landscape.current is not None:
        figures["connectivity_now"] = asdict(connectivity(landscape, graph, landscape.current, distance))
    write_json(folder / "connectivity.json", figures)
    return figures


def _side_by_side(figures: dict[str, dict[str, Any]]) -> dict[str, str]:
    """A row per figure: the plan's, and in brackets that of the current land use where it is known."""
    planned, now = figures["connectivity_of_plan"], figures.get("connectivity_now")
    return {key: as_text(value) + (f" (now {as_text(now[key])})" if now else "") for key, value in planned.items()}


def _open_plan(folder: Path) -> tuple[Landscape, NeighbourGraph, Solution]:
    from pipeline.plans import read_plan

    plan = read_plan(folder)
    return plan.landscape, plan.graph, plan.solution


@app.command("connectivity")
def connectivity_command(
    folder: PlanArgument,
    dispersal_m: Annotated[float, typer.Option(help="Distance at which a step between patches has probability 0.5.")],
    as_json: JsonOption = False,
) -> None:
    """Connectivity of a plan's habitat at another dispersal distance, beside that of the current land use.

    Example: `landoracle connectivity plan --dispersal-m 500`
    """
    with refusals():
        landscape, built, solution = _open_plan(folder)
        figures = _connectivity_figures(folder, landscape, built, solution.land_use, dispersal_m)
    show(figures if as_json else _side_by_side(figures), as_json, f"Connectivity of {landscape.name}")


@app.command("explain")
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


@app.command("tradeoff")
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
    from oracle.intake import read_landscape
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for
    from oracle.tradeoff import tradeoff

    with refusals():
        chosen = recipe_for(file, recipe)
        landscape, _ = read_landscape(file, chosen)
        config = changed(chosen.glm, changes or [])
        with err.status("solving ...") as status:
            curve = tradeoff(
                landscape, neighbour_graph(landscape), config, to, points, lambda line: status.update(line)
            )
    if as_json:
        typer.echo(json.dumps(curve.to_dict(), indent=2, ensure_ascii=False))
        return
    table = Table("w", "crop value", "connectivity, ha", "at most, ha", "habitat", "gap", "", title=f"-> {to}")
    for k, (p, most) in enumerate(zip(curve.points, curve.bound_ha(curve.crop_value_currency), strict=True)):
        knee = "knee" if k == curve.knee else ""
        value, connected = f"{p.crop_value_currency:,.0f}", f"{p.connectivity_ha:,.1f}"
        weight = f"{p.connectivity_weight:.3g}"
        table.add_row(weight, value, connected, f"{most:,.1f}", f"{p.habitat_share:.1%}", f"{p.gap:.1e}", knee)
    out.print(table)


@app.command("verify")
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


@app.command("prompts")
def prompts_command(
    plans: Annotated[list[Path], typer.Argument(help="Folders that `landoracle solve` wrote.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for the dataset.")],
    held_out: Annotated[
        list[Path] | None, typer.Option(help="A plan to hold out as a whole landscape; repeatable.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Take the prompt's form from this training profile; the options below win.")
    ] = None,
    order: Annotated[int | None, typer.Option(min=0, max=2, help="Neighbours shown: 0, 1 or 2 steps.")] = None,
    context: Annotated[str | None, typer.Option(help="none or prices.")] = None,
    style: Annotated[str | None, typer.Option(help="think or answer_only.")] = None,
    layout: Annotated[str | None, typer.Option(help="full or compact.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a labelled, split prompt of every polygon of solved landscapes.

    Example: `landoracle prompts plan-a plan-b --held-out plan-c --out dataset --profile pocket`
    """
    from pipeline.plans import read_plan
    from prompts.config import PromptConfig
    from prompts.dataset import build_dataset
    from prompts.split import Role
    from training.config import load_profile

    with refusals():
        base = load_profile(profile).prompts if profile else PromptConfig()
        given = {"order": order, "context": context, "style": style, "layout": layout}
        try:
            config = PromptConfig.model_validate(base.model_dump() | {k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise typer.BadParameter("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors())) from error
        sources = [read_plan(p, Role.TRAIN) for p in plans] + [read_plan(p, Role.HELD_OUT) for p in held_out or []]
        dataset = build_dataset(sources, config)
        dataset.save(to)
    values = {
        "prompts_per_split": {name: record.prompts for name, record in dataset.manifest.splits.items()},
        "notes": list(dataset.manifest.notes),
        "written": str(to),
    }
    show(values, as_json, "Prompt dataset")


@app.command()
def train(
    dataset: DatasetArgument,
    to: Annotated[Path, typer.Option("--out", help="Folder for the runs: OUT/sft and OUT/grpo.")],
    profile: ProfileOption = "pocket",
    changes: SetOption = None,
    stage: Annotated[str, typer.Option(help="all, sft, or grpo (which starts from OUT/sft).")] = "all",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands and check all that could stop them; train nothing.")
    ] = False,
) -> None:
    """Train a model on a dataset: SFT, then GRPO. An interrupted run goes on where it was.

    Example: `landoracle train dataset --out runs/mine --profile pocket`
    """
    from training.config import Stage
    from training.launch import check_command, run_command, training_command

    if stage not in ("all", *(s.value for s in Stage)):
        raise typer.BadParameter(f"--stage must be all, sft or grpo, not {stage!r}")
    with refusals():
        for each in Stage if stage == "all" else (Stage(stage),):
            start = to / Stage.SFT if each is Stage.GRPO else None
            command = training_command(each, dataset, profile, to / each, start=start, overrides=changes or [])
            if not dry_run:
                run_command(command)
                continue
            typer.echo(shlex.join(command))
            if start is None or start.is_dir():
                run_command(check_command(each, dataset, profile, start=start, overrides=changes or []))


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder that `landoracle train` wrote, or one model.")],
    dataset: DatasetArgument,
    to: Annotated[Path | None, typer.Option("--out", help="Folder for the figures; RUN/evaluation by default.")] = None,
    profile: ProfileOption = "pocket",
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy on held-out polygons, with intervals, beside baselines on the same rows.

    Example: `landoracle evaluate runs/mine dataset`
    """
    from pipeline.report import STAGE_NAMES
    from training.evaluate import EVALUATION
    from training.launch import evaluation_command, run_command
    from training.run import RUN

    with refusals():
        models = {name: run / stage for stage, name in STAGE_NAMES.items() if (run / stage / RUN).is_file()}
        if (run / RUN).is_file():
            models = {run.name: run}
        if not models:
            raise TrainingError(f"{run} holds no finished run; train one with `landoracle train {dataset} --out {run}`")
        folder = to or run / "evaluation"
        run_command(evaluation_command(dataset, profile, folder, models, overrides=changes or []))
        evaluation = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
    if as_json:
        typer.echo(json.dumps(evaluation, indent=2))
        return
    for split in sorted({s for by_split in evaluation["models"].values() for s in by_split}):
        table = Table("decides", "accuracy", "95 % interval", "rows", title=split, title_justify="left")
        for name, by_split in (evaluation["models"] | evaluation["baselines"]).items():
            of = by_split[split]
            interval = f"{of['wilson']['low']:.1%} to {of['wilson']['high']:.1%}"
            table.add_row(name.replace("_", " "), f"{of['accuracy']:.1%}", interval, f"{of['rows']:,}")
        out.print(table)


@app.command()
def demo(
    to: Annotated[str, typer.Option("--out", help="Folder below the project.")] = "runs/demo",
    profile: ProfileOption = "pocket",
    changes: SetOption = None,
) -> None:
    """The whole chain on the embedded landscapes: from polygons to held-out accuracy and a report.

    Example: `landoracle demo` (about ten minutes on two CPU cores; Ctrl-C is safe, the same command goes on)
    """
    from pipeline.demo import run_demo

    with refusals():
        try:
            run_demo(to, profile, changes or [], out)
        except KeyboardInterrupt:
            err.print("stopped; the same command goes on from here")
            raise


if __name__ == "__main__":
    app()
