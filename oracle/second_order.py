"""Second-order neighbours: neighbours of neighbours, each with one path code such as ``N-NE``.

Several two-step paths lead to the same polygon, so one has to be chosen, the same one from both ends and under any
order of the rows:

1. look at the pair from its southern end: the end from which the other lies at an azimuth in [270, 90);
2. of the paths at most 5 % longer than the shortest, prefer one whose first step is N, E, S or W, then compass order
   of the first and second code, then the shorter path, then the intermediate polygon's id;
3. from the other end the path is walked back: ``N-NE`` there is ``SW-S`` here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oracle.compass import SNAP_DEG, opposite_index

_SLACK = 1.05


@dataclass(frozen=True, eq=False)
class Steps:
    """First-order neighbours as a sorted table: both directions of every pair, sorted by (source, target)."""

    n: int
    source: np.ndarray
    target: np.ndarray
    code: np.ndarray
    distance_m: np.ndarray


@dataclass(frozen=True, eq=False)
class TwoSteps:
    """Unordered second-order pairs seen from ``source``, their southern end, with the codes of the chosen path."""

    source: np.ndarray
    target: np.ndarray
    first_code: np.ndarray
    second_code: np.ndarray


def candidate_pairs(steps: Steps) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All two-step paths ``i -> m -> j`` with ``i < j`` that are not first-order pairs.

    Returns
    -------
    pairs : (p, 2) int
        Unordered pairs, sorted.
    pair_of : (q,) int
        Row of ``pairs`` that a path belongs to.
    first, second : (q,) int
        Rows of ``steps``: the path's step ``i -> m`` and its step ``m -> j``.
    """
    n = steps.n
    begin = np.searchsorted(steps.source, np.arange(n + 1))
    fan = (begin[1:] - begin[:-1])[steps.target]
    first = np.repeat(np.arange(len(steps.source)), fan)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(fan) - fan, fan)
    second = begin[steps.target[first]] + offset
    i, j = steps.source[first], steps.target[second]
    keep = i < j
    first, second, key = first[keep], second[keep], i[keep] * n + j[keep]
    known = steps.source * n + steps.target
    if len(known):
        at = np.minimum(np.searchsorted(known, key), len(known) - 1)
        new = known[at] != key
        first, second, key = first[new], second[new], key[new]
    keys, pair_of = np.unique(key, return_inverse=True)
    return np.column_stack([keys // n, keys % n]), pair_of, first, second


def choose_paths(
    steps: Steps,
    pairs: np.ndarray,
    pair_of: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    azimuth_deg: np.ndarray,
    id_rank: np.ndarray,
) -> TwoSteps:
    """The canonical path of every pair by the rule in this module's docstring.

    Parameters
    ----------
    pairs, pair_of, first, second
        From :func:`candidate_pairs`.
    azimuth_deg : (p,) float
        Azimuth of each pair from its first to its second polygon; NaN where concentric.
    id_rank : (n,) int
        Rank of each polygon's id; decides what nothing else does.
    """
    northward = (azimuth_deg + 90.0 + SNAP_DEG) % 360.0 < 180.0
    by_id = id_rank[pairs[:, 0]] < id_rank[pairs[:, 1]]
    forward = np.where(np.isnan(azimuth_deg), by_id, northward)
    walk = forward[pair_of]
    code1 = np.where(walk, steps.code[first], opposite_index(steps.code[second]))
    code2 = np.where(walk, steps.code[second], opposite_index(steps.code[first]))
    length = np.round(steps.distance_m[first] + steps.distance_m[second], 1)
    shortest = np.full(len(pairs), np.inf)
    np.minimum.at(shortest, pair_of, length)
    near = np.flatnonzero(length <= _SLACK * shortest[pair_of])
    code1, code2, length, middle = code1[near], code2[near], length[near], id_rank[steps.target[first[near]]]
    order = np.lexsort((middle, length, code2, code1, code1 % 2, pair_of[near]))  # even codes below 8 are N, E, S, W
    chosen = order[np.unique(pair_of[near][order], return_index=True)[1]]
    source = np.where(forward, pairs[:, 0], pairs[:, 1])
    target = np.where(forward, pairs[:, 1], pairs[:, 0])
    return TwoSteps(source, target, code1[chosen], code2[chosen])
