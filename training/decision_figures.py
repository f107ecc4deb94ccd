"""Figures of one decider on one split, each kept apart from the others: decisions, what they cost, and the writing.

A decision is right when it is one of the row's ``accepted`` classes. Where it is another than ``answer``, it counts as
the answer in recall, F1, MCC and the confusion table, so that these agree with the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import matthews_corrcoef

from oracle.regret import Status
from training.decision_regret import RegretFigures, regret_figures
from training.figures import (
    FEWEST_BLOCKS,
    UNDECIDED,
    ClassFigures,
    Interval,
    block_bootstrap,
    class_figures,
    confusion,
    drawn_blocks,
    percentiles,
    wilson,
)

DRAWS = 1000


@dataclass(frozen=True)
class TextFigures:
    """What only a model that writes has."""

    format_share: float
    format_wilson: Interval
    mean_rewards: dict[str, float]
    """By name, unweighted."""
    mean_reward: float
    """Weighted sum, as GRPO sees it."""
    mean_tokens: float
    finished_share: float
    block_bootstrap: dict[str, Interval]
    """Of ``format_share``, ``mean_reward``, ``mean_tokens`` and each reward; empty of too few blocks."""


@dataclass(frozen=True)
class SplitFigures:
    """Decisions of one model or baseline on one split, or on the rows of it with a proven single optimum."""

    rows: int
    blocks: int
    """Spatial blocks that the rows lie in; of less than ``FEWEST_BLOCKS`` nothing is bootstrapped."""
    accuracy: float
    wilson: Interval
    block_bootstrap: Interval | None
    """Of the accuracy."""
    balanced_accuracy: float
    macro_f1: float
    mcc: float
    """Matthews' correlation of answers and decisions (scikit-learn); 0 where there is a single class."""
    bootstrap: dict[str, Interval]
    """Over blocks, of ``balanced_accuracy``, ``macro_f1`` and ``mcc``; empty of too few blocks."""
    undecided_share: float
    classes: dict[str, ClassFigures]
    recall_bootstrap: dict[str, Interval]
    """Over blocks, of the classes that are the answer in enough blocks."""
    confusion: dict[str, dict[str, int]]
    regret: RegretFigures
    text: TextFigures | None
    unique: SplitFigures | None
    """The same on rows whose label is the only optimum; None of these rows themselves, and where there are none."""


def split_figures(
    table: pd.DataFrame,
    rewards: Mapping[str, float],
    optimum: dict[str, tuple[float, int]],
    *,
    seed: int = 0,
) -> SplitFigures:
    """Figures of one decider's rows of one split.

    Parameters
    ----------
    table : DataFrame
        n rows of ``predictions.parquet``.
    rewards : mapping of str to float
        Weight of each reward.
    optimum : dict of landscape to (objective, polygons)
        For the share of the optimum.
    seed : int
        Of the bootstraps.
    """
    certain = table[table["status"] == Status.UNIQUE.value]
    unique = _figures(certain, rewards, optimum, seed, None) if len(certain) else None
    return _figures(table, rewards, optimum, seed, unique)


def _figures(
    table: pd.DataFrame,
    rewards: Mapping[str, float],
    optimum: dict[str, tuple[float, int]],
    seed: int,
    unique: SplitFigures | None,
) -> SplitFigures:
    correct = table["correct"].to_numpy(dtype=bool)
    decision = table["decision"].fillna(UNDECIDED).to_numpy(dtype=str)
    answer = np.where(correct, decision, table["answer"].to_numpy(dtype=str))
    block = table["block"].to_numpy(dtype=str)
    classes = class_figures(answer, decision)
    drawn = _drawn_confusions(answer, decision, block, seed)
    enough = len(drawn.answers_in) >= FEWEST_BLOCKS
    return SplitFigures(
        rows=len(table),
        blocks=len(drawn.answers_in),
        accuracy=float(correct.mean()),
        wilson=wilson(int(correct.sum()), len(table)),
        block_bootstrap=block_bootstrap(correct, block, seed=seed),
        balanced_accuracy=float(np.mean([c.recall for c in classes.values()])),
        macro_f1=float(np.mean([c.f1 for c in classes.values()])),
        mcc=float(matthews_corrcoef(answer, decision)) if len({*answer, *decision}) > 1 else 0.0,
        bootstrap={n: percentiles(values) for n, values in drawn.overall.items() if enough},
        undecided_share=float(np.mean(decision == UNDECIDED)),
        classes=classes,
        recall_bootstrap={
            name: percentiles(recall[~np.isnan(recall)])
            for name, recall, there in zip(drawn.names, drawn.recall.T, drawn.answers_in.T, strict=True)
            if there.sum() >= FEWEST_BLOCKS
        },
        confusion=confusion(answer, decision),
        regret=regret_figures(table, optimum, seed=seed),
        text=_text_figures(table, rewards, block, seed) if "completion" in table else None,
        unique=unique,
    )


def _text_figures(table: pd.DataFrame, rewards: Mapping[str, float], block: np.ndarray, seed: int) -> TextFigures:
    columns = {name: table[name].to_numpy(dtype=float) for name in rewards}
    columns["mean_reward"] = np.sum([weight * columns[name] for name, weight in rewards.items()], axis=0)
    columns["format_share"] = table["well_formed"].to_numpy(dtype=float)
    columns["mean_tokens"] = table["tokens"].to_numpy(dtype=float)
    return TextFigures(
        format_share=float(columns["format_share"].mean()),
        format_wilson=wilson(int(columns["format_share"].sum()), len(table)),
        mean_rewards={name: float(columns[name].mean()) for name in rewards},
        mean_reward=float(columns["mean_reward"].mean()),
        mean_tokens=float(columns["mean_tokens"].mean()),
        finished_share=float(table["finished"].astype(float).mean()),
        block_bootstrap={
            name: interval
            for name, values in columns.items()
            if (interval := block_bootstrap(values, block, seed=seed)) is not None
        },
    )


@dataclass(frozen=True)
class _Drawn:
    names: list[str]
    answers_in: np.ndarray
    """(blocks, C) bool: the class is the answer of a row of the block."""
    recall: np.ndarray
    """(draws, C), NaN where a draw has no row of a class."""
    overall: dict[str, np.ndarray]
    """(draws,) each."""


def _drawn_confusions(answer: np.ndarray, decision: np.ndarray, block: np.ndarray, seed: int) -> _Drawn:
    """Recall, balanced accuracy, macro-F1 and MCC of confusion tables whose blocks are drawn with replacement."""
    names = sorted(set(answer.tolist()) | set(decision.tolist()))
    blocks, of = np.unique(block, return_inverse=True)
    gold, said = (np.searchsorted(names, values) for values in (answer, decision))
    tables = np.zeros((len(blocks), len(names), len(names)))
    np.add.at(tables, (of, gold, said), 1.0)
    drawn = np.tensordot(drawn_blocks(len(blocks), DRAWS, seed), tables, axes=1)
    right = np.einsum("dcc->dc", drawn)
    answers, decisions = drawn.sum(axis=2), drawn.sum(axis=1)
    there = answers > 0
    recall = np.divide(right, answers, out=np.full_like(right, np.nan), where=there)
    f1 = np.divide(2 * right, answers + decisions, out=np.full_like(right, np.nan), where=there)
    overall = {
        "balanced_accuracy": np.nanmean(recall, axis=1),
        "macro_f1": np.nanmean(f1, axis=1),
        "mcc": _mcc(right, answers, decisions),
    }
    return _Drawn(names, tables.sum(axis=2) > 0, recall, overall)


def _mcc(right: np.ndarray, answers: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """(draws,) Gorodkin's (2004) correlation of K classes; 0 where one side names a single class."""
    rows = answers.sum(axis=1)
    together = right.sum(axis=1) * rows - (answers * decisions).sum(axis=1)
    apart = (rows**2 - (answers**2).sum(axis=1)) * (rows**2 - (decisions**2).sum(axis=1))
    return np.divide(together, np.sqrt(apart), out=np.zeros_like(together), where=apart > 0)
