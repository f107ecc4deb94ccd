"""The cut against every habitat set; its split of the gains against weak duality."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracle.min_cut import habitat_cut


def worth(habitat: np.ndarray, s: np.ndarray, i: np.ndarray, j: np.ndarray, q: np.ndarray) -> float:
    return float(s[habitat].sum() + q[habitat[i] & habitat[j]].sum())


@pytest.mark.parametrize("seed", range(60))
def test_the_set_is_the_best_of_all_sets_and_the_split_proves_it(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    every = np.array(list(itertools.combinations(range(n), 2)))
    i, j = every[rng.random(len(every)) < 0.5].T
    s, q = rng.normal(-0.4, 0.5, n).round(1 + seed % 3), rng.uniform(0, 0.6, len(i)).round(1 + seed % 3)
    s[rng.random(n) < 0.1] = -np.inf
    s[rng.random(n) < 0.05] = np.inf
    found = habitat_cut(s, i, j, q)

    finite = np.where(np.isfinite(s), s, np.sign(s) * 1e3)
    sets = (np.array(chosen) for chosen in itertools.product([False, True], repeat=n))
    best = max(worth(chosen, finite, i, j, q) for chosen in sets)
    assert worth(found.habitat, finite, i, j, q) == pytest.approx(best, abs=1e-7)
    assert ((found.credit >= 0) & (found.credit <= q)).all()
    surplus = finite + np.bincount(i, found.credit, n) + np.bincount(j, q - found.credit, n)
    assert np.maximum(surplus, 0.0).sum() == pytest.approx(best, abs=1e-7)


def test_a_patch_that_only_pays_together_is_taken_together():
    """Four in a ring, each 1.5 short of the best crop alone, with gains of 2 between neighbours: together 4 * 0.5."""
    i, j = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    together = habitat_cut(np.full(4, -1.5), i, j, np.full(4, 2.0))
    assert together.habitat.all()
    assert together.cut == 4
    apart = habitat_cut(np.full(4, -2.5), i, j, np.full(4, 2.0))
    assert not apart.habitat.any()


def test_whoever_needs_no_neighbour_decides_for_the_next():
    """The first pays alone and hands its gain to the second, which then pays, and so on: no cut is needed."""
    n = 50
    s = np.full(n, -0.9)
    s[0] = 0.1
    found = habitat_cut(s, np.arange(n - 1), np.arange(1, n), np.ones(n - 1))
    assert found.habitat.all()
    assert found.cut == 0
