"""The same run with several seeds: mean and range of its figures, and everybody beside the best by their means.

Runs belong together when their names are equal but for their last number (``mine-1``, ``mine-2``) and their records
(``run.json``) agree in stage, dataset and every setting but the seed. A run compared with the best stands for all of
its seeds: per row, the share of seeds that decided it rightly is taken, so that one lucky seed is no difference. The
test asks whether the difference holds on other blocks, for these seeds; how much seeds matter is the range.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from training.decision_figures import SplitFigures
from training.figures import Interval, block_bootstrap
from training.paired import block_permutation
from training.run import RUN

FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "mcc")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


@dataclass(frozen=True)
class Spread:
    """One figure over several seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in their seed."""

    name: str
    """With ``*`` in the place of the number."""
    runs: tuple[str, ...]
    figures: dict[str, dict[str, Spread]]
    """By split, then by figure."""


@dataclass(frozen=True)
class SeedDifference:
    """Mean accuracy less that of the best, on the same rows."""

    difference: float
    block_bootstrap: Interval | None
    block_permutation_p: float


@dataclass(frozen=True)
class SeedLine:
    """A group of seeds, a single model or a baseline on one split."""

    name: str
    runs: tuple[str, ...]
    """Its seeds; of a single model or a baseline itself alone."""
    accuracy: Spread
    against_best: SeedDifference | None
    """None of the best itself."""


def seed_table(
    groups: Sequence[SeedGroup], tables: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> dict[str, tuple[SeedLine, ...]]:
    """By split, everybody's mean over seeds, the best first.

    Parameters
    ----------
    groups : sequence of SeedGroup
        Whoever is in none stands alone.
    tables : mapping of str to DataFrame
        Predictions of every model and baseline on the same rows: ``split``, ``block`` and ``correct``.
    seed : int
        Of bootstraps and permutations.
    """
    grouped = {name for group in groups for name in group.runs}
    deciders = {group.name: group.runs for group in groups} | {n: (n,) for n in tables if n not in grouped}
    some = next(iter(tables.values()))
    return {
        str(split): _lines(
            {
                name: np.array([tables[run].loc[rows.index, "correct"].to_numpy(dtype=float) for run in runs])
                for name, runs in deciders.items()
            },
            deciders,
            rows["block"].to_numpy(dtype=str),
            seed,
        )
        for split, rows in some.groupby("split", sort=True)
    }


def seed_groups(models: Mapping[str, Path], figures: Mapping[str, dict[str, SplitFigures]]) -> tuple[SeedGroup, ...]:
    """The groups of at least two runs among the models evaluated.

    Parameters
    ----------
    models : mapping of str to Path
        Folders of the runs by their names.
    figures : mapping of str to (mapping of split to SplitFigures)
        Of each of them.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, folder in models.items():
        record = _record(folder)
        if record is not None and _LAST_NUMBER.search(name):
            groups.setdefault((_LAST_NUMBER.sub("*", name), record), []).append(name)
    return tuple(
        SeedGroup(pattern, tuple(names), _spreads([figures[name] for name in names]))
        for (pattern, _), names in groups.items()
        if len(names) > 1
    )


def _lines(
    correct: Mapping[str, np.ndarray], runs: Mapping[str, tuple[str, ...]], block: np.ndarray, seed: int
) -> tuple[SeedLine, ...]:
    """``correct``: (seeds, rows) of each decider."""
    share = {name: of.mean(axis=0) for name, of in correct.items()}
    ranked = sorted(share, key=lambda name: -share[name].mean())
    best = share[ranked[0]]
    return tuple(
        SeedLine(
            name=name,
            runs=tuple(runs[name]),
            accuracy=_spread(correct[name].mean(axis=1)),
            against_best=None
            if name == ranked[0]
            else SeedDifference(
                difference=float((share[name] - best).mean()),
                block_bootstrap=block_bootstrap(share[name] - best, block, seed=seed),
                block_permutation_p=block_permutation(best, share[name], block, seed=seed),
            ),
        )
        for name in ranked
    )


def _record(folder: Path) -> str | None:
    path = folder / RUN
    if not path.is_file():
        return None
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    settings = {key: value for key, value in run["config"].items() if key not in ("seed", "threads", "processes")}
    return json.dumps([run["stage"], run["dataset_sha256"], settings], sort_keys=True)


def _spreads(runs: list[dict[str, SplitFigures]]) -> dict[str, dict[str, Spread]]:
    found: dict[str, dict[str, Spread]] = {}
    for split in runs[0]:
        values = {name: np.array([getattr(run[split], name) for run in runs]) for name in FIGURES}
        found[split] = {name: _spread(v) for name, v in values.items()}
    return found


def _spread(values: np.ndarray) -> Spread:
    return Spread(float(values.mean()), float(values.min()), float(values.max()))
