"""Several evaluated runs side by side on the rows that they have in common, with paired differences.

Runs may have been evaluated apart, on datasets of other variants (without reasoning, with another context): rows are
matched by polygon and split, and have to have the same label and the same right answers (ties may count, or not).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from oracle.errors import TrainingError, name_some
from training.decision_figures import SplitFigures, split_figures
from training.evaluate import EVALUATION, PREDICTIONS, Comparison
from training.model_record import ModelRecord
from training.paired import paired


@dataclass(frozen=True)
class RunFigures:
    """One run on the rows of one split that all runs decided."""

    decisions: SplitFigures
    format_share: float
    mean_tokens: float


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side."""

    models: dict[str, str]
    """The model compared, by run: the last one that its evaluation names."""
    records: dict[str, ModelRecord]
    """What the run of each says about it, by run."""
    left_out: dict[str, dict[str, int]]
    """By split and run, rows that not all runs decided."""
    runs: dict[str, dict[str, RunFigures]]
    """By split, then by run."""
    differences: tuple[Comparison, ...]
    """Of every two runs on every split."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def compare(evaluations: Mapping[str, Path], *, seed: int = 0) -> RunComparison:
    """Compare evaluated runs.

    Parameters
    ----------
    evaluations : mapping of str to Path
        Folders that an evaluation was written into, by the runs' names.
    seed : int
        Of the bootstraps and permutations.

    Raises
    ------
    TrainingError
        Where a folder holds no evaluation of a model, labels of one polygon differ, or no row is common to all.
    """
    if len(evaluations) < 2:
        raise TrainingError("a comparison needs at least two runs: give the folders of both")
    models: dict[str, str] = {}
    records: dict[str, ModelRecord] = {}
    tables: dict[str, pd.DataFrame] = {}
    for name, folder in evaluations.items():
        models[name], records[name], tables[name] = _read(folder)
    common = set.intersection(*(set(t.index) for t in tables.values()))
    if not common:
        raise TrainingError(
            f"{name_some(tables)} decided no row in common: evaluate them on the same landscapes and splits, with the "
            "same evaluation.max_rows and seed"
        )
    first, *others = tables.values()
    order = [key for key in first.index if key in common]
    for other in others:
        if differs := _differing(first["answer"], other["answer"], order):
            raise TrainingError(
                f"the runs were evaluated against other labels of {name_some(differs)}: evaluate them on datasets made "
                "from the same plans"
            )
        if differs := _differing(first["accepted"].map(frozenset), other["accepted"].map(frozenset), order):
            raise TrainingError(
                f"the runs were evaluated by other right answers to {name_some(differs)}: ties count in one dataset "
                "and not in the other; evaluate them on datasets built with the same --labels"
            )
    shared = {name: table.loc[order].reset_index(drop=True) for name, table in tables.items()}
    splits = sorted({split for split, _ in order})
    return RunComparison(
        models=models,
        records=records,
        left_out={
            split: {
                n: sum(s == split for s, _ in t.index) - sum(s == split for s, _ in order) for n, t in tables.items()
            }
            for split in splits
        },
        runs={
            split: {name: _figures(table[table["split"] == split], seed) for name, table in shared.items()}
            for split in splits
        },
        differences=tuple(
            _difference(split, a, b, shared, seed) for split in splits for a, b in combinations(shared, 2)
        ),
    )


def _differing(mine: pd.Series, theirs: pd.Series, order: list[tuple[str, str]]) -> list[str]:
    """Prompt ids of the rows whose values differ."""
    return [key[1] for key, a, b in zip(order, mine.loc[order], theirs.loc[order], strict=True) if a != b]


def _read(folder: Path) -> tuple[str, ModelRecord, pd.DataFrame]:
    missing = [name for name in (EVALUATION, PREDICTIONS) if not (folder / name).is_file()]
    if missing:
        raise TrainingError(f"{folder} lacks {', '.join(missing)}: run `landoracle evaluate RUN DATASET` first")
    evaluation = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
    if not evaluation["models"]:
        raise TrainingError(f"{folder} holds an evaluation of baselines alone: evaluate a run")
    if "records" not in evaluation:
        raise TrainingError(f"{folder} was written by an earlier version: run `landoracle evaluate` again")
    model = list(evaluation["models"])[-1]
    table = pd.read_parquet(folder / PREDICTIONS)
    table = table[table["model"] == model].set_index(["split", "prompt_id"], drop=False)
    return model, ModelRecord(**evaluation["records"][model]), table


def _figures(table: pd.DataFrame, seed: int) -> RunFigures:
    return RunFigures(
        decisions=split_figures(table.drop(columns="completion"), {}, {}, seed=seed),
        format_share=float(table["well_formed"].astype(float).mean()),
        mean_tokens=float(table["tokens"].mean()),
    )


def _difference(split: str, first: str, second: str, tables: Mapping[str, pd.DataFrame], seed: int) -> Comparison:
    a, b = (tables[name][tables[name]["split"] == split] for name in (first, second))
    mine, theirs = (t["correct"].to_numpy(dtype=bool) for t in (a, b))
    test = paired(mine, theirs, a["block"].to_numpy(dtype=str), seed=seed)
    return Comparison(**vars(test), split=split, first=first, second=second)
