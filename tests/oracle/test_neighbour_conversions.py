"""The neighbour graph to libpysal, networkx and Parquet, and back again with nothing lost."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from libpysal.graph import Graph

from oracle.errors import LandscapeError
from oracle.neighbours import NeighbourConfig, NeighbourGraph, neighbour_graph

from .polygons import GRAPH_CASES, case, codes

EVERY = pytest.mark.parametrize("name", GRAPH_CASES)


@EVERY
def test_there_and_back_through_parquet(name: str, tmp_path: Path) -> None:
    graph = neighbour_graph(case(name), NeighbourConfig(max_gap_m=30))
    graph.save(tmp_path / "graph.parquet")
    again = NeighbourGraph.load(tmp_path / "graph.parquet")
    assert again.ids.tolist() == graph.ids.tolist()
    pd.testing.assert_frame_equal(again.table, graph.table)
    assert again.sha256 == graph.sha256
    assert again.config == NeighbourConfig(max_gap_m=30)


@EVERY
def test_there_and_back_through_networkx(name: str) -> None:
    graph = neighbour_graph(case(name), NeighbourConfig(max_gap_m=30))
    again = NeighbourGraph.from_networkx(graph.to_networkx())
    assert again.ids.tolist() == graph.ids.tolist()
    pd.testing.assert_frame_equal(again.table, graph.table)
    assert again.sha256 == graph.sha256
    assert again.config == graph.config


@EVERY
def test_there_and_back_through_libpysal(name: str) -> None:
    landscape = case(name)
    graph = neighbour_graph(landscape)
    pysal = graph.to_libpysal()
    assert list(pysal.unique_ids) == graph.ids.tolist()
    assert pysal.isolates.tolist() == graph.isolated.tolist()
    again = NeighbourGraph.from_libpysal(pysal, landscape)
    assert again.ids.tolist() == graph.ids.tolist()
    pd.testing.assert_frame_equal(again.table, graph.table)
    assert again.config is None  # nobody says by what rule the pairs were found
    adjacency = again.to_libpysal().adjacency
    pd.testing.assert_series_equal(adjacency, pysal.adjacency)


def test_the_pairs_of_libpysal_are_taken_as_they_are() -> None:
    # Strict rook contiguity sees no neighbours across a road; its 16 pairs get this package's codes and lengths.
    landscape = case("road_allowance")
    shuffled = landscape.polygons.sample(frac=1, random_state=1).set_index("id")
    graph = NeighbourGraph.from_libpysal(Graph.build_contiguity(shuffled, rook=True, strict=True), landscape)
    first = graph.table[graph.table["order"] == 1]
    assert first["kind"].value_counts().to_dict() == {"border": 32}
    assert codes(graph, "SW-7", 1) == {"NW-7": "N", "SE-7": "E"}
    assert codes(graph, "SW-7", 2) == {"NE-7": "N-E"}
    assert len(np.unique(graph.components)) == 4


def test_a_pair_named_in_one_direction_counts() -> None:
    landscape = case("islands")
    one_way = Graph.from_arrays(["A", "B", "C", "X"], ["B", "B", "C", "C"], [1.0, 0.0, 0.0, 1.0])
    graph = NeighbourGraph.from_libpysal(one_way, landscape)
    assert codes(graph, "B", 1) == {"A": "W"}
    assert codes(graph, "C", 1) == {"X": "NE"}  # 8 km away: no border, no gap
    assert graph.table[graph.table["order"] == 1]["kind"].tolist() == ["border", "border", "corner", "corner"]


def test_strangers_are_refused() -> None:
    graph = neighbour_graph(case("islands")).to_libpysal()
    with pytest.raises(LandscapeError, match="do not have the same ids: D, X"):
        NeighbourGraph.from_libpysal(graph, case("tjunction"))
    with pytest.raises(LandscapeError, match="edge a -> b lacks order, code, position"):
        NeighbourGraph.from_networkx(nx.DiGraph([("a", "b")]))


def test_isolated_polygons_survive() -> None:
    graph = neighbour_graph(case("islands"))
    assert graph.isolated.tolist() == ["X"]
    assert codes(graph, "A", 2) == {"C": "E-E"}
    assert graph.components.tolist() == [0, 0, 0, 1]

    pysal = graph.to_libpysal()
    assert pysal["A"]["B"] == pytest.approx(805.0, abs=0.5)
    assert set(graph.to_libpysal(order=2)["A"].index) == {"C"}

    network = graph.to_networkx()
    assert list(network) == ["A", "B", "C", "X"]
    assert network["B"]["C"]["code"] == "E"


def test_one_polygon_has_no_neighbours() -> None:
    graph = neighbour_graph(case("one_polygon"))
    assert len(graph.table) == 0
    assert graph.isolated.tolist() == graph.ids.tolist()
    assert graph.components.tolist() == [0]
    assert graph.to_libpysal().n == 1
    assert [len(column) for column in graph.shared] == [0, 0, 0]
