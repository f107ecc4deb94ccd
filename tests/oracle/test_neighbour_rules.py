"""Shapes for which direction or uniqueness is not obvious: what the written rules make of them."""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import pytest
import shapely

from oracle.compass import opposite
from oracle.neighbours import NeighbourGraph, neighbour_graph

from .polygons import CASES, MERIDIAN_13, by_pair, case, codes, grid, landscape_of, with_geometry

NORTH = 5_700_000.0


def box(west: float, south: float, east: float, north: float) -> shapely.Polygon:
    """Metres from a point on a central meridian."""
    return shapely.box(MERIDIAN_13 + west, NORTH + south, MERIDIAN_13 + east, NORTH + north)


def graph_of(**shapes: shapely.Geometry) -> NeighbourGraph:
    graph = neighbour_graph(landscape_of(shapes.values(), shapes))
    assert not graph.table.duplicated(["source", "position"]).any()
    pairs = by_pair(graph)
    for (source, target), code in pairs["code"].items():
        assert pairs.loc[(target, source), "code"] == opposite(code)
    return graph


def test_a_slough_off_the_centre_of_its_field_lies_where_its_centroid_does() -> None:
    slough = box(200, 200, 400, 400)
    graph = graph_of(ring=box(-800, -800, 800, 800) - slough, slough=slough)
    assert codes(graph, "ring", 1) == {"slough": "NE"}
    assert codes(graph, "slough", 1) == {"ring": "SW"}
    pair = by_pair(graph).loc[("ring", "slough")]
    assert pair["kind"] == "border"
    assert pair["border_m"] == pytest.approx(800, abs=0.5)


def test_a_u_shape_lies_where_most_of_it_does() -> None:
    # The U opens to the north; its centroid lies inside the field that fills its mouth.
    filling = box(-200, -400, 200, 800)
    u = box(-800, -800, 800, 800) - filling
    assert filling.contains(u.centroid)
    graph = graph_of(u=u, filling=filling)
    assert codes(graph, "u", 1) == {"filling": "N"}
    assert codes(graph, "filling", 1) == {"u": "S"}
    assert by_pair(graph).loc[("u", "filling"), "border_m"] == pytest.approx(2 * 1200 + 400, abs=2)


def test_a_field_in_two_equal_parts_on_both_sides_has_no_direction() -> None:
    parts = shapely.MultiPolygon([box(-900, 0, -100, 800), box(100, 0, 900, 800)])
    graph = graph_of(parts=parts, middle=box(-100, 0, 100, 800))
    assert codes(graph, "parts", 1) == {"middle": "C"}
    assert codes(graph, "middle", 1) == {"parts": "C"}
    assert by_pair(graph).loc[("parts", "middle"), "border_m"] == pytest.approx(1600, abs=1)
    assert by_pair(graph)["azimuth_deg"].isna().all()


def test_a_field_in_two_unequal_parts_lies_on_the_side_of_the_larger_one() -> None:
    parts = shapely.MultiPolygon([box(-300, 0, -100, 800), box(100, 0, 900, 800)])
    graph = graph_of(parts=parts, middle=box(-100, 0, 100, 800), beyond=box(900, 0, 1700, 800))
    assert codes(graph, "middle", 1) == {"parts": "E"}
    assert codes(graph, "middle", 2) == {"beyond": "E-E"}


def test_a_concentric_step_is_part_of_a_path() -> None:
    slough = box(-100, -100, 100, 100)
    graph = graph_of(ring=box(-800, -800, 800, 800) - slough, slough=slough, east=box(800, -800, 2400, 800))
    assert codes(graph, "ring", 1) == {"slough": "C", "east": "E"}
    assert codes(graph, "slough", 2) == {"east": "C-E"}
    assert codes(graph, "east", 2) == {"slough": "W-C"}


def test_neighbours_in_one_sector_are_numbered_from_the_nearest_on() -> None:
    # Five strips along the east side of a long field: all of them in its east.
    strips = {f"s{k}": box(400, -500 + 200 * k, 800 + 100 * k, -300 + 200 * k) for k in range(5)}
    graph = graph_of(field=box(-2000, -500, 400, 500), **strips)
    rows = graph.table[(graph.table["source"] == "field") & (graph.table["order"] == 1)]
    assert rows["code"].tolist() == ["E"] * 5
    assert dict(zip(rows["position"], rows["target"], strict=True)) == {
        "E": "s0", "E2": "s1", "E3": "s2", "E4": "s3", "E5": "s4"
    }  # fmt: skip
    assert rows["distance_m"].is_monotonic_increasing


def test_equally_near_ones_are_numbered_clockwise_whatever_their_names() -> None:
    field, upper, lower = box(-2000, -200, 0, 200), box(0, 0, 800, 200), box(0, -200, 800, 0)
    for names in (("a", "b"), ("b", "a")):
        graph = graph_of(field=field, **dict(zip(names, (upper, lower), strict=True)))
        rows = graph.table[(graph.table["source"] == "field") & (graph.table["order"] == 1)]
        assert dict(zip(rows["position"], rows["target"], strict=True)) == {"E": names[0], "E2": names[1]}


def test_fields_in_one_place_are_numbered_by_id() -> None:
    # Two quarter sections drawn twice: intake reports it; the graph still gives every one a position of its own.
    shapes = gpd.read_file(CASES / "duplicates.geojson").geometry
    graph = neighbour_graph(landscape_of(shapes, ["A", "A2", "B", "B2", "A above"]))
    assert not graph.table.duplicated(["source", "position"]).any()
    rows = graph.table[(graph.table["source"] == "A") & (graph.table["order"] == 1)].set_index("position")["target"]
    assert rows[["C", "E", "E2", "N"]].tolist() == ["A2", "B", "B2", "A above"]


def test_isolated_fields_and_components_are_counted() -> None:
    near, far = grid(2, 2).polygons, grid(2, 1).polygons
    shapes = [*near.geometry, *far.geometry.translate(50_000, 0), box(0, 90_000, 800, 90_800)]
    graph = neighbour_graph(landscape_of(shapes, ["00", "01", "10", "11", "f0", "f1", "alone"]))
    assert graph.components.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert graph.isolated.tolist() == ["alone"]


def test_the_middle_of_a_path_is_chosen_alike_from_both_ends_of_a_tilted_grid() -> None:
    landscape = grid(5, 5)
    for angle in (7.0, 20.0, 33.0, 45.0):
        tilted = with_geometry(landscape, landscape.polygons.geometry.rotate(angle, origin=(MERIDIAN_13, 5_700_000)))
        pairs = by_pair(neighbour_graph(tilted))
        assert all(pairs.loc[(t, s), "code"] == opposite(c) for (s, t), c in pairs["code"].items())
        again = tilted.polygons.iloc[np.random.default_rng(1).permutation(25)].reset_index(drop=True)
        assert by_pair(neighbour_graph(with_geometry(tilted, again)))["position"].equals(pairs["position"])


def test_a_case_with_t_junctions_is_numbered_within_each_sector() -> None:
    graph = neighbour_graph(case("tjunction"))
    assert graph.table[graph.table["source"] == "A"]["position"].tolist() == ["NE", "E", "SE"]


def test_second_order_is_the_same_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = neighbour_graph(case("road_allowance"))
    monkeypatch.setattr("oracle.second_order._CHUNK", 10)
    assert neighbour_graph(case("road_allowance")).sha256 == whole.sha256
