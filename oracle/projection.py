"""One local projection per landscape: lengths and gaps in metres, without a national projection's distortion.

National projections turn the grid by up to 24 degrees and stretch areas by several per cent on the prairies; a
Lambert azimuthal equal-area projection centred on the landscape keeps areas, and keeps lengths within 0.02 % out to
100 km from its centre. Directions are never read from it: they are geodesic (:mod:`oracle.compass`). A landscape in
several UTM zones, or on both sides of the 180th meridian, is one landscape.
"""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import shapely
from pyproj import CRS, Transformer

from oracle.errors import LandscapeError

MAX_EDGE_M = 1_000.0
"""Longer edges get extra vertices before projecting, so that a straight edge stays straight to about a centimetre."""


def local_projection(geometry: gpd.GeoSeries) -> CRS:
    """Lambert azimuthal equal-area, metres, WGS 84, centred on ``geometry`` (to 0.001 degrees).

    The centre is half way between the southernmost and northernmost, and between the westernmost and easternmost
    polygon; west and east are told apart around the circular mean of the longitudes.

    Raises
    ------
    LandscapeError
        Where coordinates have no place on the Earth in the stated CRS.
    """
    bounds = shapely.bounds(shapely.get_parts(geometry.to_numpy()))
    lon, lat = to_lonlat((bounds[:, :2] + bounds[:, 2:]) / 2, geometry.crs).T
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        raise _outside(geometry.crs)
    mean = np.round(np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean())))
    east = (lon - mean + 180.0) % 360.0 - 180.0
    centre_lon = (mean + (east.min() + east.max()) / 2 + 180.0) % 360.0 - 180.0
    centre_lat = (lat.min() + lat.max()) / 2
    return CRS.from_proj4(f"+proj=laea +lat_0={centre_lat:.3f} +lon_0={centre_lon:.3f} +datum=WGS84 +units=m +no_defs")


def to_local(geometry: gpd.GeoSeries) -> gpd.GeoSeries:
    """(n,) polygons in :func:`local_projection`, 2D, with no edge much longer than :data:`MAX_EDGE_M`.

    Raises
    ------
    LandscapeError
        Where coordinates have no place on the Earth in the stated CRS.
    """
    crs = geometry.crs
    metres_per_unit = 111_000.0 if crs.is_geographic else crs.axis_info[0].unit_conversion_factor
    polygons = _without_long_edges(geometry.to_numpy(), MAX_EDGE_M / metres_per_unit)
    projection = local_projection(geometry)
    to_metres = Transformer.from_crs(crs, projection, always_xy=True).transform
    local = shapely.transform(polygons, to_metres, interleaved=False)
    if not np.isfinite(shapely.bounds(local)).all():
        raise _outside(crs)
    return gpd.GeoSeries(local, crs=projection)


def to_lonlat(xy: np.ndarray, crs: CRS) -> np.ndarray:
    """(n, 2) longitudes and latitudes (WGS 84, degrees) of (n, 2) points in ``crs``; infinite where there are none."""
    return np.column_stack(Transformer.from_crs(crs, 4326, always_xy=True).transform(*xy.T))


def _without_long_edges(polygons: np.ndarray, longest: float) -> np.ndarray:
    points, owner = shapely.get_coordinates(polygons, return_index=True)
    step = np.diff(points, axis=0)
    long = (np.hypot(step[:, 0], step[:, 1]) > longest) & (owner[1:] == owner[:-1])
    rows = np.unique(owner[1:][long])
    polygons = polygons.copy()
    polygons[rows] = shapely.segmentize(polygons[rows], longest)
    return polygons


def _outside(crs: CRS) -> LandscapeError:
    return LandscapeError(
        f"coordinates outside the range of {crs.name}: state the CRS that the file is really in (recipe key `crs`)"
    )
