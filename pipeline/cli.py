"""``landoracle``: every stage from the command line, thin over the same functions as the Dagster assets.

Exit codes: 0 done, 1 the input or the result is not good (the reason stands on standard error), 2 wrong usage.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oracle.errors import ConfigurationError, LandoracleError, TrainingError, name_some
from oracle.glm_config import GLMConfig

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

out, err = Console(), Console(stderr=True, highlight=False)

File = Annotated[Path, typer.Argument(help="Polygons: GeoPackage, GeoJSON, Shapefile (or its zip), GeoParquet.")]
RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="YAML that names columns, units, crops and the GLM's settings.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ProfileOption = Annotated[str, typer.Option(help="Training profile: pocket, smollm2, gpu, or a YAML file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting, e.g. grpo.beta=0.01; repeatable.")
]
DatasetArgument = Annotated[Path, typer.Argument(help="Folder that `landoracle prompts` wrote.")]


@contextmanager
def refusals() -> Iterator[None]:
    """End with exit code 1 and one clear message where the input or the result is not good."""
    try:
        yield
    except LandoracleError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error
    except OSError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error


def show(values: dict[str, Any], as_json: bool, title: str) -> None:
    """Print figures as a two-column table, or as JSON."""
    if as_json:
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    table = Table(title=title, show_header=False, title_justify="left", title_style="bold")
    for key, value in values.items():
        table.add_row(key.replace("_", " "), _text(value))
    out.print(table)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{k}: {_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list | tuple):
        return "\n".join(map(_text, value)) or "none"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2e}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@landscape_app.command("check")
def check(file: File, recipe: RecipeOption = None, as_json: JsonOption = False) -> None:
    """Read a file as a landscape and say what was matched, converted, repaired or refused.

    Example: `landoracle landscape check farms.gpkg --recipe farms.yaml`
    """
    from oracle.intake import read_landscape
    from oracle.neighbours import neighbour_graph
    from oracle.recipe import recipe_for

    with refusals():
        landscape, report = read_landscape(file, recipe_for(file, recipe))
        graph = neighbour_graph(landscape)
    values = report.to_dict() | {
        "polygons": len(landscape),
        "area_ha": round(float(landscape.areas_ha.sum()), 1),
        "crops": list(landscape.crops),
        "neighbour_pairs": len(graph.shared[0]),
        "components": int(graph.components.max()) + 1,
        "isolated_polygons": len(graph.isolated),
    }
    show(values, as_json, f"{file.name} is usable")


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
            err.print(f"{remark.what}: {remark.count:,} ({name_some(remark.ids)})", style="dim", markup=False)
        built = neighbour_graph(landscape)
        config = changed(chosen.glm, changes or [])
        with err.status("solving ...") as status:
            solution = solve(landscape, built, config, progress=lambda line: status.update(line))
        save_solution(to, landscape, built, solution)
    show(_plan_figures(solution, to), as_json, f"Plan of {landscape.name}")


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


bench_app = typer.Typer(no_args_is_help=True, help="Measure how long things take on this machine.")
app.add_typer(bench_app, name="bench")


@bench_app.command("oracle")
def bench_oracle(
    polygons: Annotated[int, typer.Option(help="At least so many quarter sections, in whole townships.")] = 10_000,
    gap: Annotated[float, typer.Option(help="Relative gap at which the solve and the peer stop.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="Seed of the landscape.")] = 0,
    peer: Annotated[bool, typer.Option("--peer", help="Time plain PuLP + HiGHS as well.")] = False,
    peer_limit_s: Annotated[float, typer.Option(help="Time limit of the peer, seconds.")] = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Time the oracle on a seeded landscape: the relaxation alone, the solve, and a peer.

    Example: `landoracle bench oracle --polygons 10000 --peer`
    """
    from oracle.benchmark import benchmark_oracle

    with refusals():
        result = benchmark_oracle(
            polygons, gap=gap, seed=seed, peer=peer, peer_limit_s=peer_limit_s, progress=None if as_json else err.print
        )
    if as_json:
        out.print_json(json.dumps(result.to_dict()))
        return
    table = Table("measured", "value", title=f"{result.polygons:,} polygons, {result.pairs:,} neighbour pairs")
    table.add_row("relaxation alone", f"{result.relaxation_s:.1f} s")
    table.add_row("solve, with certificate and regret", f"{result.solve_s:.1f} s ({result.times_relaxation:.1f}x)")
    table.add_row("certified gap", f"{result.gap:.1e} (asked: {result.gap_asked:.0e})")
    table.add_row("labels", f"{result.unique:,} unique, {result.tied:,} tied, {result.undecided:,} undecided")
    if result.peer_s is not None and result.peer_limit_s is not None and result.times_faster is not None:
        limited = "at least " if result.peer_s >= result.peer_limit_s else ""
        found = "no plan" if result.peer_gap is None else f"plan {result.peer_gap:.1e} below the bound"
        table.add_row("plain PuLP + HiGHS", f"{result.peer_s:.1f} s, {found}")
        table.add_row("faster than it", f"{limited}{result.times_faster:.0f}x")
    out.print(table)


if __name__ == "__main__":
    app()
