"""Sampled completions as rows of a table: what was decided, what it earned, and what the policy learned from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from training.turn import Turn, text_of


def sampled_groups(
    inputs: Sequence[Mapping[str, Any]],
    completions: Sequence[Any],
    rewards: np.ndarray,
    advantages: np.ndarray,
    signal: np.ndarray,
    names: Sequence[str],
    weights: np.ndarray,
    read: Callable[[Any, Sequence[str]], Turn],
) -> Iterator[dict[str, Any]]:
    """The first group of a generation, and the first in which decisions differ where that is another.

    Parameters
    ----------
    inputs : sequence of mappings
        (n,) the dataset's row of each completion: ``prompt_id``, ``answer``, ``classes``.
    completions : sequence
        (n,) as TRL gives them to rewards.
    rewards : ndarray
        (n, R) each reward as it was given, before the gate.
    advantages : ndarray
        (n,) what the policy learns from.
    signal : ndarray
        (groups,) bool: decisions of the group differ; groups are as long as n / groups.
    names, weights : sequence of str, ndarray
        (R,) of the rewards.
    read : callable
        ``read(completion, classes)`` gives the turn.

    Yields
    ------
    dict
        ``group`` (its number in the generation), ``prompt_id``, ``answer``, ``decision``, ``text``, every reward by its
        name, ``total`` (their weighted sum) and ``advantage``.
    """
    size = len(inputs) // len(signal)
    for number in sorted({0, *np.flatnonzero(signal)[:1].tolist()}):
        for k in range(number * size, (number + 1) * size):
            yield {
                "group": number,
                "prompt_id": inputs[k]["prompt_id"],
                "answer": inputs[k]["answer"],
                "decision": read(completions[k], inputs[k]["classes"]).decision,
                "text": text_of(completions[k]),
                **dict(zip(names, rewards[k].tolist(), strict=True)),
                "total": float(rewards[k] @ weights),
                "advantage": float(advantages[k]),
            }
