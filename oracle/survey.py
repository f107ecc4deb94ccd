"""Dominion Land Survey: quarter sections of the Canadian prairies, at their real place and size.

A township is 6 x 6 sections, numbered 1..36 from the south-east corner in alternating directions; a section is a
mile square and has four quarters. Every fourth township starts on a base line (the first is 49 N); from there the
range lines run north and south as meridians, two townships each way, to a correction line, where the rows of the
next base line begin with a jog. Road allowances are those of the survey of 1881 and later: one chain between all
section columns, and one chain north of sections 7-12, 19-24 and 31-36.

Legal land descriptions are the ids: ``NW-36-42-7-W3`` is the north-west quarter of section 36, township 42, range 7
west of the third meridian.

Simplifications: the survey is without its errors; convergence is spread over all sections of a row instead of being
thrown into the westernmost; the older survey's 1.5-chain allowances (southern Manitoba) are drawn as one chain;
lakes, rivers, reserves and settlements are ignored. Areas are within about 0.5 % of 64.75 ha.
"""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from oracle.errors import ConfigurationError
from oracle.landscape import GEOD

CHAIN_M = 20.1168
SECTION_M = 80 * CHAIN_M
QUARTER_M = SECTION_M / 2
TOWNSHIP_NS_M = 6 * SECTION_M + 3 * CHAIN_M
TOWNSHIP_EW_M = 6 * (SECTION_M + CHAIN_M)
FIRST_BASE_LINE = 49.0
MERIDIANS = {1: -(97 + 27 / 60 + 28.4 / 3600), 2: -102.0, 3: -106.0, 4: -110.0, 5: -114.0, 6: -118.0, 7: -122.0}
"""Longitude of each meridian, degrees; the seventh is the Coast Meridian."""
LAST_TOWNSHIP = 126


def section_number(column: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Number 1..36 of the section in ``column`` (0 = east) and ``row`` (0 = south) of its township."""
    return 6 * row + 1 + np.where(row % 2 == 0, column, 5 - column)


def quarter_sections(
    township: int, range_: int, meridian: int, *, townships_ns: int = 1, townships_ew: int = 1
) -> gpd.GeoDataFrame:
    """Quarter sections of a block of townships.

    Parameters
    ----------
    township, range_, meridian : int
        The block's south-east township: township and range from 1, meridian 1..7.
    townships_ns, townships_ew : int
        How many townships the block counts northwards and westwards.

    Returns
    -------
    GeoDataFrame
        144 rows a township, from the south-east corner westwards and northwards, in the UTM zone of the block:
        ``id`` (legal land description), ``township`` (``42-7-W3``), ``section`` (1..36), ``geometry``.

    Raises
    ------
    ConfigurationError
        Where the block lies outside the survey: township above 126, or ranges that reach the next meridian.
    """
    last = township + townships_ns - 1
    if meridian not in MERIDIANS or township < 1 or range_ < 1 or townships_ns < 1 or townships_ew < 1:
        raise ConfigurationError(
            f"no township {township}-{range_}-W{meridian}: townships and ranges count from 1, meridians are 1..7"
        )
    if last > LAST_TOWNSHIP:
        raise ConfigurationError(f"township {last} lies north of the survey, which ends with {LAST_TOWNSHIP}")

    # One entry per quarter: half sections counted from the block's south-east corner.
    north, west = (
        v.ravel() for v in np.meshgrid(np.arange(12 * townships_ns), np.arange(12 * townships_ew), indexing="ij")
    )
    own_township, own_range = township + north // 12, range_ + west // 12
    row, column = north % 12 // 2, west % 12 // 2
    base = (own_township + 1) // 4
    south_m = (
        (own_township - 1 - 4 * base) * TOWNSHIP_NS_M + row * SECTION_M + row // 2 * CHAIN_M + north % 2 * QUARTER_M
    )
    east_m = (own_range - 1) * TOWNSHIP_EW_M + column * (SECTION_M + CHAIN_M) + west % 2 * QUARTER_M

    base_lat = _north_of(FIRST_BASE_LINE, base * 4 * TOWNSHIP_NS_M)
    south, top = _north_of(base_lat, south_m), _north_of(base_lat, south_m + QUARTER_M)
    east, far = (MERIDIANS[meridian] - metres / _metres_per_degree(base_lat) for metres in (east_m, east_m + QUARTER_M))
    next_meridian = MERIDIANS.get(meridian + 1, -180.0)
    if far.min() < next_meridian:
        raise ConfigurationError(
            f"range {int(own_range[far < next_meridian].min())} west of meridian {meridian} reaches meridian "
            f"{meridian + 1} in township {int(own_township[far < next_meridian][0])}"
        )

    corners = np.stack([np.stack([far, south], -1), np.stack([east, south], -1), np.stack([east, top], -1),
                        np.stack([far, top], -1)], axis=1)  # fmt: skip
    section = section_number(column, row)
    place = [f"{t}-{r}-W{meridian}" for t, r in zip(own_township, own_range, strict=True)]
    side = np.array([["SE", "SW"], ["NE", "NW"]])[north % 2, west % 2]
    frame = pd.DataFrame(
        {
            "id": [f"{q}-{s}-{p}" for q, s, p in zip(side, section, place, strict=True)],
            "township": place,
            "section": section,
        }
    )
    quarters = gpd.GeoDataFrame(frame, geometry=shapely.polygons(corners), crs=4326)
    return quarters.to_crs(quarters.estimate_utm_crs())


def _north_of(lat: np.ndarray | float, metres: np.ndarray) -> np.ndarray:
    """Latitude ``metres`` north of ``lat`` along a meridian of the WGS 84 ellipsoid."""
    metres = np.asarray(metres, dtype=float)
    start = np.broadcast_to(np.asarray(lat, dtype=float), metres.shape)
    zero = np.zeros(metres.shape)
    return np.asarray(GEOD.fwd(zero, start, zero, metres)[1])


def _metres_per_degree(lat: np.ndarray) -> np.ndarray:
    """Length of a degree of longitude along the parallel ``lat``, m (WGS 84)."""
    phi = np.radians(lat)
    normal = GEOD.a / np.sqrt(1 - GEOD.es * np.sin(phi) ** 2)
    return np.radians(normal * np.cos(phi))
