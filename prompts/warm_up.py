"""Completions that teach the form of an answer and no decision: for a warm-up before reinforcement learning.

The think block names no class. The answer is drawn uniformly from the prompt's classes by a hash of its id, so that it
has nothing to do with the label; trained on these alone a model answers well-formed, and at chance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from prompts.config import Style

_SALT = "warm-up"
_THOUGHTS = (
    "First I read what the position can bear, then what the landscape needs.",
    "I compare the numbers of this place, then weigh them against the goal.",
    "What counts is the landscape as a whole, so I look at each number in turn.",
    "I go through the numbers one by one and keep the goal in mind.",
)


def format_only_targets(prompt_ids: Sequence[str], classes: Sequence[Sequence[str]], style: Style) -> list[str]:
    """A well-formed completion for each prompt, with an answer that is independent of the label.

    Parameters
    ----------
    prompt_ids : sequence of str
        Column ``prompt_id`` of a dataset.
    classes : sequence of sequences of str
        Column ``classes``: the allowed answers.
    style : Style
        ``answer_only`` leaves out the think block.
    """
    completions = []
    for prompt_id, allowed in zip(prompt_ids, classes, strict=True):
        digest = hashlib.sha256(f"{_SALT}:{prompt_id}".encode()).digest()
        answer = f"<answer>{allowed[int.from_bytes(digest[:8], 'big') % len(allowed)]}</answer>"
        thought = f"<think>{_THOUGHTS[digest[8] % len(_THOUGHTS)]}</think>" if style is Style.THINK else ""
        completions.append(thought + answer)
    return completions
