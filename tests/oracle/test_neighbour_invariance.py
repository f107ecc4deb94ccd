"""What must change no neighbour, code or area: names, row order, CRS, place, float noise, extra vertices."""

from __future__ import annotations

from collections.abc import Callable

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph, neighbour_graph
from oracle.survey import TOWNSHIP_EW_M, TOWNSHIP_NS_M, quarter_sections

from .polygons import GRAPH_CASES, by_pair, case, landscape_of, with_geometry

NAMED = ["order", "code", "position", "kind"]
METRES = ["border_m", "facing_m", "gap_m", "distance_m"]
ROUNDED_M = 2e-3  # two roundings to a millimetre
UTM_STRETCH = 1.0001  # how far the scale of UTM changes over a township, at most
TURN_DEG = 0.15  # how far true north turns against the grid over a township


def assert_same(
    one: NeighbourGraph,
    other: NeighbourGraph,
    *,
    metres: float = ROUNDED_M,
    stretch: float = 1.0,
    degrees: float = 1e-5,
) -> None:
    a, b = by_pair(one), by_pair(other)
    pd.testing.assert_frame_equal(a[NAMED], b[NAMED])
    pd.testing.assert_frame_equal(a[METRES], b[METRES], atol=metres, rtol=stretch - 1.0)
    off = (a["azimuth_deg"] - b["azimuth_deg"] + 180.0) % 360.0 - 180.0
    assert a["azimuth_deg"].isna().equals(b["azimuth_deg"].isna())
    assert (off.abs().dropna() <= degrees).all()


def township() -> Landscape:
    """Two townships on both sides of a correction line: jogs, roads, T-junctions."""
    quarters = quarter_sections(42, 3, 3, townships_ns=2)
    return landscape_of(quarters.geometry, quarters["id"], quarters.crs)


def landscapes(name: str) -> Landscape:
    return township() if name == "township" else case(name)


EVERY = pytest.mark.parametrize("name", [*GRAPH_CASES, "township"])


@EVERY
@pytest.mark.parametrize("seed", [3, 4])
def test_the_order_of_rows(name: str, seed: int) -> None:
    landscape = landscapes(name)
    shuffled = landscape.polygons.sample(frac=1, random_state=seed).reset_index(drop=True)
    assert_same(neighbour_graph(landscape), neighbour_graph(with_geometry(landscape, shuffled)))


@EVERY
def test_the_names_of_polygons(name: str) -> None:
    landscape = landscapes(name)
    order = np.random.default_rng(5).permutation(len(landscape))
    new = {old: f"field {k}" for old, k in zip(landscape.ids, order, strict=True)}
    renamed = landscape.polygons.assign(id=landscape.polygons["id"].map(new))
    graph, again = neighbour_graph(landscape), neighbour_graph(with_geometry(landscape, renamed))
    table = graph.table.assign(source=graph.table["source"].map(new), target=graph.table["target"].map(new))
    assert_same(NeighbourGraph(table, again.ids), again)


@EVERY
@pytest.mark.parametrize("crs", [4326, 32612, 32613, 3347, "ESRI:102001"])
def test_the_coordinate_reference_system(name: str, crs: int | str) -> None:
    landscape = landscapes(name)
    there = with_geometry(landscape, landscape.polygons.to_crs(crs))
    # Only corners are reprojected, and the straight edges between them are not the same lines everywhere.
    assert_same(neighbour_graph(landscape), neighbour_graph(there), metres=0.1, degrees=0.005)
    np.testing.assert_allclose(there.areas_ha, landscape.areas_ha, rtol=1e-4)


@pytest.mark.parametrize("crs", [4326, 3347])
def test_a_long_field_keeps_its_neighbours_in_every_crs(crs: int) -> None:
    # 2.4 km from west to east beside three fields: in degrees its edge misses their corners by 0.15 m.
    upright = case("tjunction").polygons
    lying = with_geometry(case("tjunction"), upright.geometry.rotate(90, origin=(500_000, 5_760_000)))
    there = with_geometry(lying, lying.polygons.to_crs(crs))
    assert neighbour_graph(lying).table["kind"].value_counts().to_dict() == {"border": 10}
    assert_same(neighbour_graph(lying), neighbour_graph(there), metres=0.3, degrees=0.005)


# Not sector_edges: its fields lie on the borders of sectors, and a township to the west true north is 0.11 degrees off.
@pytest.mark.parametrize("name", [*(n for n in GRAPH_CASES if not n.startswith("sector_edges")), "township"])
@pytest.mark.parametrize("by", [(TOWNSHIP_EW_M, 0.0), (0.0, TOWNSHIP_NS_M), (-TOWNSHIP_EW_M, -TOWNSHIP_NS_M)])
def test_the_place(name: str, by: tuple[float, float]) -> None:
    landscape = landscapes(name)
    planar = landscape.polygons.to_crs(landscape.polygons.estimate_utm_crs())
    here = with_geometry(landscape, planar)
    moved = with_geometry(here, planar.geometry.translate(*by))
    assert_same(neighbour_graph(here), neighbour_graph(moved), metres=0.01, stretch=UTM_STRETCH, degrees=TURN_DEG)
    np.testing.assert_allclose(moved.areas_ha, here.areas_ha, rtol=2 * (UTM_STRETCH - 1.0))


def noisy(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Each corner of each polygon moved for itself, the first and last one of a ring together."""

    def move(ring: np.ndarray) -> np.ndarray:
        open_ring = ring[:-1] + rng.uniform(-1e-9, 1e-9, ring[:-1].shape)
        return np.vstack([open_ring, open_ring[:1]])

    return move


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from([*GRAPH_CASES, "township"]), st.integers(0, 2**32 - 1))
def test_noise_of_a_billionth_of_a_degree(name: str, seed: int) -> None:
    landscape = landscapes(name)
    move = noisy(np.random.default_rng(seed))
    degrees = landscape.polygons.to_crs(4326)

    def moved(polygon: shapely.Polygon) -> shapely.Polygon:
        shell, *holes = (move(shapely.get_coordinates(ring)) for ring in (polygon.exterior, *polygon.interiors))
        return shapely.Polygon(shell, holes)

    clean = with_geometry(landscape, degrees)
    disturbed = with_geometry(landscape, gpd.GeoSeries([moved(p) for p in degrees.geometry], crs=4326))
    assert_same(neighbour_graph(clean), neighbour_graph(disturbed), metres=0.02, degrees=0.005)
    np.testing.assert_allclose(disturbed.areas_ha, clean.areas_ha, rtol=1e-5, atol=2e-5)  # a tenth of a mm all round


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from([*GRAPH_CASES, "township"]), st.integers(0, 2**32 - 1))
def test_vertices_along_the_edges(name: str, seed: int) -> None:
    landscape = landscapes(name)
    metres = np.random.default_rng(seed).uniform(30, 900, len(landscape))
    steps = metres / 111_000 if landscape.polygons.crs.is_geographic else metres
    split = shapely.segmentize(landscape.polygons.geometry.to_numpy(), steps)
    again = with_geometry(landscape, gpd.GeoSeries(split, crs=landscape.polygons.crs))
    assert_same(neighbour_graph(landscape), neighbour_graph(again), metres=0.01)
    np.testing.assert_allclose(again.areas_ha, landscape.areas_ha, rtol=1e-6)
