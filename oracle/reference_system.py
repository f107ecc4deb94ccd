"""The coordinate reference system of a polygon file, and whether its coordinates can be in it."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas as gpd
import numpy as np
import pyproj
import shapely

EARTH_GIRTH_M = 40_100_000.0
"""No projected coordinate is farther from its origin than once round the Earth."""


@dataclass(frozen=True)
class ReferenceSystem:
    """The CRS to use (None: there is none that fits), whether ``file`` or ``recipe`` states it, and what is wrong."""

    crs: pyproj.CRS | None
    stated_by: str
    problem: str | None = None

    @property
    def name(self) -> str | None:
        """``EPSG:32613``, or the CRS's own name where it has no code."""
        if self.crs is None:
            return None
        authority = self.crs.to_authority()
        return ":".join(authority) if authority else self.crs.name


def reference_system(geometry: gpd.GeoSeries, recipe_crs: str | None) -> ReferenceSystem:
    """The recipe's CRS, else the file's, where the coordinates can be in it."""
    crs, stated_by = geometry.crs, "file" if geometry.crs is not None else "nobody"
    if recipe_crs is not None:
        stated_by = "recipe"
        try:
            crs = pyproj.CRS.from_user_input(recipe_crs)
        except pyproj.exceptions.CRSError:
            return ReferenceSystem(
                None, stated_by, f"the recipe's crs {recipe_crs!r} is not a CRS; write e.g. EPSG:32613"
            )
    coordinates = shapely.get_coordinates(geometry.to_numpy())
    coordinates = coordinates[np.isfinite(coordinates).all(axis=1)]
    if not len(coordinates):
        return ReferenceSystem(crs, stated_by)  # rows without coordinates are refused one by one
    (west, south), (east, north) = coordinates.min(axis=0), coordinates.max(axis=0)
    bounds = f"x {west:g} to {east:g}, y {south:g} to {north:g}"
    degrees = max(abs(west), abs(east)) <= 360 and max(abs(south), abs(north)) <= 90
    ask = "Name the CRS in the recipe: `crs: EPSG:...`"
    problem = None
    if crs is None:
        looks = "look like degrees (EPSG:4326)" if degrees else "are no degrees: they are projected or local"
        problem = f"it states no CRS; coordinates run {bounds} and {looks}. {ask}"
    elif not (crs.is_geographic or crs.is_projected):
        problem = f"its CRS {crs.name!r} is neither geographic nor projected. {ask}"
    elif crs.is_geographic and not degrees:
        exchangeable = max(abs(west), abs(east)) <= 90 and max(abs(south), abs(north)) <= 180
        exchanged = "; or latitude and longitude are exchanged: x is the longitude" if exchangeable else ""
        problem = (
            f"{bounds} cannot be degrees, though its CRS is {crs.to_string()}; these look like local, planar "
            "coordinates. Name their projected CRS in the recipe: `crs: EPSG:...` (for a made-up map any CRS in metres)"
            f"{exchanged}"
        )
    elif crs.is_projected and stated_by == "file" and degrees:
        problem = f"{bounds} look like degrees, though its CRS is {crs.to_string()}, in metres or feet. {ask}"
    elif not _leads_to_the_globe(crs):
        problem = f"there is no way from its CRS {crs.name!r} to degrees. {ask}"
    return ReferenceSystem(None if problem else crs, stated_by, problem)


def _leads_to_the_globe(crs: pyproj.CRS) -> bool:
    try:
        pyproj.Transformer.from_crs(crs, 4326, always_xy=True)
    except pyproj.exceptions.ProjError:
        return False
    return True


def off_earth(geometry: gpd.GeoSeries) -> np.ndarray:
    """(n,) bool: polygons with a vertex that has no place on the Earth in the CRS of ``geometry``."""
    crs, shapes = geometry.crs, geometry.to_numpy()
    off = np.zeros(len(shapes), dtype=bool)
    if crs.is_projected:
        limit = EARTH_GIRTH_M / crs.axis_info[0].unit_conversion_factor
        xy, row = shapely.get_coordinates(shapes, return_index=True)
        off[row[(np.abs(xy) > limit).any(axis=1)]] = True
    xy, row = shapely.get_coordinates(geometry.to_crs(4326).to_numpy(), return_index=True)
    off[row[~np.isfinite(xy).all(axis=1)]] = True
    return off
