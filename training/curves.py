"""Curves of a GRPO run: what it earned, what it decided, and what went wrong while it did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_atomically
from training.figures import wilson
from training.run import COMPLETIONS, HELD_OUT, METRICS
from training.step_time import PARTS, PREFIX

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = {
    "reward": ["reward"],
    "reward by part": [],
    "groups with a decision signal, share": ["decision_signal_frac", "signal/drawn", "signal/uniform"],
    "held-out decisions, share right": [],
    "completion length, tokens": ["completions/mean_length"],
    "entropy, nats per token": ["entropy"],
    "KL to the reference, nats per token": ["kl"],
    "well-formed, share": ["completions/well_formed"],
    "commonest answer, share": ["completions/commonest"],
    "seconds of a step, by part": [f"{PREFIX}{part}" for part in PARTS],
}
SMOOTHED_STEPS = 10
SHOWN_COMPLETIONS = 8
NOT_SHOWN = ("step", "group", "prompt_id", "text")


def draw_curves(run: Path, path: Path) -> None:
    """Draw a finished GRPO run's figures by step into a PNG; lines are means of ten steps over the raw points.

    The last kept group whose decisions differ stands below as a table, with its rewards and advantages.

    Raises
    ------
    TrainingError
        Where the folder holds no figures of a GRPO run.
    """
    from matplotlib.figure import Figure

    table = run / f"{METRICS}.parquet"
    figures = pd.read_parquet(table) if table.is_file() else pd.DataFrame()
    if "reward" not in figures:
        raise TrainingError(f"{run} holds no figures of a GRPO run; train one with `landoracle train`")
    held_out = pd.read_parquet(run / f"{HELD_OUT}.parquet") if (run / f"{HELD_OUT}.parquet").is_file() else None
    parts = [c for c in map(str, figures) if c.startswith("rewards/") and c.endswith("/mean")]
    figure = Figure(figsize=(12, 12), layout="constrained")
    grid = figure.add_gridspec(4, 3)
    for cell, (title, names) in enumerate(PANELS.items()):
        axes = figure.add_subplot(grid[cell // 3, cell % 3])
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("step", fontsize=8)
        if title.startswith("held-out") and held_out is not None:
            _plot_held_out(axes, held_out)
        shown = [n for n in (parts if title == "reward by part" else names) if n in figures]
        for number, name in enumerate(shown):
            known = figures[["step", name]].dropna()
            axes.plot(known["step"], known[name], ".", color=f"C{number}", alpha=0.25, markersize=3)
            mean = known[name].rolling(SMOOTHED_STEPS, min_periods=1).mean()
            axes.plot(
                known["step"],
                mean,
                color=f"C{number}",
                label=name.removeprefix("rewards/").removeprefix(PREFIX).removesuffix("/mean"),
            )
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, frameon=False)
    kept = pd.read_parquet(run / f"{COMPLETIONS}.parquet") if (run / f"{COMPLETIONS}.parquet").is_file() else None
    if kept is not None and "advantage" in kept:  # earlier runs kept none
        _draw_group(figure.add_subplot(grid[3, 1:]), last_group(kept))
    write_atomically(path, lambda beside: figure.savefig(beside, dpi=110))


def last_group(completions: pd.DataFrame) -> pd.DataFrame:
    """The last kept group in which decisions differ, else the last one: a row for each of its samples."""
    groups = [group for _, group in completions.groupby(["step", "group"])]
    return next((g for g in reversed(groups) if g["decision"].nunique(dropna=False) > 1), groups[-1])


def _plot_held_out(axes: Axes, held_out: pd.DataFrame) -> None:
    """Accuracy on the guard's rows, with Wilson's 95 % interval."""
    share, rows = held_out["accuracy"], held_out["rows"]
    bounds = [wilson(round(s * n), int(n)) for s, n in zip(share, rows, strict=True)]
    below = [s - b.low for s, b in zip(share, bounds, strict=True)]
    above = [b.high - s for s, b in zip(share, bounds, strict=True)]
    axes.errorbar(held_out["step"], share, [below, above], marker="o", capsize=2, elinewidth=0.8)


def _draw_group(axes: Axes, group: pd.DataFrame) -> None:
    first = group.iloc[0]
    axes.set_title(f"samples of {first['prompt_id']}, step {first['step']}", loc="left", fontsize=10)
    axes.axis("off")
    shown = group.drop(columns=[*NOT_SHOWN]).head(SHOWN_COMPLETIONS)
    cells = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
    table = axes.table(
        cells, colLabels=[str(c).replace("_", "\n", 1) for c in shown], loc="upper center", cellLoc="right"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    for (row, _), cell in table.get_celld().items():
        cell.set_linewidth(0.3)
        cell.set_height(0.16 if row == 0 else 0.09)


def _cell(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
