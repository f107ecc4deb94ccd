"""Polygons that look wrong together or alone: duplicates, overlaps and slivers, found and told, never changed."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas as gpd
import numpy as np
import pandas as pd
import scipy.sparse as sp
import shapely

from oracle.projection import to_local
from oracle.remarks import Remark, remark

LEAST_OVERLAP = 0.01
"""Share of the smaller polygon's area; below it an overlap is digitising noise."""
SAME = 1e-6
"""Polygons are duplicates when all but this share of both is common: rounding and start vertices do not count."""
SLIVER_M = 1.0
"""A polygon narrower than this on average (twice its area by its perimeter) is a leftover of digitising."""
_SHOWN = 5


@dataclass(frozen=True)
class Doubts:
    """Remarks on a landscape's polygons, and the area that they count more than once, ha."""

    remarks: tuple[Remark, ...]
    double_ha: float


def doubtful_polygons(geometry: gpd.GeoSeries, ids: pd.Series) -> Doubts:
    """Duplicates, overlaps above :data:`LEAST_OVERLAP` and slivers among n valid polygons with a CRS.

    Near linear in n: pairs come from an index over bounding boxes, and only interiors that meet are intersected.
    """
    shapes = to_local(geometry).to_numpy()
    names = ids.to_numpy(dtype=object)
    areas = shapely.area(shapes)
    i, j = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    i, j = i[i < j], j[i < j]
    meet = shapely.relate_pattern(shapes[i], shapes[j], "T********")
    i, j = i[meet], j[meet]
    area = shapely.area(shapely.intersection(shapes[i], shapes[j]))
    share = area / np.minimum(areas[i], areas[j])
    same = area > (1 - SAME) * np.maximum(areas[i], areas[j])
    told = share > LEAST_OVERLAP
    involved = np.union1d(i[told], j[told])
    double = areas[involved].sum() - shapely.area(shapely.union_all(shapes[involved])) if len(involved) else 0.0
    remarks = _duplicates(i[same], j[same], areas, names)
    apart = told & ~same
    remarks += _overlaps(i[apart], j[apart], area[apart], share[apart], names)

    width = 2 * areas / shapely.length(shapes)
    narrow = np.flatnonzero(width < SLIVER_M)
    if len(narrow):
        details = [f"{names[k]}: {width[k]:.2f} m wide, {areas[k] / 1e4:.4f} ha" for k in narrow[:_SHOWN]]
        remarks.append(remark(f"slivers, narrower than {SLIVER_M:g} m on average", names[narrow], details))
    return Doubts(tuple(remarks), max(float(double) / 1e4, 0.0))


def _duplicates(i: np.ndarray, j: np.ndarray, areas: np.ndarray, names: np.ndarray) -> list[Remark]:
    """Of every group of equal polygons all but the first."""
    n = len(names)
    group = sp.csgraph.connected_components(sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    first = np.unique(group, return_index=True)[1][group]
    again = np.flatnonzero(first != np.arange(n))
    if not len(again):
        return []
    details = [f"{names[k]} = {names[first[k]]}: {areas[k] / 1e4:.4f} ha" for k in again[:_SHOWN]]
    what = f"duplicates of another polygon, {areas[again].sum() / 1e4:.4f} ha counted again"
    return [remark(what, names[again], details)]


def _overlaps(i: np.ndarray, j: np.ndarray, area: np.ndarray, share: np.ndarray, names: np.ndarray) -> list[Remark]:
    if not len(i):
        return []
    first = np.argsort(-area, kind="stable")[:_SHOWN]
    details = [f"{names[i[k]]} and {names[j[k]]}: {area[k] / 1e4:.4f} ha, {share[k]:.1%} of the smaller" for k in first]
    ids = tuple(str(n) for n in names[np.union1d(i, j)])
    what = f"pairs that overlap by more than {LEAST_OVERLAP:.0%} of the smaller, {area.sum() / 1e4:.4f} ha in all"
    return [Remark(what, len(i), ids, tuple(details))]
