"""The seven motifs of the seed's reasoning: which of them a completion shows, and whether their claims are true.

==================  ====================================================  ==========================================
motif               shown where                                           supported where
==================  ====================================================  ==========================================
``yield_max``       a crop is said to have the highest central yield      it is in the true top two
``tie_break``       yields called alike, then connectivity                within 10 %, and the figures are true
``zero_belt``       centre and neighbours grow nothing, so habitat        so it is, for half of the neighbours
``neighbour_mean``  a mean or maximum of the neighbours, with its number  recomputed, within 5 %
``global_supply``   supply of the landscape as a reason                   its tonnes are the prompt's
``score``           yield and connectivity added into one number          the sums hold, the largest is answered
``corridor``        habitat extends or bridges towards a direction        never, see below
==================  ====================================================  ==========================================

No prompt names the land use of neighbours: a corridor is unverifiable at best, and contradicted where no neighbour lies
in any direction that it names. Supply is unverifiable where the prompt states none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from oracle.landscape import HABITAT
from prompts.claims import Claim, Facts, Quantity, Relation, Status, claims, judged
from prompts.mentions import Sentence, Word, sentences
from prompts.neighbourhood import CENTRAL
from training.reasoning import think_block


class Motif(StrEnum):
    """A recurring step of reasoning."""

    YIELD_MAX = "yield_max"
    TIE_BREAK = "tie_break"
    ZERO_BELT = "zero_belt"
    NEIGHBOUR_MEAN = "neighbour_mean"
    GLOBAL_SUPPLY = "global_supply"
    SCORE = "score"
    CORRIDOR = "corridor"


SEED_SHARE = {
    Motif.YIELD_MAX: 0.85,
    Motif.TIE_BREAK: 0.60,
    Motif.ZERO_BELT: 0.25,
    Motif.NEIGHBOUR_MEAN: 0.20,
    Motif.GLOBAL_SUPPLY: 0.15,
    Motif.SCORE: 0.10,
    Motif.CORRIDOR: 0.08,
}
"""Share of the seed's completions that show each motif, as its author reports it."""

ALIKE = 0.10
"""Yields are alike where the smaller is at most this share below the larger."""
NEAR = 0.05
"""A stated mean is right within this share of the true one."""

_ALIKE = re.compile(
    r"\b(?:similar(?!ly)|comparable|close(?: to each other| behind| together|:|,|\.)"
    r"|(?:nearly|almost|practically) (?:the same|equal|identical|as (?:good|high))|(?:about|roughly) (?:equal|the same)"
    r"|hardly any difference|negligible|differ by only|tied?)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\bzeros?\b|\bno yields?\b|\bno crops?\b|\bnothing\b|\bnot grow|\bcan(?:'t|not| not) grow|\bbarren\b|\bbare\b"
    r"|(?<![\d.])0(?:\.0+)?(?![\d.]*\d)",
    re.IGNORECASE,
)
_LIKEWISE = re.compile(
    r"\b(?:too|also|as well|either|the same|likewise|neither|nor|mostly no|or in most)\b", re.IGNORECASE
)
_GROWS = re.compile(r"\bcent(?:re|er) does\b|\bthe cent(?:re|er) has\b", re.IGNORECASE)
_LANDSCAPE = re.compile(r"\b(?:landscapes?|global(?:ly)?|region\w*|provinc\w*|national|nationwide)\b", re.IGNORECASE)
_LINK = re.compile(
    r"\b(?:corridors?|bridg\w+|link(?:s|ed|ing)?|connect(?:s|ed|ing)?|join(?:s|ed|ing)?|extend\w*|stepping stones?)\b",
    re.IGNORECASE,
)
_SCORE = re.compile(r"\bscor\w+|\btotal\b|\bindex\b|\bcombined?\b", re.IGNORECASE)
_RANKING = re.compile(r"\bfrom high(?:est)? to low(?:est)?\b|\brank\w* the yields?\b", re.IGNORECASE)
_NOT = re.compile(r"(?:\b(?:not|no|nothing|never|without|cannot)\b|n't\b)[^,;:.]{0,60}$", re.IGNORECASE)


@dataclass(frozen=True)
class Shown:
    """A motif that a completion shows, with the status of its claim."""

    motif: Motif
    status: Status


@dataclass(frozen=True)
class _Reasoning:
    text: str
    facts: Facts
    answer: str | None
    parts: list[Sentence]
    claims: list[Claim]

    def said(self, sentence: Sentence) -> str:
        return self.text[sentence.start : sentence.end]

    def within(self, *parts: Sentence) -> list[Claim]:
        return [c for c in self.claims if any(p.start <= c.start < p.end for p in parts)]


def motifs(completion: str, facts: Facts, answer: str | None) -> list[Shown]:
    """The motifs that a completion shows, each once, in the order of :class:`Motif`.

    Parameters
    ----------
    completion : str
        The whole turn or its reasoning; the answer block is not read.
    facts : Facts
        What its prompt states (:func:`prompts.claims.facts_of`).
    answer : str or None
        The decision, for the claim that the largest score is answered.
    """
    text = think_block(completion)
    reasoning = _Reasoning(text, facts, answer, sentences(text, facts.classes), claims(text, facts))
    found = [(motif, read(reasoning)) for motif, read in _READERS.items()]
    return [Shown(motif, status) for motif, status in found if status is not None]


def _yield_max(r: _Reasoning) -> Status | None:
    crops = [
        c.subject
        for c in r.claims
        if c.quantity is Quantity.YIELD and c.position == CENTRAL and c.subject in r.facts.crops
        if c.relation is Relation.HIGHEST or (c.relation is Relation.MORE and c.against in r.facts.crops)
    ]
    for part in r.parts:
        if _RANKING.search(r.said(part)) and part.has(Word.YIELD):
            crops += [m.value for m in part.all(Word.CLASS) if m.value != HABITAT][:1]
    if not crops:
        return None
    yields = r.facts.yields[0]
    if not yields.any():
        return Status.UNVERIFIABLE
    top = np.sort(yields)[-2:].min()
    return judged(all(0 < yields[r.facts.crops.index(c)] >= top for c in crops if c))


def _tie_break(r: _Reasoning) -> Status | None:
    for k, part in enumerate(r.parts):
        alike = _ALIKE.search(r.said(part))
        if alike is None or _NOT.search(r.said(part)[max(0, alike.start() - 40) : alike.start()]):
            continue
        ahead = [m for m in part.mentions if m.start < part.start + alike.start()]
        crops = [m.value for m in part.all(Word.CLASS) if m.value != HABITAT]
        if k and not crops and re.search(r"\b(?:they|both|these|those)\b", r.said(part), re.IGNORECASE):
            crops = [m.value for m in r.parts[k - 1].all(Word.CLASS) if m.value != HABITAT]
        if not (crops or part.has(Word.YIELD)) or (
            ahead and ahead[-1].word is Word.CONNECTIVITY and len(set(crops)) < 2
        ):
            continue
        if any(m.word is Word.POSITION for m in ahead):
            continue
        following = r.parts[k : k + 3]
        if not any(p.has(Word.CONNECTIVITY) for p in following):
            continue
        yields = r.facts.yields[0]
        named = [yields[r.facts.crops.index(c)] for c in dict.fromkeys(crops)]
        pair = named if len(named) >= 2 else np.sort(yields)[-2:].tolist()
        figures = [c for c in r.within(*following) if c.quantity is Quantity.CONNECTIVITY and c.relation is None]
        true = all(c.status is not Status.CONTRADICTED for c in figures)
        return judged(bool(max(pair) > 0 and min(pair) >= (1 - ALIKE) * max(pair) and true))
    return None


def _zero_belt(r: _Reasoning) -> Status | None:
    if not any(m.value == HABITAT for p in r.parts for m in p.all(Word.CLASS)) or _GROWS.search(r.text):
        return None
    centre = neighbours = False
    for part in r.parts:
        said = r.said(part)
        around = part.all(Word.NEIGHBOURS, Word.POSITION)
        nothing = [part.start + m.start() for m in _NOTHING.finditer(said)]
        if nothing:
            crops = {m.value for m in part.all(Word.CLASS)} - {HABITAT}
            first = around[0].start if around else part.end
            at_centre = nothing[0] < first or any(
                m.start < nothing[0] and m.start > first for m in part.all(Word.CENTRE)
            )
            whole = not crops or crops == set(r.facts.crops)
            centre |= at_centre and whole
        if around and centre:
            after = any(place > around[0].start for place in nothing)
            neighbours |= after or bool(_LIKEWISE.search(said))
    if not (centre and neighbours):
        return None
    barren = np.asarray(r.facts.yields.sum(axis=1) == 0)
    around_rows = r.facts.first_order
    return judged(bool(barren[0] and around_rows and barren[around_rows].mean() >= 0.5))


def _neighbour_mean(r: _Reasoning) -> Status | None:
    means = [c for c in r.claims if c.mean_of in ("mean", "maximum") and c.true is not None]
    if not means:
        return None
    near = [
        c.status is Status.SUPPORTED
        or (c.quantity is not Quantity.RESULT and abs(float(c.text) - (c.true or 0.0)) <= NEAR * abs(c.true or 0.0))
        for c in means
    ]
    return judged(all(near))


def _global_supply(r: _Reasoning) -> Status | None:
    parts = [p for p in r.parts if p.has(Word.SUPPLY) and _LANDSCAPE.search(r.said(p))]
    if not parts:
        return None
    stated = [c for c in r.within(*parts) if c.relation is None and float(c.text) >= 100]
    if r.facts.floor_t is None or not stated:
        return Status.UNVERIFIABLE
    if all(c.status is Status.SUPPORTED for c in stated):
        return Status.SUPPORTED
    return Status.CONTRADICTED if any(c.status is Status.CONTRADICTED for c in stated) else Status.UNVERIFIABLE


def _score(r: _Reasoning) -> Status | None:
    results = [c for c in r.claims if c.quantity is Quantity.RESULT and c.mean_of is None]
    added = [c for c in results if "+" in r.text[max(0, c.start - 60) : c.start]]
    scored = [c for c in added if _SCORE.search(r.text[max(0, c.start - 160) : c.start])]
    if not scored:
        return None
    totals = {c.subject: float(c.text) for c in (*scored, *(c for c in r.claims if c.quantity is Quantity.SCORE))}
    if any(c.status is Status.CONTRADICTED for c in scored):
        return Status.CONTRADICTED
    if r.answer is None or None in totals:
        return Status.UNVERIFIABLE
    return judged(max(totals, key=lambda name: totals[name]) == r.answer)


def _corridor(r: _Reasoning) -> Status | None:
    for part in r.parts:
        said = r.said(part)
        directions = [m for m in part.all(Word.POSITION) if "-" not in m.value]
        habitat = any(m.value == HABITAT for m in part.all(Word.CLASS))
        links = [m for m in _LINK.finditer(said) if not _NOT.search(said[max(0, m.start() - 80) : m.start()])]
        if directions and habitat and links:
            shown = {r.facts.positions[p].rstrip("0123456789") for p in r.facts.first_order}
            known = any(m.value.rstrip("0123456789") in shown for m in directions)
            return Status.UNVERIFIABLE if known else Status.CONTRADICTED
    return None


_READERS = {
    Motif.YIELD_MAX: _yield_max,
    Motif.TIE_BREAK: _tie_break,
    Motif.ZERO_BELT: _zero_belt,
    Motif.NEIGHBOUR_MEAN: _neighbour_mean,
    Motif.GLOBAL_SUPPLY: _global_supply,
    Motif.SCORE: _score,
    Motif.CORRIDOR: _corridor,
}


@dataclass(frozen=True)
class MotifShare:
    """One line of the table of motifs: shares of n completions."""

    motif: Motif
    completions: int
    shown: int
    seed_share: float
    supported: int
    contradicted: int
    unverifiable: int

    @property
    def share(self) -> float:
        """Share of the completions that show the motif."""
        return self.shown / self.completions if self.completions else float("nan")


@dataclass(frozen=True)
class ClaimCounts:
    """The claims of n completions by status."""

    kind: str
    """``numbers`` or ``comparisons``."""
    supported: int
    contradicted: int
    unverifiable: int


@dataclass(frozen=True)
class MotifTable:
    """Which motifs n completions show beside the seed's shares, and how true their claims are."""

    motifs: tuple[MotifShare, ...]
    claims: tuple[ClaimCounts, ...]


def motif_table(completions: Sequence[str], facts: Sequence[Facts], answers: Sequence[str | None]) -> MotifTable:
    """The table of motifs of n completions, with the facts of their prompts and their decisions."""
    shown = [s for c, f, a in zip(completions, facts, answers, strict=True) for s in motifs(c, f, a)]
    stated = [claim for c, f in zip(completions, facts, strict=True) for claim in claims(think_block(c), f)]
    lines = []
    for motif in Motif:
        statuses = [s.status for s in shown if s.motif is motif]
        lines.append(MotifShare(motif, len(completions), len(statuses), SEED_SHARE[motif], *_by_status(statuses)))
    numbers = _by_status([c.status for c in stated if c.relation is None])
    compared = _by_status([c.status for c in stated if c.relation is not None])
    return MotifTable(tuple(lines), (ClaimCounts("numbers", *numbers), ClaimCounts("comparisons", *compared)))


def _by_status(statuses: Sequence[Status]) -> tuple[int, int, int]:
    counts = [sum(s is wanted for s in statuses) for wanted in Status]
    return counts[0], counts[1], counts[2]
