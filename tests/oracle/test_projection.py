"""One local projection wherever the landscape lies: at its true size, across zones and across the 180th meridian."""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Geod

from oracle.errors import LandscapeError
from oracle.landscape import Landscape
from oracle.neighbours import neighbour_graph
from oracle.projection import local_projection, to_local
from oracle.survey import QUARTER_M, quarter_sections

from .polygons import by_pair, case, landscape_of, with_geometry

NUMBERS = ["border_m", "facing_m", "gap_m", "distance_m", "azimuth_deg"]


def centre(geometry: gpd.GeoSeries) -> tuple[float, float]:
    values = {p.name: p.value for p in local_projection(geometry).coordinate_operation.params}
    return values["Longitude of natural origin"], values["Latitude of natural origin"]


def fields(middle: float) -> Landscape:
    """4 x 3 fields of 0.01 by 0.006 degrees around the meridian ``middle``; longitudes stay in -180..180."""
    shapes, ids = [], []
    for x in range(-2, 2):
        for y in range(3):
            west = (middle + x * 0.01 + 180.0) % 360.0 - 180.0
            shapes.append(shapely.box(west, 52 + y * 0.006, west + 0.01, 52 + (y + 1) * 0.006))
            ids.append(f"{x + 2}{y}")
    return landscape_of(shapes, ids, 4326)


def assert_same(one: Landscape, other: Landscape, atol: float = 2e-3) -> None:
    a, b = by_pair(neighbour_graph(one)), by_pair(neighbour_graph(other))
    pd.testing.assert_frame_equal(a.drop(columns=NUMBERS), b.drop(columns=NUMBERS))
    pd.testing.assert_frame_equal(a[NUMBERS], b[NUMBERS], atol=atol)


def test_it_is_centred_on_the_landscape() -> None:
    assert centre(fields(-106.0).polygons.geometry) == (-106.0, 52.009)
    assert centre(fields(-106.0).polygons.to_crs(3347).geometry) == pytest.approx((-106.0, 52.009), abs=0.002)


@pytest.mark.parametrize("middle", [180.0, 179.995, -179.99])
def test_across_the_180th_meridian_the_centre_is_the_circular_middle(middle: float) -> None:
    lon, lat = centre(fields(middle).polygons.geometry)
    assert abs((lon - middle + 180.0) % 360.0 - 180.0) < 0.002
    assert lat == 52.009


def test_across_the_180th_meridian_nothing_is_different() -> None:
    assert_same(fields(180.0), fields(-106.0))


def test_longitudes_of_0_to_360_are_the_same_places() -> None:
    landscape = fields(180.0)
    eastward = shapely.transform(
        landscape.polygons.geometry.to_numpy(), lambda xy: np.column_stack([xy[:, 0] % 360.0, xy[:, 1]])
    )
    eastward = gpd.GeoSeries(
        [g if g.bounds[2] - g.bounds[0] < 1 else shapely.transform(g, _full_turn) for g in eastward], crs=4326
    )
    assert_same(landscape, with_geometry(landscape, eastward))


def _full_turn(xy: np.ndarray) -> np.ndarray:
    return np.column_stack([np.where(xy[:, 0] < 1, xy[:, 0] + 360.0, xy[:, 0]), xy[:, 1]])


def test_a_field_cut_at_the_180th_meridian_is_one_field() -> None:
    # As RFC 7946 wants it: two parts that meet at 180 and -180. The same field at 106 W is cut too, for comparison.
    def cut(middle: float) -> Landscape:
        wrap = (middle + 180.0) % 360.0 - 180.0
        west, east = shapely.box(middle - 0.01, 52, middle, 52.006), shapely.box(wrap, 52, wrap + 0.01, 52.006)
        north = shapely.box(wrap, 52.006, wrap + 0.01, 52.012)
        return landscape_of(
            [shapely.MultiPolygon([west, east]) if middle == 180 else west.union(east), north], "AB", 4326
        )

    assert_same(cut(180.0), cut(-106.0))
    assert neighbour_graph(cut(180.0)).table["code"].tolist() == ["NE", "SW"]


def test_across_utm_zones_the_zone_does_not_matter() -> None:
    # Range 13 west of the third meridian lies on both sides of 108 W, where zones 12 and 13 meet.
    quarters = quarter_sections(42, 13, 3, townships_ew=2)
    degrees = quarters.to_crs(4326)
    assert degrees.total_bounds[0] < -108 < degrees.total_bounds[2]
    landscape = landscape_of(quarters.geometry, quarters["id"], quarters.crs)
    for zone in (32612, 32613):
        assert_same(landscape, with_geometry(landscape, landscape.polygons.to_crs(zone)), atol=0.01)


def test_lengths_are_true_a_hundred_kilometres_from_the_centre() -> None:
    quarters = quarter_sections(30, 5, 3, townships_ns=20).to_crs(4326)
    south, north = quarters.iloc[[0]], quarters.iloc[[-1]]
    ends = pd.concat([south, north])
    local = to_local(ends.geometry)
    assert local.distance(shapely.Point(0, 0)).min() > 90_000
    assert local.length.to_numpy() / 4 == pytest.approx(QUARTER_M, rel=3e-3)
    geodesic = [Geod(ellps="WGS84").geometry_length(g.exterior) for g in ends.geometry]
    assert local.length.to_numpy() == pytest.approx(geodesic, rel=2e-4)


def test_heights_are_left_behind() -> None:
    assert not shapely.has_z(to_local(case("z_coordinates").polygons.geometry).to_numpy()).any()


@pytest.mark.filterwarnings("ignore")
def test_paper_coordinates_are_no_place_on_earth() -> None:
    with pytest.raises(LandscapeError, match="coordinates outside the range of WGS 84"):
        neighbour_graph(case("local_xy_as_crs84"))
