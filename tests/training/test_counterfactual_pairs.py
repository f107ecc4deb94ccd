"""Counterfactual pairs, counted by hand."""

import pytest

from training.counterfactual_pairs import pair_figures


def test_a_decision_follows_where_it_flips_with_the_label_and_stays_with_it() -> None:
    labels, edited = ["wheat", "wheat", "oat", "oat", "oat"], ["oat", "wheat", "habitat", "oat", "wheat"]
    #            flips, right; stays, wrong both times; label flips alone; decision flips alone; undecided
    decisions = ["wheat", "oat", "oat", "oat", "oat"]
    after_edit = ["oat", "oat", "oat", "wheat", None]
    figures = pair_figures(labels, edited, decisions, after_edit, ["wheat", "wheat", "oat", "oat", "oat"])
    assert (figures.pairs, figures.flips, figures.follows) == (5, 3, 2)
    assert (figures.flipped_at_flips, figures.stayed_at_others, figures.both_right) == (1, 1, 1)
    assert figures.original_accuracy == 0.8
    assert figures.original_change == pytest.approx(-0.2)
    assert figures.follows_share.low < 0.4 < figures.follows_share.high


def test_a_constant_decision_follows_only_where_nothing_flips() -> None:
    figures = pair_figures(["wheat", "oat"], ["oat", "oat"], ["oat", "oat"], ["oat", "oat"])
    assert (figures.flipped_at_flips, figures.stayed_at_others) == (0, 1)
    assert figures.original_change is None


def test_undecided_twice_is_not_staying() -> None:
    assert pair_figures(["oat"], ["oat"], [None], [None]).follows == 0
