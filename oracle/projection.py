"""One local projection per landscape: lengths and gaps in metres, without a national projection's distortion.

National projections turn the grid by up to 24 degrees and stretch areas by several per cent on the prairies; a
Lambert azimuthal equal-area projection centred on the landscape keeps areas, and keeps lengths within 0.02 % out to
100 km from its centre. Directions are never read from it: they are geodesic (:mod:`oracle.neighbours`).

Simplification: a landscape that crosses the 180th meridian is centred on the wrong side of the Earth.
"""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import shapely
from pyproj import CRS

from oracle.errors import LandscapeError

MAX_EDGE_M = 1_000.0
"""Longer edges get extra vertices before projecting, so that a straight edge stays straight to about a centimetre."""


def local_projection(geometry: gpd.GeoSeries) -> CRS:
    """Lambert azimuthal equal-area, metres, WGS 84, centred on the bounds of ``geometry`` (to 0.001 degrees)."""
    west, south, east, north = geometry.to_crs(4326).total_bounds
    lat, lon = round((south + north) / 2, 3), round((west + east) / 2, 3)
    return CRS.from_proj4(f"+proj=laea +lat_0={lat} +lon_0={lon} +datum=WGS84 +units=m +no_defs")


def to_local(geometry: gpd.GeoSeries) -> gpd.GeoSeries:
    """(n,) polygons in :func:`local_projection`, 2D, with no edge much longer than :data:`MAX_EDGE_M`.

    Raises
    ------
    LandscapeError
        Where coordinates have no place on the Earth in the stated CRS.
    """
    crs = geometry.crs
    metres_per_unit = 111_000.0 if crs.is_geographic else crs.axis_info[0].unit_conversion_factor
    flat = gpd.GeoSeries(shapely.force_2d(geometry.to_numpy()), crs=crs)
    fine = gpd.GeoSeries(shapely.segmentize(flat.to_numpy(), MAX_EDGE_M / metres_per_unit), crs=crs)
    local = fine.to_crs(local_projection(flat))
    if not np.isfinite(local.total_bounds).all():
        raise LandscapeError(
            f"coordinates outside the range of {crs.name}: state the CRS that the file is really in (recipe key `crs`)"
        )
    return local
