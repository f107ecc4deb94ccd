"""Commands on finished runs: evaluate them on held-out polygons, and compare evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from oracle.errors import TrainingError
from pipeline.terminal import DatasetArgument, JsonOption, SetOption, err, out, refusals

evaluation_app = typer.Typer()

COUNTERFACTUALS = "counterfactuals.parquet"


@evaluation_app.command()
def evaluate(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Folders that `landoracle train` wrote, or models; NAME=FOLDER gives one a name. Runs whose names "
            "differ in their last number alone are also reported as mean and range. A run that was trained to answer "
            "without thinking is asked for the answer alone.",
        ),
    ],
    dataset: DatasetArgument,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for the figures; RUN/evaluation for a single run.")
    ] = None,
    plans: Annotated[
        list[Path] | None,
        typer.Option(
            help="A plan of a held-out landscape, or a folder of plans; repeatable. Every polygon is decided, and the "
            "plan priced beside the optimum."
        ),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Folder that `landoracle counterfactuals` wrote: do decisions flip with it?")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Training profile, or a YAML file; by default the run's own settings.")
    ] = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy on held-out polygons, with intervals, beside baselines on the same rows, and a report as one page.

    Completions are kept: an interrupted evaluation goes on where it was.

    Example: `landoracle evaluate runs/mine dataset --plans plans`

    With controls: `landoracle evaluate grpo-1=runs/mine-1/grpo grpo-2=runs/mine-2/grpo bare-1=runs/bare-1/sft
    bare-2=runs/bare-2/sft base=runs/base dataset --out compared`
    """
    from pipeline.report import write_run_report
    from pipeline.runs import models_of, named, own_profile
    from training.evaluate import EVALUATION
    from training.launch import evaluation_command, run_command

    with refusals():
        models = models_of(runs)
        if to is None and len(runs) > 1:
            raise TrainingError("several runs are evaluated together: say with --out where to")
        folder = to or named(runs[0])[1] / "evaluation"
        run_command(
            evaluation_command(
                dataset,
                profile or own_profile(models, folder),
                folder,
                models,
                plans=plans or [],
                pairs=pairs / COUNTERFACTUALS if pairs else None,
                overrides=changes or [],
            )
        )
        write_run_report(folder, dataset, models, plans or [], folder)
        evaluation = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
    if as_json:
        typer.echo(json.dumps(evaluation, indent=2))
        return
    _say(evaluation)
    err.print(f"written: {folder / 'report.html'} (report.json, {EVALUATION} and the predictions lie beside it)")


@evaluation_app.command()
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...", help="Runs that `landoracle evaluate` has evaluated, or its --out; or NAME=FOLDER."
        ),
    ],
    to: Annotated[Path | None, typer.Option("--out", help="Also write the figures to this JSON file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstraps and permutations.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Evaluated runs side by side on the rows that all of them decided, with paired differences.

    Example: `landoracle compare runs/mine runs/answer-only --out compared.json`
    """
    from oracle.files import write_json
    from pipeline.runs import named
    from training.compare import compare as compared
    from training.evaluate import EVALUATION

    with refusals():
        evaluations: dict[str, Path] = {}
        for text in runs:
            name, folder = named(text)
            if name in evaluations:
                raise TrainingError(f"two runs are called {name}: give them names, NAME=FOLDER")
            evaluations[name] = folder if (folder / EVALUATION).is_file() else folder / "evaluation"
        found = compared(evaluations, seed=seed).to_dict()
        if to is not None:
            write_json(to, found)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    out.print("; ".join(f"{name}: {model}" for name, model in found["models"].items()))
    _say_stopped(found["records"])
    for split, by_run in found["runs"].items():
        table = _table("run", "right", "95 % rows", "95 % blocks", "MCC", "format", "tokens", "rows", title=split)
        for name, run in by_run.items():
            of = run["decisions"]
            written = (f"{run['format_share']:.1%}", f"{run['mean_tokens']:.0f}", f"{of['rows']:,}")
            table.add_row(name, f"{of['accuracy']:.1%}", *_intervals(of), f"{of['mcc']:.3f}", *written)
        out.print(table)
        for name, rows in found["left_out"][split].items():
            if rows:
                out.print(f"{name}: {rows:,} further rows that not all runs decided are left out", style="yellow")
        table = _table(
            "second less first", "points", "95 % blocks", "p rows", "p blocks", title=f"differences, {split}"
        )
        for one in found["differences"]:
            if one["split"] == split:
                table.add_row(
                    f"{one['second']} - {one['first']}",
                    f"{100 * one['difference']:+.1f}",
                    _points(one["block_bootstrap"]),
                    f"{one['mcnemar_p']:.3g}",
                    f"{one['block_permutation_p']:.3g}",
                )
        out.print(table)


# Shares of rows decided rightly, and of the regret that worst decisions would cost, kept.
COLUMNS = ("decides", "right", "95 % rows", "95 % blocks", "balanced", "MCC", "kept", "rows")


def _table(*columns: str, title: str) -> Table:
    """Narrow enough for a terminal of 80 columns."""
    return Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


NOT_TOLD = "-"
"""In the place of an interval over blocks: there are too few, or all are alike."""


def _intervals(of: dict[str, Any]) -> list[str]:
    bounds = [of[key] for key in ("wilson", "block_bootstrap")]
    return [f"{100 * b['low']:.1f}-{100 * b['high']:.1f}" if b else NOT_TOLD for b in bounds]


def _points(bounds: dict[str, float] | None) -> str:
    return f"{100 * bounds['low']:+.1f} to {100 * bounds['high']:+.1f}" if bounds else NOT_TOLD


def _say(evaluation: dict[str, Any]) -> None:
    deciders = evaluation["models"] | evaluation["baselines"]
    for split in evaluation["best"]:
        table = _table(*COLUMNS, title=split)
        for name, by_split in sorted(deciders.items(), key=lambda item: -item[1][split]["accuracy"]):
            of = by_split[split]
            shares = (f"{of['balanced_accuracy']:.3f}", f"{of['mcc']:.3f}", f"{of['regret']['kept_share']:.1%}")
            words = name.replace("_", " ")
            table.add_row(words, f"{of['accuracy']:.1%}", *_intervals(of), *shares, f"{of['rows']:,}")
        out.print(table)
    for landscape in evaluation["plan_landscapes"]:
        table = _table(
            "decides", "of the optimum", "floors missed", "repaired", "changed", title=f"plan of {landscape}"
        )
        for one in evaluation["plans"]:
            if one["landscape"] == landscape:
                repaired = one["repaired"]
                table.add_row(
                    one["decider"].replace("_", " "),
                    _percent(one["share"]),
                    ", ".join(missed["crop"] for missed in one["missed"]) or "none",
                    _percent(repaired["share"]) if repaired else "none found",
                    f"{repaired['changed']:,}" if repaired else "",
                )
        out.print(table)
    for split, lines in evaluation["over_seeds"].items():
        table = _table(
            "over seeds", "right", "range", "less the best, points", "95 % blocks", "p blocks", "seeds", title=split
        )
        for line in lines:
            of, test, seeds = line["accuracy"], line["against_best"], len(line["runs"])
            spread = f"{100 * of['low']:.1f}-{100 * of['high']:.1f}" if seeds > 1 else ""
            beside = ["", "", ""]
            if test:
                between = _points(test["block_bootstrap"])
                beside = [f"{100 * test['difference']:+.1f}", between, f"{test['block_permutation_p']:.3g}"]
            table.add_row(line["name"].replace("_", " "), f"{of['mean']:.1%}", spread, *beside, str(seeds))
        out.print(table)
    _say_stopped(evaluation["records"])


def _say_stopped(records: dict[str, Any]) -> None:
    for name, record in records.items():
        if record["stopped"]:
            out.print(f"{name} was {record['stopped']}", style="yellow")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
