"""Second-order neighbours: neighbours of neighbours, each with one path code such as ``N-NE``.

Several two-step paths lead to the same polygon, so one has to be chosen, the same one from both ends and under any
order of the rows:

1. look at the pair from its southern end: the end from which the other lies at an azimuth in [270, 90) (of concentric
   ones, the one whose id comes first);
2. of the paths at most 5 % longer than the shortest, take one whose first step is N, E, S or W, else any; of those
   the first in compass order of the first step, then of the second;
3. from the other end the path is walked back: ``N-NE`` there is ``SW-S`` here.

Paths through different polygons that are still equal have the same code, so the choice among them changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from oracle.compass import SNAP_DEG, directions, opposite_index
from oracle.first_order import FirstOrder

_SLACK = 1.05
_CHUNK = 2_000_000
"""Paths held in memory at a time."""
_TOO_LONG = 999


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """(p,) unordered second-order pairs seen from ``source``, their southern end, with the codes of the chosen path."""

    source: np.ndarray
    target: np.ndarray
    first_code: np.ndarray
    second_code: np.ndarray
    distance_m: np.ndarray
    azimuth_deg: np.ndarray


def second_order(steps: FirstOrder, lonlat: np.ndarray, id_rank: np.ndarray) -> SecondOrder:
    """Every pair of polygons that have a common neighbour and are none themselves.

    Parameters
    ----------
    steps : FirstOrder
        First-order neighbours of the n polygons.
    lonlat : (n, 2) float
        Centroids, degrees.
    id_rank : (n,) int
        Rank of each polygon's id; tells the ends of concentric pairs apart.
    """
    n = len(lonlat)
    # With steps sorted by (source, target), the steps m -> j with j > i are those between m -> i and m's last step.
    back = np.argsort(steps.target * n + steps.source)
    last = np.searchsorted(steps.source, np.arange(n), side="right")
    fan = last[steps.target] - back - 1
    paths_before = np.concatenate([[0], np.cumsum(fan)])
    first_step = np.searchsorted(steps.source, np.arange(n + 1))
    chunk = paths_before[first_step[:-1]] // _CHUNK
    cuts = first_step[np.concatenate([[0], np.flatnonzero(np.diff(chunk)) + 1, [n]])]
    parts = [
        _of_sources(steps, low, back[low:high] + 1, fan[low:high], lonlat, id_rank) for low, high in pairwise(cuts)
    ]
    return SecondOrder(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _of_sources(
    steps: FirstOrder, low: int, begin: np.ndarray, fan: np.ndarray, lonlat: np.ndarray, id_rank: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The fields of :class:`SecondOrder` for the steps from ``low``, continued by ``fan`` steps from ``begin`` each."""
    n = len(lonlat)
    which = np.repeat(np.arange(len(fan)), fan)
    first = low + which
    second = np.arange(len(which)) + (begin - np.cumsum(fan) + fan)[which]
    key = steps.source[first] * n + steps.target[second]
    order = np.argsort(key)
    first, second, key = first[order], second[order], key[order]
    start = np.flatnonzero(np.diff(key, prepend=-1))
    pair = np.repeat(np.arange(len(start)), np.diff(start, append=len(key)))
    i, j = np.divmod(key[start], n)
    distance, azimuth = directions(lonlat, i, j)

    northward = (azimuth + 90.0 + SNAP_DEG) % 360.0 < 180.0
    forward = np.where(np.isnan(azimuth), id_rank[i] < id_rank[j], northward)
    walk = forward[pair]
    ahead, onward = steps.code[first], steps.code[second]
    code1 = np.where(walk, ahead, opposite_index(onward))
    code2 = np.where(walk, onward, opposite_index(ahead))
    length = np.round(steps.distance_m[first] + steps.distance_m[second], 1)
    shortest = np.minimum.reduceat(length, start) if len(start) else length
    rank = np.where(length <= _SLACK * shortest[pair], code1 % 2 * 100 + code1 * 10 + code2, _TOO_LONG)
    best = np.minimum.reduceat(rank, start) if len(start) else rank  # N, E, S, W have even codes

    known = steps.source[low : low + len(fan)] * n + steps.target[low : low + len(fan)]
    at = np.searchsorted(known, key[start])
    new = np.append(known, -1)[at] != key[start]
    i, j, best, distance, azimuth, forward = (v[new] for v in (i, j, best, distance, azimuth, forward))
    source, target = np.where(forward, i, j), np.where(forward, j, i)
    azimuth = np.where(forward, azimuth, (azimuth + 180.0) % 360.0)
    first_code, second_code = best // 10 % 10, best % 10
    return source, target, first_code, second_code, distance, azimuth  # type: ignore[return-value]
