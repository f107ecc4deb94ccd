"""The numbers of a completion, each with what it is of, held against the prompt.

A number belongs to the class or to the connectivity next to it (``wheat 3.4``, ``3.4 t/ha of wheat``), else to the last
one mentioned, and to the last place mentioned in its sentence, else the centre. Thresholds, weights, percentages and
counts are unverifiable, and so is what the prompt does not state.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.landscape import HABITAT
from prompts.arithmetic import Calculation, calculations
from prompts.claim import Claim, Quantity, Status, judged, matches
from prompts.facts import Facts
from prompts.mentions import METRICS, PLACES, Mention, Sentence, Word
from prompts.neighbourhood import CENTRAL

_LOOSE = re.compile(
    r"(?:\b(?:above|below|over|under|than|at (?:least|most)|threshold(?: of)?|cut-?off(?: of)?|differ\w*"
    r"(?: (?:by|of|is))?(?: (?:only|just))?)|[≥≤])\s*$",
    re.I,
)
_COUNTED = re.compile(
    r"\s*(?:%|percent|(?:other |direct |of the )?(?:neighbou?rs|polygons|crops|cells|classes|fields))"
)
_OF = re.compile(r"\s*(?:t/ha|t|tonnes|/ha)?\s*(?:of|for|in)\s+(?:the )?$", re.I)
_AT = re.compile(r"\s*(?:t/ha)?(?:\s*of [\w ]+?)?(?:,?\s+(?:at|in|for|to)\s+(?:the )?|\s*\(|\s+(?=$))", re.I)
_AGAINST = re.compile(r"\b(?:against|versus|vs)\b", re.I)
_UNIT = re.compile(r"\s*(?:currency)?\s*$")
_ELSEWHERE = "of something else"
_SUMMARY = {Word.MEAN: "mean", Word.HIGHEST: "maximum", Word.LOWEST: "minimum"}
_SCORE = re.compile(r"\bscor\w+|\btotal\b|\bindex\b|\bcombined\b", re.I)
_RUNS_ON = (Word.CLASS, Word.MORE, Word.LESS)
_REFERENCE = re.compile(r"\breference\b", re.I)


@dataclass
class _Reading:
    """What the words so far have been about."""

    metric: str | None = None
    run: list[str] = field(default_factory=list)
    run_began: int = -1
    place: Mention | None = None
    group: list[str] = field(default_factory=list)
    summary: str | None = None
    neighbours_before: bool = False


def number_claims(text: str, facts: Facts, parts: list[Sentence]) -> list[Claim]:
    """Every number of the text as a claim, in order (rules: this module's docstring)."""
    reading, written, claims = _Reading(), calculations(text), []
    for sentence in parts:
        reading.place, reading.group, reading.summary = None, [], None
        before: Mention | None = None
        for m, mention in enumerate(sentence.mentions):
            if mention.word is Word.NUMBER:
                claims.append(_claim(text, facts, sentence, m, reading, written))
                if claims[-1].mean_of is not None:  # said once: what follows is about the centre again
                    reading.place, reading.summary = None, None
            else:
                _listen(text, mention, before, reading, facts)
            before = mention
        reading.neighbours_before |= sentence.has(Word.NEIGHBOURS)
    return claims


def _listen(text: str, mention: Mention, before: Mention | None, reading: _Reading, facts: Facts) -> None:
    if mention.word is Word.CONNECTIVITY:
        reading.metric, reading.run = Quantity.CONNECTIVITY.value, []
    elif mention.word is Word.CLASS and mention.value != HABITAT:
        if before is not None and before.word in _RUNS_ON and reading.run:
            reading.run.append(mention.value)
        else:
            reading.run, reading.run_began = [mention.value], mention.start
        reading.metric = mention.value
    elif mention.word in PLACES:
        continues = before is not None and before.word is Word.POSITION and mention.word is Word.POSITION
        code = CENTRAL if mention.word is Word.CENTRE else mention.value
        reading.group = [*reading.group, code] if continues else [code]
        reading.place = mention
        if mention.word is Word.CENTRE and reading.summary == "mean":
            reading.summary = _ELSEWHERE
        elif mention.word is Word.POSITION:
            reading.summary = None
    elif mention.word in _SUMMARY:
        reading.summary = _SUMMARY[mention.word]


def _claim(text: str, facts: Facts, sentence: Sentence, m: int, reading: _Reading, written: list[Calculation]) -> Claim:
    number = sentence.mentions[m]
    begun = bisect_right(written, number.start, key=lambda c: c.start)  # a result may begin the next calculation
    near = written[max(begun - 2, 0) : begun]
    calculation = next((c for c in near if c.start <= number.start < c.end or c.result == number.start), None)
    if calculation is not None and calculation.result == number.start:
        return _result(number, calculation, sentence, m, reading)
    if calculation is not None:  # what is calculated with is of what its first number is of
        m = next(k for k, x in enumerate(sentence.mentions) if x.start >= calculation.start and x.word is Word.NUMBER)
    metric, spoken = _metric(text, sentence, m, reading)
    place, positions = _place(text, sentence, m, reading, facts)
    if calculation is not None:
        return _operand(number, calculation, facts, metric, reading, positions)
    if _is_loose(text, sentence, number, spoken) or reading.summary == _ELSEWHERE:
        return Claim(number.start, number.end, number.value, Status.UNVERIFIABLE)
    summary = reading.summary if place in (Word.NEIGHBOURS, None) else None
    if place is None and summary != "mean":
        summary = None  # the largest of the crops, not of the neighbours
    if summary is not None and place is None and not reading.neighbours_before:
        return Claim(number.start, number.end, number.value, Status.UNVERIFIABLE)
    if summary is not None:
        return _summarised(number, facts, metric, summary)
    if not spoken and any(x.value in "<>" for x in sentence.mentions[max(m - 1, 0) : m + 2]):
        metric = None  # "since 3.00 > 2.50"
    options = _options(text, sentence, m, facts, metric, positions)
    certain = metric is not None and (spoken or not _printed(facts, number.value))
    return _judge(number, facts, options, metric, positions, certain=certain)


def _is_loose(text: str, sentence: Sentence, number: Mention, spoken: bool) -> bool:
    """A threshold, a difference, a percentage or a count."""
    if _COUNTED.match(text[number.end : number.end + 40]):
        return True
    if spoken or sentence.has(Word.SUPPLY):
        return False
    return _LOOSE.search(text[max(sentence.start, number.start - 30) : number.start]) is not None


def _printed(facts: Facts, number: str) -> bool:
    """The prompt prints this yield or connectivity somewhere: read wrongly here, it may be of another place."""
    return any(matches(number, v) for v in (*facts.yields.ravel(), *facts.connectivity))


def _metric(text: str, sentence: Sentence, m: int, reading: _Reading) -> tuple[str | None, bool]:
    """The class, or connectivity, that number m of the sentence is of; and whether a word right beside it says so."""
    number = sentence.mentions[m]
    for later in sentence.mentions[m + 1 :]:
        if later.word in METRICS and _OF.fullmatch(text[number.end : later.start]):
            return _named(later), True
        if later.word is Word.NUMBER:
            break
    for earlier in reversed(sentence.mentions[:m]):
        if earlier.word is Word.NUMBER or "," in text[earlier.end : number.start]:
            break
        if earlier.word in METRICS:
            gap = number.start - earlier.end
            if gap <= 4 or (gap < 25 and (len(reading.run) < 2 or earlier.value == HABITAT)):
                return _named(earlier), gap <= 4
            break
    following = sentence.mentions[m + 1] if m + 1 < len(sentence.mentions) else None
    if following and following.word in METRICS and _UNIT.fullmatch(text[number.end : following.start]):
        return _named(following), True
    if reading.run and reading.run_began < sentence.start:  # said before: its first class is the topic
        return reading.run[0], False
    if reading.run:  # "canola and rye are 1.10 and 1.90"
        since = max((k for k, x in enumerate(sentence.mentions[:m]) if x.word is Word.CLASS), default=-1)
        place = sum(x.word is Word.NUMBER for x in sentence.mentions[since + 1 : m])
        return reading.run[min(place, len(reading.run) - 1)], False
    return reading.metric, False


def _named(mention: Mention) -> str:
    return Quantity.CONNECTIVITY.value if mention.word is Word.CONNECTIVITY else mention.value


def _place(
    text: str, sentence: Sentence, m: int, reading: _Reading, facts: Facts
) -> tuple[Word | None, list[int] | None]:
    """The word for the place of number m, and its rows; None where the prompt does not show the place."""
    number = sentence.mentions[m]
    for later in sentence.mentions[m + 1 : m + 4]:
        if later.word in (Word.POSITION, Word.CENTRE) and _AT.fullmatch(text[number.end : later.start]):
            return later.word, _rows([CENTRAL if later.word is Word.CENTRE else later.value], facts)
        if later.word in (Word.NUMBER, *PLACES):
            break
    if reading.place is None:
        return None, [0]
    if reading.place.word is Word.NEIGHBOURS:
        return Word.NEIGHBOURS, facts.first_order or None
    group = reading.group
    if sentence.has(Word.MORE, Word.LESS) and _AGAINST.search(text[number.end - 20 : number.end + 20]):
        group = [CENTRAL, *group]  # "lower than in SE: 1.90 against 2.70"
    return reading.place.word, _rows(group, facts)


def _rows(codes: Iterable[str], facts: Facts) -> list[int] | None:
    return [facts.positions.index(c) for c in codes if c in facts.positions] or None


def _result(number: Mention, calculation: Calculation, sentence: Sentence, m: int, reading: _Reading) -> Claim:
    status = Status.UNVERIFIABLE
    if calculation.value is not None:
        status = judged(matches(number.value, calculation.value))
    before = [x for x in sentence.mentions[:m] if x.word is Word.CLASS]
    averaged = any(x.word is Word.MEAN for x in sentence.mentions[:m]) and "/" in calculation.left
    mean = "mean" if averaged and (reading.place is None or reading.place.word is not Word.CENTRE) else None
    subject = before[-1].value if before else reading.metric
    return Claim(
        number.start, number.end, number.value, status, Quantity.RESULT, subject, None, mean, calculation.value
    )


def _operand(
    number: Mention,
    calculation: Calculation,
    facts: Facts,
    metric: str | None,
    reading: _Reading,
    positions: list[int] | None,
) -> Claim:
    value = number.value
    if calculation.sign_before(number.start) == "/":
        return Claim(number.start, number.end, value, Status.UNVERIFIABLE)
    rows = positions if positions is not None else [0]
    if "/" in calculation.left and reading.neighbours_before and reading.place is None:
        rows = facts.first_order
    if "/" in calculation.left and reading.summary == "mean":
        rows = facts.first_order
    options = [o for o in _known(facts, metric, rows) if o[0] is not Quantity.WORTH]
    options += [(Quantity.CONNECTIVITY, float(facts.connectivity[r]), r) for r in rows]
    claim = _judge(number, facts, options, metric, rows, certain=True)
    factor = "*" in (calculation.sign_before(number.start), calculation.sign_after(number.end))
    if claim.status is Status.CONTRADICTED and factor and "+" in calculation.left:
        return Claim(number.start, number.end, value, Status.UNVERIFIABLE)  # a weight
    return claim


def _summarised(number: Mention, facts: Facts, metric: str | None, summary: str) -> Claim:
    true = neighbour_summary(facts, metric, summary)
    quantity = Quantity.CONNECTIVITY if metric == Quantity.CONNECTIVITY else Quantity.YIELD
    status = Status.UNVERIFIABLE if true is None else judged(matches(number.value, true))
    return Claim(number.start, number.end, number.value, status, quantity, metric, None, summary, true)


def neighbour_summary(facts: Facts, metric: str | None, summary: str) -> float | None:
    """Mean, maximum or minimum of a crop's yield, or of connectivity, over the direct neighbours."""
    rows = facts.first_order
    if not rows or metric is None:
        return None
    values = facts.yields[rows, facts.crops.index(metric)] if metric in facts.crops else facts.connectivity[rows]
    return float({"mean": values.mean(), "maximum": values.max(), "minimum": values.min()}[summary])


def _options(
    text: str, sentence: Sentence, m: int, facts: Facts, metric: str | None, positions: list[int] | None
) -> list[tuple[Quantity, float, int | None]]:
    """What the number may be, by the words around it: (quantity, true value, row)."""
    number = sentence.mentions[m]
    unit = sentence.mentions[m + 1] if m + 1 < len(sentence.mentions) else None
    near = unit.word if unit is not None and _UNIT.fullmatch(text[number.end : unit.start]) else None
    known = _known(facts, metric, positions)
    wanted: set[Quantity] | None = None
    if near is Word.YIELD:
        wanted = {Quantity.YIELD}
    elif near is Word.PRICE:
        wanted = {Quantity.PRICE}
    elif near is Word.WORTH:
        wanted = {Quantity.WORTH, Quantity.PRICE}
    elif near is Word.BORDER:
        return [] if facts.adjacency_price is None else [(Quantity.PRICE, facts.adjacency_price, None)]
    elif sentence.has(Word.YIELD) and not sentence.has(Word.PRICE, Word.WORTH, Word.SUPPLY):
        wanted = {Quantity.YIELD, Quantity.CONNECTIVITY}
    said = text[max(sentence.start, number.start - 120) : number.start]
    if _SCORE.search(said) and metric in facts.crops:
        k = facts.crops.index(metric)
        known.append((Quantity.SCORE, float(facts.yields[0, k] + facts.connectivity[0]), None))
        wanted = None
    if sentence.has(Word.SUPPLY):
        stated = (
            facts.reference_supply_t if _REFERENCE.search(text[number.start - 40 : number.start]) else facts.floor_t
        )
        crops = [facts.crops.index(metric)] if metric in facts.crops else range(len(facts.crops))
        known += [] if stated is None else [(Quantity.SUPPLY, float(stated[k]), None) for k in crops]
    return [o for o in known if wanted is None or o[0] in wanted]


def _known(facts: Facts, metric: str | None, positions: list[int] | None) -> list[tuple[Quantity, float, int | None]]:
    if positions is None:
        return []
    crops = [facts.crops.index(metric)] if metric in facts.crops else []
    if metric is None:
        crops = list(range(len(facts.crops)))
    known: list[tuple[Quantity, float, int | None]] = [
        (Quantity.YIELD, float(facts.yields[r, k]), r) for r in positions for k in crops
    ]
    if metric in (None, HABITAT, Quantity.CONNECTIVITY.value):
        known += [(Quantity.CONNECTIVITY, float(facts.connectivity[r]), r) for r in positions]
    for prices in (facts.effective_price, facts.market_price, facts.supplement):
        known += [] if prices is None else [(Quantity.PRICE, float(prices[k]), None) for k in crops]
    if metric == HABITAT and facts.habitat_price is not None:
        known.append((Quantity.PRICE, facts.habitat_price, None))
    worth = facts.worth()
    if worth is not None and 0 in positions:
        of = [*crops, *([len(facts.crops)] if metric == HABITAT else [])]
        known += [(Quantity.WORTH, float(worth[k]) / unit, None) for k in of for unit in (1.0, 100.0)]
    return known


def _judge(
    number: Mention,
    facts: Facts,
    options: list[tuple[Quantity, float, int | None]],
    metric: str | None,
    positions: list[int] | None,
    *,
    certain: bool,
) -> Claim:
    """Supported where an option matches; contradicted where none does and the text says what the number is of."""
    hit = next((o for o in options if matches(number.value, o[1])), None)
    chosen = hit or (options[0] if len(options) == 1 else None)
    status = Status.SUPPORTED if hit else Status.CONTRADICTED if certain and options else Status.UNVERIFIABLE
    quantity = chosen[0] if chosen else Quantity.UNKNOWN
    row = chosen[2] if chosen else positions[0] if positions is not None and len(positions) == 1 else None
    return Claim(
        start=number.start,
        end=number.end,
        text=number.value,
        status=status,
        quantity=quantity,
        subject=metric if metric != Quantity.CONNECTIVITY else None,
        position=None if row is None else facts.positions[row],
        true=chosen[1] if chosen else None,
    )
