"""How far the yields of a landscape resemble each other: the range that spatial blocks have to span.

Moran's I of every crop's yield per distance class; the range is where it first falls to its expectation for yields
without any spatial order, -1 / (n - 1) (the correlogram's intercept: Legendre and Fortin 1989, Vegetatio 80, 107-138),
interpolated between the middles of two classes. Of several crops the longest range counts.

Classes are as wide as a mean polygon, or as a thirtieth of the reach where that is more, and reach to half of the
longest distance between two polygons: farther pairs are few and lie at the edges. A landscape of more than 2,000
polygons is represented by the 2,000 that come first in the order of a hash of their ids, so that neither time nor
memory grow.
"""

from __future__ import annotations

import hashlib

import numpy as np
from scipy.spatial.distance import pdist

MOST_POLYGONS = 2_000
LEAST_POLYGONS = 30
_CLASSES = 30
_LEAST_PAIRS = 30


def yield_range_m(xy: np.ndarray, yields: np.ndarray, ids: np.ndarray, width_m: float) -> float | None:
    """Distance from which on the yields no longer resemble each other.

    Parameters
    ----------
    xy : ndarray of float
        (n, 2) centroids in a local projection, m.
    yields : ndarray of float
        (n, K) yields, t/ha.
    ids : ndarray of str
        (n,) polygon ids, which decide the sample of a large landscape.
    width_m : float
        Mean width of a polygon, m.

    Returns
    -------
    float or None
        m; None where fewer than 30 polygons, or yields that are the same everywhere, tell nothing. Half of the
        longest distance where a crop's yields resemble each other as far as that.
    """
    if len(xy) < LEAST_POLYGONS:
        return None
    chosen = _sample(ids)
    distance = pdist(xy[chosen])
    reach = distance.max() / 2
    classes = max(int(np.clip(reach // width_m, 1, _CLASSES)), 1)
    edges = np.linspace(0.0, reach, classes + 1)
    place = np.digitize(distance, edges[1:-1])
    near = distance <= reach
    pairs = np.bincount(place[near], minlength=classes)
    filled = pairs >= _LEAST_PAIRS
    middles = ((edges[:-1] + edges[1:]) / 2)[filled]
    first, second = np.triu_indices(len(chosen), k=1)
    ranges = []
    for column in yields[chosen].T:
        deviation = column - column.mean()
        variance = float((deviation**2).mean())
        if variance <= 1e-12 * max(float((column**2).mean()), 1.0):
            continue
        products = np.bincount(place[near], weights=(deviation[first] * deviation[second])[near], minlength=classes)
        moran = products[filled] / pairs[filled] / variance
        ranges.append(_intercept(middles, moran, -1.0 / (len(chosen) - 1), reach))
    return max(ranges, default=None)


def _intercept(middles: np.ndarray, moran: np.ndarray, expected: float, reach: float) -> float:
    below = np.flatnonzero(moran <= expected)
    if not len(below):
        return float(reach)
    b = int(below[0])
    if b == 0:
        return float(middles[0])
    above, under = moran[b - 1] - expected, moran[b] - expected
    return float(middles[b - 1] + (middles[b] - middles[b - 1]) * above / (above - under))


def _sample(ids: np.ndarray) -> np.ndarray:
    """(m,) row positions, all n of them up to 2,000, in the order of a hash of the ids."""
    order = sorted(range(len(ids)), key=lambda i: hashlib.sha256(str(ids[i]).encode()).digest())
    return np.array(order[:MOST_POLYGONS])
