"""Decisions on counterfactual pairs: a prompt and an edit of it, both solved by the oracle.

A model that decides by what the edit changes flips when, and only when, the oracle's label does. Training on pairs can
trade one skill for another, so the change on the original rows stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.figures import Interval, wilson


@dataclass(frozen=True)
class PairFigures:
    """Decisions on n counterfactual pairs beside the oracle's.

    Parameters
    ----------
    pairs, flips : int
        All pairs, and those whose label the edit flips.
    follows : int
        Pairs whose decision flips when and only when the label does; an undecided turn follows nothing.
    follows_share : Interval
        Wilson.
    flipped_at_flips, stayed_at_others : int
        Its two parts: of ``flips``, and of the other pairs.
    both_right : int
        Pairs with both decisions right.
    original_accuracy : float
        Of the decisions on the original rows.
    original_change : float or None
        That, less the accuracy of the earlier model on the same rows, where its decisions are given.
    """

    pairs: int
    flips: int
    follows: int
    follows_share: Interval
    flipped_at_flips: int
    stayed_at_others: int
    both_right: int
    original_accuracy: float
    original_change: float | None


def pair_figures(
    labels: Sequence[str],
    edited_labels: Sequence[str],
    decisions: Sequence[str | None],
    edited_decisions: Sequence[str | None],
    earlier_decisions: Sequence[str | None] | None = None,
) -> PairFigures:
    """Figures of n counterfactual pairs: labels and decisions on the original and on the edited prompts.

    ``earlier_decisions`` are those of the model before it was trained on pairs, on the original prompts.
    """
    pairs = list(zip(labels, edited_labels, decisions, edited_decisions, strict=True))
    decided = [(a != b, c != d) for a, b, c, d in pairs if c is not None and d is not None]
    flipped, stayed = decided.count((True, True)), decided.count((False, False))
    accuracy = _accuracy(labels, decisions)
    earlier = None if earlier_decisions is None else _accuracy(labels, earlier_decisions)
    return PairFigures(
        pairs=len(pairs),
        flips=sum(a != b for a, b, _, _ in pairs),
        follows=flipped + stayed,
        follows_share=wilson(flipped + stayed, len(pairs)),
        flipped_at_flips=flipped,
        stayed_at_others=stayed,
        both_right=sum(a == c and b == d for a, b, c, d in pairs),
        original_accuracy=accuracy,
        original_change=None if earlier is None else accuracy - earlier,
    )


def _accuracy(labels: Sequence[str], decisions: Sequence[str | None]) -> float:
    return float(np.mean([a == b for a, b in zip(labels, decisions, strict=True)])) if len(labels) else float("nan")
