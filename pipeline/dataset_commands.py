"""Commands on datasets: how much of the oracle a reader could know, and edits that flip its decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pipeline.terminal import JsonOption, PlanArgument, err, out, refusals, show

if TYPE_CHECKING:
    from prompts.config import PromptConfig
    from prompts.dataset import PromptDataset, Source
    from training.ceiling import Ceiling, Learned

dataset_app = typer.Typer()

COUNTERFACTUALS = "counterfactuals.parquet"


@dataset_app.command("ceiling")
def ceiling_command(
    datasets: Annotated[
        list[Path],
        typer.Argument(
            help="Folder that `landoracle prompts` wrote, best with `--order 2 --context prices`: it contains the "
            "smaller variants. Give a second one with `--context supply`, from the same plans, to compare both."
        ),
    ],
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for ceiling.json and ceiling.png; DATASET by default.")
    ] = None,
    order: Annotated[int | None, typer.Option(min=0, max=2, help="Largest order; that of the dataset.")] = None,
    context: Annotated[str | None, typer.Option(help="Only this context (and none); all that there are.")] = None,
    split: Annotated[
        str | None, typer.Option(help="held_out_landscape (the default, where there is one) or held_out_block.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the learners and of the bootstrap.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """How much of the oracle could a reader of these prompts know? The best learners try.

    Trained on the training rows, measured on the held-out ones, for every variant of order and context; with 95 %
    intervals (Wilson's, and a bootstrap over landscapes or blocks), and the smallest variant as good as the best.

    Example: `landoracle ceiling dataset`
    """
    from prompts.config import Context
    from prompts.dataset import PromptDataset
    from prompts.leaks import SEALED
    from prompts.split import Split
    from training.ceiling import ceiling, save_ceiling

    if split is not None and split not in SEALED:
        raise typer.BadParameter(f"--split must be {' or '.join(SEALED)}, not {split!r}")
    if context is not None and context not in list(Context):
        raise typer.BadParameter(f"--context must be one of {', '.join(Context)}, not {context!r}")
    with refusals():
        loaded = [PromptDataset.load(folder) for folder in datasets]
        with _bar("learning") as move:
            found = ceiling(
                loaded,
                order=order,
                context=None if context is None else Context(context),
                split=None if split is None else Split(split),
                seed=seed,
                progress=lambda what, done, total: move(done, total, what),
            )
        save_ceiling(to or datasets[0], found)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
        return
    _print_ceiling(found)
    out.print(f"written: {to or datasets[0]}/ceiling.json, ceiling.png", soft_wrap=True, highlight=False)


def _print_ceiling(found: Ceiling) -> None:
    title = (
        f"{found.rows:,} rows of {found.split}, learned from {found.training_rows:,} rows of "
        f"{found.landscapes} landscape(s); bootstrap over {found.bootstrapped_over}"
    )
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for heading in ("variant", "numbers", "reader (* best)", "right", "Wilson", "bootstrap", "regret"):
        table.add_column(heading, no_wrap=True)
    for top in found.variants:
        own = [one for one in found.learned if one.variant == top.variant]
        for one in [top.best] + [one for one in own if one is not top.best]:
            best = one is top.best
            name = f"{one.learner.split()[-1]}, {one.fields}"
            if one not in own:
                name = f"as {one.variant.order} {one.variant.context}"
            table.add_row(
                f"{top.variant.order} {top.variant.context}" if best else "",
                f"{top.numbers:.0f}" if best else "",
                f"{'*' if best else ' '}{name}",
                f"{one.accuracy:.1%}",
                *(f"{100 * i.low:.1f}-{100 * i.high:.1f}" for i in (one.wilson, one.bootstrap)),
                f"{one.regret:.4f}",
                style=None if best else "dim",
            )
    out.print(table)
    for what, chosen in (
        ("smallest variant as good as the best", found.recommended),
        ("the same without prices", found.recommended_without_prices),
    ):
        of: Learned = chosen.best
        out.print(
            f"{what}: order {chosen.variant.order}, context {chosen.variant.context} "
            f"({of.accuracy:.1%}, {100 * of.bootstrap.low:.1f} to {100 * of.bootstrap.high:.1f})",
            highlight=False,
        )


@dataset_app.command("counterfactuals")
def counterfactuals_command(
    plan: PlanArgument,
    to: Annotated[Path, typer.Option("--out", help="Folder for counterfactuals.parquet.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Couples of a flip and a non-flip.")] = 50,
    dataset: Annotated[
        Path | None,
        typer.Option(help="Take the prompts' form and every polygon's split from this dataset of the same plan."),
    ] = None,
    order: Annotated[int, typer.Option(min=0, max=2, help="Without a dataset: neighbours shown.")] = 1,
    context: Annotated[str, typer.Option(help="Without a dataset: none, supply or prices.")] = "prices",
    style: Annotated[str, typer.Option(help="Without a dataset: think or answer_only.")] = "think",
    layout: Annotated[str, typer.Option(help="Without a dataset: full or compact.")] = "full",
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Without a dataset: the plan is held out as a whole landscape.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order in which polygons are tried.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """The smallest edits that flip a decision, each beside one of its size that does not; solved again and proven.

    A pair belongs to the split of its original prompt. About one to ten seconds a couple on 576 polygons.

    Example: `landoracle counterfactuals plan --n 50 --out counterfactuals --dataset dataset`
    """
    from oracle.files import write_atomically
    from prompts.counterfactuals import counterfactuals
    from prompts.dataset import PromptDataset
    from prompts.plan_folder import read_plan
    from prompts.split import Role

    with refusals():
        source = read_plan(plan, Role.HELD_OUT if held_out else Role.TRAIN)
        if dataset is not None:
            given = PromptDataset.load(dataset)
            config, split_of = given.manifest.prompts, _splits_in(given, source, dataset)
        else:
            config = _prompt_config(order=order, context=context, style=style, layout=layout)
            split_of = _splits_of(source, config)
        with _bar("couples") as move:
            pairs = counterfactuals(
                source,
                config,
                split_of,
                n,
                seed=seed,
                progress=lambda found, wanted, solved: move(found, wanted, f"{solved:,} landscapes solved"),
            )
        write_atomically(to / COUNTERFACTUALS, lambda p: pairs.to_parquet(p, index=False, compression="zstd"))
    flips = pairs[pairs["kind"] == "flip"] if len(pairs) else pairs
    values: dict[str, Any] = {
        "couples": len(flips),
        "by_field": {} if flips.empty else flips["field"].value_counts().to_dict(),
        "by_split": {} if flips.empty else flips["split"].value_counts().to_dict(),
        "written": str(to / COUNTERFACTUALS),
    }
    show(values, as_json, f"Counterfactuals of {source.landscape.name}")
    if len(flips) < n:
        err.print(f"only {len(flips)} of {n} couples were found: the landscape has no more small, proven flips")


def _prompt_config(**values: object) -> PromptConfig:
    from prompts.config import PromptConfig

    try:
        return PromptConfig.model_validate(values)
    except ValidationError as error:
        raise typer.BadParameter("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors())) from error


def _splits_of(source: Source, config: PromptConfig) -> dict[str, tuple[str, str]]:
    """Split and block of each polygon, as a dataset of this plan with default blocks has them."""
    from prompts.neighbourhood import neighbourhoods
    from prompts.split import SplitConfig, assign_splits

    shown = neighbourhoods(source.landscape, source.graph, source.solution, config)
    splits = assign_splits(source.landscape, source.graph, shown, source.role, SplitConfig())
    return dict(zip(source.landscape.ids.tolist(), zip(splits.split, splits.block, strict=True), strict=True))


def _splits_in(dataset: PromptDataset, source: Source, folder: Path) -> dict[str, tuple[str, str]]:
    from oracle.errors import DatasetError

    name = source.landscape.name
    if source.landscape.sha256 not in {s.landscape_sha256 for s in dataset.manifest.sources if s.landscape == name}:
        raise DatasetError(f"{folder} was not built from this plan of {name!r}: build it anew with this plan")
    rows = dataset.frame[dataset.frame["prompt_id"] == name + ":" + dataset.frame["polygon_id"]]
    return dict(zip(rows["polygon_id"], zip(rows["split"], rows["block"], strict=True), strict=True))


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on standard error, moved by (done, total, words)."""
    words = TextColumn("{task.fields[words]}")
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), words)
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("", total=None, words="")
        yield lambda done, total, words: progress.update(task, completed=done, total=total, words=words)
