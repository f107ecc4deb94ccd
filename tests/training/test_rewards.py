"""Rewards and the reading of turns: the shared table of cases, and what must hold for any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.errors import ConfigurationError, DatasetError, TrainingError
from training.rewards import LengthSection, RegretSection, build_rewards, repetition_penalty
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


def test_regret_by_hand() -> None:
    """Regrets 0, 2, 8 and impossible: by the row's own scale 1, 3/4, 0 and 0; at scale 4 1, 1/2, 0 and 0."""
    classes, lost = ["oat", "soy", "corn", "rye"], [0.0, 2.0, 8.0, float("inf")]
    said = [f"<answer>{c}</answer>" for c in classes] + ["no answer"]
    columns = {"classes": [classes] * 5, "regret_low": [lost] * 5}
    (by_row,) = build_rewards(["regret_reward"])
    (by_scale,) = build_rewards(["regret_reward"], regret=RegretSection(scale=4.0))
    assert by_row(said, said, **columns) == [1.0, 0.75, 0.0, 0.0, 0.0]
    assert by_scale(said, said, **columns) == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert by_row(said[:2], said[:2], classes=[["oat", "soy"]] * 2, regret_low=[[0.0, 0.0]] * 2) == [1.0, 1.0]


def test_length_by_hand() -> None:
    (reward,) = build_rewards(["length_reward"], length=LengthSection(target=4, tolerance=2))
    assert reward([], ["a b c d", "a b c", "a b", "", "a b c d e f g"]) == [1.0, 0.5, 0.0, 0.0, 0.0]


def test_a_reward_of_one_s_own_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rewards.py").write_text(
        "def brevity(prompts, completions, **_):\n    return [-len(c) for c in completions]\n"
        "def silent(prompts, completions, **_):\n    return [None for _ in completions]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own, silent = build_rewards(["my_rewards:brevity", "my_rewards:silent"])
    assert own.__name__ == "my_rewards:brevity"
    assert own([], ["abc", ""]) == [-3.0, 0.0]
    with pytest.raises(TrainingError, match="my_rewards:silent gave no number"):
        silent([], ["abc"])
    for name, said in (("my_rewards:length", "no attribute"), ("not_there:f", "No module"), ("a b:f", "no reward is")):
        with pytest.raises(ConfigurationError, match=said):
            build_rewards([name])


def test_a_tied_class_is_right_where_the_row_accepts_it() -> None:
    (reward,) = build_rewards(["lu_reward"])
    said = ["<think>a</think><answer>oat</answer>", "<think>a</think><answer>soy</answer>"]
    columns = {"answer": ["wheat"] * 2, "classes": [["wheat", "oat", "soy"]] * 2}
    assert reward(said, said, **columns) == [0.0, 0.0]
    assert reward(said, said, **columns, accepted=[["wheat", "oat"]] * 2) == [1.0, 0.0]
