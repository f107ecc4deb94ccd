"""The guard's figures and limits by hand; runs that collapse are in ``test_collapse.py``."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from training.guard import Guard, GuardSection, answer_figures
from training.turn import read_turn

CLASSES = ("oat", "wheat", "soy", "corn")


def _guard(folder: Path, **limits: float | None) -> Guard:
    return Guard(GuardSection(window=3, **limits), folder, folder / "guard.json")  # type: ignore[arg-type]


def test_figures_by_hand() -> None:
    said = ["<think>a b c a b c</think><answer>oat</answer>", "<think>x</think><answer>wheat</answer>", "oat", "oat"]
    figures = answer_figures([read_turn(s, CLASSES) for s in said], len(CLASSES))
    assert figures["answer_entropy"] == pytest.approx(math.log(2) / math.log(4))
    assert (figures["commonest"], figures["well_formed"]) == (0.5, 0.5)
    assert figures["repetition"] == pytest.approx(0.0)
    nothing = answer_figures([read_turn("la la la la la", CLASSES)], len(CLASSES))
    assert math.isnan(nothing["answer_entropy"])
    assert nothing["repetition"] == pytest.approx(2 / 3)


def test_a_limit_holds_for_the_mean_of_a_whole_window(tmp_path: Path) -> None:
    guard = _guard(tmp_path, max_kl=1.0)
    for step, kl in enumerate([0.0, 2.9, 0.0], 1):
        guard.note({"kl": kl})
        assert guard.judge(step) is None
    guard.note({"kl": 0.2})
    breach = guard.judge(4)
    assert breach is not None
    assert str(breach) == "kl 1.03 is above guard.max_kl 1"


def test_what_was_never_kept_is_no_collapse_but_losing_it_is(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    for _ in range(5):
        guard.note({"well_formed": 0.0})
    assert guard.judge(5) is None
    for _ in range(3):
        guard.note({"well_formed": 0.9})
    assert guard.judge(8) is None
    for _ in range(3):
        guard.note({"well_formed": 0.1})
    assert "well_formed 0.1 is below guard.min_well_formed 0.5" in str(guard.judge(11))


def test_none_takes_a_limit_away_and_no_number_is_left_out(tmp_path: Path) -> None:
    guard = _guard(tmp_path, max_commonest=None)
    for _ in range(4):
        guard.note({"commonest": 1.0, "answer_entropy": math.nan, "kl": 0.0})
    assert guard.judge(4) is None
    assert "commonest" not in guard.windows


def test_kept_windows_judge_alike(tmp_path: Path) -> None:
    guard, resumed = _guard(tmp_path), _guard(tmp_path)
    for value in (0.1, 0.9, 0.9):
        guard.note({"clipped": value})
    guard.save(tmp_path)
    resumed.load(tmp_path)
    assert str(resumed.judge(3)) == str(guard.judge(3)) == "clipped 0.633 is above guard.max_clipped 0.5"
