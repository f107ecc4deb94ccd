"""Rationales in sentences: what a polygon's own numbers say, in one of several wordings.

Four parts, each true of the printed prompt whatever the label is::

    ranking       Worth per hectare: wheat 3.11 * 301 = 936, oat 2.71 * 266 = 721. No yield: soy.
    connectivity  Habitat: 0.50 * 812 = 406, 530 below wheat.
    neighbours    Of 8 direct neighbours 2 are worth most as habitat: N, NE.
    conclusion    So wheat.   (or, where the numbers speak for another class, by how much, and that the plan decided)

Differences are those of the rounded values as written. A rationale has at most :data:`MOST_TOKENS` tokens, counting
words, signs and every single digit (:func:`tokens`), as today's tokenizers split numbers: so the best two crops are
multiplied out, two more are stated with their value (fewer where the text would grow too long), and the rest is
counted.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np

from oracle.landscape import HABITAT
from prompts.neighbourhood import Neighbourhoods

MOST_TOKENS = 120
_TOKEN = re.compile(r"\d|[^\W\d]+|[^\w\s]")
_MULTIPLIED, _NAMED = 2, 3
_STATED = (4, 3, 2)
"""Crops stated with a value, as many as the tokens allow."""

_RANKING = (
    "Worth per hectare: {}.",
    "Yield times price, from high to low: {}.",
    "At these prices a hectare brings {}.",
    "First the crops: {}.",
)
_YIELDS = (
    "Yields from high to low: {}.",
    "By yield in t/ha: {}.",
    "The crops rank {}.",
    "First the crops: {}.",
)
_FIRST = (
    "So {}.",
    "That puts {} first.",
    "Worth most is {}.",
    "The best of these is {}.",
)
_OTHERWISE = (
    "By itself {best} is worth more than {label}; the plan of the whole landscape has {label} here.",
    "{label} is worth less than {best} here, yet the plan of the whole landscape takes {label}.",
    "Its own values favour {best}; the landscape's plan still has {label}.",
    "Alone, {best} would be ahead of {label}; the whole landscape's plan has {label} here.",
)
_BORDER = (
    "By itself {best} is worth more; border with habitat beside it counts besides, and the plan has habitat.",
    "Habitat falls short of {best}; border with other habitat adds to it, and the landscape's plan has habitat.",
    "{best} is ahead by itself, but habitat earns more along other habitat: the plan has habitat here.",
    "Alone, {best} leads; habitat gains by border with habitat, and that is what the plan has.",
)


def tokens(text: str) -> int:
    """Words, signs and single digits in a text."""
    return len(_TOKEN.findall(text))


def worded(shown: Neighbourhoods, values: np.ndarray | None, i: int, label: str) -> str:
    """The rationale of polygon i, for its label.

    Parameters
    ----------
    shown : Neighbourhoods
        Of n polygons, K crops.
    values : (n, K + 1) array or None
        Worth of each class at the printed prices, currency/ha; None where the prompt states no prices.
    i : int
        Row position.
    label : str
        The oracle's class.
    """
    digest = hashlib.sha256(f"{shown.landscape}:{shown.ids[i]}".encode()).digest()
    opening, ending = digest[0] % len(_RANKING), digest[1] % len(_FIRST)
    grown = np.flatnonzero(shown.yields.value[i] > 0).tolist()
    if values is None:
        ranked = sorted(grown, key=lambda k: -shown.yields.value[i, k])
        crops = [f"{shown.crops[k]} {shown.yields.text[i, k]}" for k in ranked]
        sentence = _YIELDS[opening]
        rest = [_connectivity_around(shown, i), _on_yields(shown, i, label)]
    else:
        assert shown.prices is not None
        whole = [round(v) for v in values[i].tolist()]
        ranked = sorted(grown, key=lambda k: -whole[k])
        product = {k: f"{shown.yields.text[i, k]} * {shown.prices.effective.text[k]} = " for k in ranked[:_MULTIPLIED]}
        crops = [f"{shown.crops[k]} {product.get(k, '')}{whole[k]}" for k in ranked]
        sentence = _RANKING[opening]
        wild, around = _habitat_around(shown, values, i)
        rest = [_habitat_against_crops(shown, whole, i), around, _on_values(shown, whole, label, ending, wild)]
    for stated in _STATED:
        text = " ".join(filter(None, [_ranking(sentence, crops, stated), _barren(shown, i), *rest]))
        if tokens(text) <= MOST_TOKENS:
            break
    return text


def _ranking(sentence: str, crops: list[str], stated: int) -> str:
    if not crops:
        return ""
    more = len(crops) - stated
    return sentence.format(", ".join(crops[:stated]) + (", the rest no higher" if more > 0 else ""))


def _barren(shown: Neighbourhoods, i: int) -> str:
    none = [crop for k, crop in enumerate(shown.crops) if shown.yields.value[i, k] <= 0]
    if not none:
        return ""
    if len(none) == len(shown.crops):
        return "No crop has a yield here."
    return f"No yield: {_few(none)}."


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (" and others" if more > 0 else "")


def _habitat_against_crops(shown: Neighbourhoods, whole: list[int], i: int) -> str:
    assert shown.prices is not None
    worth = f"Habitat: {shown.connectivity.text[i]} * {shown.prices.habitat.text} = {whole[-1]}"
    if not (shown.yields.value[i] > 0).any():
        return f"{worth}."
    best = int(np.argmax(whole[:-1]))
    apart = whole[-1] - whole[best]
    if apart == 0:
        return f"{worth}, as much as {shown.crops[best]}."
    return f"{worth}, {'above' if apart > 0 else 'below'} {shown.crops[best]}."


def _direct(shown: Neighbourhoods, i: int) -> tuple[list[int], list[str]]:
    """Row positions and codes of the first-order neighbours shown."""
    rows, codes = shown.rows(i)[1:], shown.positions(i)[1:]
    near = [(row, code) for row, code in zip(rows, codes, strict=True) if "-" not in code]
    return [row for row, _ in near], [code for _, code in near]


def _habitat_around(shown: Neighbourhoods, values: np.ndarray, i: int) -> tuple[bool, str]:
    """Whether some direct neighbour is worth most as habitat, and the sentence about them."""
    rows, codes = _direct(shown, i)
    if not rows:
        return False, ""
    wild = values[rows, -1] > values[rows, :-1].max(axis=1)
    found = [code for code, is_wild in zip(codes, wild.tolist(), strict=True) if is_wild]
    if not found:
        return False, "No direct neighbour is worth most as habitat."
    return True, f"Direct neighbours worth most as habitat: {_few(found)}."


def _connectivity_around(shown: Neighbourhoods, i: int) -> str:
    own = f"Ecological connectivity: {shown.connectivity.text[i]}"
    rows, _ = _direct(shown, i)
    if not rows:
        return f"{own}."
    mean = float(f"{shown.connectivity.value[rows].mean():.2f}")
    here = float(shown.connectivity.value[i])
    than = "above" if here > mean else "below" if here < mean else "equal to"
    return f"{own}, {than} the direct neighbours' mean of {mean:.2f}."


def _on_values(shown: Neighbourhoods, whole: list[int], label: str, ending: int, wild: bool) -> str:
    assert shown.prices is not None
    names = (*shown.crops, HABITAT)
    best, own = int(np.argmax(whole)), whole[names.index(label)]
    if own == whole[best]:
        alone = whole.count(own) == 1
        return (_FIRST[ending] if alone else "{} is worth no less than any other.").format(label)
    gains_by_border = label == HABITAT and wild and float(shown.prices.adjacency.value) > 0
    sentences = _BORDER if gains_by_border else _OTHERWISE
    return sentences[ending].format(best=names[best], label=label)


def _on_yields(shown: Neighbourhoods, i: int, label: str) -> str:
    yields = shown.yields.value[i]
    if not (yields > 0).any():
        return "So habitat." if label == HABITAT else ""
    best = shown.crops[int(yields.argmax())]
    if label == HABITAT:
        return (
            f"A yield of {best} and connectivity cannot be compared without prices; the landscape's plan has habitat."
        )
    k = shown.crops.index(label)
    if yields[k] == yields.max():
        return f"No crop yields more than {label}, and the landscape's plan has it here."
    return f"{best} yields more than {label}, yet the plan of the whole landscape has {label} here."
