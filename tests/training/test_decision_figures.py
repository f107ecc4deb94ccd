"""Decisions, their cost and their votes, against values worked out by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef

from training.decision_figures import _drawn_confusions, split_figures
from training.decision_regret import regret_figures, regrets
from training.figures import UNDECIDED
from training.paired import block_permutation, paired
from training.votes import majority_vote, pass_at, vote_figures

CLASSES = ["oat", "corn", "habitat"]


def _table(answer: list[str], decision: list[str | None], **columns: object) -> pd.DataFrame:
    n = len(answer)
    table = pd.DataFrame(
        {
            "prompt_id": [f"a:{i}" for i in range(n)],
            "landscape": "a",
            "block": [f"a:{i // 5}" for i in range(n)],
            "status": "unique",
            "classes": [CLASSES] * n,
            "answer": answer,
            "accepted": [[a] for a in answer],
            "decision": pd.Series(decision, dtype=object),
            "regret": 0.0,
            "worst_regret": 1.0,
        }
    ).assign(**columns)
    return table.assign(correct=[d in a for d, a in zip(table["decision"], table["accepted"], strict=True)])


@pytest.fixture
def noisy() -> pd.DataFrame:
    random = np.random.default_rng(3)
    answer = random.choice(CLASSES, 120, p=[0.5, 0.3, 0.2])
    said = np.where(random.random(120) < 0.6, answer, random.choice([*CLASSES, UNDECIDED], 120))
    return _table(answer.tolist(), [None if s == UNDECIDED else s for s in said])


def test_the_figures_are_scikit_learn_s(noisy: pd.DataFrame) -> None:
    figures = split_figures(noisy, {}, {})
    gold, said = noisy["answer"].to_numpy(dtype=str), noisy["decision"].fillna(UNDECIDED).to_numpy(dtype=str)
    assert figures.mcc == pytest.approx(matthews_corrcoef(gold, said))
    assert figures.macro_f1 == pytest.approx(f1_score(gold, said, labels=CLASSES, average="macro"))
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        assert figures.balanced_accuracy == pytest.approx(balanced_accuracy_score(gold, said))
    for name, of in figures.bootstrap.items():
        assert of.low < getattr(figures, name) < of.high


def test_a_bootstrap_draw_has_the_figures_of_the_rows_drawn(noisy: pd.DataFrame) -> None:
    gold, said = noisy["answer"].to_numpy(dtype=str), noisy["decision"].fillna(UNDECIDED).to_numpy(dtype=str)
    alone = _drawn_confusions(gold, said, np.zeros(120), 0)  # a single block: every draw is all rows
    assert alone.overall["mcc"] == pytest.approx(matthews_corrcoef(gold, said))
    assert alone.overall["macro_f1"] == pytest.approx(f1_score(gold, said, labels=CLASSES, average="macro"))


def test_of_few_blocks_no_interval_over_blocks_is_given(noisy: pd.DataFrame) -> None:
    figures = split_figures(noisy.assign(block="a:0", landscape="a"), {}, {})
    assert (figures.blocks, figures.block_bootstrap, figures.regret.mean_bootstrap) == (1, None, None)
    assert figures.bootstrap == figures.recall_bootstrap == {}
    many = split_figures(noisy, {}, {})
    assert (many.blocks, set(many.recall_bootstrap)) == (24, set(CLASSES))
    # Habitat in one of six blocks alone: its recall would come out the same in every draw that has it.
    table = _table(["oat"] * 29 + ["habitat"], ["oat", "corn"] * 15)
    assert set(split_figures(table, {}, {}).recall_bootstrap) == {"oat"}


def test_another_right_answer_counts_as_the_answer_everywhere() -> None:
    table = _table(["oat", "corn"], ["oat", "oat"], accepted=[["oat"], ["corn", "oat"]])
    figures = split_figures(table, {}, {})
    assert (figures.accuracy, figures.balanced_accuracy, figures.confusion) == (1.0, 1.0, {"oat": {"oat": 2}})


def test_rows_with_a_proven_single_optimum_stand_apart() -> None:
    table = _table(["oat", "oat", "corn", "corn"], ["oat", "corn", "corn", "oat"])
    table["status"] = ["unique", "tied", "unique", "undecided"]
    figures = split_figures(table, {}, {})
    assert figures.unique is not None
    assert (figures.accuracy, figures.unique.accuracy, figures.unique.rows) == (0.5, 1.0, 2)
    assert figures.unique.unique is None
    assert split_figures(table.assign(status="tied"), {}, {}).unique is None


def test_what_cannot_be_costs_as_much_as_the_worst_class() -> None:
    rows = pd.DataFrame({"classes": [CLASSES] * 5, "regret_low": [[0.0, 0.2, 0.5]] * 4 + [[np.inf, 0.0, 0.1]]})
    said = np.array(["oat", "corn", None, "barley", "oat"], dtype=object)
    regret, worst = regrets(rows, said)
    assert regret.tolist() == [0.0, 0.2, 0.5, 0.5, 0.1]
    assert worst.tolist() == [0.5, 0.5, 0.5, 0.5, 0.1]
    table = pd.DataFrame({"landscape": "a", "block": ["x"] * 5, "regret": regret, "worst_regret": worst})
    figures = regret_figures(table, {"a": (10.0, 5)})
    assert figures.kept_share == pytest.approx(1 - 1.3 / 2.1)
    assert figures.share_of_optimum == pytest.approx(1 - 1.3 / 10)  # all five polygons: 1.3 of 10 lost
    assert regret_figures(table, {"b": (10.0, 5)}).share_of_optimum is None


def test_whole_blocks_change_sides() -> None:
    first, second = np.array([True] * 6 + [False] * 2), np.array([True] * 2 + [False] * 4 + [True] * 2)
    block = np.array(list("aabbbbcc"))
    # Differences by block: 0, -4, +2. Of the four patterns of signs of 4 and 2 the sums are -6, -2, 2 and 6.
    assert block_permutation(first, second, block) == 1.0
    assert paired(first, second, block).difference == pytest.approx(-2 / 8)
    apart = np.arange(12)
    assert block_permutation(np.zeros(12, bool), np.ones(12, bool), apart) == pytest.approx(2 / 2**12)
    many = block_permutation(np.zeros(40, bool), np.ones(40, bool), np.arange(40))
    assert many == pytest.approx(1 / 10_001)  # never 0: the pattern found is one of them
    assert block_permutation(first, first, block) == 1.0


def test_majority_and_pass_at_k_by_hand() -> None:
    assert majority_vote(["corn", "oat", None, "corn"], CLASSES) == ("corn", 0.5)
    assert majority_vote(["corn", "oat"], CLASSES) == ("oat", 0.5)  # equals go by the order of the classes
    assert majority_vote([None, None], CLASSES) == (None, 0.0)
    assert pass_at(1, 4, 1) == 0.25
    assert pass_at(1, 4, 2) == pytest.approx(1 - 3 / 6)  # of six pairs three miss it
    assert (pass_at(0, 4, 4), pass_at(1, 4, 4)) == (0.0, 1.0)


def test_votes_by_hand() -> None:
    table = _table(["oat", "corn", "oat"], ["oat", "corn", "corn"])
    table["votes"] = [["oat", "oat", "oat", "corn"], ["oat", "oat", None, "corn"], None]
    figures = vote_figures(table)
    assert figures is not None
    assert (figures.rows, figures.samples, figures.majority_accuracy, figures.greedy_accuracy) == (2, 4, 0.5, 1.0)
    assert figures.sample_accuracy == pytest.approx((3 + 1) / 8)
    assert figures.pass_at == {1: 0.5, 2: pytest.approx((1 + 0.5) / 2), 4: 1.0}
    assert figures.guessing_at[2] == pytest.approx(1 - (2 / 3) ** 2)
    assert figures.ece == pytest.approx((abs(0.75 - 1) + abs(0.5 - 0)) / 2)
    assert figures.brier == pytest.approx(((1 / 16 + 1 / 16) + (4 / 16 + 9 / 16 + 1 / 16)) / 2)
    assert vote_figures(table.assign(votes=None)) is None
