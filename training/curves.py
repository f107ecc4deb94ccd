"""Curves of a GRPO run: what it earned, what it decided, and what went wrong while it did."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_atomically
from training.run import HELD_OUT, METRICS

PANELS = {
    "reward": ["reward"],
    "reward by part": [],
    "groups with a decision signal": ["decision_signal_frac", "signal/drawn", "signal/uniform"],
    "held-out decisions": [],
    "completion length, tokens": ["completions/mean_length"],
    "entropy, nats per token": ["entropy"],
    "KL to the reference, nats per token": ["kl"],
    "well-formed": ["completions/well_formed"],
    "commonest answer": ["completions/commonest"],
}
SMOOTHED_STEPS = 10


def draw_curves(run: Path, path: Path) -> None:
    """Draw a finished GRPO run's figures by step into a PNG; lines are means of ten steps over the raw points.

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
    figure = Figure(figsize=(12, 9), layout="constrained")
    for axes, (title, names) in zip(figure.subplots(3, 3).flat, PANELS.items(), strict=True):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("step", fontsize=8)
        if title == "held-out decisions" and held_out is not None:
            axes.plot(held_out["step"], held_out["accuracy"], marker="o")
        shown = [n for n in (parts if title == "reward by part" else names) if n in figures]
        for number, name in enumerate(shown):
            known = figures[["step", name]].dropna()
            axes.plot(known["step"], known[name], ".", color=f"C{number}", alpha=0.25, markersize=3)
            mean = known[name].rolling(SMOOTHED_STEPS, min_periods=1).mean()
            axes.plot(
                known["step"], mean, color=f"C{number}", label=name.removeprefix("rewards/").removesuffix("/mean")
            )
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, frameon=False)
    write_atomically(path, lambda beside: figure.savefig(beside, dpi=110))
