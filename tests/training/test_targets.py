"""Controls: labels that say nothing, targets that teach the format alone; held-out rows stay what they are."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from oracle.errors import DatasetError
from prompts.answer_only import answer_only
from prompts.config import Layout, Style
from training.config import Stage, load_profile
from training.preflight import problems
from training.targets import shuffled_labels
from training.trainer import training_rows
from training.turn import read_turn


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=12, rows=100, held_out=2)


def test_shuffled_labels_keep_their_shares_and_lose_their_rows(frame: pd.DataFrame) -> None:
    train = frame[frame["split"] == "train"]
    shuffled = training_rows(frame, load_profile("pocket", ["labels_shuffled=true"]))
    assert shuffled["answer"].value_counts().to_dict() == train["answer"].value_counts().to_dict()
    chance = (train["answer"].value_counts(normalize=True) ** 2).sum()
    kept = (shuffled["answer"].to_numpy() == train["answer"].to_numpy()).mean()
    assert kept == pytest.approx(chance, abs=0.05)  # 1,000 rows: standard error 0.014


def test_a_shuffled_row_is_whole_and_keeps_its_reasoning(frame: pd.DataFrame) -> None:
    train = frame[frame["split"] == "train"].reset_index(drop=True)
    shuffled = shuffled_labels(train, seed=3)
    for before, after in zip(train.itertuples(), shuffled.itertuples(), strict=True):
        assert after.prompt == before.prompt
        assert after.target.partition("</think>")[0] == before.target.partition("</think>")[0]
        assert read_turn(after.target, after.classes).decision == after.answer == after.accepted[0]


def test_shuffling_follows_the_seed_and_stays_within_the_classes_of_a_row(frame: pd.DataFrame) -> None:
    train = frame[frame["split"] == "train"].reset_index(drop=True)
    few = train["answer"].isin(["wheat", "habitat"])
    train["classes"] = [["wheat", "habitat"] if f else c for f, c in zip(few, train["classes"], strict=True)]
    first, again, other = (shuffled_labels(train, seed)["answer"].tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert all(answer in allowed for answer, allowed in zip(first, train["classes"], strict=True))


def test_format_only_targets_are_well_formed_and_decide_at_chance(frame: pd.DataFrame) -> None:
    rows = training_rows(frame, load_profile("pocket", ["targets=format_only"]))
    turns = [read_turn(target, allowed) for target, allowed in zip(rows["target"], rows["classes"], strict=True)]
    assert all(turn.well_formed for turn in turns)
    right = sum(turn.decision == answer for turn, answer in zip(turns, rows["answer"], strict=True)) / len(rows)
    assert right == pytest.approx(1 / 5, abs=0.04)  # 1,000 rows: standard error 0.013


@pytest.mark.parametrize("setting", ["targets=format_only", "labels_shuffled=true"])
def test_controls_pass_preflight_and_leave_held_out_rows_alone(frame: pd.DataFrame, setting: str) -> None:
    before = frame.copy()
    config = load_profile("pocket", [setting])
    assert problems(frame, config, Stage.SFT) == []
    assert config.sha256 != load_profile("pocket").sha256
    training_rows(frame, config)
    pd.testing.assert_frame_equal(frame, before)


def test_the_answer_only_variant_asks_for_no_reasoning(
    frame: pd.DataFrame, save_frame: Callable[..., object], tmp_path: object
) -> None:
    dataset = save_frame(frame, tmp_path)
    bare = answer_only(dataset)  # type: ignore[arg-type]
    assert bare.sha256 != dataset.sha256  # type: ignore[attr-defined]
    assert bare.frame["target"].tolist() == [f"<answer>{a}</answer>" for a in frame["answer"]]
    assert bare.frame["prompt"].tolist() == frame["prompt"].tolist()
    assert bare.manifest.prompts.style is Style.ANSWER_ONLY
    assert problems(bare.frame, load_profile("pocket", ["prompts.style=answer_only"]), Stage.SFT) == []
    assert answer_only(bare) is bare
    full = bare.manifest.prompts.model_copy(update={"layout": Layout.FULL, "style": Style.THINK})
    worded = type(bare)(bare.frame, bare.manifest.model_copy(update={"prompts": full}))
    with pytest.raises(DatasetError, match="--style answer_only"):
        answer_only(worded)


def test_a_run_may_see_few_landscapes_whole(frame: pd.DataFrame) -> None:
    train = frame[frame["split"] == "train"]
    few = {
        seed: training_rows(frame, load_profile("pocket", ["max_train_landscapes=3", f"seed={seed}"]))
        for seed in (0, 1)
    }
    for rows in few.values():
        assert rows["landscape"].nunique() == 3
        assert len(rows) == train["landscape"].isin(rows["landscape"].unique()).sum()
    assert set(few[0]["landscape"]) != set(few[1]["landscape"])
