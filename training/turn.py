"""A turn: what the model says after the prompt, and the land-use decision in it.

A turn is ``<think>reasoning</think><answer>class</answer>``. Some chat templates already open the think block in the
prompt; that opening (the *prefill*) belongs to the turn, so a turn is always judged as prefill + completion.

Two questions are asked of a turn, apart from each other:

decision
    The text of the single answer block after the last ``</think>`` (in the whole text where no think tag stands). An
    unclosed think block, no answer block or two of them (even equal ones) decide nothing; nor does an answer that is
    not, word for word, one of the classes.
well-formed
    White space, one think block (not blank, no tag inside), white space, one answer block with one of the classes,
    white space, and nothing else. Where the prompt asks for the answer only, the think block must be absent.

Classes are compared after NFKC normalisation, stripping and case folding, and never fuzzily.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
ANSWER_OPEN, ANSWER_CLOSE = "<answer>", "</answer>"
TAGS = (THINK_OPEN, THINK_CLOSE, ANSWER_OPEN, ANSWER_CLOSE)

Completion = str | Sequence[Mapping[str, Any]]
"""What TRL hands to a reward: plain text, or the messages of a conversation."""

_TAG = re.compile("|".join(map(re.escape, TAGS)))
_THINK_TAG = re.compile(f"{THINK_OPEN}|{THINK_CLOSE}")
_ANSWER_BLOCK = re.compile(rf"{ANSWER_OPEN}((?:(?!{ANSWER_OPEN}|{ANSWER_CLOSE}).)*){ANSWER_CLOSE}", re.DOTALL)
_ANSWER_ONLY = re.compile(rf"\s*{ANSWER_OPEN}(?P<answer>.*?){ANSWER_CLOSE}\s*", re.DOTALL)
_WELL_FORMED = re.compile(
    rf"\s*{THINK_OPEN}(?P<think>.*?){THINK_CLOSE}\s*{ANSWER_OPEN}(?P<answer>.*?){ANSWER_CLOSE}\s*", re.DOTALL
)


@dataclass(frozen=True)
class Turn:
    """A judged turn.

    Parameters
    ----------
    text : str
        Prefill + completion.
    decision : str or None
        The class decided for, spelt as in the list of classes; None where the turn decides nothing.
    well_formed : bool
        The whole turn has the asked form.
    """

    text: str
    decision: str | None
    well_formed: bool


def read_turn(completion: Completion, classes: Iterable[str], prefill: str = "", *, thinks: bool = True) -> Turn:
    """Judge one completion by the rules of this module.

    Parameters
    ----------
    completion : str or list of messages
        The model's text; of messages, the last one's content (None counts as no text).
    classes : iterable of str
        Classes that may be decided for.
    prefill : str
        What the chat template already opened, e.g. ``"<think>\\n"``. A model that opens the block once more is
        not counted as having opened two.
    thinks : bool
        The prompt asks for a think block; False: for the answer only.
    """
    text = text_of(completion)
    if not (prefill.strip() and text.lstrip().startswith(prefill.strip())):
        text = prefill + text
    spelling = {_folded(c): c for c in classes}
    return Turn(text=text, decision=_decision(text, spelling), well_formed=_is_well_formed(text, spelling, thinks))


def text_of(completion: Completion) -> str:
    """The text of a completion in either of TRL's two forms; no content is an empty text."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1].get("content") or "") if completion else ""


def _decision(text: str, spelling: Mapping[str, str]) -> str | None:
    open_now, after = False, 0
    for tag in _THINK_TAG.finditer(text):
        if tag.group() == THINK_OPEN and open_now:
            return None  # a block opened inside a block: one of the two is never closed
        open_now, after = tag.group() == THINK_OPEN, tag.end()
    if open_now:
        return None
    said = text[after:]
    if said.count(ANSWER_OPEN) != 1 or said.count(ANSWER_CLOSE) != 1:
        return None
    block = _ANSWER_BLOCK.search(said)
    return spelling.get(_folded(block.group(1))) if block else None


def _is_well_formed(text: str, spelling: Mapping[str, str], thinks: bool) -> bool:
    match = (_WELL_FORMED if thinks else _ANSWER_ONLY).fullmatch(text)
    if match is None or _folded(match["answer"]) not in spelling:
        return False
    return not thinks or (match["think"].strip() != "" and not _TAG.search(match["think"]))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()
