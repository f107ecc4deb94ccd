"""Geometry that becomes sound polygons: flat, valid, no other kinds; each repair is told with the area it cost."""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from oracle.errors import name_some
from oracle.landscape import geodesic_areas_ha
from oracle.reference_system import off_earth
from oracle.remarks import Notes, remark

_POLYGONAL = ("Polygon", "MultiPolygon", "GeometryCollection")
_SHOWN = 5
_BEYOND_ANY_MAP = 1e12  # NaN and infinity are, too; GEOS overflows not far above it


def sound_polygons(
    geometry: gpd.GeoSeries, curved: np.ndarray, ids: pd.Series, notes: Notes, *, drop: bool
) -> tuple[gpd.GeoSeries, np.ndarray]:
    """2D, valid polygons, and which rows have one.

    Invalid ones are rebuilt by shapely's structure method, which keeps what the rings enclose and cuts off spikes;
    only polygon parts are kept.

    Parameters
    ----------
    geometry : (n,) GeoSeries
        As read; its CRS may be missing, then no area can be told.
    curved : (n,) bool
        Polygons that were drawn with arcs.
    drop : bool
        Rows without a polygon are left out and told, instead of being a problem.
    """
    shapes = geometry.to_numpy().copy()
    kind = geometry.geom_type.to_numpy()
    missing = shapely.is_missing(shapes)
    if curved.any():
        notes.repairs.append(remark("arcs replaced by straight edges", ids[curved]))
    if (high := shapely.has_z(shapes)).any():
        notes.repairs.append(remark("heights (z) dropped", ids[high]))
    shapes = shapely.force_2d(shapes)
    endless = _has_endless_coordinate(shapes)
    shapes[endless] = shapely.Polygon()

    collections = kind == "GeometryCollection"
    shapes[collections] = _polygon_parts(shapes[collections])
    if (kept := collections & ~shapely.is_empty(shapes)).any():
        notes.repairs.append(remark("polygon parts taken out of a geometry collection", ids[kept]))

    polygon = np.isin(kind, _POLYGONAL)
    hollow = polygon & _has_empty_part(shapes)
    shapes[hollow] = _polygon_parts(shapes[hollow])
    broken = polygon & ~shapely.is_empty(shapes) & ~shapely.is_valid(shapes)
    if broken.any():
        before = shapes[broken]
        shapes[broken] = _polygon_parts(shapely.make_valid(before, method="structure", keep_collapsed=False))
        details = _area_changes(ids[broken], before, shapes[broken], geometry.crs)
        notes.repairs.append(remark("invalid polygon rebuilt", ids[broken], details))

    empty = shapely.is_empty(shapes)
    reason = np.select(
        [missing, endless, ~polygon, empty & broken, empty],
        ["no geometry", "a coordinate that is on no map", kind.astype(object), "no area", "empty"],
        default="",
    ).astype(object)
    mended = gpd.GeoSeries(shapes, index=geometry.index, crs=geometry.crs)
    usable = reason == ""
    if geometry.crs is not None and usable.any():
        lost = np.zeros(len(shapes), dtype=bool)
        lost[usable] = off_earth(mended[usable])
        reason[lost] = f"outside the range of {geometry.crs.name}"
        usable &= ~lost
    if not usable.all():
        _refuse(ids, reason, notes, drop=drop)
    return mended, usable


def _refuse(ids: pd.Series, reason: np.ndarray, notes: Notes, *, drop: bool) -> None:
    refused = reason != ""
    if drop:
        for why in dict.fromkeys(reason[refused]):
            notes.dropped.append(remark(f"not a polygon: {why}", ids[reason == why]))
        return
    named = name_some([f"{i} ({why})" for i, why in zip(ids[refused], reason[refused], strict=True)])
    notes.problems.append(
        f"{int(refused.sum())} row(s) are no polygons: {named}; remove them, or set `drop_unusable: true` in the recipe"
    )


def _has_endless_coordinate(shapes: np.ndarray) -> np.ndarray:
    xy, row = shapely.get_coordinates(shapes, return_index=True)
    endless = np.zeros(len(shapes), dtype=bool)
    endless[row[~(np.abs(xy) < _BEYOND_ANY_MAP).all(axis=1)]] = True
    return endless


def _has_empty_part(shapes: np.ndarray) -> np.ndarray:
    """Rows with a part or a ring without a point: nothing on a map, but GEOS crashes on some of them."""
    parts, row = shapely.get_parts(shapes, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    empty = np.zeros(len(shapes), dtype=bool)
    empty[row[shapely.is_empty(parts)]] = True
    empty[row[part[shapely.is_empty(rings)]]] = True
    return empty


def _polygon_parts(shapes: np.ndarray) -> np.ndarray:
    """Only the polygon parts of each geometry, as a Polygon or MultiPolygon (perhaps empty)."""
    kept = np.empty(len(shapes), dtype=object)
    for k, shape in enumerate(shapes):
        parts = _flat(shape)
        # Parts of a collection may be invalid or overlap; a union needs valid ones.
        if len(parts) > 1:
            parts = _flat(shapely.union_all(shapely.make_valid(parts, method="structure", keep_collapsed=False)))
        kept[k] = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts) if parts else shapely.Polygon()
    return kept


def _flat(shape: shapely.Geometry) -> list[shapely.Polygon]:
    """Non-empty polygons in a geometry, however deep its collections are nested."""
    if shape is None or shape.is_empty:
        return []
    if shape.geom_type == "Polygon":
        holes = list(shape.interiors)
        return [shapely.Polygon(shape.exterior, [h for h in holes if not h.is_empty])] if holes else [shape]
    return [p for part in getattr(shape, "geoms", ()) for p in _flat(part)]


def _area_changes(ids: pd.Series, before: np.ndarray, after: np.ndarray, crs: object) -> list[str]:
    """Area before and after, the greatest changes first; the ids alone where there is no CRS to measure in."""
    if crs is None:
        return [str(i) for i in ids[:_SHOWN]]
    was, now = (geodesic_areas_ha(gpd.GeoSeries(s, crs=crs)) for s in (before, after))
    change = np.nan_to_num(now - was)
    first = np.argsort(-np.abs(change), kind="stable")[:_SHOWN]
    return [f"{ids.iloc[k]}: {was[k]:.4f} ha, {change[k]:+.4f} ha" for k in first]
