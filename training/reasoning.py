"""What the think block of a turn concludes, beside what the turn answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.mentions import Word, sentences
from training.figures import Interval, wilson
from training.turn import ANSWER_OPEN, THINK_CLOSE, THINK_OPEN

_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|then|choose|chosen|select\w*|decides?|decision|pick|take|go|going|went|answer|conclu\w+"
    r"|best choice|better choice|sensible option|good idea|settle|stay|final\w*|definitely|remains?|remaining|only|tips"
    r"|should be|must be|leave|keep|seems|suggests?|think|say|lean|right|sure)\b"
    r"|->(?=\s*[^\W\d])|(?<=\d):(?=\s*\w+\s*$)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:not|no|rather than|instead of|than|nor|over|isn't)\s+(?:to\s+)?(?:choose\s+)?$", re.IGNORECASE
)


def think_block(turn: str) -> str:
    """The reasoning of a turn: up to the last ``</think>``, else up to the answer block, without the opening tag."""
    end = turn.rfind(THINK_CLOSE)
    if end < 0:
        end = turn.find(ANSWER_OPEN)
    text = turn if end < 0 else turn[:end]
    return text.rpartition(THINK_OPEN)[2]


def conclusion(turn: str, classes: tuple[str, ...]) -> str | None:
    """The class that the reasoning ends with, or None where it only lists values or weighs them.

    It is read from the last sentence that names one class as what is chosen (``so wheat``, ``habitat it is``), or that
    is nothing but its name.
    """
    text = think_block(turn)
    for part in reversed(sentences(text, classes)):
        said = text[part.start : part.end]
        names = [m for m in part.all(Word.CLASS) if not _REFUSED.search(text[part.start : m.start])]
        if not names:
            continue
        if re.fullmatch(r"[\W_]*", said.replace(text[names[0].start : names[0].end], "", 1)):
            return names[0].value
        cues = [part.start + c.start() for c in _CONCLUDES.finditer(said)]
        for cue in reversed(cues):
            after = [m for m in names if m.start > cue]
            if after:
                return after[0].value
        if cues or re.search(r"\bit (?:is|was)\s*$", said):
            return names[-1].value
    return None


@dataclass(frozen=True)
class ConclusionFigures:
    """How many of n completions conclude with a class in their reasoning, and how many of those answer with it."""

    completions: int
    concluded: int
    agreed: int
    agreed_share: Interval


def conclusion_figures(
    completions: Sequence[str], classes: Sequence[tuple[str, ...]], answers: Sequence[str | None]
) -> ConclusionFigures:
    """Conclusions beside answers, of n completions with the classes of their prompts and their decisions."""
    pairs = [(conclusion(c, k), a) for c, k, a in zip(completions, classes, answers, strict=True)]
    concluded = [(said, answer) for said, answer in pairs if said is not None]
    agreed = sum(said == answer for said, answer in concluded)
    return ConclusionFigures(len(pairs), len(concluded), agreed, wilson(agreed, len(concluded)))
