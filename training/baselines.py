"""Baselines: what can be decided from the prompt's own fields without a language model, on the same rows.

==================  ==================================================================================
``majority``        the most frequent class of the training rows that the landscape allows
``largest_yield``   the crop with the largest central yield; habitat where every yield is 0
``largest_value``   the class with the largest central value at the prices that the prompt states
``decision_tree``   a tree of readable size on every number in the prompt
``gradient_boosting``  boosted trees on the same numbers: what the fields are worth
==================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from prompts.features import feature_table

Baseline = Callable[[pd.DataFrame, pd.DataFrame, int], np.ndarray]
"""(training rows, rows to decide, seed) -> (n,) decisions, one of each row's ``classes``."""

MOST_TRAINING_ROWS = 50_000


def majority(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The most frequent training class among each row's classes; the first by name of equals."""
    counts = train["answer"].value_counts()
    ranked = sorted(counts.index, key=lambda name: (-counts[name], name))
    return np.array([next((c for c in ranked if c in allowed), HABITAT) for allowed in rows["classes"]], dtype=object)


def largest_yield(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The crop with the largest central yield; habitat where every yield is 0."""
    decisions = []
    for allowed, yields in zip(rows["classes"], rows["yields"], strict=True):
        central = np.asarray(yields[0], dtype=float)
        decisions.append(allowed[int(central.argmax())] if central.max() > 0 else HABITAT)
    return np.array(decisions, dtype=object)


def largest_value(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """The class with the largest central yield or connectivity times its stated price; None without prices."""
    if rows["habitat_price"].isna().any():
        return None
    decisions = []
    columns = ["classes", "yields", "connectivity", "effective_price", "habitat_price"]
    for allowed, yields, connectivity, price, habitat in rows[columns].itertuples(index=False):
        crops = np.asarray(yields[0], dtype=float) * np.asarray(price, dtype=float)
        decisions.append(allowed[int(np.argmax([*crops, connectivity[0] * habitat]))])
    return np.array(decisions, dtype=object)


def decision_tree(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """A tree of at most 64 leaves on :func:`prompts.features.feature_table`."""
    from sklearn.tree import DecisionTreeClassifier

    return _fitted(DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=10, random_state=seed), train, rows, seed)


def gradient_boosting(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Boosted trees on :func:`prompts.features.feature_table`."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=200, learning_rate=0.1, early_stopping=True, random_state=seed)
    return _fitted(model, train, rows, seed)


BASELINES: Mapping[str, Callable[..., np.ndarray | None]] = {
    "majority": majority,
    "largest_yield": largest_yield,
    "largest_value": largest_value,
    "decision_tree": decision_tree,
    "gradient_boosting": gradient_boosting,
}


def decide_with_baselines(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> dict[str, np.ndarray]:
    """Every baseline's (n,) decisions on ``rows``, learned from ``train`` alone; without those that do not apply."""
    decided = {name: baseline(train, rows, seed) for name, baseline in BASELINES.items()}
    return {name: decisions for name, decisions in decided.items() if decisions is not None}


def _fitted(model: Any, train: pd.DataFrame, rows: pd.DataFrame, seed: int) -> np.ndarray:
    """Fit, and of each row's classes take the most probable."""
    if len(train) > MOST_TRAINING_ROWS:
        train = train.sample(n=MOST_TRAINING_ROWS, random_state=seed)
    if train["answer"].nunique() < 2:  # nothing to learn
        return majority(train, rows)
    features = feature_table(pd.concat([train, rows], ignore_index=True))
    features = features.loc[:, features.iloc[: len(train)].notna().any()]
    known, asked = features.iloc[: len(train)].to_numpy(), features.iloc[len(train) :].to_numpy()
    model.fit(known, train["answer"].to_numpy(dtype=str))
    names = [str(c) for c in model.classes_]
    allowed = np.array([[name in classes for name in names] for classes in rows["classes"]], dtype=bool)
    likely = np.where(allowed, model.predict_proba(asked), -1.0)
    decisions = np.array(names, dtype=object)[likely.argmax(axis=1)]
    decisions[~allowed.any(axis=1)] = HABITAT
    return decisions
