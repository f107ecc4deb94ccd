"""Drawing prompts: where the policy is of two minds, and never only there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from training.uncertainty import DrawSection, Votes, votes_on

BY = DrawSection(by="uncertainty", uniform_share=0.1, sharpness=2, pool=2)


def test_weights_by_hand() -> None:
    """Two prompts a generation, a pool of two: unseen rows weigh 2 together while less than 2 to 4 are known of."""
    votes = Votes(np.array([True, True, True, True, False]), BY, seed=0)
    assert votes.weights(2).tolist() == pytest.approx([2 / 4.25] * 4 + [0.5 / 4.25])
    votes.note(np.array([0, 1, 4]), np.array([0.5, 1.0, 0.25]), group=8)
    mean = (4 + 8 + 2) / 24  # of all votes; it counts as two votes more
    open_, right, wrong = ((4 * p * (1 - p)) ** 2 for p in ((k + 2 * mean) / 10 for k in (4, 8, 2)))
    missing = 4 - (open_ + right + wrong / 4)
    assert votes.weights(2)[[0, 1, 4]].tolist() == pytest.approx([open_, right, wrong / 4])
    assert votes.weights(2)[2:4].tolist() == pytest.approx([min(missing, 2) / 2] * 2)
    votes.note(np.array([0]), np.array([1.0]), group=8)  # (4 / 2 + 8) of (8 / 2 + 8) right
    p = (10 + 2 * 20 / 28) / 14
    assert votes.weights(2)[0] == pytest.approx((4 * p * (1 - p)) ** 2)


def test_most_groups_get_a_signal_where_uniform_drawing_gives_two_in_five() -> None:
    """Chances as of a model after SFT: mostly right, some prompts open. They stay as they are; a policy would learn."""
    random = np.random.default_rng(0)
    n, group = 20_000, 8
    chance = random.beta(0.55, 0.2, n)
    uniform = float(np.mean(1 - chance**group - (1 - chance) ** group))
    votes = Votes(np.ones(n, dtype=bool), DrawSection(by="uncertainty", uniform_share=0.05), seed=0)
    shares = []
    for _ in range(60):
        rows, _by_weight = votes.draw(32)
        right = random.binomial(group, chance[rows])
        votes.note(rows, right / group, group)
        shares.append(float(np.mean((right > 0) & (right < group))))
    assert uniform == pytest.approx(0.42, abs=0.01)
    assert np.mean(shares[20:]) > 0.88


def test_draws_follow_the_weights_and_a_stated_share_does_not() -> None:
    n = 1000
    votes = Votes(np.ones(n, dtype=bool), BY, seed=1)
    share = np.zeros(n)
    share[:100] = 0.5
    votes.note(np.arange(n), share, group=1000)
    counts, uniform = np.zeros(n), 0
    for _ in range(300):
        rows, by_weight = votes.draw(20)
        assert len(set(rows.tolist())) == 20
        assert (rows[by_weight] < 100).mean() > 0.8
        counts[rows] += 1
        uniform += int((~by_weight).sum())
    assert uniform / 6000 == pytest.approx(0.1, abs=0.015)
    assert (counts[100:] > 0).sum() > 300  # rows given up by their votes are still looked at


def test_a_pool_too_small_is_filled_up_and_a_dataset_too_small_repeats() -> None:
    votes = Votes(np.ones(6, dtype=bool), BY, seed=0)
    votes.note(np.arange(6), np.array([0.5, 0, 0, 0, 1, 1]), group=4)
    rows, _by_weight = votes.draw(5)
    assert len(set(rows.tolist())) == 5
    assert len(votes.draw(9)[0]) == 9


def test_kept_votes_draw_the_same_prompts(tmp_path: Path) -> None:
    whole, parts = (Votes(np.ones(50, dtype=bool), BY, seed=3) for _ in range(2))
    for votes in (whole, parts):
        rows, _ = votes.draw(8)
        votes.note(rows, np.linspace(0, 1, 8), group=4)
    parts.save(tmp_path)
    resumed = Votes(np.ones(50, dtype=bool), BY, seed=3)
    resumed.load(tmp_path)
    for _ in range(3):
        assert resumed.draw(8)[0].tolist() == whole.draw(8)[0].tolist()


def test_sure_labels_come_from_the_status() -> None:
    rows = pd.DataFrame({"status": ["unique", "tied", "undecided"]})
    votes = votes_on(rows, BY, 0)
    assert votes is not None
    assert votes.label_sure.tolist() == [True, False, False]
    assert votes_on(rows, DrawSection(), 0) is None
