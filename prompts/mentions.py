"""The words of a completion that a claim is made of: classes, quantities, places, comparisons and numbers.

A vocabulary, not a grammar: a text becomes sentences, a sentence the list of its mentions in order. What is claimed is
read from that order in :mod:`prompts.claims`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from oracle.compass import COMPASS


class Word(StrEnum):
    """What a mention speaks of."""

    CLASS = "class"
    CONNECTIVITY = "connectivity"
    YIELD = "yield"
    PRICE = "price"
    WORTH = "worth"
    BORDER = "border"
    SUPPLY = "supply"
    CENTRE = "centre"
    POSITION = "position"
    NEIGHBOURS = "neighbours"
    MEAN = "mean"
    HIGHEST = "highest"
    LOWEST = "lowest"
    MORE = "more"
    LESS = "less"
    NUMBER = "number"
    LISTED = "listed"


PLACES = (Word.CENTRE, Word.POSITION, Word.NEIGHBOURS)
METRICS = (Word.CLASS, Word.CONNECTIVITY)

_STEP = r"(?:N[EW]?|S[EW]?|E|W)\d*"
_DIRECTION = r"(?:north|south)(?:[- ]?(?:east|west))?|east|west"
_VOCABULARY = (
    (Word.LISTED, r"(?m:^)[ \t]*(?:\d+[.)](?=\s)|step \d+\b)"),
    (Word.NEIGHBOURS, r"around the cent(?:er|re)|\baround\b|\bneighbou?r\w*|\bsurround\w*|\badjacent\b|\bnearby\b"),
    (Word.CLASS, ""),  # the prompt's own, see `_pattern`
    (Word.CONNECTIVITY, r"\b(?:ecological[ _])?connectivity\b|\bconn\b"),
    (
        Word.MORE,
        r"\b(?:out-?yields?|outperforms?|surpass\w*|exceeds?|beats)\b"
        r"|\b(?:higher|larger|greater|bigger|more|better|above)\b|(?<!-)>",
    ),
    (Word.LESS, r"\b(?:lower|smaller|less|worse|below)\b|<"),
    (Word.YIELD, r"\byield\w*|_yields?\b|(?<=\d)\s*t ?/ ?ha\b|\bt ?/ ?ha\b|\btonnes? (?:per|a) hectare\b"),
    (Word.PRICE, r"\bprices?\b|\bfetch\w*|\bmarket\b|(?:\bper|\ba) tonne\b|(?<=\d)\s*/ ?t\b"),
    (Word.WORTH, r"\bworth\b|\bvalues?\b|\brevenues?\b|\b(?:per|a) (?:hectare|ha)\b|(?<=\d)\s*/ ?ha\b"),
    (Word.BORDER, r"\bper metre\b|(?<=\d)\s*/ ?m\b"),
    (Word.SUPPLY, r"\bsuppl(?:y|ies)\b|\bproduction\b|\bfloors?\b|\bowes?\b"),
    (Word.MEAN, r"\bmean\b(?! that)|\baverag\w*|\bavg\b"),
    (Word.HIGHEST, r"\b(?:highest|largest|greatest|biggest|best|top|max|maximum|most productive)\b"),
    (Word.LOWEST, r"\b(?:lowest|smallest|poorest|worst|minimum)\b"),
    (Word.POSITION, rf"(?-i:\b{_STEP}(?:-{_STEP})?\b)|\b(?:{_DIRECTION})(?:ern|wards?)?\b"),
    (Word.CENTRE, r"\bcent(?:er|re|ral)\b|\bhere\b|\bmiddle\b|\bthis (?:polygon|field|cell)\b"),
    (Word.NUMBER, r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w,])|(?<![\w.])\d+(?:\.\d+)?(?!\.?\d)(?=t\b|ha\b|\b)"),
)
_END_OF_SENTENCE = re.compile(r"[.!?](?=\s|$)|[;\n]+")


@dataclass(frozen=True)
class Mention:
    """One of the words, where it stands in the text; ``value``: the class, the position code or the number's text."""

    word: Word
    start: int
    end: int
    value: str


@dataclass(frozen=True)
class Sentence:
    """A sentence, or a line or half-sentence that stands for one."""

    start: int
    end: int
    mentions: tuple[Mention, ...]

    @cached_property
    def _words(self) -> frozenset[Word]:
        return frozenset(m.word for m in self.mentions)

    def has(self, *words: Word) -> bool:
        """One of the words is mentioned."""
        return not self._words.isdisjoint(words)

    def all(self, *words: Word) -> list[Mention]:
        """The mentions of these words, in order."""
        return [m for m in self.mentions if m.word in words]


def sentences(text: str, classes: tuple[str, ...]) -> list[Sentence]:
    """The sentences of a completion with their mentions; a line that numbers a list is no number."""
    listed = {m.end() for m in re.finditer(_VOCABULARY[0][1], text, re.IGNORECASE)}
    stops = [(s.start(), s.end()) for s in _END_OF_SENTENCE.finditer(text) if s.end() not in listed]
    starts, ends = [0, *(e for _, e in stops)], [*(s for s, _ in stops), len(text)]
    mentions = [_mention(m, classes) for m in _pattern(classes).finditer(text)]
    mentions = [m for m in mentions if m.word is not Word.LISTED]
    places = [m.start for m in mentions]
    return [
        Sentence(a, b, tuple(mentions[bisect_left(places, a) : bisect_left(places, b)]))
        for a, b in zip(starts, ends, strict=True)
        if not text[a:b].isspace() and a < b
    ]


@cache
def _pattern(classes: tuple[str, ...]) -> re.Pattern[str]:
    names = sorted(classes, key=len, reverse=True)
    spelt = "|".join(re.escape(name).replace("_", "[ _]").replace(r"\ ", "[ _]") for name in names)
    own = rf"(?<![^\W_])(?:{spelt})(?:'?s)?(?![^\W_])"
    parts = [rf"(?P<{word.value}>{own if word is Word.CLASS else pattern})" for word, pattern in _VOCABULARY]
    return re.compile("|".join(parts), re.IGNORECASE)


def _mention(match: re.Match[str], classes: tuple[str, ...]) -> Mention:
    word, text = Word(match.lastgroup or ""), match.group()
    if word is Word.CLASS:
        spelling = {c.casefold().replace("_", " "): c for c in classes}
        folded = text.casefold().replace("_", " ")
        value = next(
            spelling[f] for f in (folded, folded.removesuffix("s"), folded.removesuffix("'s")) if f in spelling
        )
    elif word is Word.POSITION:
        value = _code(text)
    else:
        value = text.replace(",", "") if word is Word.NUMBER else text
    return Mention(word, match.start(), match.end(), value)


def _code(text: str) -> str:
    if text[0] in "NESW" and (len(text) == 1 or not text[1].islower()):
        return text
    letters = "".join(part[0] for part in re.findall("north|south|east|west", text.lower())).upper()
    assert letters in COMPASS
    return letters
