"""First-order neighbours: which polygons border or face each other, how far, and in which direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from oracle.compass import directions, opposite_index, sector_index
from oracle.facing import TOUCH_M, facing

MIN_BORDER_M = 1.0
KINDS = ("border", "gap", "corner")


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """Both directions of every pair, (m,) each, sorted by (source, target).

    ``source`` and ``target`` are row positions, ``code`` indices into :data:`oracle.compass.CODES`, ``kind`` into
    :data:`KINDS`; lengths in metres, azimuths in degrees from true north (NaN where concentric).
    """

    source: np.ndarray
    target: np.ndarray
    code: np.ndarray
    kind: np.ndarray
    border_m: np.ndarray
    facing_m: np.ndarray
    gap_m: np.ndarray
    distance_m: np.ndarray
    azimuth_deg: np.ndarray


def first_order(
    polygons: np.ndarray,
    lonlat: np.ndarray,
    max_gap_m: float,
    min_facing_m: float | None,
    given: tuple[np.ndarray, np.ndarray] | None = None,
) -> FirstOrder:
    """Every pair of polygons at most ``max_gap_m`` apart, or the ``given`` pairs.

    Parameters
    ----------
    polygons : (n,) planar polygons, metres
        Polygon or MultiPolygon, valid, 2D.
    lonlat : (n, 2) float
        Their centroids, degrees.
    max_gap_m, min_facing_m
        As in :class:`oracle.neighbours.NeighbourConfig`.
    given : (m,) int, (m,) int
        Pairs ``i < j``, sorted by (i, j), to be measured instead, however far apart they are.
    """
    n = len(polygons)
    if given is None:
        i, j, gap = _near_pairs(polygons, max(max_gap_m, TOUCH_M))
    else:
        i, j = given
        gap = shapely.distance(polygons[i], polygons[j])
    border, faced = facing(polygons, i, j, max_gap_m)
    side = np.sqrt(shapely.area(polygons))
    least = 0.1 * np.minimum(side[i], side[j]) if min_facing_m is None else min_facing_m
    kind = np.where(border >= MIN_BORDER_M, 0, np.where(faced >= least, 1, 2))
    distance, azimuth = directions(lonlat, i, j)
    code = sector_index(azimuth)

    order = np.argsort(np.concatenate([i * n + j, j * n + i]))
    pair, back = order % max(len(i), 1), order >= len(i)
    return FirstOrder(
        source=np.where(back, j[pair], i[pair]),
        target=np.where(back, i[pair], j[pair]),
        code=np.where(back, opposite_index(code)[pair], code[pair]),
        kind=kind[pair],
        border_m=np.round(border, 3)[pair],
        facing_m=np.round(faced, 3)[pair],
        gap_m=np.round(gap, 3)[pair],
        distance_m=distance[pair],
        azimuth_deg=np.where(back, azimuth[pair] + 180.0, azimuth[pair]),
    )


def _near_pairs(polygons: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unordered pairs ``i < j`` within ``reach`` of each other, sorted, and their gap in metres."""
    grown = shapely.bounds(polygons) + np.array([-reach, -reach, reach, reach])
    tree = shapely.STRtree(shapely.linestrings(grown.reshape(-1, 2, 2)))  # it looks at their bounds only
    i, j = tree.query(polygons)
    i, j = np.divmod(np.sort((i * len(polygons) + j)[i < j]), len(polygons))
    gap = shapely.distance(polygons[i], polygons[j])
    near = gap <= reach
    return i[near], j[near], gap[near]
