"""Baselines on rows whose right decisions are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from training.baselines import (
    BASELINES,
    barren_habitat,
    decide_with_baselines,
    gradient_boosting,
    graph_network,
    largest_value,
    largest_yield,
    majority,
    neighbour_boosting,
    perceptron,
)
from training.graph_network import graph_probabilities, ties

OF_NEIGHBOURS = {"neighbour_boosting", "graph_network"}


@pytest.fixture(scope="module")
def split(make_frame: Callable[..., pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = make_frame(landscapes=40, rows=60, held_out=4)
    return frame[frame["split"] == "train"], frame[frame["split"] == "held_out_landscape"].reset_index(drop=True)


def _accuracy(decisions: np.ndarray | None, rows: pd.DataFrame) -> float:
    return float(np.mean(decisions == rows["answer"].to_numpy(dtype=object)))


def test_the_largest_value_is_what_these_labels_are(split: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    train, rows = split
    assert _accuracy(largest_value(train, rows), rows) == 1.0


def test_boosting_learns_from_the_fields_what_the_yield_alone_does_not_say(
    split: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    train, rows = split
    boosted = _accuracy(gradient_boosting(train, rows), rows)
    assert boosted > 0.85
    assert boosted > _accuracy(largest_yield(train, rows), rows) + 0.2


def test_majority_and_yield_by_hand() -> None:
    train = pd.DataFrame({"answer": ["oat", "oat", "habitat", "corn", "corn"]})
    rows = pd.DataFrame(
        {
            "classes": [["oat", "corn", "habitat"], ["barley", "habitat"], ["oat", "habitat"]],
            "yields": [[[3.0, 2.0], [9.0, 9.0]], [[0.0], [4.0]], [[1.5], [0.0]]],
        }
    )
    assert majority(train, rows).tolist() == ["corn", "habitat", "oat"]  # corn before oat: equals go by name
    assert largest_yield(train, rows).tolist() == ["oat", "habitat", "oat"]


def test_where_nothing_grows_nor_is_connected_the_largest_value_is_habitat() -> None:
    """Every class is worth 0 there, and no crop can be there: its regret would be infinite."""
    rows = pd.DataFrame(
        {
            "classes": [["oat", "corn", "habitat"]] * 2,
            "yields": [[[0.0, 0.0]], [[0.0, 1.0]]],
            "connectivity": [[0.0], [0.0]],
            "effective_price": [[200.0, 150.0]] * 2,
            "habitat_price": [900.0, 900.0],
        }
    )
    decided = largest_value(rows, rows)
    assert decided is not None
    assert decided.tolist() == ["habitat", "corn"]


def test_no_baseline_decides_for_what_the_landscape_does_not_grow(split: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    train, rows = split
    fewer = rows.head(30).assign(
        classes=[["oat", "habitat"]] * 30,
        yields=[[[y[0][1]]] for y in rows["yields"].head(30)],
        effective_price=[[p[1]] for p in rows["effective_price"].head(30)],
    )
    decided = decide_with_baselines(train, fewer)
    assert set(decided) == set(BASELINES) - OF_NEIGHBOURS  # these prompts show none
    for decisions in decided.values():
        assert set(decisions) <= {"oat", "habitat"}


def test_without_prices_there_is_no_largest_value(split: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    train, rows = split
    bare = {"effective_price": None, "habitat_price": np.nan}
    decided = decide_with_baselines(train.assign(**bare), rows.assign(**bare))
    assert set(decided) == set(BASELINES) - OF_NEIGHBOURS - {"largest_value"}
    assert _accuracy(decided["gradient_boosting"], rows) < 0.95


def test_barren_land_goes_to_habitat_by_hand() -> None:
    train = pd.DataFrame({"answer": ["oat", "oat", "habitat", "habitat", "habitat", "corn"]})
    rows = pd.DataFrame(
        {
            "classes": [["oat", "corn", "habitat"], ["oat", "corn", "habitat"], ["barley", "habitat"]],
            "yields": [[[0.0, 2.0]], [[0.0, 0.0]], [[0.4]]],
        }
    )
    assert barren_habitat(train, rows).tolist() == ["corn", "habitat", "barley"]


def test_boosting_takes_a_class_with_a_single_training_row(split: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    train, rows = split
    few = train[train["answer"] != "soy"].head(300)
    with_one = pd.concat([few, train[train["answer"] == "soy"].head(1)], ignore_index=True)
    assert _accuracy(gradient_boosting(with_one, rows), rows) > 0.5


def test_learners_grow_nothing_where_the_prompt_prints_no_yield(split: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    train, rows = split
    bare = rows.head(20).assign(yields=[[[0.0, 0.0, 0.0, 0.0]]] * 20)
    assert set(gradient_boosting(train, bare)) == {"habitat"}


@pytest.fixture(scope="module")
def outvoted(make_frame: Callable[..., pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The label is habitat where most neighbours are better connected than the centre, whichever they are."""
    frame = make_frame(landscapes=6, rows=200)
    random = np.random.default_rng(1)
    around = random.random((len(frame), 8)).round(2)
    codes = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
    own = frame["connectivity"].str[0].to_numpy(dtype=float)
    frame = frame.assign(
        positions=[["central", *codes]] * len(frame),
        yields=[[y[0]] * 9 for y in frame["yields"]],
        connectivity=[[e, *row.tolist()] for e, row in zip(own, around, strict=True)],
        answer=np.where((around > own[:, None]).mean(axis=1) > 0.5, "habitat", "oat"),
    )
    frame = frame[[y[0][1] > 0 for y in frame["yields"]]]
    return frame[frame["split"] == "train"], frame[frame["split"] == "held_out_landscape"].reset_index(drop=True)


def test_neighbours_taken_together_tell_what_a_single_slot_does_not(
    outvoted: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    train, rows = outvoted
    aware = neighbour_boosting(train, rows)
    assert _accuracy(aware, rows) > 0.97
    assert _accuracy(aware, rows) > _accuracy(gradient_boosting(train, rows), rows)


def test_a_graph_network_reads_neighbours_that_nobody_summed_up_for_it(
    outvoted: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.graph_network.STEPS", 100)
    train, rows = outvoted
    centre = [f.assign(**{c: f[c].str[:1] for c in ("positions", "yields", "connectivity")}) for f in outvoted]
    assert graph_network(*centre) is None  # without neighbours there is no graph
    aware = graph_network(train, rows)
    assert _accuracy(aware, rows) > _accuracy(gradient_boosting(*centre), rows) + 0.1
    assert _accuracy(aware, rows) > _accuracy(perceptron(train, rows), rows) + 0.1
    assert _accuracy(aware, rows) > 0.85


def test_a_graph_ties_whom_the_prompt_says_to_be_neighbours() -> None:
    """N2 is a second neighbour in the north; the one south of the east is beyond no listed neighbour but E."""
    positions = ("central", "N", "N2", "E", "N-NE", "E-S2", "W-W")
    tied = {tuple(sorted(pair)) for pair in ties(positions).T.tolist()}
    assert tied == {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (0, 6)}
    assert ties(positions).shape == (2, 2 * len(tied))  # both ways
    assert ties(("central",)).shape == (2, 0)


def test_a_graph_network_is_the_same_for_a_seed_and_takes_landscapes_of_other_crops(
    outvoted: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.graph_network.STEPS", 30)
    train, rows = outvoted
    fewer = rows.head(30).assign(
        classes=[["oat", "rye", "habitat"]] * 30,
        yields=[[[y[1], 1.0] for y in listed] for listed in rows["yields"].head(30)],
        effective_price=[[p[1], 99.0] for p in rows["effective_price"].head(30)],
    )
    both = pd.concat([rows, fewer], ignore_index=True)
    names, first = graph_probabilities(train, both, seed=3)
    assert np.array_equal(first, graph_probabilities(train, both, seed=3)[1])
    monkeypatch.setattr("training.graph_network.AT_ONCE", 50)  # in parts
    assert graph_probabilities(train, both, seed=3)[1] == pytest.approx(first, abs=1e-4)
    assert not np.array_equal(first, graph_probabilities(train, both, seed=4)[1])
    assert names == ["habitat", "oat"]
    assert first.sum(axis=1) == pytest.approx(1)
    assert set(graph_network(train, fewer)) <= {"oat", "habitat"}  # of rye nobody learned anything
