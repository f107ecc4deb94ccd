"""Splits that cannot leak: whole landscapes, and buffered spatial blocks, are held out; and a random one that does.

A prompt shows its neighbours, so a training polygon next to a held-out one would show it. In a training landscape a
grid of blocks is laid over the polygons' centroids and a share of the blocks, drawn by a seeded hash, is held
out. A training polygon becomes ``buffer`` where it lies within ``buffer`` first-order steps of a held-out one, or
where its prompt shows a polygon that a held-out prompt shows too (so the buffer is never narrower than the prompt's
order). Landscapes with the role ``held_out`` are held out whole. Every polygon gets its block, held-out or not:
intervals are bootstrapped over blocks.

A block is as long as the yields resemble each other (:mod:`prompts.autocorrelation`), between two mean polygon widths
and a third of the landscape's longer side, unless a length is set; it is then stretched until whole blocks fill the
landscape.

``held_out_random`` stands beside these for comparison with studies that split at random: single polygons drawn from
those left to train on. They are not trained on, but training prompts show them as neighbours and their surroundings
are known from training. What a model decides better there than in a block it owes to that leak.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field

from oracle.coefficients import SQUARE_METRES_PER_HA
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from oracle.projection import local_projection
from prompts.autocorrelation import yield_range_m
from prompts.neighbourhood import Neighbourhoods


class Role(StrEnum):
    """What a landscape is for."""

    TRAIN = "train"
    HELD_OUT = "held_out"


class Split(StrEnum):
    """What a prompt may be used for."""

    TRAIN = "train"
    HELD_OUT_BLOCK = "held_out_block"
    """Evaluation, in a landscape that training saw elsewhere."""
    HELD_OUT_LANDSCAPE = "held_out_landscape"
    """Evaluation, in a landscape that training never saw."""
    HELD_OUT_RANDOM = "held_out_random"
    """Single polygons amid training ones, which may show them: it leaks by its nature, see this module's docstring."""
    BUFFER = "buffer"
    """Neither: too near to a held-out block to train on."""


class SplitConfig(BaseModel):
    """Size and number of the held-out blocks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    block_share: float = Field(
        default=0.12, ge=0, lt=0.5, description="share of a training landscape's polygons in held-out blocks"
    )
    block_side: float | None = Field(
        default=None, ge=1, description="side of a block, in mean polygon widths; absent: the range of the yields"
    )
    block_m: float | None = Field(default=None, gt=0, description="side of a block in metres; wins over block_side")
    buffer: int = Field(
        default=2, ge=1, description="first-order steps between training and a held-out block, at least"
    )
    random_share: float = Field(
        default=0.05, ge=0, lt=0.5, description="share of the polygons left to train on that are held out at random"
    )
    seed: int = Field(default=0, ge=0, description="seed of the draws")


class BlockRule(StrEnum):
    """What decided the side of a landscape's blocks."""

    RANGE = "yield range"
    """How far the yields resemble each other."""
    SMALLEST = "two polygons"
    """That range is shorter than two mean polygon widths, which were taken."""
    LARGEST = "a third of the landscape"
    """Range or ``block_side`` is more than a third of the landscape's longer side, or no range can be told."""
    SET = "set"
    """``block_m`` or ``block_side``."""


@dataclass(frozen=True)
class BlockSize:
    """Side of the blocks of one landscape before they are stretched to fill it, and why."""

    side_m: float
    rule: BlockRule
    yield_range_m: float | None
    """Measured range of the yields; None where the side was set or the yields tell none."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Split and block of the n polygons of one landscape.

    Parameters
    ----------
    split : ndarray of str
        (n,) values of :class:`Split`.
    block : ndarray of str
        (n,) block of each polygon, ``landscape:row-column`` counted from the south-west.
    held_out_blocks : tuple of str
        Blocks held out; empty for a held-out landscape, and where a landscape is too small for a block.
    size : BlockSize
        Side of the blocks.
    """

    split: np.ndarray
    block: np.ndarray
    held_out_blocks: tuple[str, ...]
    size: BlockSize


def assign_splits(
    landscape: Landscape, graph: NeighbourGraph, shown: Neighbourhoods, role: Role, config: SplitConfig
) -> Splits:
    """Split and block of every polygon.

    A block is skipped where holding it out would leave less than half of the landscape's polygons for training: a
    landscape of few polygons may end without a held-out block (``held_out_blocks`` is empty then).

    Parameters
    ----------
    landscape, graph
        Of n polygons.
    shown : Neighbourhoods
        What their prompts show, at the order of the prompts.
    role : Role
        Train, or held out whole.
    config : SplitConfig
        Blocks, buffer and random share.
    """
    block, size = _blocks(landscape, config)
    split = np.full(len(landscape), Split.TRAIN.value, dtype=object)
    if role is Role.HELD_OUT:
        split[:] = Split.HELD_OUT_LANDSCAPE.value
        return Splits(split, block, (), size)
    reach = _Reach(graph, shown, config.buffer)
    held_out, chosen = _draw_blocks(block, landscape.name, reach, config)
    near = reach.near(held_out)
    split[_draw_polygons(landscape, config)] = Split.HELD_OUT_RANDOM.value
    split[near] = Split.BUFFER.value
    split[held_out] = Split.HELD_OUT_BLOCK.value
    return Splits(split, block, chosen, size)


def _blocks(landscape: Landscape, config: SplitConfig) -> tuple[np.ndarray, BlockSize]:
    geometry = landscape.polygons.geometry
    centroids = geometry.to_crs(local_projection(geometry)).centroid
    xy = np.column_stack([centroids.x, centroids.y])
    width = float(np.sqrt(landscape.areas_ha.mean() * SQUARE_METRES_PER_HA))
    from_south_west = xy - xy.min(axis=0) + width / 2
    extent = from_south_west.max(axis=0) + width / 2
    size = _block_size(landscape, xy, width, float(extent.max()), config)
    whole = np.maximum(np.floor(extent / size.side_m + 1e-6), 1)  # stretched: no slivers at the edges
    column, row = np.floor(from_south_west / (extent / whole)).astype(int).T
    return np.array([f"{landscape.name}:{r}-{c}" for r, c in zip(row, column, strict=True)], dtype=object), size


def _block_size(landscape: Landscape, xy: np.ndarray, width: float, longer: float, config: SplitConfig) -> BlockSize:
    """At least three blocks along the longer side, else a block would be the landscape."""
    if config.block_m is not None:
        return BlockSize(config.block_m, BlockRule.SET, None)
    measured = None
    if config.block_side is not None:
        side, rule = config.block_side * width, BlockRule.SET
    else:
        measured = yield_range_m(xy, landscape.yields, landscape.ids, width)
        side, rule = (np.inf, BlockRule.LARGEST) if measured is None else (measured, BlockRule.RANGE)
        if side < 2 * width:
            side, rule = 2 * width, BlockRule.SMALLEST
    if side > max(longer, width) / 3:
        side, rule = max(longer, width) / 3, BlockRule.LARGEST
    return BlockSize(float(side), rule, measured)


def _draw_polygons(landscape: Landscape, config: SplitConfig) -> np.ndarray:
    """(n,) bool: each polygon by its own hash, so that a draw does not depend on the other polygons."""
    names = [f"{config.seed}:{landscape.name}:{polygon}" for polygon in landscape.ids]
    draws = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64 for name in names]
    return np.array(draws) < config.random_share


class _Reach:
    """Which polygons are too near to held-out ones to train on."""

    def __init__(self, graph: NeighbourGraph, shown: Neighbourhoods, steps: int) -> None:
        n = len(shown)
        first = (graph.table["order"] == 1).to_numpy()
        source, target = (ends[first] for ends in graph.positions)
        ones = np.ones(len(source), dtype=np.int32)
        self._adjacent = sp.csr_array((ones, (source, target)), shape=(n, n))
        neighbours = sp.csr_array((np.ones(len(shown.member), dtype=np.int32), shown.member, shown.start), shape=(n, n))
        self._shown = sp.csr_array(neighbours + sp.eye_array(n, dtype=np.int32, format="csr"))
        self._steps = steps

    def near(self, held_out: np.ndarray) -> np.ndarray:
        """(n,) bool, the held-out polygons included."""
        near = held_out.copy()
        for _ in range(self._steps):
            near |= (self._adjacent @ near.astype(np.int32)) > 0
        shown_held_out = (self._shown.T @ held_out.astype(np.int32)) > 0
        return near | ((self._shown @ shown_held_out.astype(np.int32)) > 0)


def _draw_blocks(
    block: np.ndarray, name: str, reach: _Reach, config: SplitConfig
) -> tuple[np.ndarray, tuple[str, ...]]:
    blocks, inverse, sizes = np.unique(block.astype(str), return_inverse=True, return_counts=True)
    draw = sorted(range(len(blocks)), key=lambda b: hashlib.sha256(f"{config.seed}:{blocks[b]}".encode()).digest())
    wanted = config.block_share * len(block)
    held_out = np.zeros(len(block), dtype=bool)
    chosen: list[str] = []
    for b in draw:
        if wanted == 0 or (chosen and held_out.sum() + sizes[b] / 2 > wanted):
            continue
        with_b = held_out | (inverse == b)
        if (~reach.near(with_b)).sum() * 2 >= len(block):
            held_out = with_b
            chosen.append(str(blocks[b]))
    return held_out, tuple(chosen)
