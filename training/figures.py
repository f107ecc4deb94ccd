"""Figures of decisions against the oracle's labels, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

UNDECIDED = "(none)"
"""Stands in a confusion table for a turn without a decision."""
FEWEST_BLOCKS = 5
"""Of fewer no interval is bootstrapped: a draw of two blocks is the same block twice in half of the cases, and the
interval would be no more than the poorest and the best of them (of a single one, no width at all)."""


@dataclass(frozen=True)
class Interval:
    """A share between its bounds, 0..1."""

    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927); [0, 1] where there was no trial."""
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = successes / trials, z * z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(float(min(low, share)), float(max(high, share)))  # at 0 and 1 rounding would leave the share out


def block_bootstrap(
    correct: np.ndarray, block: np.ndarray, *, draws: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Interval | None:
    """Interval of a mean when whole spatial blocks are drawn with replacement.

    Polygons of a block resemble each other, so that n rows are worth less than n; Wilson's interval does not know. None
    of too few blocks, and where all blocks have the same mean: every draw repeats it, whatever other blocks have.

    Parameters
    ----------
    correct : ndarray
        (n,) bool, decisions that agree with the oracle: the mean is the accuracy; or any number per row.
    block : ndarray
        (n,) block of each row.
    draws, seed, confidence
        Of the bootstrap (percentile interval).
    """
    _, inverse = np.unique(block, return_inverse=True)
    right = np.bincount(inverse, weights=correct.astype(float))
    rows = np.bincount(inverse)
    if len(rows) < FEWEST_BLOCKS or np.ptp(right / rows) == 0:
        return None
    times = drawn_blocks(len(rows), draws, seed)
    return percentiles((times @ right) / (times @ rows), confidence)


def drawn_blocks(blocks: int, draws: int, seed: int) -> np.ndarray:
    """(draws, blocks) how often each block is drawn, as many with replacement as there are."""
    return np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), size=draws)


def percentiles(values: np.ndarray, confidence: float = 0.95) -> Interval:
    """Percentile interval of a figure over bootstrap draws."""
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class ClassFigures:
    """Recall, precision and F1 of one class; F1 is 0 where the class is neither said nor right."""

    rows: int
    recall: float
    precision: float
    f1: float
    recall_wilson: Interval


def class_figures(answer: np.ndarray, decision: np.ndarray) -> dict[str, ClassFigures]:
    """Figures of every class that occurs as an answer.

    Parameters
    ----------
    answer, decision : ndarray of str
        (n,) the oracle's classes and the decisions, :data:`UNDECIDED` where there is none.
    """
    found = {}
    for name in sorted(set(answer.tolist())):
        right = int(np.sum((answer == name) & (decision == name)))
        gold, said = int(np.sum(answer == name)), int(np.sum(decision == name))
        precision = right / said if said else 0.0
        found[name] = ClassFigures(gold, right / gold, precision, 2 * right / (gold + said), wilson(right, gold))
    return found


def confusion(answer: np.ndarray, decision: np.ndarray) -> dict[str, dict[str, int]]:
    """Counts ``[answer][decision]`` over all classes that occur; what never happened is left out."""
    table: dict[str, dict[str, int]] = {}
    for gold, said in sorted(zip(answer.tolist(), decision.tolist(), strict=True)):
        row = table.setdefault(gold, {})
        row[said] = row.get(said, 0) + 1
    return table
