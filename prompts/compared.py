"""The comparisons of a completion, held against the prompt: ``wheat has the highest yield``, ``rye is above canola``.

A superlative needs its subject, a comparison both sides; a class is compared by yield, or by worth or price where the
clause says so or habitat is one side; a place by what was last spoken of. A best *choice*, a threshold and what is
denied are no comparisons.
"""

from __future__ import annotations

import re

import numpy as np

from oracle.landscape import HABITAT
from prompts.cited import neighbour_summary
from prompts.arithmetic import calculations
from prompts.claim import Claim, Quantity, Relation, Status, judged, matches
from prompts.facts import Facts
from prompts.neighbourhood import CENTRAL
from prompts.wording import METRICS, PLACES, Mention, Sentence, Word

_CLAUSE = re.compile(r",?\s+(?:but|while|whereas|yet|however|because|since)\s|,\s+(?:so|and)\s", re.I)
_NOT = re.compile(r"\b(?:not|no|never|cannot)\b|n't\b", re.I)
_CHOICE = re.compile(r"\s*(?:choice|option|land[- ]use|decision|candidate|class|answer|guess|bet)\b", re.I)
_IS_NEXT = re.compile(
    r"\s*(?:(?:of all |overall |here )?(?:is|are|:|=|belongs to|goes to|comes from|->)|\(|-)\s*", re.I
)
_OF_ALL = re.compile(r"\s+of (?:all|the)\b", re.I)
_ITS = re.compile(r"\b(?:it|it's|this|that|which)\b", re.I)
_ADJOINS = re.compile(r"\s+(?:for\s+)?", re.I)
_THE_HIGHER = re.compile(r"\bthe\s+$", re.I)
_AS_VERB = re.compile(r"out-?yields?|outperforms?|surpass\w*|exceeds?|beats|above|below|[<>]", re.I)
_MAX_GAP = 35

Side = tuple[str | None, Mention | None]
"""The class and the place that one side of a comparison names."""


def comparison_claims(text: str, facts: Facts, parts: list[Sentence]) -> list[Claim]:
    """Every comparison of the text as a claim, in order (rules: this module's docstring)."""
    claims: list[Claim] = []
    metric: Mention | None = None
    products = [c.result for c in calculations(text) if "*" in c.left]
    for sentence in parts:
        for clause in _clauses(text, sentence):
            for m, mention in enumerate(clause):
                if mention.word in METRICS and not (mention.word is Word.CLASS and mention.value == HABITAT):
                    metric = mention
                found = None
                if mention.word in (Word.HIGHEST, Word.LOWEST) or _is_the_higher(text, clause, m):
                    found = _superlative(text, facts, clause, m, metric, _topic(mention, parts, products))
                elif mention.word in (Word.MORE, Word.LESS):
                    found = _pair(text, facts, clause, m, metric, _topic(mention, parts, products))
                claims += [found] if found else []
    return claims


def _topic(word: Mention, parts: list[Sentence], products: list[int]) -> Word:
    """Yield or worth, whichever was spoken of last; multiplying yields by prices speaks of worth."""
    said = [(m.start, m.word) for p in parts for m in p.all(Word.YIELD, Word.WORTH) if m.start < word.start]
    said += [(place, Word.WORTH) for place in products if place < word.start]
    return max(said, default=(0, Word.YIELD))[1]


def _clauses(text: str, sentence: Sentence) -> list[list[Mention]]:
    cuts = [sentence.start + c.start() + 1 for c in _CLAUSE.finditer(text[sentence.start : sentence.end])]
    edges = [sentence.start, *cuts, sentence.end]
    return [[m for m in sentence.mentions if a <= m.start < b] for a, b in zip(edges, edges[1:], strict=False)]


def _is_the_higher(text: str, clause: list[Mention], m: int) -> bool:
    """``the higher yield`` of two."""
    mention = clause[m]
    if mention.word is not Word.MORE or not _THE_HIGHER.search(text[: mention.start][-5:]):
        return False
    return m + 1 < len(clause) and clause[m + 1].word in (Word.YIELD, Word.CONNECTIVITY, Word.WORTH, Word.PRICE)


def _superlative(
    text: str, facts: Facts, clause: list[Mention], m: int, metric: Mention | None, topic: Word
) -> Claim | None:
    word, before, after = clause[m], clause[:m], clause[m + 1 :]
    start = clause[0].start
    if _CHOICE.match(text[word.end :]) or _NOT.search(
        text[start - 25 if start > 25 else 0 : word.start].split(".")[-1]
    ):
        return None
    near = [x for x in after if x.start - word.end < _MAX_GAP]
    role = next((x.word for x in near if x.word in (Word.YIELD, Word.CONNECTIVITY, Word.WORTH, Word.PRICE)), None)
    between = next((x for x in near if x.word is Word.CLASS and _ADJOINS.fullmatch(text[word.end : x.start])), None)
    if role is None and before and before[-1].word is Word.YIELD and text[before[-1].end : word.start].isspace():
        role = Word.YIELD  # "corn yields best"
    if word.value.lower() == "best" and not _OF_ALL.match(text[word.end :]) and role is None and not (near and near[0].word is Word.CLASS and between):
        return None
    if word.value.lower() == "most productive":
        role = Word.YIELD
    place = next((x for x in reversed(before) if x.word in PLACES), None)
    if role is None and between is None:
        spoken = next((x for x in reversed(before) if x.word in METRICS), None)
        if spoken is None and place is not None and place.word is Word.POSITION:
            spoken = metric
        role = Word.CONNECTIVITY if spoken is not None and spoken.word is Word.CONNECTIVITY else topic
    lowest = word.word is Word.LOWEST
    relation = Relation.LOWEST if lowest else Relation.HIGHEST
    named = _named_next(text, clause, m)
    if role is Word.CONNECTIVITY or (between is not None and named is None and (role is Word.YIELD or role is None)):
        return _of_places(facts, word, role, between, place, after, relation)
    subject = named or next((x for x in reversed(_no_object(text, before)) if x.word is Word.CLASS), None)
    subject = subject or next((x for x in after if x.word is Word.CLASS), None)
    if subject is None and metric is not None and metric.word is Word.CLASS and _ITS.search(text[start - 30 : word.start]):
        subject = metric
    if subject is not None and place is not None and place.word is Word.POSITION:
        return _of_places(facts, word, role, subject, place, after, relation)
    if subject is None:
        return None
    if any(x.word is Word.NEIGHBOURS for x in near) and subject in after:
        return None
    quantity = {Word.WORTH: Quantity.WORTH, Word.PRICE: Quantity.PRICE}.get(role or Word.YIELD, Quantity.YIELD)
    status = _extreme(facts, subject.value, quantity, lowest)
    return Claim(word.start, word.end, word.value, status, quantity, subject.value, CENTRAL, relation=relation)


def _named_next(text: str, clause: list[Mention], m: int) -> Mention | None:
    """``highest yield: wheat``, ``the highest is wheat``: the class that follows the superlative as its subject."""
    for k in range(m, len(clause) - 1):
        ahead = clause[k + 1]
        if ahead.word is Word.CLASS and _IS_NEXT.fullmatch(text[clause[k].end : ahead.start]):
            return ahead
        if ahead.word not in (Word.YIELD, Word.WORTH, Word.PRICE, Word.CENTRE):
            return None
    return None


def _no_object(text: str, mentions: list[Mention]) -> list[Mention]:
    """Without what stands behind ``than``."""
    return [x for x in mentions if not re.search(r"\bthan\s+$", text[max(0, x.start - 12) : x.start], re.I)]


def _of_places(
    facts: Facts,
    word: Mention,
    role: Word | None,
    crop: Mention | None,
    place: Mention | None,
    after: list[Mention],
    relation: Relation,
) -> Claim | None:
    if place is None or place.word is Word.NEIGHBOURS:
        near = [x for x in after if x.start - word.end < 2 * _MAX_GAP]
        if role is not Word.CONNECTIVITY or any(x.word is Word.NEIGHBOURS for x in near):
            return None  # the largest of the neighbours: a number, not a comparison
        place = next((x for x in near if x.word is Word.POSITION), None)
    code = CENTRAL if place is None or place.word is Word.CENTRE else place.value
    if code == CENTRAL and role is not Word.CONNECTIVITY:
        return None
    quantity = Quantity.CONNECTIVITY if role is Word.CONNECTIVITY else Quantity.YIELD
    status = Status.UNVERIFIABLE
    if code in facts.positions:
        k = None if crop is None or crop.value == HABITAT else facts.crops.index(crop.value)
        values = facts.connectivity if role is Word.CONNECTIVITY or k is None else facts.yields[:, k]
        best = values.min() if relation is Relation.LOWEST else values.max()
        status = judged(bool(values[facts.positions.index(code)] == best))
    subject = crop.value if crop is not None else None
    return Claim(word.start, word.end, word.value, status, quantity, subject, code, relation=relation)


def _extreme(facts: Facts, subject: str, quantity: Quantity, lowest: bool) -> Status:
    values = _values(facts, quantity)
    k = facts.classes.index(subject)
    if values is None or k >= len(values) or not values.any():
        return Status.UNVERIFIABLE
    grown = values[values > 0] if lowest else values
    return judged(bool(values[k] == (grown.min() if lowest else grown.max())))


def _values(facts: Facts, quantity: Quantity) -> np.ndarray | None:
    if quantity is Quantity.WORTH:
        return facts.worth()
    if quantity is Quantity.PRICE:
        return facts.effective_price
    return np.asarray(facts.yields[0])


def _pair(
    text: str, facts: Facts, clause: list[Mention], m: int, metric: Mention | None, topic: Word
) -> Claim | None:
    word = clause[m]
    if _NOT.search(text[max(0, word.start - 12) : word.start]):
        return None
    if _AS_VERB.fullmatch(word.value):
        right_start = word.end
    else:
        than = re.compile(r"[^.;<>]{0,35}?\bthan\b", re.I).match(text, word.end)
        if than is None:
            return None
        right_start = than.end()
    stop = next((x.start for x in clause[m + 1 :] if x.word in (Word.MORE, Word.LESS) and x.start >= right_start), None)
    edge = text.find(",", right_start)
    ends = [e for e in (stop, edge if edge > 0 else None) if e is not None]
    right = [x for x in clause[m + 1 :] if x.start >= right_start and all(x.start < e for e in ends)]
    since = max((k + 1 for k, x in enumerate(clause[:m]) if x.value in "<>"), default=0)
    left, middle = clause[since:m], [x for x in clause[m + 1 :] if x.end <= right_start]
    left_class = next((x.value for x in reversed(left) if x.word is Word.CLASS), None)
    right_class = next((x.value for x in right if x.word is Word.CLASS), None)
    left_place = next((x for x in reversed(left) if x.word in PLACES), None)
    right_place = next((x for x in right if x.word in (*PLACES, Word.MEAN)), None)
    relation = Relation.MORE if word.word is Word.MORE else Relation.LESS
    clause_words = {x.word for x in clause}
    if right_class is not None:
        if left_class is None and metric is not None and metric.word is Word.CLASS and metric.value != right_class:
            left_class = metric.value
        if left_class is None or left_class == right_class:
            return None
        quantity = Quantity.YIELD
        if Word.PRICE in clause_words:
            quantity = Quantity.PRICE
        elif HABITAT in (left_class, right_class) or (Word.YIELD not in clause_words and topic is Word.WORTH):
            quantity = Quantity.WORTH
            if facts.worth() is None:
                return None  # a preference
        values = _values(facts, quantity)
        pair = [facts.classes.index(c) for c in (left_class, right_class)]
        status = Status.UNVERIFIABLE
        if values is not None and max(pair) < len(values):
            status = _holds(float(values[pair[0]]), float(values[pair[1]]), relation)
        return Claim(
            word.start, word.end, word.value, status, quantity, left_class, CENTRAL, relation=relation, against=right_class
        )
    if right_place is not None:
        return _pair_of_places(facts, word, clause, middle, metric, left_place, right_place, right, relation)
    numbers = [next((x for x in side if x.word is Word.NUMBER), None) for side in (left[::-1], right)]
    if numbers[0] is None or numbers[1] is None or word.value not in "<>":
        return None
    status = _holds(float(numbers[0].value), float(numbers[1].value), relation)
    of = [next((k for k, y in enumerate(facts.yields[0]) if matches(x.value, float(y))), None) for x in numbers if x]
    if None in of:
        return Claim(word.start, word.end, word.value, status, relation=relation)
    crop, other = (facts.crops[k or 0] for k in of)
    return Claim(
        word.start, word.end, word.value, status, Quantity.YIELD, crop, CENTRAL, relation=relation, against=other
    )


def _pair_of_places(
    facts: Facts,
    word: Mention,
    clause: list[Mention],
    middle: list[Mention],
    metric: Mention | None,
    left: Mention | None,
    right: Mention,
    said: list[Mention],
    relation: Relation,
) -> Claim | None:
    spoken = next((x for x in (*middle, *clause) if x.word in METRICS and x.value != HABITAT), metric)
    if spoken is None:
        return None
    name = Quantity.CONNECTIVITY.value if spoken.word is Word.CONNECTIVITY else spoken.value
    ends = [_at(facts, name, left), _at(facts, name, right)]
    if right.word in (Word.MEAN, Word.NEIGHBOURS) or any(x.word is Word.MEAN for x in said):
        ends[1] = neighbour_summary(facts, name, "mean")
    quantity = Quantity.CONNECTIVITY if name == Quantity.CONNECTIVITY else Quantity.YIELD
    status = Status.UNVERIFIABLE
    if ends[0] is not None and ends[1] is not None:
        status = _holds(ends[0], ends[1], relation)
    subject = None if name == Quantity.CONNECTIVITY else name
    position = left.value if left is not None and left.word is Word.POSITION else CENTRAL
    return Claim(
        word.start, word.end, word.value, status, quantity, subject, position, relation=relation, against=right.value
    )


def _at(facts: Facts, metric: str, place: Mention | None) -> float | None:
    code = place.value if place is not None and place.word is Word.POSITION else CENTRAL
    if code not in facts.positions:
        return None
    row = facts.positions.index(code)
    if metric == Quantity.CONNECTIVITY:
        return float(facts.connectivity[row])
    return float(facts.yields[row, facts.crops.index(metric)])


def _holds(left: float, right: float, relation: Relation) -> Status:
    return judged(left > right if relation is Relation.MORE else left < right)
