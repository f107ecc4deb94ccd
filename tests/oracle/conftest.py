"""Small landscapes made of squares, and the graph that they have by construction.

``grid_landscape`` and ``grid_graph`` are builders: a test calls them with what it cares about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import geopandas as gpd
import numpy as np
import pytest
from shapely import box

from oracle.landscape import CONNECTIVITY, CURRENT, HABITAT, LOCKED, YIELD_SUFFIX, Landscape

FOUR_CROPS = ("wheat", "oat", "corn", "soy")
SIDE_M = 800.0
MEAN_YIELD_T_HA = {"wheat": 3.6, "oat": 3.4, "corn": 7.5, "soy": 2.4, "barley": 3.5, "canola": 2.2}


@dataclass(frozen=True)
class GridGraph:
    """What the GLM needs of a neighbour graph: who shares how many metres with whom."""

    shared: tuple[np.ndarray, np.ndarray, np.ndarray]
    sha256: str = "grid"


def build_grid_landscape(
    rows: int,
    cols: int,
    *,
    crops: tuple[str, ...] = FOUR_CROPS,
    yields: np.ndarray | None = None,
    connectivity: np.ndarray | None = None,
    current: list[str] | None = None,
    locked: list[str | None] | None = None,
    seed: int = 0,
    side_m: float = SIDE_M,
    name: str = "grid",
) -> Landscape:
    """``rows`` x ``cols`` squares, ids ``r0c0``... from the south-west, row by row; yields random unless given."""
    rng = np.random.default_rng(seed)
    n = rows * cols
    if yields is None:
        quality = rng.normal(1.0, 0.2, size=(n, 1))
        means = np.array([MEAN_YIELD_T_HA.get(c, 3.0) for c in crops])
        yields = np.clip(means * quality * rng.normal(1.0, 0.08, size=(n, len(crops))), 0.1, None)
    connectivity = rng.uniform(size=n) if connectivity is None else connectivity
    west, south = 500_000.0, 5_700_000.0
    squares = [
        box(west + c * side_m, south + r * side_m, west + (c + 1) * side_m, south + (r + 1) * side_m)
        for r in range(rows)
        for c in range(cols)
    ]
    columns = {"id": [f"r{r}c{c}" for r in range(rows) for c in range(cols)], CONNECTIVITY: connectivity}
    columns |= {f"{crop}{YIELD_SUFFIX}": np.asarray(yields, dtype=float)[:, k] for k, crop in enumerate(crops)}
    if current is not None:
        columns[CURRENT] = current
    if locked is not None:
        columns[LOCKED] = locked
    return Landscape(name, gpd.GeoDataFrame(columns, geometry=squares, crs="EPSG:32613"), crops)


def build_grid_graph(rows: int, cols: int, side_m: float = SIDE_M) -> GridGraph:
    """Each square shares its side with the squares west, east, south and north of it."""
    index = np.arange(rows * cols).reshape(rows, cols)
    i = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    j = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    return GridGraph((i, j, np.full(len(i), side_m)))


@pytest.fixture
def grid_landscape() -> Callable[..., Landscape]:
    return build_grid_landscape


@pytest.fixture
def grid_graph() -> Callable[..., GridGraph]:
    return build_grid_graph


@pytest.fixture
def habitat() -> str:
    return HABITAT
