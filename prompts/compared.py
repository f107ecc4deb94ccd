"""The comparisons of a completion, held against the prompt: ``wheat has the highest yield``, ``rye is above canola``.

A superlative needs its subject, a comparison both sides. Classes are compared by yield, or by worth or price where the
words say so or habitat is one side; places by what was last spoken of. A best *choice*, a threshold and what is denied
are no comparisons.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile

import numpy as np

from oracle.landscape import HABITAT
from prompts.arithmetic import calculations
from prompts.cited import neighbour_summary
from prompts.claim import Claim, Quantity, Relation, Status, judged, matches
from prompts.facts import Facts
from prompts.mentions import METRICS, PLACES, Mention, Sentence, Word
from prompts.neighbourhood import CENTRAL

_CLAUSE = re.compile(r"(?<!\s),?\s+(?:but|while|whereas|yet|however|because|since)\s|,\s+(?:so|and)\s", re.I)
_NOT = re.compile(r"\b(?:not|no|never|cannot)\b|n't\b", re.I)
_CHOICE = re.compile(r"\s*(?:choice|option|land[- ]use|decision|candidate|class|answer|guess|bet)\b", re.I)
_IS_NEXT = re.compile(
    r"\s*(?:(?:of all |overall |here )?(?:is|are|:|=|belongs to|goes to|comes from|->)|\(|-)\s*", re.I
)
_OF_ALL = re.compile(r"\s+of (?:all|the)\b", re.I)
_IT = re.compile(r"\b(?:it|it's|this|that|which)\b", re.I)
_ADJOINS = re.compile(r"\s+(?:for\s+)?", re.I)
_THE = re.compile(r"\bthe\s+$", re.I)
_THAN = re.compile(r"\bthan\s+$", re.I)
_UP_TO_THAN = re.compile(r"[^.;<>]{0,35}?\bthan\b", re.I)
_NEEDS_NO_THAN = re.compile(r"out-?yields?|outperforms?|surpass\w*|exceeds?|beats|above|below|[<>]", re.I)
_QUANTITIES = (Word.YIELD, Word.CONNECTIVITY, Word.WORTH, Word.PRICE)
_NEAR = 35  # characters from a superlative to what it is of


@dataclass(frozen=True)
class _Clause:
    """The words of a clause, and what was spoken of before each."""

    text: str
    facts: Facts
    mentions: list[Mention]
    at: int
    """Place of the comparing word among them."""
    metric: Mention | None
    """The crop or the connectivity spoken of last."""
    topic: Word
    """Yield or worth, whichever was spoken of last."""

    def before(self, *words: Word) -> Iterator[Mention]:
        """Mentions in front of the comparing word, the nearest first."""
        return (m for k in range(self.at - 1, -1, -1) if (m := self.mentions[k]).word in words)

    def after(self, *words: Word, within: int | None = None) -> Iterator[Mention]:
        """Mentions behind it, the nearest first, at most so many characters away."""
        end = self.mentions[self.at].end
        behind = (self.mentions[k] for k in range(self.at + 1, len(self.mentions)))
        near = behind if within is None else takewhile(lambda m: m.start - end < within, behind)
        return (m for m in near if m.word in words)


def comparison_claims(text: str, facts: Facts, parts: list[Sentence]) -> list[Claim]:
    """Every comparison of the text as a claim, in order (rules: this module's docstring)."""
    claims: list[Claim] = []
    metric: Mention | None = None
    products = [(c.result, Word.WORTH) for c in calculations(text) if "*" in c.left]
    said = [(m.start, m.word) for part in parts for m in part.all(Word.YIELD, Word.WORTH)]
    said = sorted(said + products)
    for part in parts:
        for mentions in _clauses(text, part):
            for at, mention in enumerate(mentions):
                if mention.word in METRICS and mention.value != HABITAT:
                    metric = mention
                spoken = bisect_left(said, mention.start, key=lambda s: s[0])
                topic = said[spoken - 1][1] if spoken else Word.YIELD
                clause = _Clause(text, facts, mentions, at, metric, topic)
                found = None
                if mention.word in (Word.HIGHEST, Word.LOWEST) or _is_the_higher(clause, mention):
                    found = _superlative(clause, mention)
                elif mention.word in (Word.MORE, Word.LESS):
                    found = _pair(clause, mention)
                claims += [found] if found else []
    return claims


def _clauses(text: str, sentence: Sentence) -> list[list[Mention]]:
    cuts = [sentence.start + c.start() + 1 for c in _CLAUSE.finditer(text[sentence.start : sentence.end])]
    return [
        [m for m in sentence.mentions if a <= m.start < b] for a, b in pairwise([sentence.start, *cuts, sentence.end])
    ]


def _is_the_higher(clause: _Clause, word: Mention) -> bool:
    """``the higher yield`` of two."""
    after = next(clause.after(*Word), None)
    is_of_quantity = after is not None and after.word in _QUANTITIES
    return (
        word.word is Word.MORE
        and is_of_quantity
        and _THE.search(clause.text[max(0, word.start - 5) : word.start]) is not None
    )


def _superlative(clause: _Clause, word: Mention) -> Claim | None:
    text = clause.text
    opening = text[max(0, clause.mentions[0].start - 25, word.start - 200) : word.start].rpartition(".")[2]
    if _CHOICE.match(text[word.end :]) or _NOT.search(opening):
        return None
    crop = next(
        (m for m in clause.after(Word.CLASS, within=_NEAR) if _ADJOINS.fullmatch(text[word.end : m.start])), None
    )
    place = next(clause.before(*PLACES), None)
    role = _role(clause, word, crop, place)
    if role is None:
        return None
    subject = _named_next(clause, word)
    relation = Relation.LOWEST if word.word is Word.LOWEST else Relation.HIGHEST
    if role is Word.CONNECTIVITY or (crop is not None and subject is None and role is Word.YIELD):
        return _extreme_place(clause, word, crop, place, relation, of_connectivity=role is Word.CONNECTIVITY)
    subject = subject or _subject(clause, word, opening)
    if subject is None:
        return None
    if place is not None and place.word is Word.POSITION:
        return _extreme_place(clause, word, subject, place, relation, of_connectivity=False)
    quantity = {Word.WORTH: Quantity.WORTH, Word.PRICE: Quantity.PRICE}.get(role, Quantity.YIELD)
    status = Status.UNVERIFIABLE
    values, k = _central_values(clause.facts, quantity), clause.facts.classes.index(subject.value)
    if values is not None and k < len(values) and values.any():
        best = values[values > 0].min() if relation is Relation.LOWEST else values.max()
        status = judged(bool(values[k] == best))
    return Claim(word.start, word.end, word.value, status, quantity, subject.value, CENTRAL, relation=relation)


def _role(clause: _Clause, word: Mention, crop: Mention | None, place: Mention | None) -> Word | None:
    """What a superlative is of; None where it is a mere liking."""
    text = clause.text
    near = next(clause.after(*_QUANTITIES, within=_NEAR), None)
    if word.value.lower() == "most productive":
        return Word.YIELD
    if near is not None:
        return near.word
    just_before = next(clause.before(*Word), None)
    if just_before is not None and just_before.word is Word.YIELD and text[just_before.end : word.start].isspace():
        return Word.YIELD  # "corn yields best"
    if word.value.lower() == "best" and crop is None and not _OF_ALL.match(text[word.end :]):
        return None
    if crop is not None:
        return Word.YIELD
    spoken = next(clause.before(*METRICS), None)
    if spoken is None and place is not None and place.word is Word.POSITION:
        spoken = clause.metric
    return Word.CONNECTIVITY if spoken is not None and spoken.word is Word.CONNECTIVITY else clause.topic


def _named_next(clause: _Clause, word: Mention) -> Mention | None:
    """``highest yield: wheat``, ``the highest is wheat``: the class that follows the superlative as its subject."""
    for one, following in pairwise(chain([word], clause.after(*Word))):
        if following.word is Word.CLASS and _IS_NEXT.fullmatch(clause.text[one.end : following.start]):
            return following
        if following.word not in (Word.YIELD, Word.WORTH, Word.PRICE, Word.CENTRE):
            return None
    return None


def _subject(clause: _Clause, word: Mention, opening: str) -> Mention | None:
    """The class before the superlative, else after it, else the one that ``it`` stands for."""
    ahead = [m for m in clause.before(Word.CLASS) if not _THAN.search(clause.text[max(0, m.start - 12) : m.start])]
    if ahead:
        return ahead[0]
    after = next(clause.after(Word.CLASS), None)
    if after is not None:
        return None if next(clause.after(Word.NEIGHBOURS, within=_NEAR), None) else after
    topic = clause.metric is not None and clause.metric.word is Word.CLASS and _IT.search(opening)
    return clause.metric if topic else None


def _extreme_place(
    clause: _Clause,
    word: Mention,
    crop: Mention | None,
    place: Mention | None,
    relation: Relation,
    *,
    of_connectivity: bool,
) -> Claim | None:
    facts = clause.facts
    if place is None or place.word is Word.NEIGHBOURS:
        near = list(clause.after(*PLACES, within=2 * _NEAR))
        if not of_connectivity or any(m.word is Word.NEIGHBOURS for m in near):
            return None  # the largest of the neighbours: a number, not a comparison
        place = next((m for m in near if m.word is Word.POSITION), None)
    code = CENTRAL if place is None or place.word is Word.CENTRE else place.value
    if code == CENTRAL and not of_connectivity:
        return None
    values = facts.connectivity
    if not of_connectivity and crop is not None and crop.value in facts.crops:
        values = facts.yields[:, facts.crops.index(crop.value)]
    status = Status.UNVERIFIABLE
    if code in facts.positions:
        best = values.min() if relation is Relation.LOWEST else values.max()
        status = judged(bool(values[facts.positions.index(code)] == best))
    quantity = Quantity.CONNECTIVITY if of_connectivity else Quantity.YIELD
    subject = crop.value if crop is not None else None
    return Claim(word.start, word.end, word.value, status, quantity, subject, code, relation=relation)


def _pair(clause: _Clause, word: Mention) -> Claim | None:
    text = clause.text
    than = _UP_TO_THAN.match(text, word.end)
    if _NOT.search(text[max(0, word.start - 12) : word.start]):
        return None
    if not _NEEDS_NO_THAN.fullmatch(word.value) and than is None:
        return None
    begins = word.end if _NEEDS_NO_THAN.fullmatch(word.value) or than is None else than.end()
    comma = text.find(",", begins, clause.mentions[-1].end)
    end = comma if comma >= 0 else clause.mentions[-1].end
    behind = (m for m in clause.after(*Word) if m.start >= begins)
    right = list(takewhile(lambda m: m.start < end and m.word not in (Word.MORE, Word.LESS), behind))
    left = list(takewhile(lambda m: m.value not in ("<", ">"), clause.before(*Word)))
    other = next((m for m in right if m.word is Word.CLASS), None)
    if other is not None:
        return _pair_of_classes(clause, word, next((m for m in left if m.word is Word.CLASS), clause.metric), other)
    if any(m.word in (*PLACES, Word.MEAN) for m in right):
        return _pair_of_places(clause, word, left, right)
    numbers = [next((m.value for m in side if m.word is Word.NUMBER), None) for side in (left, right)]
    if word.value not in "<>" or numbers[0] is None or numbers[1] is None:
        return None
    return _pair_of_numbers(clause.facts, word, numbers[0], numbers[1])


def _pair_of_classes(clause: _Clause, word: Mention, one: Mention | None, other: Mention) -> Claim | None:
    if one is None or one.word is not Word.CLASS or one.value == other.value:
        return None
    spoken = {m.word for m in clause.mentions}
    quantity = Quantity.YIELD
    if Word.PRICE in spoken:
        quantity = Quantity.PRICE
    elif HABITAT in (one.value, other.value) or (Word.YIELD not in spoken and clause.topic is Word.WORTH):
        quantity = Quantity.WORTH
        if clause.facts.worth() is None:
            return None  # a preference
    values = _central_values(clause.facts, quantity)
    a, b = (clause.facts.classes.index(m.value) for m in (one, other))
    status = Status.UNVERIFIABLE
    if values is not None and max(a, b) < len(values):
        status = _holds(float(values[a]), float(values[b]), word)
    return _compared(word, status, quantity, one.value, CENTRAL, other.value)


def _pair_of_places(clause: _Clause, word: Mention, left: list[Mention], right: list[Mention]) -> Claim | None:
    metrics = (m for m in chain(clause.after(*METRICS), clause.mentions) if m.word in METRICS and m.value != HABITAT)
    spoken = next(metrics, clause.metric)
    if spoken is None:
        return None
    metric = Quantity.CONNECTIVITY.value if spoken.word is Word.CONNECTIVITY else spoken.value
    one = next((m for m in left if m.word in PLACES), None)
    other = next(m for m in right if m.word in (*PLACES, Word.MEAN))
    ends = [_at(clause.facts, metric, one), _at(clause.facts, metric, other)]
    if other.word is Word.NEIGHBOURS or any(m.word is Word.MEAN for m in right):
        ends[1] = neighbour_summary(clause.facts, metric, "mean")
    status = Status.UNVERIFIABLE if ends[0] is None or ends[1] is None else _holds(ends[0], ends[1], word)
    position = one.value if one is not None and one.word is Word.POSITION else CENTRAL
    if spoken.word is Word.CONNECTIVITY:
        return _compared(word, status, Quantity.CONNECTIVITY, None, position, other.value)
    return _compared(word, status, Quantity.YIELD, metric, position, other.value)


def _pair_of_numbers(facts: Facts, word: Mention, one: str, other: str) -> Claim:
    """``3.00 > 2.50``: of the crops with these yields, where there are."""
    of = [[c for c, y in zip(facts.crops, facts.yields[0], strict=True) if matches(x, y)] for x in (one, other)]
    quantity = Quantity.YIELD if all(of) else Quantity.UNKNOWN
    names = [crops[0] if all(of) else None for crops in of]
    return _compared(word, _holds(float(one), float(other), word), quantity, names[0], CENTRAL, names[1])


def _compared(
    word: Mention, status: Status, quantity: Quantity, subject: str | None, position: str, against: str | None
) -> Claim:
    relation = Relation.MORE if word.word is Word.MORE else Relation.LESS
    return Claim(
        word.start, word.end, word.value, status, quantity, subject, position, relation=relation, against=against
    )


def _central_values(facts: Facts, quantity: Quantity) -> np.ndarray | None:
    if quantity is Quantity.WORTH:
        return facts.worth()
    return facts.effective_price if quantity is Quantity.PRICE else np.asarray(facts.yields[0])


def _at(facts: Facts, metric: str, place: Mention | None) -> float | None:
    code = place.value if place is not None and place.word is Word.POSITION else CENTRAL
    if code not in facts.positions:
        return None
    row = facts.positions.index(code)
    return float(
        facts.connectivity[row] if metric == Quantity.CONNECTIVITY else facts.yields[row, facts.crops.index(metric)]
    )


def _holds(one: float, other: float, word: Mention) -> Status:
    return judged(one > other if word.word is Word.MORE else one < other)
