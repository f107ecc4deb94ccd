"""The warm-up teaches the form and no decision."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from prompts.config import Style
from prompts.warm_up import format_only_targets

CLASSES = ("wheat", "oat", "corn", "soy", "habitat")
IDS = [f"farms:r{r}c{c}" for r in range(120) for c in range(120)]


def answers(targets: list[str]) -> list[str]:
    return [t.rpartition("<answer>")[2].removesuffix("</answer>") for t in targets]


@pytest.fixture(scope="module")
def targets() -> list[str]:
    return format_only_targets(IDS, [CLASSES] * len(IDS), Style.THINK)


def test_the_answer_is_independent_of_the_label(targets: list[str]) -> None:
    # labels as they are: far from uniform, and alike in neighbouring rows
    rank = np.searchsorted([0.4, 0.6, 0.7, 0.95], np.sin(np.arange(len(IDS)) / 500) ** 2)
    counts = Counter(zip(rank.tolist(), answers(targets), strict=True))
    table = [[counts[label, said] for said in CLASSES] for label in range(5)]
    assert chi2_contingency(table).pvalue > 0.01
    assert chisquare(list(Counter(answers(targets)).values())).pvalue > 0.01


def test_an_answer_that_leans_to_the_label_would_be_noticed(targets: list[str]) -> None:
    rank = np.searchsorted([0.4, 0.6, 0.7, 0.95], np.sin(np.arange(len(IDS)) / 500) ** 2)
    said = answers(targets)
    leaning = [CLASSES[k] if i % 25 == 0 else s for i, (k, s) in enumerate(zip(rank.tolist(), said, strict=True))]
    counts = Counter(zip(rank.tolist(), leaning, strict=True))
    assert chi2_contingency([[counts[k, s] for s in CLASSES] for k in range(5)]).pvalue < 0.01


def test_the_thought_names_no_class_and_no_number(targets: list[str]) -> None:
    thoughts = {t.removeprefix("<think>").partition("</think>")[0] for t in targets}
    assert len(thoughts) == 4
    for thought in thoughts:
        assert not any(name in thought for name in CLASSES)
        assert not any(sign.isdigit() for sign in thought)


def test_a_target_depends_on_its_prompt_alone(targets: list[str]) -> None:
    assert format_only_targets(IDS[500:510], [CLASSES] * 10, Style.THINK) == targets[500:510]


def test_answer_only_has_no_think_block() -> None:
    for target in format_only_targets(IDS[:50], [CLASSES] * 50, Style.ANSWER_ONLY):
        assert target in {f"<answer>{name}</answer>" for name in CLASSES}
