"""Baselines: what can be decided from the prompt's own fields without a language model, on the same rows.

======================  ==================================================================================
``majority``            the most frequent class of the training rows that the landscape allows
``barren_habitat``      habitat where every yield is 0, else the most frequent crop that grows
``largest_yield``       the crop with the largest central yield; habitat where every yield is 0
``largest_value``       the class with the largest central value at the prices that the prompt states
``decision_tree``       a tree of readable size on every number in the prompt, and on how far each class lies
                        above the best other one
``gradient_boosting``   boosted trees on the same numbers: what the fields are worth
``neighbour_boosting``  boosted trees on the central numbers and the neighbours of each order taken together
``perceptron``          a small neural network on the central polygon and what is stated of the landscape
``graph_network``       the same, with the listed neighbours as a graph (:mod:`training.graph_network`)
======================  ==================================================================================

The learned ones are the readers of :mod:`training.readers`. Two of them need prompts that show neighbours. Labels do
not spread from neighbour to neighbour here: in a landscape held out as a whole no neighbour has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from training.readers import Learner, boosted_trees, decide_from_graph, decide_from_numbers, tree
from training.summary_features import listed_numbers, numbers_together

Baseline = Callable[[pd.DataFrame, pd.DataFrame, int], np.ndarray]
"""(training rows, rows to decide, seed) -> (n,) decisions, one of each row's ``classes``."""

MOST_TRAINING_ROWS = 50_000


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
    """A tree of at most 64 leaves on :func:`training.summary_features.listed_numbers`."""
    return _learned(tree, listed_numbers, train, rows, seed)


def gradient_boosting(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Boosted trees on :func:`training.summary_features.listed_numbers`."""
    return _learned(boosted_trees, listed_numbers, train, rows, seed)


def neighbour_boosting(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """Boosted trees on the centre's numbers, its margins and the neighbours taken together; None without neighbours."""
    if rows["positions"].map(len).max() == 1:
        return None
    return _learned(boosted_trees, numbers_together, train, rows, seed)


def graph_network(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray | None:
    """GraphSAGE on the listed polygons; None without neighbours, where there is no graph."""
    if rows["positions"].map(len).max() == 1:
        return None
    return decide_from_graph(train, rows, seed)


def perceptron(train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """The graph network's layers on the central polygon alone: what neighbours add is the difference to it."""
    shown = ["positions", "yields", "connectivity"]
    known, asked = (frame.assign(**{column: frame[column].str[:1] for column in shown}) for frame in (train, rows))
    return decide_from_graph(known, asked, seed)


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


def _learned(
    learner: Learner,
    features_of: Callable[[pd.DataFrame], pd.DataFrame],
    train: pd.DataFrame,
    rows: pd.DataFrame,
    seed: int,
) -> np.ndarray:
    """Fit on the training rows and decide the others."""
    if len(train) > MOST_TRAINING_ROWS:
        train = train.sample(n=MOST_TRAINING_ROWS, random_state=seed)
    numbers = features_of(pd.concat([train, rows], ignore_index=True)).to_numpy(dtype=float)
    known, asked = numbers[: len(train)], numbers[len(train) :]
    return decide_from_numbers(learner, known, train["answer"].to_numpy(dtype=str), asked, rows, seed)
