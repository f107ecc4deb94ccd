"""The leak check finds what is planted, from the dataset's own rows."""

from collections.abc import Callable

import pytest

from oracle.errors import DatasetError
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.leaks import leaks, refuse_leaks
from prompts.split import Split


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_planted_leak_is_named(source: Callable[..., Source], order: int) -> None:
    frame = build_dataset([source(16, 16)], PromptConfig(order=order)).frame
    assert leaks(frame) == []
    held_out = frame.index[frame["split"] == Split.HELD_OUT_BLOCK][0]
    victim = frame.at[held_out, "polygon_id"]
    train = frame.index[frame["split"] == Split.TRAIN][0]
    frame.at[train, "shown"] = [*frame.at[train, "shown"], victim]
    assert leaks(frame) == [f"grid:{victim}"]
    with pytest.raises(DatasetError, match=f"grid:{victim}"):
        refuse_leaks(frame)


def test_buffer_rows_may_show_anything_and_training_rows_may_not(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(16, 16)], PromptConfig(order=1)).frame
    assert (frame["split"] == Split.BUFFER).any()
    frame.loc[frame["split"] == Split.BUFFER, "split"] = Split.TRAIN.value
    assert leaks(frame)


def test_equal_ids_in_two_landscapes_are_two_polygons(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(4, 4, name="a"), source(4, 4, name="b", seed=1, role="held_out")]).frame
    assert leaks(frame) == []
