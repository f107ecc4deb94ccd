"""The token audit with a tokenizer that anybody can check: a token per word."""

from collections.abc import Callable

import pandas as pd
import pytest

from oracle.errors import DatasetError
from prompts.config import PromptConfig
from prompts.dataset import CARD, PromptDataset, Source, build_dataset
from prompts.tokens import TokenAudit


def words(frame: pd.DataFrame) -> list[int]:
    return [sum(len(m["content"].split()) for m in messages) for messages in frame["prompt"]]


def by_words(limit: int) -> TokenAudit:
    return TokenAudit("words between spaces", limit, words)


def test_every_row_and_the_card_say_how_long_prompts_are(nine: Source, tmp_path) -> None:  # type: ignore[no-untyped-def]
    dataset = build_dataset([nine], PromptConfig(order=1), audit=by_words(60))
    # wheat 3.00*0301 oat 2.50*0266 habitat 0.10*0812+4.06, then "| N 3.10 2.60 0.40" per neighbour: 3, 5 or 8 of them
    corner, edge, middle = 6 + 3 * 5, 6 + 5 * 5, 6 + 8 * 5
    expected = [corner, edge, corner, edge, middle, edge, corner, edge, corner]
    assert dataset.frame["prompt_tokens"].tolist() == expected
    record = dataset.manifest.tokens
    assert record is not None
    assert (record.least, record.median, record.greatest, record.limit) == (corner, edge, middle, 60)
    dataset.save(tmp_path)
    assert "| 21 | 31 | 46 | 46 | 60 |" in (tmp_path / CARD).read_text()
    assert PromptDataset.load(tmp_path).frame["prompt_tokens"].tolist() == expected
    assert not any("not counted" in note for note in dataset.manifest.notes)


def test_prompts_that_are_too_long_are_named_with_what_would_shorten_them(nine: Source) -> None:
    with pytest.raises(DatasetError) as refused:
        build_dataset([nine], PromptConfig(order=1), audit=by_words(30))
    said = str(refused.value)
    assert said.startswith("5 of 9 prompts have more tokens than the 30 that the profile leaves for a prompt")
    assert "(grid:r1c1 with 46, grid:r0c1 with 31," in said  # the longest first
    assert "lower `order` (it is 1)" in said
    assert "take `layout: compact`" not in said  # it is
    with pytest.raises(DatasetError, match="take `layout: compact`, lower `yield_digits`"):
        build_dataset([nine], PromptConfig(layout="full"), audit=by_words(10))
    build_dataset([nine], PromptConfig(order=1), audit=by_words(46))


def test_nobody_counted_is_said(source: Callable[..., Source]) -> None:
    dataset = build_dataset([source(2, 2)])
    assert dataset.manifest.tokens is None
    assert dataset.frame["prompt_tokens"].isna().all()
    assert any("tokens were not counted" in note for note in dataset.manifest.notes)
