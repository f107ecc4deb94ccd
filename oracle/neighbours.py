"""The neighbour graph: who borders whom, across which gap, in which direction.

Two polygons whose gap is at most ``max_gap_m`` are first-order neighbours of a ``kind``:

========  ==========================================================================================
border    they touch along at least 1 m
gap       they face each other along at least ``min_facing_m``: fields across a road allowance
corner    anything else: a common corner, fields diagonal over a crossing; in prompts, not in the GLM
========  ==========================================================================================

``code`` is the compass sector of the geodesic azimuth between the centroids (:mod:`oracle.compass`), opposite in both
directions of a pair. Second-order neighbours carry path codes (:mod:`oracle.second_order`). Where a polygon has several
neighbours of one code, ``position`` numbers them ``NE``, ``NE2``, ``NE3``, ... from the nearest centroid on, to the
metre; equally near ones clockwise, to a tenth of a degree; and those in one place by id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy.sparse as sp
import shapely
from libpysal.graph import Graph
from pydantic import BaseModel, ConfigDict, Field

from oracle.errors import LandscapeError, name_some
from oracle.files import write_atomically
from oracle.first_order import first_order
from oracle.landscape import SCHEMA_KEY, Landscape
from oracle.neighbour_table import COLUMNS, SCHEMA, neighbour_table, table_difference
from oracle.projection import to_local, to_lonlat
from oracle.second_order import second_order


class NeighbourConfig(BaseModel):
    """What counts as a neighbour."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    max_gap_m: float = Field(
        35.0, ge=0, description="widest gap between neighbours, m (road allowances are 20.1 and 30.2 m wide)"
    )
    min_facing_m: float | None = Field(
        None, ge=0, description="least length across a gap, m; absent: a tenth of the square root of the smaller area"
    )


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    """Neighbours of first and second order.

    Parameters
    ----------
    table : DataFrame
        One row per ordered pair, sorted by source (in the landscape's order), order, code and distance. Columns:
        ``source``, ``target`` (ids), ``order`` (1, 2), ``code`` (``N`` or ``N-NE``; ``C`` = concentric), ``position``
        (the code made unique per source: ``NE``, ``NE2``), ``kind`` (border, gap, corner), ``border_m``, ``facing_m``,
        ``gap_m`` (these four null for order 2), ``distance_m`` (geodesic, between centroids), ``azimuth_deg``
        (geodesic, from true north; null where concentric).
    ids : (n,) str
        Every polygon of the landscape, isolated ones too.
    config : NeighbourConfig or None
        The rule the pairs follow; None where they were given (:meth:`from_libpysal`).
    """

    table: pd.DataFrame
    ids: np.ndarray
    config: NeighbourConfig | None = None

    @cached_property
    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Row positions of every row's source and target in ``ids``, (rows,) int each."""
        index = pd.Index(self.ids)
        return index.get_indexer(self.table["source"]), index.get_indexer(self.table["target"])

    @cached_property
    def shared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(i, j, length_m)`` of the unordered border and gap pairs, ``i < j``: what the GLM's adjacency uses."""
        source, target = self.positions
        rows = (source < target) & self.table["kind"].isin(["border", "gap"]).to_numpy()
        order = np.lexsort((target[rows], source[rows]))
        return source[rows][order], target[rows][order], self.table["facing_m"].to_numpy(dtype=float)[rows][order]

    @cached_property
    def components(self) -> np.ndarray:
        """(n,) number of each polygon's connected component over first-order neighbours, from 0."""
        source, target = self.positions
        first = (self.table["order"] == 1).to_numpy()
        n = len(self.ids)
        matrix = sp.coo_array((np.ones(first.sum()), (source[first], target[first])), shape=(n, n))
        return sp.csgraph.connected_components(matrix, directed=False)[1]

    @cached_property
    def isolated(self) -> np.ndarray:
        """Ids of polygons without any neighbour."""
        return self.ids[~np.isin(np.arange(len(self.ids)), self.positions[0])]

    @cached_property
    def sha256(self) -> str:
        """Hash of ids and table, the same whatever the order of either; lengths to the millimetre, azimuths to 1e-6."""
        order = np.argsort(self.ids.astype(str), kind="stable")
        rank = np.empty(len(order), dtype="<i8")
        rank[order] = np.arange(len(order))
        source, target = (rank[ends] for ends in self.positions)
        rows = np.argsort(source * len(rank) + target, kind="stable")
        digest = hashlib.sha256(json.dumps([str(i) for i in self.ids[order]]).encode())
        digest.update(source[rows].tobytes() + target[rows].tobytes())
        for column in COLUMNS[2:]:
            values = self.table[column]
            if pd.api.types.is_float_dtype(values):
                numbers = values.to_numpy(dtype="<f8")[rows]
                digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
            else:
                codes, names = pd.factorize(values, sort=True)  # few distinct ones; null is -1
                digest.update(json.dumps([str(name) for name in names]).encode() + codes[rows].astype("<i4").tobytes())
        return digest.hexdigest()

    def to_libpysal(self, order: int = 1) -> Graph:
        """libpysal graph over ``ids``, isolates kept; weights are facing metres (first order) or 1 (second order).

        Corner neighbours face each other along nothing; they get the weight 1e-3 so that they stay edges.
        """
        rows = (self.table["order"] == order).to_numpy()
        source, target = (p[rows] for p in self.positions)
        weight = np.ones(len(source))
        if order == 1:
            weight = np.maximum(self.table["facing_m"].to_numpy(dtype=float)[rows], 1e-3)
        matrix = sp.coo_array((weight, (source, target)), shape=(len(self.ids), len(self.ids)))
        return Graph.from_sparse(matrix, ids=self.ids)

    @classmethod
    def from_libpysal(cls, graph: Graph, landscape: Landscape) -> NeighbourGraph:
        """The pairs of a libpysal graph over the landscape's ids as first-order neighbours, measured and coded anew.

        Any builder of libpysal's will do; a pair counts where either direction is listed with a weight above 0. From
        :meth:`to_libpysal` of a graph comes that graph again.

        Raises
        ------
        LandscapeError
            Where the graph's ids are not the landscape's.
        """
        _require_same_ids(graph.unique_ids, landscape.ids)
        adjacency = graph.adjacency[graph.adjacency > 0]
        index = pd.Index(landscape.ids)
        ends = [index.get_indexer(adjacency.index.get_level_values(level)) for level in ("focal", "neighbor")]
        i, j = np.minimum(*ends), np.maximum(*ends)
        n = len(landscape)
        i, j = np.divmod(np.unique((i * n + j)[i != j]), n)
        return _graph_of(landscape, NeighbourConfig(), (i, j))

    def to_networkx(self) -> nx.DiGraph:
        """Directed graph of both orders; nodes are ids (isolates too), edges carry the table's other columns."""
        graph: nx.DiGraph = nx.DiGraph(config=None if self.config is None else self.config.model_dump())
        graph.add_nodes_from(self.ids)
        names = [c for c in COLUMNS if c not in ("source", "target")]
        rows = zip(*(self.table[c].tolist() for c in names), strict=True)
        attributes = (dict(zip(names, row, strict=True)) for row in rows)
        graph.add_edges_from(zip(self.table["source"], self.table["target"], attributes, strict=True))
        return graph

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> NeighbourGraph:
        """Back from :meth:`to_networkx`, with nothing lost.

        Raises
        ------
        LandscapeError
            Where an edge lacks one of the table's columns.
        """
        names = [c for c in COLUMNS if c not in ("source", "target")]
        edges = list(graph.edges(data=True))
        for source, target, attributes in edges:
            missing = [c for c in names if c not in attributes]
            if missing:
                raise LandscapeError(
                    f"edge {source} -> {target} lacks {', '.join(missing)}: from_networkx takes what to_networkx made"
                )
        columns = {"source": [e[0] for e in edges], "target": [e[1] for e in edges]}
        columns |= {c: [e[2][c] for e in edges] for c in names}
        table = pa.table([pa.array(columns[f.name], f.type, from_pandas=True) for f in SCHEMA], schema=SCHEMA)
        config = graph.graph.get("config")
        ids = np.array(list(graph.nodes), dtype=object)
        return cls(table.to_pandas(), ids, None if config is None else NeighbourConfig.model_validate(config))

    def difference(self, other: NeighbourGraph) -> str | None:
        """The first difference to another graph over the same polygons in words, or None where they agree.

        Lengths may differ by 2 mm, azimuths by 2e-6 degrees; the order of rows does not count.
        """
        if not np.array_equal(self.ids.astype(str), other.ids.astype(str)):
            return "they are not over the same polygons"
        return table_difference(self.table, self.positions, other.table, other.positions, self.ids)

    def save(self, path: Path) -> None:
        """Parquet; ids and rule travel in the schema's metadata, so isolated polygons survive."""
        arrow = pa.Table.from_pandas(self.table, schema=SCHEMA, preserve_index=False)
        head = {
            "ids": [str(i) for i in self.ids],
            "config": None if self.config is None else self.config.model_dump(),
        }
        arrow = arrow.replace_schema_metadata({SCHEMA_KEY: json.dumps(head).encode()})
        write_atomically(Path(path), lambda p: pq.write_table(arrow, p))

    @classmethod
    def load(cls, path: Path) -> NeighbourGraph:
        """Read what :meth:`save` wrote.

        Raises
        ------
        LandscapeError
            Where the file is not a neighbour graph.
        """
        try:
            arrow = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise LandscapeError(f"{path}: not readable as Parquet ({error})") from error
        metadata = arrow.schema.metadata or {}
        missing = [c for c in COLUMNS if c not in arrow.column_names]
        if missing or SCHEMA_KEY not in metadata:
            lacking = ", ".join(missing) or "the list of ids in its metadata"
            raise LandscapeError(
                f"{path} is not a neighbour graph: it lacks {lacking}; write one with `landoracle graph`"
            )
        try:
            table = arrow.select(COLUMNS).cast(SCHEMA).to_pandas()
            head = json.loads(metadata[SCHEMA_KEY])
            config = head.get("config")
            ids = np.array(head["ids"], dtype=object)
            graph = cls(table, ids, None if config is None else NeighbourConfig.model_validate(config))
        except (ValueError, KeyError, TypeError) as error:  # those of pyarrow, JSON and pydantic are ValueErrors
            raise LandscapeError(f"{path} is not a neighbour graph: {error}") from error
        unknown = (graph.positions[0] < 0) | (graph.positions[1] < 0)
        if unknown.any():
            pairs = table.loc[unknown, "source"] + " -> " + table.loc[unknown, "target"]
            raise LandscapeError(f"{path} has pairs of polygons that are not among its ids: {name_some(pairs)}")
        return graph


def neighbour_graph(landscape: Landscape, config: NeighbourConfig | None = None) -> NeighbourGraph:
    """Neighbours of first and second order of every polygon.

    Near linear in the number of boundary segments. Lengths and gaps are measured in one local projection
    (:mod:`oracle.projection`), directions and distances on the WGS 84 ellipsoid.

    Raises
    ------
    LandscapeError
        Where coordinates have no place on the Earth in the landscape's CRS.
    """
    return _graph_of(landscape, config or NeighbourConfig(), None)


def _graph_of(
    landscape: Landscape, config: NeighbourConfig, given: tuple[np.ndarray, np.ndarray] | None
) -> NeighbourGraph:
    """The graph of the pairs that ``config`` finds, or of the ``given`` ones (i < j, sorted)."""
    local = to_local(landscape.polygons.geometry)
    polygons = local.to_numpy()
    lonlat = to_lonlat(shapely.get_coordinates(shapely.centroid(polygons)), local.crs)
    id_rank = pc.rank(pa.array(landscape.ids, pa.large_string()), tiebreaker="first").to_numpy()
    near = first_order(polygons, lonlat, config.max_gap_m, config.min_facing_m, given)
    table = neighbour_table(near, second_order(near, lonlat, id_rank), landscape.ids, id_rank)
    return NeighbourGraph(table, landscape.ids, config if given is None else None)


def _require_same_ids(found: Iterable[str], ids: np.ndarray) -> None:
    strangers = set(map(str, found)) ^ set(map(str, ids))
    if strangers:
        raise LandscapeError(f"the graph and the landscape do not have the same ids: {name_some(sorted(strangers))}")
