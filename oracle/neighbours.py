"""The neighbour graph: who borders whom, across which gap, in which direction.

Two polygons whose gap is at most ``max_gap_m`` are first-order neighbours of a ``kind``:

========  ==========================================================================================
border    they touch along at least 1 m
gap       they face each other along at least ``min_facing_m``: fields across a road allowance
corner    anything else: a common corner, fields diagonal over a crossing; in prompts, not in the GLM
========  ==========================================================================================

``code`` is the compass sector of the geodesic azimuth between the centroids, taken half way, so that both directions
of a pair get opposite codes. Second-order neighbours carry path codes (:mod:`oracle.second_order`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import shapely
from libpysal.graph import Graph
from pydantic import BaseModel, ConfigDict, Field

from oracle.compass import CODES, opposite_index, sector_index
from oracle.errors import LandscapeError
from oracle.facing import TOUCH_M, facing
from oracle.files import write_atomically
from oracle.landscape import GEOD, Landscape
from oracle.projection import to_local
from oracle.second_order import Steps, candidate_pairs, choose_paths

MIN_BORDER_M = 1.0
CONCENTRIC_M = 1.0
"""Centroids nearer than this have no direction from each other."""

COLUMNS = (
    "source",
    "target",
    "order",
    "code",
    "position",
    "kind",
    "border_m",
    "facing_m",
    "gap_m",
    "distance_m",
    "azimuth_deg",
)
_KINDS = np.array(["border", "gap", "corner", None], dtype=object)  # -1: second order
_CODES = np.array(CODES, dtype=object)


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
    """

    table: pd.DataFrame
    ids: np.ndarray

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

    def to_networkx(self) -> nx.DiGraph:
        """Directed graph of both orders; nodes are ids (isolates too), edges carry the table's other columns."""
        graph = nx.from_pandas_edgelist(self.table, "source", "target", edge_attr=True, create_using=nx.DiGraph)
        graph.add_nodes_from(self.ids)
        return graph

    def save(self, path: Path) -> None:
        """Parquet; the ids travel in the schema's metadata, so isolated polygons survive."""
        arrow = pa.Table.from_pandas(self.table, preserve_index=False)
        metadata = {b"landoracle": json.dumps({"ids": [str(i) for i in self.ids]}).encode()}
        arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **metadata})
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
        if missing or b"landoracle" not in metadata:
            lacking = ", ".join(missing) or "the list of ids in its metadata"
            raise LandscapeError(
                f"{path} is not a neighbour graph: it lacks {lacking}; write one with `landoracle graph`"
            )
        ids = np.array(json.loads(metadata[b"landoracle"])["ids"], dtype=object)
        return cls(_typed(arrow.to_pandas()), ids)


def neighbour_graph(landscape: Landscape, config: NeighbourConfig | None = None) -> NeighbourGraph:
    """Neighbours of first and second order of every polygon.

    Near linear in the number of boundary segments. Lengths and gaps are measured in one local projection
    (:mod:`oracle.projection`), directions and distances on the WGS 84 ellipsoid.

    Raises
    ------
    LandscapeError
        Where coordinates have no place on the Earth in the landscape's CRS.
    """
    config = config or NeighbourConfig()
    local = to_local(landscape.polygons.geometry)
    polygons = local.to_numpy()
    i, j, gap = _near_pairs(polygons, max(config.max_gap_m, TOUCH_M))
    border, faced = _lengths(polygons, i, j, config.max_gap_m)
    side = np.sqrt(shapely.area(polygons))
    least = 0.1 * np.minimum(side[i], side[j]) if config.min_facing_m is None else config.min_facing_m
    kind = np.where(border >= MIN_BORDER_M, 0, np.where(faced >= least, 1, 2))

    centroids = local.centroid.to_crs(4326)
    lonlat = np.column_stack([centroids.x, centroids.y])
    distance, azimuth = _directions(lonlat, i, j)
    id_rank = np.argsort(np.argsort(landscape.ids.astype(str), kind="stable"))

    both = _both_ways(i, j, azimuth)
    steps = Steps(len(landscape), both[0], both[1], sector_index(both[2]), distance[both[3]])
    pairs, pair_of, first, second = candidate_pairs(steps)
    far_distance, far_azimuth = _directions(lonlat, pairs[:, 0], pairs[:, 1])
    paths = choose_paths(steps, pairs, pair_of, first, second, far_azimuth, id_rank)
    flipped = paths.source != pairs[:, 0]
    far_azimuth = np.where(flipped, (far_azimuth + 180.0) % 360.0, far_azimuth)

    nothing = np.full(2 * len(pairs), np.nan)
    pair = both[3]
    rows = {
        "source": np.concatenate([both[0], paths.source, paths.target]),
        "target": np.concatenate([both[1], paths.target, paths.source]),
        "order": np.repeat([1, 2], [len(pair), 2 * len(pairs)]),
        "first": np.concatenate([steps.code, paths.first_code, opposite_index(paths.second_code)]),
        "second": np.concatenate([np.full(len(pair), -1), paths.second_code, opposite_index(paths.first_code)]),
        "kind": np.concatenate([kind[pair], np.full(2 * len(pairs), -1)]),
        "border_m": np.concatenate([np.round(border[pair], 3), nothing]),
        "facing_m": np.concatenate([np.round(faced[pair], 3), nothing]),
        "gap_m": np.concatenate([np.round(gap[pair], 3), nothing]),
        "distance_m": np.round(np.concatenate([distance[pair], far_distance, far_distance]), 3),
        "azimuth_deg": np.round(np.concatenate([both[2], far_azimuth, far_azimuth + 180.0]), 6) % 360.0,
    }
    return NeighbourGraph(_table(rows, landscape.ids, id_rank), landscape.ids)


def _near_pairs(polygons: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unordered pairs ``i < j`` within ``reach`` of each other, sorted, and their gap in metres."""
    tree = shapely.STRtree(shapely.box(*_grown(shapely.bounds(polygons), reach).T))
    i, j = tree.query(polygons)
    i, j = i[i < j], j[i < j]
    gap = shapely.distance(polygons[i], polygons[j])
    near = gap <= reach
    i, j, gap = i[near], j[near], gap[near]
    order = np.lexsort((j, i))
    return i[order], j[order], gap[order]


def _grown(bounds: np.ndarray, margin: float) -> np.ndarray:
    return bounds + np.array([-margin, -margin, margin, margin])


def _lengths(polygons: np.ndarray, i: np.ndarray, j: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Border and facing metres of the pairs (i, j); 0 where they do not run along each other."""
    found = facing(polygons, reach)
    n = len(polygons)
    border, faced = np.zeros(len(i)), np.zeros(len(i))
    if len(i):
        pair, key = i * n + j, found.i * n + found.j
        at = np.minimum(np.searchsorted(pair, key), len(pair) - 1)
        listed = pair[at] == key
        border[at[listed]], faced[at[listed]] = found.border_m[listed], found.facing_m[listed]
    return border, faced


def _directions(lonlat: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Geodesic distance (m) and azimuth half way (degrees, NaN where concentric) from i to j; j to i is + 180."""
    ahead, back, distance = GEOD.inv(*lonlat[i].T, *lonlat[j].T)
    ahead, back, distance = (np.asarray(v, dtype=float) for v in (ahead, back, distance))
    turn = (back + 180.0 - ahead + 180.0) % 360.0 - 180.0
    azimuth = (ahead + turn / 2.0) % 360.0
    return distance, np.where(distance < CONCENTRIC_M, np.nan, azimuth)


def _both_ways(
    i: np.ndarray, j: np.ndarray, azimuth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Source, target, azimuth and pair of both directions of every pair, sorted by (source, target)."""
    source, target = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.lexsort((target, source))
    azimuths = np.concatenate([azimuth, (azimuth + 180.0) % 360.0])[order]
    return source[order], target[order], azimuths, np.tile(np.arange(len(i)), 2)[order]


def _table(rows: dict[str, np.ndarray], ids: np.ndarray, id_rank: np.ndarray) -> pd.DataFrame:
    """Sort, number repeated codes, and turn indices into names."""
    ranked = (id_rank[rows["target"]], np.round(rows["azimuth_deg"], 1), np.round(rows["distance_m"]))
    order = np.lexsort((*ranked, rows["second"], rows["first"], rows["order"], rows["source"]))
    rows = {name: column[order] for name, column in rows.items()}
    same = rows["source"] * 200 + rows["first"] * 20 + rows["second"] + 1
    start = np.flatnonzero(np.concatenate([[True], same[1:] != same[:-1]])) if len(same) else np.zeros(0, dtype=int)
    number = np.arange(len(same)) - np.repeat(start, np.diff(np.append(start, len(same))))
    paths = np.array([[a, *(f"{a}-{b}" for b in CODES)] for a in CODES], dtype=object)
    code = paths[rows["first"], rows["second"] + 1]
    suffix = np.array(["", *(str(k + 1) for k in range(1, int(number.max(initial=0)) + 1))], dtype=object)
    frame = pd.DataFrame(
        {
            "source": ids[rows["source"]],
            "target": ids[rows["target"]],
            "order": rows["order"],
            "code": code,
            "position": code + suffix[number],
            "kind": _KINDS[rows["kind"]],
            **{name: rows[name] for name in COLUMNS[6:]},
        }
    )
    return _typed(frame)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[list(COLUMNS)].astype({"order": "int64", **{name: "float64" for name in COLUMNS[6:]}})
