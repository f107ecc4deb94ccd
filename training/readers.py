"""Readers: learners that decide polygons from the numbers that a prompt prints, for the baselines and the ceiling.

None decides for a crop whose printed yield is 0, as no reader would. Where there is nothing to learn (one class, or
numbers that hardly vary), the most frequent class of the training rows is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from training.graph_network import graph_probabilities

FEW = 10
"""Rows of a class: early stopping sets some of each class aside, so where one is rarer boosting runs to its end."""

Learner = Callable[[np.ndarray, int], Any]
"""(answers, seed) -> a classifier of scikit-learn to fit on them."""


def tree(answers: np.ndarray, seed: int) -> Any:
    """A decision tree of a size that a person could read: at most 64 leaves."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=10, random_state=seed)


def boosted_trees(answers: np.ndarray, seed: int) -> Any:
    """Gradient boosting with histograms, stopped early where every class has rows enough."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rare = np.unique(answers, return_counts=True)[1].min() < FEW
    return HistGradientBoostingClassifier(max_iter=200, learning_rate=0.1, early_stopping=not rare, random_state=seed)


def decide_from_numbers(
    learner: Learner, known: np.ndarray, answers: np.ndarray, asked: np.ndarray, rows: pd.DataFrame, seed: int
) -> np.ndarray:
    """(n,) decisions of a learner.

    Parameters
    ----------
    learner : Learner
        :func:`tree` or :func:`boosted_trees`.
    known, asked : ndarray of float
        (m, F) numbers of the training rows and (n, F) of the rows to decide; NaN where a prompt states none.
    answers : ndarray of str
        (m,) labels of the training rows.
    rows : DataFrame
        The n rows to decide: ``classes`` and ``yields``.
    seed : int
        Of the learner.
    """
    names, counts = np.unique(answers, return_counts=True)
    some = np.array([_varies(column) for column in known.T], dtype=bool)
    if len(names) == 1 or not some.any():
        return most_probable(names.tolist(), np.tile(counts.astype(float), (len(rows), 1)), rows)
    model = learner(answers, seed).fit(known[:, some], answers)
    return most_probable([str(c) for c in model.classes_], model.predict_proba(asked[:, some]), rows)


def decide_from_graph(train: pd.DataFrame, rows: pd.DataFrame, seed: int, *, progress: bool = True) -> np.ndarray:
    """(n,) decisions of :mod:`training.graph_network` on ``rows``; of a perceptron where they list no neighbours."""
    names = train["answer"].unique().tolist()
    if len(names) == 1:
        return most_probable(names, np.ones((len(rows), 1)), rows)
    return most_probable(*graph_probabilities(train, rows, seed, progress=progress), rows)


def most_probable(names: list[str], probabilities: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """(n,) of the C classes ``names`` that can be there the most probable; habitat where none of them can.

    Parameters
    ----------
    names : list of str
        The C classes learned.
    probabilities : ndarray
        (n, C).
    rows : DataFrame
        ``classes`` and ``yields`` of the n rows.
    """
    possible = np.array(
        [
            [name == HABITAT or (name in classes and yields[0][classes.index(name)] > 0) for name in names]
            for classes, yields in zip(rows["classes"], rows["yields"], strict=True)
        ],
        dtype=bool,
    ).reshape(len(rows), len(names))
    likely = np.where(possible, probabilities, -1.0)
    decisions = np.array(names, dtype=object)[likely.argmax(axis=1)]
    decisions[~possible.any(axis=1)] = HABITAT
    return decisions


def _varies(column: np.ndarray) -> bool:
    """Whether a learner's part of the rows is sure to hold two values: scikit-learn cannot bin a constant."""
    _, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return len(counts) > 1 and bool(counts.sum() - counts.max() >= FEW)
