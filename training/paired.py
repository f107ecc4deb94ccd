"""Two deciders on the same rows: how much better one is, and how sure that is.

McNemar's test takes every row for itself. Rows of one spatial block resemble each other, so beside it whole blocks are
drawn (interval of the difference) or change sides (permutation test).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from training.figures import Interval, block_bootstrap


@dataclass(frozen=True)
class Paired:
    """The second decider's accuracy less the first's, on n rows."""

    rows: int
    difference: float
    block_bootstrap: Interval | None
    """Of the difference; None of too few blocks, or where it is the same in all."""
    mcnemar_p: float
    block_permutation_p: float


def paired(first_correct: np.ndarray, second_correct: np.ndarray, block: np.ndarray, *, seed: int = 0) -> Paired:
    """Compare two deciders.

    Parameters
    ----------
    first_correct, second_correct : ndarray of bool
        (n,) right decisions, of the same rows in the same order.
    block : ndarray
        (n,) spatial block of each row.
    seed : int
        Of the bootstrap and of the permutations.
    """
    difference = second_correct.astype(float) - first_correct.astype(float)
    return Paired(
        rows=len(difference),
        difference=float(difference.mean()),
        block_bootstrap=block_bootstrap(difference, block, seed=seed),
        mcnemar_p=mcnemar(first_correct, second_correct),
        block_permutation_p=block_permutation(first_correct, second_correct, block, seed=seed),
    )


def mcnemar(first_correct: np.ndarray, second_correct: np.ndarray) -> float:
    """Exact two-sided p-value that two deciders, paired on the same rows, are equally often right (McNemar 1947)."""
    only_first = int(np.sum(first_correct & ~second_correct))
    only_second = int(np.sum(~first_correct & second_correct))
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second, 0.5).pvalue)


def block_permutation(
    first_correct: np.ndarray, second_correct: np.ndarray, block: np.ndarray, *, draws: int = 10_000, seed: int = 0
) -> float:
    """Two-sided p-value that two deciders are equally often right, when all rows of a block swap sides together.

    Instead of whether a row was decided rightly, both may give how often it was, e.g. over several seeds.

    Were the two alike, each block's difference might as well have the other sign. Of at most 13 blocks with a
    difference every pattern of signs is counted; of more ``draws`` patterns, and the one found (Phipson and Smyth
    2010).
    """
    _, inverse = np.unique(block, return_inverse=True)
    per_block = np.bincount(inverse, second_correct.astype(float) - first_correct.astype(float))
    per_block = per_block[per_block != 0]
    if not len(per_block):
        return 1.0
    found = abs(per_block.sum()) * (1 - 1e-9)  # the same sum in another order counts as reached
    if len(per_block) <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(per_block))[:, None] >> np.arange(len(per_block))) & 1)
        return float(np.mean(np.abs(signs @ per_block) >= found))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(per_block)))
    return float((1 + np.sum(np.abs(signs @ per_block) >= found)) / (1 + draws))
