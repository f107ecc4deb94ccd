"""How far two polygons run along each other, from the segments of their boundaries.

A point of A's boundary *faces* B when B's boundary runs within 45 degrees of it, turned the other way (so the two
insides lie on the far sides), and is met within ``reach_m`` on the perpendicular. Along a pair of segments that
perpendicular distance is linear, so the facing part of a segment is an interval; a segment's intervals towards one
polygon are united, and the lengths of A towards B and of B towards A averaged. Extra vertices change nothing.

The *border* is the same with a reach of :data:`TOUCH_M`, whichever way the edges are turned (overlapping polygons
run along each other too). Edges that overlap by up to :data:`OVERLAP_M` still face each other; deeper overlaps are
a fault of the file and reported at intake.

Simplification: what lies between two edges (a third, narrow polygon) does not hide them from each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

TOUCH_M = 0.2
"""Edges this near touch. When a file is reprojected only the ends of an edge are, and over three quarter sections
(2.4 km at 52 N) the straight line between them then lies 0.15 m off the corners of the fields beside it."""
OVERLAP_M = 2.0
_COS_45 = np.sqrt(0.5)
_CHUNK = 250_000


@dataclass(frozen=True, eq=False)
class Segments:
    """Boundary segments, interior to the left: start (m, 2), unit direction (m, 2), length (m,), polygon (m,)."""

    start: np.ndarray
    direction: np.ndarray
    length: np.ndarray
    owner: np.ndarray

    @classmethod
    def of(cls, polygons: np.ndarray) -> Segments:
        """Segments of (n,) planar polygons; zero-length ones are left out."""
        parts, polygon = shapely.get_parts(polygons, return_index=True)
        rings, part = shapely.get_rings(parts, return_index=True)
        points, ring = shapely.get_coordinates(rings, return_index=True)
        first = np.flatnonzero(ring[1:] == ring[:-1])
        ring, start, stop = ring[first], points[first], points[first + 1]
        # A shell belongs anticlockwise, a hole clockwise; twice a ring's area, from its own first point, tells.
        near = start[np.searchsorted(ring, np.arange(len(rings)))][ring]
        (ax, ay), (bx, by) = (start - near).T, (stop - near).T
        anticlockwise = np.bincount(ring, weights=ax * by - bx * ay, minlength=len(rings)) > 0
        shell = np.diff(part, prepend=-1) > 0
        turned = (anticlockwise != shell)[ring]
        start, stop = np.where(turned[:, None], stop, start), np.where(turned[:, None], start, stop)
        step = stop - start
        length = np.hypot(step[:, 0], step[:, 1])
        keep = length > 0
        start, step, length, owner = start[keep], step[keep], length[keep], polygon[part[ring]][keep]
        return cls(start, step / length[:, None], length, owner)

    def boxes(self, margin: float) -> np.ndarray:
        """(m,) lines from corner to corner of each segment's bounds, grown by ``margin``: all that a tree looks at."""
        end = self.start + self.direction * self.length[:, None]
        low, high = np.minimum(self.start, end) - margin, np.maximum(self.start, end) + margin
        return shapely.linestrings(np.stack([low, high], axis=1))


def facing(polygons: np.ndarray, i: np.ndarray, j: np.ndarray, reach_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Metres along which pairs of polygons touch and face each other within ``reach_m``.

    Parameters
    ----------
    polygons : (n,) planar polygons, metres
        Polygon or MultiPolygon, valid, 2D.
    i, j : (m,) int
        The pairs, ``i < j``, sorted by (i, j).
    reach_m : float
        Greatest perpendicular distance, metres.

    Returns
    -------
    border_m, facing_m : (m,) float
        0 where a pair does not run along each other.
    """
    if not len(i):
        return np.zeros(0), np.zeros(0)
    segments = Segments.of(polygons)
    reach = max(reach_m, TOUCH_M)
    boxes = segments.boxes(max(reach, OVERLAP_M) / 2)  # two boxes meet where their segments may be within reach
    tree = shapely.STRtree(boxes)
    parts: list[tuple[np.ndarray, ...]] = []
    for low in range(0, len(boxes), _CHUNK):
        a, b = tree.query(boxes[low : low + _CHUNK])
        parts.append(_intervals(segments, a + low, b, reach))
    a, target, start, stop, touches = (np.concatenate(column) for column in zip(*parts, strict=True))
    n = len(polygons)
    owner = segments.owner[a]
    pairs, key = i * n + j, np.minimum(owner, target) * n + np.maximum(owner, target)
    pair = np.minimum(np.searchsorted(pairs, key), len(pairs) - 1)
    listed = pairs[pair] == key
    border, faced = (
        _united(segments, a[kind], target[kind], start[kind], stop[kind], pair[kind], len(pairs))
        for kind in (touches & listed, ~touches & listed)
    )
    return border, faced


def _intervals(s: Segments, a: np.ndarray, b: np.ndarray, reach: float) -> tuple[np.ndarray, ...]:
    """Intervals (start, stop as shares of segment a) of a that face (touches False) or touch (True) b's polygon."""
    other = s.owner[a] != s.owner[b]
    a, b = a[other], b[other]
    turn = np.einsum("ij,ij->i", s.direction[a], s.direction[b])
    parallel = np.abs(turn) > _COS_45
    a, b, turn = a[parallel], b[parallel], turn[parallel]
    u, length = s.direction[a], s.length[a]
    gap = s.start[b] - s.start[a]
    t0 = u[:, 0] * gap[:, 0] + u[:, 1] * gap[:, 1]
    d0 = u[:, 1] * gap[:, 0] - u[:, 0] * gap[:, 1]  # outwards (to the right of a) is positive
    t1 = t0 + turn * s.length[b]
    slope = (u[:, 1] * s.direction[b][:, 0] - u[:, 0] * s.direction[b][:, 1]) / turn  # of d along t
    low, high = np.maximum(np.minimum(t0, t1), 0.0), np.minimum(np.maximum(t0, t1), length)
    found = []
    for touches, nearest, farthest, chosen in (
        (True, -TOUCH_M, TOUCH_M, high > low),
        (False, -OVERLAP_M, reach, (high > low) & (turn < 0)),
        (False, -TOUCH_M, TOUCH_M, (high > low) & (turn > 0)),
    ):
        start, stop = _clip(low, high, d0 - slope * t0, slope, nearest, farthest)
        keep = chosen & (stop > start)
        found.append(
            (
                a[keep],
                s.owner[b[keep]],
                start[keep] / length[keep],
                stop[keep] / length[keep],
                np.full(keep.sum(), touches),
            )
        )
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def _clip(
    low: np.ndarray, high: np.ndarray, at_zero: np.ndarray, slope: np.ndarray, nearest: float, farthest: float
) -> tuple[np.ndarray, np.ndarray]:
    """The part of [low, high] where ``nearest <= at_zero + slope t <= farthest``; empty where stop <= start."""
    level = np.abs(slope) < 1e-12
    steep = np.where(level, 1.0, slope)
    bounds = (nearest - at_zero) / steep, (farthest - at_zero) / steep
    inside = (at_zero >= nearest) & (at_zero <= farthest)
    start = np.where(level, np.where(inside, low, high), np.maximum(low, np.minimum(*bounds)))
    stop = np.where(level, high, np.minimum(high, np.maximum(*bounds)))
    return start, stop


def _united(
    s: Segments, a: np.ndarray, target: np.ndarray, start: np.ndarray, stop: np.ndarray, pair: np.ndarray, pairs: int
) -> np.ndarray:
    """Metres per unordered pair: united intervals, summed over segments, mean of both directions."""
    order = np.lexsort((start, target, a))
    a, target, start, stop = a[order], target[order], start[order], stop[order]
    new = np.ones(len(a), dtype=bool)
    new[1:] = (a[1:] != a[:-1]) | (target[1:] != target[:-1])
    group = np.cumsum(new) - 1.0
    covered = np.maximum.accumulate(stop + 2.0 * group) - 2.0 * group  # groups lie apart, so one running maximum does
    before = np.where(new, 0.0, np.concatenate([[0.0], covered[:-1]]))
    metres = np.maximum(stop - np.maximum(start, before), 0.0) * s.length[a]
    return np.bincount(pair[order], weights=metres, minlength=pairs) / 2.0
