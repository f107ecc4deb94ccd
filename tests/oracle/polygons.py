"""Polygons for the tests of the neighbour graph: measured cases, grids, and graphs laid out for comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import geopandas as gpd
import pandas as pd
import shapely

from oracle.landscape import CONNECTIVITY, Landscape
from oracle.neighbours import NeighbourGraph

CASES = Path(__file__).parents[1] / "cases" / "geometry"
MERIDIAN_13 = 500_000.0  # on a zone's central meridian grid north is true north
SIDE = 800.0
GRAPH_CASES = (
    "corner_only",
    "donut_centred",
    "float_noise_1e-9deg",
    "islands",
    "one_polygon",
    "overlap_30pct",
    "road_allowance",
    "sector_edges_22.5",
    "sliver_between",
    "tjunction",
    "z_coordinates",
)


def landscape_of(shapes: Iterable[shapely.Polygon], ids: Iterable[str], crs: object = "EPSG:32613") -> Landscape:
    shapes = list(shapes)
    frame = gpd.GeoDataFrame({"id": list(ids), "wheat_yield": 3.0, CONNECTIVITY: 0.5}, geometry=shapes, crs=crs)
    return Landscape("case", frame, ("wheat",))


def case(name: str) -> Landscape:
    frame = gpd.read_file(CASES / f"{name}.geojson")
    return Landscape("case", frame, ("wheat", "oat", "corn", "soy"))


def measured(name: str) -> dict:
    """What was measured independently of this code: areas and every pair nearer than 100 m."""
    return json.loads((CASES / f"{name}.expected.json").read_text())


def with_geometry(landscape: Landscape, polygons: gpd.GeoDataFrame | gpd.GeoSeries) -> Landscape:
    """The landscape with other polygons (a series) or another table."""
    if isinstance(polygons, gpd.GeoSeries):
        polygons = landscape.polygons.set_geometry(polygons)
    return Landscape(landscape.name, polygons, landscape.crops)


def grid(columns: int, rows: int) -> Landscape:
    """Squares called by column and row, ``00`` in the south-west, centred on a central meridian."""
    west = MERIDIAN_13 - columns * SIDE / 2
    shapes, ids = [], []
    for x in range(columns):
        for y in range(rows):
            low = west + x * SIDE, 5_700_000 + y * SIDE
            shapes.append(shapely.box(*low, low[0] + SIDE, low[1] + SIDE))
            ids.append(f"{x}{y}")
    return landscape_of(shapes, ids)


def codes(graph: NeighbourGraph, source: str, order: int) -> dict[str, str]:
    rows = graph.table[(graph.table["source"] == source) & (graph.table["order"] == order)]
    return dict(zip(rows["target"], rows["code"], strict=True))


def by_pair(graph: NeighbourGraph) -> pd.DataFrame:
    return graph.table.set_index(["source", "target"]).sort_index()
