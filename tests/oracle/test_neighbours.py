"""The neighbour graph against cases measured independently, grids done by hand, and what must change nothing."""

import itertools
from pathlib import Path

import geopandas as gpd
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.compass import opposite
from oracle.errors import LandscapeError
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourConfig, NeighbourGraph, neighbour_graph
from oracle.survey import quarter_sections

from .polygons import CASES, GRAPH_CASES, MERIDIAN_13, SIDE, by_pair, case, codes, grid, landscape_of, measured


@pytest.mark.parametrize("name", GRAPH_CASES)
def test_measured_cases(name: str) -> None:
    graph = neighbour_graph(case(name))
    expected = measured(name)["pairs"]
    first = by_pair(graph)[lambda t: t["order"] == 1]
    assert {frozenset(pair) for pair in first.index} == {
        frozenset((p["a"], p["b"])) for p in expected if p["gap_m"] <= 35
    }
    for p in expected:
        if p["gap_m"] > 35:
            continue
        there, back = first.loc[(p["a"], p["b"])], first.loc[(p["b"], p["a"])]
        for row in (there, back):
            # Expected figures are in UTM metres: its scale is 0.9996 at the central meridian.
            assert row["gap_m"] == pytest.approx(p["gap_m"], abs=0.02)
            if row["kind"] != "corner" and not p["overlap_ha"]:
                assert row["facing_m"] == pytest.approx(p["facing_m"], rel=6e-4, abs=0.3)
            if p["border_m"]:  # 0 also where two polygons share a line but no vertices
                assert row["border_m"] == pytest.approx(p["border_m"], rel=6e-4, abs=0.3)
        if p["centroid_azimuth_deg"] is None:
            assert (there["code"], back["code"]) == ("C", "C")
            assert np.isnan(there["azimuth_deg"])
            continue
        off = (there["azimuth_deg"] - p["centroid_azimuth_deg"] + 180) % 360 - 180
        assert abs(off) <= 0.05
        assert back["code"] == opposite(there["code"])
        if min(abs((p["centroid_azimuth_deg"] - 22.5) % 45 - x) for x in (0, 45)) > 0.05:  # not on a border
            assert there["code"] == p["code8"]


@pytest.mark.parametrize("name", GRAPH_CASES)
def test_measured_areas(name: str) -> None:
    # Expected ones are planar, in UTM: up to 0.08 % less than on the ellipsoid.
    assert case(name).areas_ha == pytest.approx(np.array(measured(name)["areas_ha"]), rel=9e-4, abs=1e-4)


def test_fields_drawn_twice_are_measured_too() -> None:
    # One id occurs twice in this case, so ids are given anew; the pairs stand in the order of the file.
    shapes = gpd.read_file(CASES / "duplicates.geojson").geometry
    pairs = by_pair(neighbour_graph(landscape_of(shapes, "01234")))
    expected = measured("duplicates")["pairs"]
    assert len(expected) == 10
    for (a, b), p in zip(itertools.combinations("01234", 2), expected, strict=True):
        row = pairs.loc[(a, b)]
        assert row["code"] == (p["code8"] or "C")
        assert row["facing_m"] == pytest.approx(p["facing_m"], rel=6e-4, abs=0.01)
        assert row["kind"] == ("border" if p["facing_m"] else "corner")
        assert row["gap_m"] == 0


def test_a_road_allowance_is_crossed_face_to_face_only() -> None:
    table = neighbour_graph(case("road_allowance")).table
    kinds = table[table["order"] == 1]["kind"].value_counts()
    # 16 borders inside the four sections, 8 pairs across the road; 8 + 2 pairs across the crossing and 8 at corners.
    assert kinds.to_dict() == {"border": 32, "gap": 16, "corner": 36}


def test_without_a_gap_every_section_stands_alone() -> None:
    graph = neighbour_graph(case("road_allowance"), NeighbourConfig(max_gap_m=0))
    assert len(np.unique(graph.components)) == 4
    assert len(np.unique(neighbour_graph(case("road_allowance")).components)) == 1


def test_corners_touch_but_share_no_length() -> None:
    graph = neighbour_graph(case("corner_only"))
    assert graph.table["kind"].tolist() == ["corner", "corner"]
    assert [len(column) for column in graph.shared] == [0, 0, 0]


def test_borders_of_sectors_go_clockwise() -> None:
    graph = neighbour_graph(case("sector_edges_22.5"))
    spokes = codes(graph, "hub", 1)
    assert [spokes[f"s{a:05.1f}"] for a in (22.5, 67.5, 112.5, 157.5, 202.5, 247.5, 292.5, 337.5)] == [
        "NE", "E", "SE", "S", "SW", "W", "NW", "N"
    ]  # fmt: skip
    positions = graph.table[graph.table["source"] == "hub"]["position"]
    assert positions.is_unique
    assert len(positions) == 16


def test_true_directions_at_55_north() -> None:
    # The fields lie 900 m from the hub: neighbours only under a wide gap. Raw degrees and a national projection
    # would put half of them into the wrong sector.
    graph = neighbour_graph(case("lat_distortion_55N"), NeighbourConfig(max_gap_m=1_000))
    assert codes(graph, "hub", 1) == {
        "az15": "N", "az20": "N", "az25": "NE", "az30": "NE", "az60": "NE", "az65": "NE", "az70": "E", "az75": "E"
    }  # fmt: skip


def test_three_by_three_by_hand() -> None:
    graph = neighbour_graph(grid(3, 3))
    assert codes(graph, "11", 1) == {
        "12": "N", "22": "NE", "21": "E", "20": "SE", "10": "S", "00": "SW", "01": "W", "02": "NW"
    }  # fmt: skip
    assert codes(graph, "11", 2) == {}
    assert codes(graph, "00", 1) == {"01": "N", "11": "NE", "10": "E"}
    i, j, length = graph.shared
    assert len(i) == 12
    assert (i < j).all()
    assert length == pytest.approx(np.full(12, SIDE), rel=6e-4)


def test_second_order_of_a_five_by_five_by_hand() -> None:
    # From the middle, 22. To the north the canonical path starts at 22 and prefers a cardinal first step; paths to
    # the south are those of the southern polygon walked back.
    assert codes(neighbour_graph(grid(5, 5)), "22", 2) == {
        "24": "N-N", "34": "N-NE", "44": "NE-NE", "43": "E-NE", "42": "E-E",
        "41": "SE-E", "40": "SE-SE", "30": "SE-S", "20": "S-S", "10": "SW-S", "00": "SW-SW",
        "01": "SW-W", "02": "W-W", "03": "W-NW", "04": "NW-NW", "14": "N-NW",
    }  # fmt: skip


def test_codes_are_opposite_and_positions_unique() -> None:
    graph = neighbour_graph(case("road_allowance"))
    pairs = by_pair(graph)
    assert not pairs.index.duplicated().any()
    for (source, target), row in pairs.iterrows():
        assert pairs.loc[(target, source), "code"] == opposite(row["code"])
    assert not graph.table.duplicated(["source", "position"]).any()
    second = graph.table[graph.table["order"] == 2]
    assert second[["kind", "border_m", "facing_m", "gap_m"]].isna().all(axis=None)


def test_second_order_is_what_breadth_first_search_finds() -> None:
    graph = neighbour_graph(case("road_allowance"))
    first = nx.from_pandas_edgelist(graph.table[graph.table["order"] == 1], "source", "target")
    for polygon in graph.ids:
        reached = nx.single_source_shortest_path_length(first, polygon, cutoff=2)
        assert set(codes(graph, polygon, 2)) == {other for other, steps in reached.items() if steps == 2}


def test_a_correction_line_is_read_the_same_from_every_row_order() -> None:
    # Townships 42 and 43 meet at a correction line. The east side of NW-33 lies two ranges, three sections with their
    # allowances and a quarter west of the meridian, and rows north of the line lie 0.80 % (convergence over four
    # townships at 52.6 N) of that farther west: 201 m.
    quarters = quarter_sections(42, 3, 3, townships_ns=2)
    landscape = landscape_of(quarters.geometry, quarters["id"], quarters.crs)
    graph = neighbour_graph(landscape)
    north = by_pair(graph).loc["NW-33-42-3-W3"].filter(like="-43-3-W3", axis=0)
    faced = north.loc[north["kind"] == "gap", "facing_m"]
    jog = (2 * 9776.8 + 3 * 1629.5 + 804.7) * 38_866 / 6.378e6 * np.tan(np.radians(52.6))
    assert faced.to_dict() == pytest.approx({"SE-4-43-3-W3": jog, "SW-4-43-3-W3": 804.7 - jog}, abs=5)
    shuffled = landscape.polygons.sample(frac=1, random_state=3).reset_index(drop=True)
    again = neighbour_graph(Landscape("case", shuffled, landscape.crops))
    pd.testing.assert_frame_equal(by_pair(graph), by_pair(again), atol=2e-3)
    assert not graph.table.duplicated(["source", "position"]).any()


@settings(max_examples=25, deadline=None)
@given(st.floats(1.0, 34.0), st.floats(0.0, 40.0), st.floats(60.0, 780.0))
def test_facing_length_of_two_tilted_strips(gap: float, tilt: float, length: float) -> None:
    # A's straight east edge; B's west edge begins at `gap` and tilts away until the perpendicular is 35 m long.
    x = MERIDIAN_13
    a = shapely.box(x - 500, 0, x, length)
    b = [(x + gap, 0), (x + 1500, 0), (x + 1500, length), (x + gap + np.tan(np.radians(tilt)) * length, length)]
    shapes = shapely.transform(np.array([a, shapely.Polygon(b)]), lambda xy: np.add(xy, [0, 5_700_000]))
    graph = neighbour_graph(landscape_of(shapes, "AB"), NeighbourConfig(min_facing_m=0))
    scale = 0.9996  # of UTM on its central meridian
    expected = (sampled_facing(*shapes, 35.0 * scale) + sampled_facing(*shapes[::-1], 35.0 * scale)) / 2
    assert graph.table["facing_m"].iloc[0] == pytest.approx(expected / scale, abs=1.5)


def sampled_facing(polygon: shapely.Polygon, other: shapely.Polygon, reach: float) -> float:
    """Metres of ``polygon``'s boundary from which a perpendicular of length ``reach`` meets an edge turned to it."""
    ring = shapely.get_coordinates(shapely.orient_polygons(polygon))
    metres = 0.0
    for start, end in itertools.pairwise(ring):
        length = np.hypot(*(end - start))
        along = (end - start) / length
        outward = np.array([along[1], -along[0]])
        at = start + np.outer(np.arange(0.25, length, 0.5), along)
        rays = shapely.linestrings(np.stack([at, at + reach * outward], axis=1))
        edges = shapely.get_coordinates(shapely.orient_polygons(other))
        steps = np.diff(edges, axis=0)
        facing = (steps @ along) / np.hypot(*steps.T) < -np.sqrt(0.5)
        met = [shapely.intersects(rays, shapely.linestrings(edges[k : k + 2])) for k in np.flatnonzero(facing)]
        if met:
            metres += 0.5 * np.any(met, axis=0).sum()
    return metres


def test_a_narrow_strip_faces_its_neighbour_once() -> None:
    # 10 m wide: both of its long edges lie within reach of A, but only the near one is turned towards it.
    graph = neighbour_graph(case("sliver_between"))
    pairs = by_pair(graph)
    assert pairs.loc[("A", "S"), "facing_m"] == pytest.approx(805.0, abs=0.5)
    assert pairs.loc[("A", "B"), "kind"] == "gap"


def test_long_edges_in_degrees_still_touch_at_t_junctions() -> None:
    # One field of 0.2 degrees beside two of 0.1: a straight edge in degrees is a curve on the ground (6 m of arc).
    shapes = [
        shapely.box(-106.0, 52.0, -105.8, 52.1),
        shapely.box(-106.0, 52.1, -105.9, 52.2),
        shapely.box(-105.9, 52.1, -105.8, 52.2),
    ]
    pairs = by_pair(neighbour_graph(landscape_of(shapes, "ABC", crs=4326)))
    assert pairs.loc[("A", "B"), "border_m"] == pytest.approx(6855, abs=10)
    assert pairs.loc[("A", "C"), "border_m"] == pytest.approx(6855, abs=10)


def test_another_file_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"source": ["a"]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(LandscapeError, match=r"other\.parquet is not a neighbour graph: it lacks target"):
        NeighbourGraph.load(tmp_path / "other.parquet")
    with pytest.raises(LandscapeError, match="not readable"):
        NeighbourGraph.load(tmp_path / "none.parquet")


def test_a_file_with_pairs_of_unknown_polygons_is_refused(tmp_path: Path) -> None:
    graph = neighbour_graph(case("tjunction"))
    strange = graph.table.assign(target=graph.table["target"].replace({graph.ids[0]: "nobody"}))
    NeighbourGraph(strange, graph.ids).save(tmp_path / "graph.parquet")
    with pytest.raises(LandscapeError, match=r"pairs of polygons that are not among its ids: \S+ -> nobody"):
        NeighbourGraph.load(tmp_path / "graph.parquet")


@pytest.mark.parametrize("column", ["target", "order", "code", "position", "kind", "facing_m", "gap_m", "azimuth_deg"])
def test_the_hash_sees_a_change_in_any_column(column: str) -> None:
    graph = neighbour_graph(case("tjunction"))
    table = graph.table.copy()
    table.loc[0, column] = table.loc[table[column] != table.loc[0, column], column].iloc[0]
    assert NeighbourGraph(table, graph.ids).sha256 != graph.sha256


def test_the_hash_sees_a_millimetre_and_no_order_of_rows() -> None:
    graph = neighbour_graph(case("tjunction"))
    rng = np.random.default_rng(0)
    shuffled = graph.table.sample(frac=1.0, random_state=0).reset_index(drop=True)
    assert NeighbourGraph(shuffled, rng.permutation(graph.ids)).sha256 == graph.sha256
    shuffled.loc[0, "distance_m"] += 0.001
    assert NeighbourGraph(shuffled, graph.ids).sha256 != graph.sha256
