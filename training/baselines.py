"""Baselines: what can be decided from the prompt's own fields without a language model, on the same rows.

======================  ==================================================================================
``majority``            the most frequent class of the training rows that the landscape allows
``barren_habitat``      habitat where every yield is 0, else the most frequent crop that grows
``largest_yield``       the crop with the largest central yield; habitat where every yield is 0
``largest_value``       the class with the largest central value at the prices that the prompt states
``decision_tree``       a tree of readable size on every number in the prompt
``gradient_boosting``   boosted trees on the same numbers: what the fields are worth
``neighbour_boosting``  boosted trees on the central numbers and the neighbours of each order taken together
``perceptron``          a small neural network on the central polygon and what is stated of the landscape
``graph_network``       the same, with the listed neighbours as a graph (:mod:`training.graph_network`)
======================  ==================================================================================

The learned ones decide for a crop only where its printed yield is above 0, as any reader would. Two of them need
prompts that show neighbours. Labels do not spread from neighbour to neighbour here: in a landscape held out as a whole
no neighbour has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from prompts.features import feature_table
from prompts.neighbourhood import CENTRAL
from training.graph_network import graph_probabilities
from training.summary_features import margin_table, neighbour_table

Baseline = Callable[[pd.DataFrame, pd.DataFrame, int], np.ndarray]
"""(training rows, rows to decide, seed) -> (n,) decisions, one of each row's ``classes``."""

MOST_TRAINING_ROWS = 50_000
FEW = 10
"""Rows of a class: early stopping sets some of each class aside, so where one is rarer boosting runs to its end."""


def majority(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The most frequent training class among each row's classes; the first by name of equals."""
    counts = train["answer"].value_counts()
    ranked = sorted(counts.index, key=lambda name: (-counts[name], name))
    return np.array([next((c for c in ranked if c in allowed), HABITAT) for allowed in rows["classes"]], dtype=object)


def barren_habitat(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Habitat where every central yield is 0, else the most frequent training crop that grows; the first by name."""
    counts = train["answer"].value_counts()
    decisions = []
    for allowed, yields in zip(rows["classes"], rows["yields"], strict=True):
        grows = [crop for crop, tonnes in zip(allowed, yields[0], strict=False) if tonnes > 0]
        decisions.append(min(grows, key=lambda name: (-counts.get(name, 0), name), default=HABITAT))
    return np.array(decisions, dtype=object)


def largest_yield(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The crop with the largest central yield; habitat where every yield is 0."""
    decisions = []
    for allowed, yields in zip(rows["classes"], rows["yields"], strict=True):
        central = np.asarray(yields[0], dtype=float)
        decisions.append(allowed[int(central.argmax())] if central.max() > 0 else HABITAT)
    return np.array(decisions, dtype=object)


def largest_value(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """The class with the largest central yield or connectivity times its stated price, of those that grow there.

    None without prices.
    """
    if rows["habitat_price"].isna().any():
        return None
    decisions = []
    columns = ["classes", "yields", "connectivity", "effective_price", "habitat_price"]
    for allowed, yields, connectivity, price, habitat in rows[columns].itertuples(index=False):
        central = np.asarray(yields[0], dtype=float)
        crops = np.where(central > 0, central * np.asarray(price, dtype=float), -np.inf)
        decisions.append(allowed[int(np.argmax([*crops, connectivity[0] * habitat]))])
    return np.array(decisions, dtype=object)


def decision_tree(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """A tree of at most 64 leaves on :func:`prompts.features.feature_table`."""
    return _fitted(_tree, feature_table, train, rows, seed)


def gradient_boosting(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Boosted trees on :func:`prompts.features.feature_table`."""
    return _fitted(_boosting, feature_table, train, rows, seed)


def neighbour_boosting(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """Boosted trees on the centre's numbers, its margins and the neighbours taken together; None without neighbours."""
    if rows["positions"].map(len).max() == 1:
        return None
    return _fitted(_boosting, _together, train, rows, seed)


def graph_network(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """GraphSAGE on the listed polygons; None without neighbours, where there is no graph."""
    if rows["positions"].map(len).max() == 1:
        return None
    return _graph_decisions(train, rows, seed)


def perceptron(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The graph network's layers on the central polygon alone: what neighbours add is the difference to it."""
    shown = ["positions", "yields", "connectivity"]
    known, asked = (frame.assign(**{column: frame[column].str[:1] for column in shown}) for frame in (train, rows))
    return _graph_decisions(known, asked, seed)


BASELINES: Mapping[str, Callable[..., np.ndarray | None]] = {
    "majority": majority,
    "barren_habitat": barren_habitat,
    "largest_yield": largest_yield,
    "largest_value": largest_value,
    "decision_tree": decision_tree,
    "gradient_boosting": gradient_boosting,
    "neighbour_boosting": neighbour_boosting,
    "perceptron": perceptron,
    "graph_network": graph_network,
}


def decide_with_baselines(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> dict[str, np.ndarray]:
    """Every baseline's (n,) decisions on ``rows``, learned from ``train`` alone; without those that do not apply."""
    decided = {name: baseline(train, rows, seed) for name, baseline in BASELINES.items()}
    return {name: decisions for name, decisions in decided.items() if decisions is not None}


def varies(column: np.ndarray) -> bool:
    """Whether a learner's part of the rows is sure to hold two values: scikit-learn cannot bin a constant."""
    _, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return len(counts) > 1 and bool(counts.sum() - counts.max() >= FEW)


def _graph_decisions(train: pd.DataFrame, rows: pd.DataFrame, seed: int) -> np.ndarray:
    if train["answer"].nunique() < 2:  # nothing to learn
        return majority(train, rows)
    return _most_probable(*graph_probabilities(train, rows, seed), rows)


def _together(frame: pd.DataFrame) -> pd.DataFrame:
    listed = feature_table(frame)
    central = [name for name in map(str, listed) if "." not in name or name.startswith(f"{CENTRAL}.")]
    return pd.concat([listed[central], neighbour_table(frame), margin_table(frame)], axis=1)


def _tree(train: pd.DataFrame, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=10, random_state=seed)


def _boosting(train: pd.DataFrame, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rare = train["answer"].value_counts().min() < FEW
    return HistGradientBoostingClassifier(max_iter=200, learning_rate=0.1, early_stopping=not rare, random_state=seed)


def _fitted(
    model_for: Callable[[pd.DataFrame, int], Any],
    features_of: Callable[[pd.DataFrame], pd.DataFrame],
    train: pd.DataFrame,
    rows: pd.DataFrame,
    seed: int,
) -> np.ndarray:
    """Fit on the training rows and decide the others."""
    if len(train) > MOST_TRAINING_ROWS:
        train = train.sample(n=MOST_TRAINING_ROWS, random_state=seed)
    if train["answer"].nunique() < 2:  # nothing to learn
        return majority(train, rows)
    features = features_of(pd.concat([train, rows], ignore_index=True))
    numbers = features.to_numpy(dtype=float)
    some = np.array([varies(column) for column in numbers[: len(train)].T])
    known, asked = numbers[: len(train), some], numbers[len(train) :, some]
    if not some.any():
        return majority(train, rows)
    model = model_for(train, seed).fit(known, train["answer"].to_numpy(dtype=str))
    return _most_probable([str(c) for c in model.classes_], model.predict_proba(asked), rows)


def _most_probable(names: list[str], probabilities: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """Of the classes that can be there the most probable; habitat where none of them was learned."""
    possible = np.array(
        [
            [name == HABITAT or (name in classes and yields[0][classes.index(name)] > 0) for name in names]
            for classes, yields in zip(rows["classes"], rows["yields"], strict=True)
        ],
        dtype=bool,
    )
    likely = np.where(possible, probabilities, -1.0)
    decisions = np.array(names, dtype=object)[likely.argmax(axis=1)]
    decisions[~possible.any(axis=1)] = HABITAT
    return decisions
