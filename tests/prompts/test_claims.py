"""Claims are checked against the prompt's own numbers, to the digits that they print."""

import re
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.claims import Facts, Quantity, Relation, Status, claims, facts_of, matches
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset

S, C, U = Status.SUPPORTED, Status.CONTRADICTED, Status.UNVERIFIABLE
FACTS = Facts(
    classes=("spring_wheat", "oat", "habitat"),
    positions=("central", "N", "NE2", "N-N"),
    yields=np.array([[3.40, 2.50], [3.00, 0.00], [2.00, 2.80], [9.00, 9.00]]),
    connectivity=np.array([0.62, 0.40, 0.70, 0.90]),
)
PRICED = Facts(
    FACTS.classes,
    FACTS.positions,
    FACTS.yields,
    FACTS.connectivity,
    effective_price=np.array([300.0, 200.0]),
    habitat_price=900.0,
)


def numbers(text: str, facts: Facts = FACTS) -> list[Status]:
    return [c.status for c in claims(text, facts) if c.relation is None]


def compared(text: str, facts: Facts = FACTS) -> list[Status]:
    return [c.status for c in claims(text, facts) if c.relation is not None]


@pytest.mark.parametrize(
    ("text", "true", "right"),
    [
        ("3.4", 3.35, True),
        ("3.4", 3.449, True),
        ("3.4", 3.46, False),
        ("3.40", 3.41, False),
        ("0.43", 0.425, True),
        ("301", 300.6, True),
        ("301", 301.6, False),
    ],
)
def test_a_number_is_right_within_half_of_its_last_digit(text: str, true: float, right: bool) -> None:
    assert matches(text, true) is right


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("Spring wheat yields 3.4 t/ha and oat 2.6 t/ha.", [S, C]),
        ("spring_wheat_yield: 3.40, oat_yield: 2.50, ecological_connectivity: 0.62", [S, S, S]),
        ("3.40 t/ha of spring wheat against 2.50 t/ha of oat", [S, S]),
        ("Spring wheat and oat are at 3.40 and 2.50.", [S, S]),
        ("NE2 has oat 2.80, N has oat 0.00.", [S, S]),
        ("To the north spring wheat yields 3.00.", [S]),
        ("To the north spring wheat yields 3.40 t/ha.", [U]),  # printed elsewhere: perhaps read wrongly
        (
            "The neighbours' mean connectivity is 0.55, the centre has 0.62.",
            [S, S],
        ),  # (0.40 + 0.70) / 2, no second order
        ("The neighbours' mean connectivity is 0.67.", [C]),  # as if the second order counted
        ("Oat: (0.00 + 2.80) / 2 = 1.40.", [C, C, U, S]),  # not said to be the neighbours', but the sum is right
        ("Connectivity is below the threshold of 0.65.", [U]),
        ("Connectivity is 62 % there.", [U]),
        ("At 300 per tonne spring wheat is fine.", [U]),  # the prompt states no price
        ("1. Look at the 3 polygons.\n2. Decide.", [U]),
    ],
)
def test_numbers(text: str, statuses: list[Status]) -> None:
    assert numbers(text) == statuses


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("spring wheat 10.2 oat 5.0 habitat 5.6", [S, S, S]),  # hundreds per hectare: 3.4 * 300 = 1020
        ("spring wheat 3.40 * 300 = 1020, habitat 0.62 * 900 = 658", [S, S, S, S, S, C]),
        ("Spring wheat is worth 1020 per hectare.", [S]),
    ],
)
def test_numbers_at_prices(text: str, statuses: list[Status]) -> None:
    assert numbers(text, PRICED) == statuses


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("Spring wheat has the highest yield.", [S]),
        ("The highest yield is oat's.", [C]),
        ("Oat is lower than spring wheat.", [S]),
        ("spring wheat 3.40 > oat 2.50", [S]),
        ("The connectivity is higher than in the NE2.", [C]),
        ("The connectivity is above the neighbours' average.", [S]),
        ("Oat does not have the highest yield.", []),
        ("The best choice is oat.", []),
        ("Habitat is worth more than oat.", []),  # no price: a preference
    ],
)
def test_comparisons(text: str, statuses: list[Status]) -> None:
    assert compared(text) == statuses


def test_worth_decides_where_worth_is_compared() -> None:
    assert compared("Habitat is worth more than oat.", PRICED) == [S]  # 558 and 500
    assert compared("Oat is worth more than spring wheat.", PRICED) == [C]


def test_a_claim_says_what_it_is_about() -> None:
    (claim,) = claims("N has spring wheat 3.00.", FACTS)
    assert (claim.quantity, claim.subject, claim.position, claim.true) == (Quantity.YIELD, "spring_wheat", "N", 3.0)
    (claim,) = claims("spring wheat beats oat", FACTS)
    assert (claim.relation, claim.subject, claim.against) == (Relation.MORE, "spring_wheat", "oat")


@pytest.mark.parametrize("context", ["none", "prices"])
@pytest.mark.parametrize("layout", ["compact", "full"])
def test_every_number_of_every_rationale_is_supported(source: Callable[..., Source], layout: str, context: str) -> None:
    crops = ("wheat", "oat", "canola", "spring_rye")
    frame = build_dataset([source(8, 8, crops=crops)], PromptConfig(order=1, layout=layout, context=context)).frame
    for row in frame.to_dict("records"):
        rationale = row["target"].partition("</think>")[0].removeprefix("<think>")
        said = [c for c in claims(rationale, facts_of(row)) if c.relation is None]
        assert len(said) == len(re.findall(r"\d+(?:\.\d+)?", rationale)) > 0
        assert {c.status for c in said} == {S}, rationale


def test_a_forged_number_of_a_rationale_is_contradicted(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(6, 6, crops=("wheat", "oat"))], PromptConfig(layout="full")).frame
    for row in frame.to_dict("records"):
        facts = facts_of(row)
        rationale = row["target"].partition("</think>")[0].removeprefix("<think>")
        for number in re.finditer(r"\d+(?:\.\d+)?", rationale):
            forged = rationale[: number.start()] + "7" + number.group() + rationale[number.end() :]
            said = {c.start: c.status for c in claims(forged, facts) if c.relation is None}
            assert said[number.start()] is C, forged


def test_facts_tell_what_a_row_leaves_out() -> None:
    row = {"classes": ["oat", "habitat"], "positions": ["central"], "yields": [[1.0]], "connectivity": [0.5]}
    facts = facts_of({**row, "effective_price": None, "habitat_price": float("nan")})
    assert facts.effective_price is None
    assert facts.habitat_price is None
    assert facts.worth() is None
    with pytest.raises(ValueError, match="end with 'habitat'"):
        facts_of({**row, "classes": ["habitat", "oat"]})


WORDS = ["wheat", "oat", "spring wheat", "habitat", "N", "north", "neighbours", "average", "highest", "is", ">", "than"]
WORDS += [
    "more",
    "connectivity",
    "3.40",
    "2.5",
    "0",
    "=",
    "+",
    "*",
    "/",
    "(",
    ")",
    ",",
    ".",
    "\n",
    "yield",
    "per tonne",
    "it",
]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_any_string_of_words_can_be_read(text: str) -> None:
    found = claims(text, PRICED)
    said = [c for c in found if c.relation is None]
    assert [c.text for c in said] == re.findall(r"3\.40|2\.5|\b0\b", text)
    assert all(text[c.start : c.end] == c.text for c in found)


@pytest.mark.parametrize("word", ["1", "(", "1 + ", " ", "wheat ", "1, ", "higher ", "> ", "0.5 * ", "1 + 1 = 2. "])
def test_a_text_that_repeats_itself_is_read_in_time(word: str) -> None:
    began = time.perf_counter()
    claims(word * 4000, PRICED)
    assert time.perf_counter() - began < 3.0
