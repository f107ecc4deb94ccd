"""Eight compass sectors, counted clockwise from true north; opposite codes for opposite directions, always.

A direction is read between centroids (of all parts of a polygon together, weighted by area), also where a centroid
lies outside its own polygon or inside the other: from a field to the slough in its north-east it is ``NE``, back it
is ``SW``, which is where most of the field lies. The same goes for U shapes and for fields in two parts on both sides
of another. Only where the centroids coincide there is no direction: code ``C`` both ways.
"""

from __future__ import annotations

import numpy as np

from oracle.landscape import GEOD

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
CONCENTRIC = "C"
"""Code of a neighbour whose centroid coincides with one's own (a slough in the middle of its field): no direction."""
CODES = (*COMPASS, CONCENTRIC)

SECTOR_DEG = 360.0 / len(COMPASS)
SNAP_DEG = 0.05
"""Azimuths this near a border between two sectors count as lying on it."""

CONCENTRIC_M = 1.0
"""Centroids nearer than this coincide."""

_OPPOSITE = np.array([4, 5, 6, 7, 0, 1, 2, 3, 8])
_NAMES = np.array(CODES, dtype=object)
_INDEX = {name: i for i, name in enumerate(CODES)}


def directions(lonlat: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance and azimuth from the points ``i`` to the points ``j`` on the WGS 84 ellipsoid.

    Parameters
    ----------
    lonlat : (n, 2) float
        Degrees.
    i, j : (m,) int
        Rows of ``lonlat``.

    Returns
    -------
    distance_m : (m,) float
        Geodesic (Karney 2013, through pyproj).
    azimuth_deg : (m,) float
        From true north, taken half way along the geodesic, so that the way back is + 180; NaN where concentric.
    """
    ahead, back, distance = (np.asarray(v, dtype=float) for v in GEOD.inv(*lonlat[i].T, *lonlat[j].T))
    turn = (back - ahead) % 360.0 - 180.0
    azimuth = (ahead + turn / 2.0) % 360.0
    return distance, np.where(distance < CONCENTRIC_M, np.nan, azimuth)


def sector_index(azimuth_deg: np.ndarray) -> np.ndarray:
    """Index into :data:`CODES` of each azimuth.

    Sectors are half-open, N = [-22.5, 22.5), so 22.5 is NE. An azimuth within :data:`SNAP_DEG` of a border is put
    on the border first: the last digits of a projection must not decide between two codes. The rule turns with the
    azimuth, so ``a`` and ``a + 180`` always get opposite codes.

    Parameters
    ----------
    azimuth_deg : (n,) float
        Degrees clockwise from north, any multiple of 360 added; NaN = concentric.

    Returns
    -------
    (n,) int
    """
    azimuth = np.asarray(azimuth_deg, dtype=float)
    undefined = np.isnan(azimuth)
    turns = (np.where(undefined, 0.0, azimuth) + SECTOR_DEG / 2) / SECTOR_DEG
    border = np.round(turns)
    snapped = np.where(np.abs(turns - border) * SECTOR_DEG <= SNAP_DEG, border, np.floor(turns))
    return np.where(undefined, len(COMPASS), snapped.astype(np.int64) % len(COMPASS))


def sector(azimuth_deg: np.ndarray) -> np.ndarray:
    """(n,) codes ``N``, ``NE``, ... of azimuths in degrees (``C`` for NaN); the rule is :func:`sector_index`'s."""
    return _NAMES[sector_index(azimuth_deg)]


def opposite_index(index: np.ndarray) -> np.ndarray:
    """Indices of the opposite codes; concentric is its own opposite."""
    return _OPPOSITE[index]


def opposite(code: str) -> str:
    """The way back along ``code``: of a first-order code (``N`` -> ``S``) or a path (``N-NE`` -> ``SW-S``)."""
    return "-".join(CODES[_OPPOSITE[_INDEX[step]]] for step in reversed(code.split("-")))
