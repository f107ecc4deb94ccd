"""Splits that cannot leak: whole landscapes, and buffered spatial blocks, are held out.

A prompt shows its neighbours, so a training polygon next to a held-out one would show it. In a training landscape a
grid of square blocks is laid over the polygons' centroids and a share of the blocks, drawn by a seeded hash, is held
out. A training polygon becomes ``buffer`` where it lies within ``buffer`` first-order steps of a held-out one, or
where its prompt shows a polygon that a held-out prompt shows too. Landscapes with the role ``held_out`` are held out
whole. Every polygon gets its block, held-out or not: intervals are bootstrapped over blocks.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field

from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from oracle.projection import local_projection
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
    BUFFER = "buffer"
    """Neither: too near to a held-out block to train on."""


class SplitConfig(BaseModel):
    """Size and number of the held-out blocks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    block_share: float = Field(
        default=0.12, ge=0, lt=0.5, description="share of a training landscape's polygons in held-out blocks"
    )
    block_side: float = Field(default=8.0, ge=1, description="side of a block, in mean polygon widths")
    block_m: float | None = Field(
        default=None, gt=0, description="side of a block in metres; absent: block_side decides"
    )
    buffer: int = Field(
        default=2, ge=1, description="first-order steps between training and a held-out block, at least"
    )
    seed: int = Field(default=0, ge=0, description="seed of the draw of blocks")


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
    """

    split: np.ndarray
    block: np.ndarray
    held_out_blocks: tuple[str, ...]


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
        Blocks and buffer.
    """
    block = _blocks(landscape, config)
    split = np.full(len(landscape), Split.TRAIN.value, dtype=object)
    if role is Role.HELD_OUT:
        split[:] = Split.HELD_OUT_LANDSCAPE.value
        return Splits(split, block, ())
    reach = _Reach(graph, shown, config.buffer)
    held_out, chosen = _draw_blocks(block, landscape.name, reach, config)
    split[reach.near(held_out)] = Split.BUFFER.value
    split[held_out] = Split.HELD_OUT_BLOCK.value
    return Splits(split, block, chosen)


def _blocks(landscape: Landscape, config: SplitConfig) -> np.ndarray:
    geometry = landscape.polygons.geometry
    centroids = geometry.to_crs(local_projection(geometry)).centroid
    xy = np.column_stack([centroids.x, centroids.y])
    width = np.sqrt(landscape.areas_ha.mean() * 10_000.0)
    fromwest = xy - xy.min(axis=0) + width / 2
    side = config.block_m
    if side is None:  # at least three blocks along the longer side, else a block would be the landscape
        side = min(config.block_side * width, max(fromwest.max() + width / 2, width) / 3)
    column, row = np.floor(fromwest / side).astype(int).T
    return np.array([f"{landscape.name}:{r}-{c}" for r, c in zip(row, column, strict=True)], dtype=object)


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
