"""Rewards and the reading of turns: the shared table of cases, and what must hold for any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.errors import ConfigurationError, DatasetError
from training.rewards import build_rewards, repetition_penalty
from training.turn import TAGS, read_turn

CLASSES = ["wheat", "oat", "corn", "soy", "habitat"]
CASES = [json.loads(line) for line in (Path(__file__).parent.parent / "cases/rewards.jsonl").read_text().splitlines()]
TURNS = [case for case in CASES if "id" in case]
REPETITIONS = [case for case in CASES if "ngram" in case]
PIECES = st.lists(st.sampled_from([*TAGS, " ", "\n", "wheat", "Oat", "corn.", "barley", "0.7"]), max_size=12).map(
    "".join
)


def _reward(name: str, case: dict) -> float:
    (reward,) = build_rewards([name], prefill=case["prefill"])
    (value,) = reward(["?"], [case["completion"]], answer=[case["answer"]], classes=[CLASSES])
    return value


@pytest.mark.parametrize("case", TURNS, ids=[f"{c['id']}-{c['name']}" for c in TURNS])
def test_turn(case: dict) -> None:
    assert _reward("format_reward", case) == case["format"]
    if case["land_use"] is None:  # the oracle's class is not one of the row's: the dataset is wrong, not the model
        with pytest.raises(DatasetError, match="barley"):
            _reward("lu_reward", case)
    else:
        assert _reward("lu_reward", case) == case["land_use"]


@pytest.mark.parametrize("case", REPETITIONS, ids=[c["completion"] or "empty" for c in REPETITIONS])
def test_repetition(case: dict) -> None:
    reward = repetition_penalty(case["ngram"], case["max_penalty"])
    assert reward(["?"], [case["completion"]]) == [pytest.approx(case["repetition"], abs=1e-6)]


def test_every_case_of_the_table_is_a_test() -> None:
    assert (len(TURNS), len(REPETITIONS), len(CASES)) == (31, 7, 38)


@given(PIECES)
def test_a_well_formed_turn_always_decides(text: str) -> None:
    turn = read_turn(text, CLASSES)
    assert turn.decision in {None, *CLASSES}
    assert not turn.well_formed or turn.decision is not None


@given(PIECES)
def test_a_template_that_opens_the_think_block_changes_nothing(text: str) -> None:
    whole = read_turn("<think>" + text, CLASSES)
    split = read_turn(text, CLASSES, prefill="<think>")
    if not text.lstrip().startswith("<think>"):
        assert (split.decision, split.well_formed) == (whole.decision, whole.well_formed)


@given(PIECES, st.sampled_from(CLASSES))
def test_a_second_answer_block_takes_the_decision_away(text: str, name: str) -> None:
    block = f"<answer>{name}</answer>"
    assert read_turn(text + block + block, CLASSES).decision is None


@given(st.text(max_size=60), st.integers(1, 5), st.floats(-5, 0))
def test_repetition_lies_between_the_penalty_and_nothing(text: str, ngram: int, penalty: float) -> None:
    (value,) = repetition_penalty(ngram, penalty)(["?"], [text])
    assert penalty <= value <= 0


def test_an_answer_alone_is_well_formed_where_only_that_is_asked_for() -> None:
    bare, reasoned = "<answer>oat</answer>", "<think>x</think><answer>oat</answer>"
    assert [read_turn(t, CLASSES, thinks=False).well_formed for t in (bare, reasoned)] == [True, False]
    assert [read_turn(t, CLASSES, thinks=True).well_formed for t in (bare, reasoned)] == [False, True]


def test_crops_come_from_the_row_and_not_from_a_list_of_five() -> None:
    (reward,) = build_rewards(["lu_reward"])
    said, classes = "<think>x</think><answer>Barley</answer>", ["barley", "habitat"]
    assert reward(["?"] * 2, [said] * 2, answer=classes, classes=[classes] * 2) == [1.0, 0.0]


def test_unknown_names_and_rewarded_repetition_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="lu_rewrad"):
        build_rewards(["lu_rewrad"])
    with pytest.raises(ConfigurationError, match="negative"):
        build_rewards(["repetition_penalty"], max_penalty=0.5)
