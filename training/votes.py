"""Several sampled completions per prompt: their majority, how soon one is right, whether their shares can be believed.

pass@k is Chen et al.'s (2021) unbiased estimate. One of k samples is right sooner or later whoever draws them: beside
it stands what drawing k classes blindly among the prompt's would reach.

A vote share is a probability that the model states without words. Expected calibration error: the mean distance
between the majority's share and how often it is right, over ten bins of shares. Brier score: the squared distance
between all shares and the answer, 0 at best, 2 at worst; samples that decide nothing are a share of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import pandas as pd

from training.figures import Interval, block_bootstrap, wilson

BINS = 10


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose majority has a share of votes between two bounds."""

    low: float
    high: float
    rows: int
    share: float
    """Mean share of the majority."""
    accuracy: float


@dataclass(frozen=True)
class VoteFigures:
    """Votes of ``samples`` completions on each of ``rows`` prompts."""

    rows: int
    samples: int
    greedy_accuracy: float
    """Of the one greedy completion, on the same rows."""
    majority_accuracy: float
    wilson: Interval
    block_bootstrap: Interval | None
    """Of the majority's accuracy."""
    sample_accuracy: float
    """Of a single sample."""
    pass_at: dict[int, float]
    guessing_at: dict[int, float]
    """The same for k blind draws."""
    ece: float
    brier: float
    bins: tuple[CalibrationBin, ...]


def majority_vote(votes: Sequence[str | None], classes: Sequence[str]) -> tuple[str | None, float]:
    """The class with most votes and its share of all of them; equals go by the order of ``classes``."""
    counts = Counter(vote for vote in votes if vote is not None)
    best = max(classes, key=lambda name: counts[name], default=None)
    if best is None or not counts[best]:
        return None, 0.0
    return best, counts[best] / len(votes)


def pass_at(right: int, samples: int, k: int) -> float:
    """Probability that one of k of the samples, drawn without replacement, is right: 1 - C(n - c, k) / C(n, k)."""
    return 1.0 - comb(samples - right, k) / comb(samples, k)


def vote_figures(table: pd.DataFrame, *, seed: int = 0) -> VoteFigures | None:
    """Figures of one model's rows of one split that have votes; None where none has.

    Parameters
    ----------
    table : DataFrame
        Columns ``votes`` (list of decisions, None for no decision; or None), ``classes``, ``accepted``, ``answer``,
        ``correct`` and ``block``.
    seed : int
        Of the bootstrap.
    """
    rows = table[table["votes"].notna()]
    if rows.empty:
        return None
    samples = len(rows["votes"].iloc[0])
    columns = ["votes", "classes", "accepted", "answer"]
    right, share, correct, brier, guess = [], [], [], [], []
    for votes, classes, accepted, answer in rows[columns].itertuples(index=False):
        said, of_all = majority_vote(votes, classes)
        right.append(sum(vote in accepted for vote in votes))
        share.append(of_all)
        correct.append(said in accepted)
        brier.append(_brier(votes, classes, answer if said is None or said not in accepted else said))
        guess.append(len(accepted) / len(classes))
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= samples]
    found, shares = np.array(correct, dtype=bool), np.array(share)
    bins = _bins(found, shares)
    return VoteFigures(
        rows=len(rows),
        samples=samples,
        greedy_accuracy=float(rows["correct"].mean()),
        majority_accuracy=float(found.mean()),
        wilson=wilson(int(found.sum()), len(rows)),
        block_bootstrap=block_bootstrap(found, rows["block"].to_numpy(dtype=str), seed=seed),
        sample_accuracy=float(np.mean(right)) / samples,
        pass_at={k: float(np.mean([pass_at(c, samples, k) for c in right])) for k in ks},
        guessing_at={k: float(np.mean(1 - (1 - np.array(guess)) ** k)) for k in ks},
        ece=sum(b.rows * abs(b.share - b.accuracy) for b in bins) / len(rows),
        brier=float(np.mean(brier)),
        bins=bins,
    )


def _brier(votes: Sequence[str | None], classes: Sequence[str], answer: str) -> float:
    counts = Counter(votes)
    return sum((counts[name] / len(votes) - (name == answer)) ** 2 for name in (*classes, None))


def _bins(correct: np.ndarray, share: np.ndarray) -> tuple[CalibrationBin, ...]:
    place = np.minimum((share * BINS).astype(int), BINS - 1)
    return tuple(
        CalibrationBin(
            low=b / BINS,
            high=(b + 1) / BINS,
            rows=int((place == b).sum()),
            share=float(share[place == b].mean()),
            accuracy=float(correct[place == b].mean()),
        )
        for b in sorted(set(place.tolist()))
    )
