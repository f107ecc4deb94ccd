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

from oracle.compass import CODES, directions, opposite_index, sector_index
from oracle.errors import LandscapeError, name_some
from oracle.facing import TOUCH_M, facing
from oracle.files import write_atomically
from oracle.landscape import SCHEMA_KEY, Landscape
from oracle.projection import to_local, to_lonlat
from oracle.second_order import Steps, TwoSteps, second_order

MIN_BORDER_M = 1.0
SAME_M, SAME_DEG = 0.002, 2e-6
"""Lengths and azimuths this near are the same in two graphs: they are rounded, by another machine perhaps."""

_TEXT = ("source", "target", "code", "position", "kind")
_SCHEMA = pa.schema(
    [
        ("source", pa.large_string()),
        ("target", pa.large_string()),
        ("order", pa.int64()),
        ("code", pa.large_string()),
        ("position", pa.large_string()),
        ("kind", pa.large_string()),
        ("border_m", pa.float64()),
        ("facing_m", pa.float64()),
        ("gap_m", pa.float64()),
        ("distance_m", pa.float64()),
        ("azimuth_deg", pa.float64()),
    ]
)
COLUMNS = tuple(_SCHEMA.names)
_KINDS = ("border", "gap", "corner")


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
        """Hash of ids and table, lengths to the millimetre and azimuths to 1e-6 degrees."""
        digest = hashlib.sha256(json.dumps([str(i) for i in self.ids]).encode())
        for column in COLUMNS:
            values = self.table[column]
            if pd.api.types.is_float_dtype(values):
                digest.update(np.ascontiguousarray(values.to_numpy(dtype="<f8")).tobytes())
            else:
                digest.update("\0".join("" if pd.isna(v) else str(v) for v in values).encode())
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
        table = pa.table([pa.array(columns[f.name], f.type, from_pandas=True) for f in _SCHEMA], schema=_SCHEMA)
        config = graph.graph.get("config")
        ids = np.array(list(graph.nodes), dtype=object)
        return cls(table.to_pandas(), ids, None if config is None else NeighbourConfig.model_validate(config))

    def difference(self, other: NeighbourGraph) -> str | None:
        """The first difference to another graph over the same polygons in words, or None where they agree.

        Lengths may differ by :data:`SAME_M`, azimuths by :data:`SAME_DEG`; the order of rows does not count.
        """
        if not np.array_equal(self.ids.astype(str), other.ids.astype(str)):
            return "they are not over the same polygons"
        n = len(self.ids)
        keys, orders = [], []
        for source, target in (self.positions, other.positions):
            key = source * n + target
            orders.append(np.argsort(key, kind="stable"))
            keys.append(key[orders[-1]])
        if not np.array_equal(*keys):
            strange = np.setxor1d(*keys)
            if not len(strange):
                return "a pair is listed twice"
            source, target = np.divmod(strange[0], n)
            return f"{self.ids[source]} -> {self.ids[target]} is in one of them only ({len(strange):,} such pairs)"
        mine, others = (g.table.iloc[order] for g, order in zip((self, other), orders, strict=True))
        for name in COLUMNS[2:]:
            a, b = mine[name].to_numpy(), others[name].to_numpy()
            if name in _TEXT or name == "order":
                differs = (a != b) & ~(pd.isna(a) & pd.isna(b))
            else:
                off = np.abs((a - b + 180.0) % 360.0 - 180.0) if name == "azimuth_deg" else np.abs(a - b)
                differs = np.where(np.isnan(a) | np.isnan(b), np.isnan(a) != np.isnan(b),
                                   off > (SAME_DEG if name == "azimuth_deg" else SAME_M))  # fmt: skip
            if differs.any():
                at = int(np.argmax(differs))
                pair = f"{mine['source'].iloc[at]} -> {mine['target'].iloc[at]}"
                return f"{name} of {pair} is {a[at]} in one and {b[at]} in the other ({int(differs.sum()):,} such rows)"
        return None

    def save(self, path: Path) -> None:
        """Parquet; ids and rule travel in the schema's metadata, so isolated polygons survive."""
        arrow = pa.Table.from_pandas(self.table, schema=_SCHEMA, preserve_index=False)
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
            table = arrow.select(COLUMNS).cast(_SCHEMA).to_pandas()
            head = json.loads(metadata[SCHEMA_KEY])
            config = head.get("config")
            ids = np.array(head["ids"], dtype=object)
            return cls(table, ids, None if config is None else NeighbourConfig.model_validate(config))
        except (ValueError, KeyError, TypeError) as error:  # those of pyarrow, JSON and pydantic are ValueErrors
            raise LandscapeError(f"{path} is not a neighbour graph: {error}") from error


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
    if given is None:
        i, j, gap = _near_pairs(polygons, max(config.max_gap_m, TOUCH_M))
    else:
        i, j = given
        gap = shapely.distance(polygons[i], polygons[j])
    border, faced = facing(polygons, i, j, config.max_gap_m)
    side = np.sqrt(shapely.area(polygons))
    least = 0.1 * np.minimum(side[i], side[j]) if config.min_facing_m is None else config.min_facing_m
    kind = np.where(border >= MIN_BORDER_M, 0, np.where(faced >= least, 1, 2))

    lonlat = to_lonlat(shapely.get_coordinates(shapely.centroid(polygons)), local.crs)
    distance, azimuth = directions(lonlat, i, j)
    code = sector_index(azimuth)
    n = len(landscape)
    order = np.argsort(np.concatenate([i * n + j, j * n + i]))
    pair, back = order % max(len(i), 1), order >= len(i)
    first = {
        "source": np.where(back, j[pair], i[pair]),
        "target": np.where(back, i[pair], j[pair]),
        "first": np.where(back, opposite_index(code)[pair], code[pair]),
        "kind": kind[pair],
        "border_m": np.round(border, 3)[pair],
        "facing_m": np.round(faced, 3)[pair],
        "gap_m": np.round(gap, 3)[pair],
        "distance_m": distance[pair],
        "azimuth_deg": np.where(back, azimuth[pair] + 180.0, azimuth[pair]),
    }
    id_rank = pc.rank(pa.array(landscape.ids, pa.large_string()), tiebreaker="first").to_numpy()
    steps = Steps(first["source"], first["target"], first["first"], first["distance_m"])
    table = _table(first, second_order(steps, lonlat, id_rank), landscape.ids, id_rank)
    return NeighbourGraph(table, landscape.ids, config if given is None else None)


def _near_pairs(polygons: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unordered pairs ``i < j`` within ``reach`` of each other, sorted, and their gap in metres."""
    grown = shapely.bounds(polygons) + np.array([-reach, -reach, reach, reach])
    tree = shapely.STRtree(shapely.linestrings(grown.reshape(-1, 2, 2)))  # it looks at their bounds only
    i, j = tree.query(polygons)
    i, j = np.divmod(np.sort((i * len(polygons) + j)[i < j]), len(polygons))
    gap = shapely.distance(polygons[i], polygons[j])
    near = gap <= reach
    return i[near], j[near], gap[near]


def _table(first: dict[str, np.ndarray], far: TwoSteps, ids: np.ndarray, id_rank: np.ndarray) -> pd.DataFrame:
    """Both orders and directions, sorted, repeated codes numbered, and indices turned into names."""
    near, both = len(first["source"]), 2 * len(far.source)
    rows = {
        "source": np.concatenate([first["source"], far.source, far.target]),
        "target": np.concatenate([first["target"], far.target, far.source]),
        "first": np.concatenate([first["first"], far.first_code, opposite_index(far.second_code)]),
        "second": np.concatenate([np.full(near, -1), far.second_code, opposite_index(far.first_code)]),
        "distance_m": np.round(np.concatenate([first["distance_m"], far.distance_m, far.distance_m]), 3),
        "azimuth_deg": np.concatenate([first["azimuth_deg"], far.azimuth_deg, far.azimuth_deg + 180.0]),
    }
    rows["azimuth_deg"] = np.round(rows["azimuth_deg"], 6) % 360.0
    path = rows["first"] * 10 + rows["second"] + 1
    same = rows["source"] * 200 + np.repeat([0, 100], [near, both]) + path
    order = np.argsort(same)
    start = np.flatnonzero(np.diff(same[order], prepend=-1))
    run = np.diff(start, append=len(same))
    several = order[np.repeat(run > 1, run)]
    keys = np.round(rows["azimuth_deg"][several], 1) % 360.0, np.round(rows["distance_m"][several]), same[several]
    order[np.repeat(run > 1, run)] = several[np.lexsort((id_rank[rows["target"][several]], *keys))]
    number = np.arange(len(same)) - np.repeat(start, run)

    def named(values: list[str] | np.ndarray, at: np.ndarray) -> pa.Array:
        return pa.array(values, pa.large_string()).take(pa.array(at))

    paths = [name for a in CODES for name in (a, *(f"{a}-{b}" for b in CODES))]
    code = named(paths, path[order])
    suffix = named(["", *(str(k) for k in range(2, int(number.max(initial=0)) + 2))], number)
    kind = np.concatenate([first["kind"], np.full(both, -1)])[order]
    lengths = {name: np.concatenate([first[name], np.full(both, np.nan)])[order] for name in COLUMNS[6:9]}
    columns = {
        "source": named(ids, rows["source"][order]),
        "target": named(ids, rows["target"][order]),
        "order": np.where(order < near, 1, 2),
        "code": code,
        "position": pc.binary_join_element_wise(code, suffix, pa.scalar("", pa.large_string())),
        "kind": pa.array(_KINDS, pa.large_string()).take(pa.array(kind, mask=kind < 0)),
        **lengths,
        "distance_m": rows["distance_m"][order],
        "azimuth_deg": rows["azimuth_deg"][order],
    }
    return pa.table(columns, schema=_SCHEMA).to_pandas()


def _require_same_ids(found: Iterable[str], ids: np.ndarray) -> None:
    strangers = set(map(str, found)) ^ set(map(str, ids))
    if strangers:
        raise LandscapeError(f"the graph and the landscape do not have the same ids: {name_some(sorted(strangers))}")
