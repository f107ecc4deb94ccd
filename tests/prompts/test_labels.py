"""Labels that know how sure they are: regret both ways, and what becomes of ties."""

from collections.abc import Callable

import numpy as np
import pytest

from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset


@pytest.fixture
def with_a_tie(source: Callable[..., Source]) -> Source:
    """Four polygons; at 301.4 and 266.1 currency/t wheat and oat are worth the same on the first, to the last bit."""
    wheat, oat = 294.0 + 7.4, 260.0 + 6.1
    yields = np.array([[oat / 100, wheat / 100], [3.0, 1.0], [1.0, 5.0], [2.0, 0.0]])
    return source(2, 2, yields=yields, connectivity=np.zeros(4))


def build(source: Source, labels: str) -> object:
    return build_dataset([source], PromptConfig.model_validate({"labels": labels}))


def test_keep_is_the_default_and_has_one_right_answer(with_a_tie: Source) -> None:
    assert PromptConfig().labels == "keep"
    frame = build(with_a_tie, "keep").frame
    assert frame["status"].tolist() == ["tied", "unique", "unique", "unique"]
    assert frame["accepted"].tolist() == [["wheat"], ["wheat"], ["oat"], ["wheat"]]


def test_accept_set_accepts_what_ties_and_the_answer_first(with_a_tie: Source) -> None:
    frame = build(with_a_tie, "accept_set").frame
    assert frame["accepted"].tolist() == [["wheat", "oat"], ["wheat"], ["oat"], ["wheat"]]
    assert frame["answer"].tolist() == ["wheat", "wheat", "oat", "wheat"]


def test_drop_tied_leaves_the_row_out_but_not_the_neighbour(with_a_tie: Source) -> None:
    dataset = build_dataset([with_a_tie], PromptConfig.model_validate({"labels": "drop_tied", "order": 1}))
    assert dataset.frame["polygon_id"].tolist() == ["r0c1", "r1c0", "r1c1"]
    assert all("r0c0" in shown for shown in dataset.frame["shown"])
    assert dataset.manifest.sources[0].tied_dropped == 1
    assert "1 polygons with a tied label became no prompt (labels: drop_tied)" in dataset.manifest.notes


def test_regret_of_every_class_stands_in_the_row_low_and_high(with_a_tie: Source) -> None:
    frame = build(with_a_tie, "keep").frame
    plan = with_a_tie.solution
    assert frame["regret_low"].tolist() == plan.regret_low.tolist()
    assert frame["regret_high"].tolist() == plan.regret_high.tolist()
    for row in frame.itertuples():
        assert all(low <= high for low, high in zip(row.regret_low, row.regret_high, strict=True))
