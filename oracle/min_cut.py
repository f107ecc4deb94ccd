"""Habitat against crops at fixed prices: the most valuable set of habitat polygons, exactly, by one minimum cut.

Where prices settle each polygon's best crop, all that is left to choose is the habitat set H, which maximises ::

    sum_{i in H} s_i  +  sum_{ij, both in H} q_ij            s_i: habitat's value less the best crop's;  q_ij >= 0

That is supermodular, so a minimum cut solves it (Picard 1976, Maximal closure of a graph). Its dual splits every gain
q_ij between the two ends so that the sum of the positive surpluses s_i + credits is least, and then equal to the
maximum: with this split the best class of every polygon alone proves the whole.

Most polygons need no cut. One with s_i >= 0 is habitat whatever its neighbours do, and hands them its gains; one that
all its gains together cannot lift above 0 is a crop, and keeps them. Repeated until nothing changes, this leaves
scattered patches (about 3 % of quarter sections with correlated yields), and the cut is taken on these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

_CAPACITY = 2**29  # scipy's flows are 32-bit, and an edge with its reverse holds twice its capacity


@dataclass(frozen=True, eq=False)
class HabitatCut:
    """The best habitat set of n polygons, and the split of E gains that proves it."""

    habitat: np.ndarray
    """(n,) bool; of several best sets the smallest on the patches that were cut."""
    credit: np.ndarray
    """(E,) part of each gain credited to its first polygon, 0..q; the rest goes to the second."""
    cut: int
    """Polygons that needed a cut."""


def habitat_cut(surplus: np.ndarray, pair_i: np.ndarray, pair_j: np.ndarray, gain: np.ndarray) -> HabitatCut:
    """The habitat set of greatest total surplus and gain.

    Parameters
    ----------
    surplus : (n,) array
        s, what habitat is worth on its own above the best crop; -inf: may not be habitat, inf: can be nothing else.
    pair_i, pair_j : (E,) arrays of int
        Neighbours.
    gain : (E,) array
        q >= 0, won where both are habitat.

    Notes
    -----
    The patches' flow is computed in whole numbers of 2^-29 of their largest value. The split is therefore optimal to
    about a billionth, and valid whatever the rounding: a gain is always split into two parts that add up to it.
    """
    n = len(surplus)
    s, i, j, q = surplus.astype(float), pair_i, pair_j, gain
    credit, state = np.zeros(len(gain)), np.zeros(n, dtype=np.int8)  # state 1: habitat, -1: a crop, 0: open
    within_reach = np.bincount(i, q, n) + np.bincount(j, q, n)
    pairs = np.arange(len(gain))
    while True:
        settled = np.where(s >= 0, 1, np.where(s + within_reach <= 0, -1, 0)) * (state == 0)
        if not settled.any():
            break
        state += settled.astype(np.int8)
        of_i, of_j = state[i], state[j]
        done = (of_i != 0) | (of_j != 0)
        # Habitat hands its gains over, a crop keeps those that its neighbour cannot use.
        first = ((of_j == 1) & (of_i != 1)) | ((of_i == -1) & (of_j != 1))
        credit[pairs[done & first]] = q[done & first]
        s += np.bincount(i[of_j == 1], q[of_j == 1], n) + np.bincount(j[of_i == 1], q[of_i == 1], n)
        within_reach -= np.bincount(i[done], q[done], n) + np.bincount(j[done], q[done], n)
        pairs, i, j, q = pairs[~done], i[~done], j[~done], q[~done]
    opened = np.flatnonzero(state == 0)
    if len(opened):
        position = np.zeros(n, dtype=np.int64)
        position[opened] = np.arange(len(opened))
        chosen, first_part = _cut(s[opened], position[i], position[j], q)
        state[opened[chosen]] = 1
        credit[pairs] = first_part
    return HabitatCut(state == 1, credit, len(opened))


def _cut(s: np.ndarray, i: np.ndarray, j: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions in the best set, and the first polygons' credits, by one maximum flow.

    Credits start as halves. Flow runs from polygons with a surplus to those with a deficit, and what runs along a pair
    is credit handed over, at most half its gain each way.
    """
    n = len(s)
    surplus = s + (np.bincount(i, q, n) + np.bincount(j, q, n)) / 2
    unit = max(np.abs(surplus).max(), q.max()) / _CAPACITY
    polygon, half = np.rint(surplus / unit), np.floor(q / 2 / unit)
    source, sink = n, n + 1
    giving, taking = np.flatnonzero(polygon > 0), np.flatnonzero(polygon < 0)
    rows = np.concatenate([np.full(len(giving), source), taking, i, j])
    columns = np.concatenate([giving, np.full(len(taking), sink), j, i])
    capacity = np.concatenate([polygon[giving], -polygon[taking], half, half])
    network = csr_array((capacity.astype(np.int32), (rows.astype(np.int32), columns.astype(np.int32))), (n + 2, n + 2))
    flow = maximum_flow(network, source, sink).flow
    left = network - flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    handed_over = np.asarray(flow[i, j]).ravel() * unit
    return reached[reached < n], np.clip(q / 2 - handed_over, 0.0, q)
