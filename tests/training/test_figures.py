"""Intervals and figures against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.figures import UNDECIDED, ClassFigures, block_bootstrap, class_figures, confusion, wilson
from training.paired import mcnemar


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(260, 400, 0.602, 0.695), (1625, 2500, 0.631, 0.668), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0)],
)
def test_wilson_against_published_values(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_mirrors(pair: tuple[int, int]) -> None:
    k, n = pair
    interval, mirrored = wilson(k, n), wilson(n - k, n)
    assert 0 <= interval.low <= k / n <= interval.high <= 1
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


def test_blocks_that_stand_or_fall_together_widen_the_interval() -> None:
    correct = np.repeat([True, False, True, True, False, True, False, True, True, False], 40)
    alone = block_bootstrap(correct, np.arange(400))
    together = block_bootstrap(correct, np.repeat(np.arange(10), 40))
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 4 * (alone.high - alone.low)
    assert together.low < 0.6 < together.high


def test_few_blocks_and_equal_ones_say_nothing_of_others() -> None:
    correct = np.array([True, False, True, True, False, False])
    for blocks in ("aaaaaa", "aaabbb", "aabbcd"):
        assert block_bootstrap(correct, np.array(list(blocks))) is None
    assert block_bootstrap(np.array([]), np.array([])) is None
    assert block_bootstrap(correct, np.array(list("aabcde"))) is not None
    assert block_bootstrap(np.ones(6), np.array(list("aabcde"))) is None  # every draw would be 1: no width at all


def test_mcnemar_counts_only_where_one_of_two_is_right() -> None:
    first = np.array([True] * 6 + [False] * 1 + [True] * 50)
    second = np.array([False] * 6 + [True] * 1 + [True] * 50)
    assert mcnemar(first, second) == pytest.approx(2 * (1 + 7) / 2**7)  # exact binomial, 1 of 7 or fewer, two-sided
    assert mcnemar(first, first) == 1.0


def test_class_figures_and_confusion_by_hand() -> None:
    answer = np.array(["oat", "oat", "oat", "habitat", "habitat"])
    decision = np.array(["oat", "oat", "habitat", "habitat", UNDECIDED])
    assert class_figures(answer, decision) == {
        "habitat": ClassFigures(rows=2, recall=0.5, precision=0.5, f1=0.5, recall_wilson=wilson(1, 2)),
        "oat": ClassFigures(rows=3, recall=2 / 3, precision=1.0, f1=0.8, recall_wilson=wilson(2, 3)),
    }
    assert confusion(answer, decision) == {"habitat": {UNDECIDED: 1, "habitat": 1}, "oat": {"habitat": 1, "oat": 2}}
