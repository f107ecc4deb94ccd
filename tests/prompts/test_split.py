"""Splits on grids, where a first-order step is a king's move: no layout of blocks may leak."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.landscape import Landscape
from prompts.config import PromptConfig
from prompts.dataset import Source
from prompts.neighbourhood import Neighbourhoods, neighbourhoods
from prompts.split import BlockRule, Role, Split, SplitConfig, Splits, assign_splits


def splits_of(source: Source, order: int, config: SplitConfig, role: Role = Role.TRAIN) -> Splits:
    shown = shown_by(source, order)
    return assign_splits(source.landscape, source.graph, shown, role, config)


def shown_by(source: Source, order: int) -> Neighbourhoods:
    config = PromptConfig.model_validate({"order": order, "context": "none"})
    return neighbourhoods(source.landscape, source.graph, None, config)


def king_moves(landscape: Landscape, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(len(a), len(b)) king's moves between squares named ``r<row>c<column>``."""
    places = np.array([[int(v) for v in polygon[1:].split("c")] for polygon in landscape.ids])
    return np.abs(places[a][:, None] - places[b][None]).max(axis=-1)


@settings(deadline=None, max_examples=60)
@given(
    shape=st.sampled_from([(1, 1), (1, 9), (3, 3), (5, 5), (7, 12), (12, 12), (16, 16)]),
    order=st.integers(0, 2),
    buffer=st.integers(1, 3),
    side=st.floats(1, 9),
    share=st.floats(0, 0.4),
    seed=st.integers(0, 99),
)
def test_no_layout_leaks(
    source_once: Callable[[int, int], Source],
    shape: tuple[int, int],
    order: int,
    buffer: int,
    side: float,
    share: float,
    seed: int,
) -> None:
    source = source_once(*shape)
    config = SplitConfig(buffer=buffer, block_side=side, block_share=share, seed=seed)
    splits = splits_of(source, order, config)
    train, held_out = (np.flatnonzero(splits.split == s) for s in (Split.TRAIN, Split.HELD_OUT_BLOCK))
    spared = np.isin(splits.split, [Split.TRAIN, Split.HELD_OUT_RANDOM])
    assert spared.sum() * 2 >= len(source.landscape)
    assert set(splits.block[held_out]) == set(splits.held_out_blocks)
    assert np.isin(splits.block, splits.held_out_blocks).sum() == len(held_out)  # blocks are held out whole
    if share == 0:
        assert not len(held_out)
    if len(held_out):
        apart = king_moves(source.landscape, train, held_out)
        # shown are all polygons within `order` moves, so two prompts show different ones if 2 * order + 1 apart
        assert apart.min() >= max(buffer, 2 * order) + 1


def test_buffer_is_no_wider_than_needed(source_once: Callable[[int, int], Source]) -> None:
    source = source_once(16, 16)
    splits = splits_of(source, 0, SplitConfig(block_side=4, block_share=0.05, buffer=2))
    held_out, buffered = (np.flatnonzero(splits.split == s) for s in (Split.HELD_OUT_BLOCK, Split.BUFFER))
    apart = king_moves(source.landscape, np.arange(256), held_out).min(axis=1)
    assert sorted(buffered) == np.flatnonzero((apart >= 1) & (apart <= 2)).tolist()


def test_blocks_are_squares_of_the_side_asked_for(source_once: Callable[[int, int], Source]) -> None:
    splits = splits_of(source_once(12, 12), 0, SplitConfig(block_side=4))
    names, sizes = np.unique(splits.block.astype(str), return_counts=True)
    assert (len(names), set(sizes)) == (9, {16})
    in_metres = splits_of(source_once(12, 12), 0, SplitConfig(block_m=3_200.0))
    assert in_metres.block.tolist() == splits.block.tolist()


def test_held_out_share_is_near_the_share_wanted(source_once: Callable[[int, int], Source]) -> None:
    for seed in range(10):
        splits = splits_of(source_once(16, 16), 0, SplitConfig(block_side=3, block_share=0.12, buffer=1, seed=seed))
        assert 0.08 <= (splits.split == Split.HELD_OUT_BLOCK).mean() <= 0.16


def test_seeds_draw_different_blocks_and_each_always_the_same(source_once: Callable[[int, int], Source]) -> None:
    drawn = [
        splits_of(source_once(16, 16), 0, SplitConfig(block_side=4, seed=seed)).held_out_blocks for seed in (1, 2, 3, 1)
    ]
    assert drawn[0] == drawn[3]
    assert len(set(drawn)) > 1


def test_held_out_landscape_is_held_out_whole(source_once: Callable[[int, int], Source]) -> None:
    splits = splits_of(source_once(5, 5), 2, SplitConfig(), Role.HELD_OUT)
    assert set(splits.split) == {Split.HELD_OUT_LANDSCAPE}
    assert splits.held_out_blocks == ()
    assert len(set(splits.block)) > 1  # for intervals


def test_too_few_polygons_keep_all_for_training(source_once: Callable[[int, int], Source]) -> None:
    splits = splits_of(source_once(3, 3), 2, SplitConfig())
    assert set(splits.split) <= {Split.TRAIN, Split.HELD_OUT_RANDOM}
    assert splits.held_out_blocks == ()


def test_random_rows_are_drawn_from_what_would_be_trained_on(source_once: Callable[[int, int], Source]) -> None:
    source = source_once(16, 16)
    without, few, many = (
        splits_of(source, 1, SplitConfig(block_side=4, random_share=share)).split for share in (0.0, 0.1, 0.3)
    )
    assert Split.HELD_OUT_RANDOM not in set(without)
    for drawn, share in ((few, 0.1), (many, 0.3)):
        random = drawn == Split.HELD_OUT_RANDOM
        assert set(without[random]) == {Split.TRAIN}
        assert (drawn[~random] == without[~random]).all()
        assert random.sum() / (without == Split.TRAIN).sum() == pytest.approx(share, abs=0.06)
    assert ((few == Split.HELD_OUT_RANDOM) <= (many == Split.HELD_OUT_RANDOM)).all()  # each by its own hash


def test_blocks_are_as_long_as_yields_resemble_each_other(source: Callable[..., Source]) -> None:
    along = np.arange(24)
    waves = np.cos(2 * np.pi * along / 18)[None, :] + np.cos(2 * np.pi * along / 18)[:, None]
    smooth = source(24, 24, crops=("rye",), yields=3 + waves.reshape(-1, 1))
    splits = splits_of(smooth, 1, SplitConfig())
    assert splits.size.rule is BlockRule.RANGE
    assert splits.size.yield_range_m == splits.size.side_m
    columns = int(24 * 800 / splits.size.side_m)  # whole blocks, each at least as long as the range
    assert len(set(splits.block)) == columns**2
    assert splits_of(smooth, 1, SplitConfig(block_side=12)).size.rule is BlockRule.LARGEST
