"""Small landscapes of squares with their real neighbour graph and a plan that is made up, but has the shape of one.

``PlanStandIn`` carries the attributes of a solution that prompts read; the labels are the best class at its prices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import geopandas as gpd
import numpy as np
import pytest
from shapely import box

from oracle.coefficients import coefficients
from oracle.glm_config import GLMConfig
from oracle.landscape import CONNECTIVITY, LOCKED, YIELD_SUFFIX, Landscape
from oracle.neighbours import NeighbourGraph, neighbour_graph
from oracle.regret import judge
from oracle.solution import Hashes
from prompts.dataset import Source
from prompts.split import Role

SIDE_M = 800.0


@dataclass(frozen=True, eq=False)
class PlanStandIn:
    """The attributes of ``oracle.solution.Solution`` that prompts read."""

    ids: np.ndarray
    classes: tuple[str, ...]
    land_use: np.ndarray
    status: np.ndarray
    regret_low: np.ndarray
    regret_high: np.ndarray
    config: GLMConfig
    floor_t: np.ndarray
    shadow_price: dict[str, float]
    habitat_price: float
    adjacency_price: float
    hashes: Hashes
    gap: float = 1e-6
    solver: str = "stand-in"
    versions: dict[str, str] = field(default_factory=dict)


def grid_landscape(
    rows: int,
    cols: int,
    *,
    crops: tuple[str, ...] = ("wheat", "oat"),
    name: str = "grid",
    seed: int = 0,
    yields: np.ndarray | None = None,
    connectivity: np.ndarray | None = None,
    locked: list[str | None] | None = None,
) -> Landscape:
    """``rows`` x ``cols`` squares, ids ``r0c0``... from the south-west, row by row; numbers random unless given."""
    rng = np.random.default_rng(seed)
    n = rows * cols
    yields = rng.uniform(0.0, 12.0, size=(n, len(crops))) if yields is None else yields
    columns: dict[str, object] = {
        "id": [f"r{r}c{c}" for r in range(rows) for c in range(cols)],
        CONNECTIVITY: rng.uniform(size=n) if connectivity is None else connectivity,
        **{f"{crop}{YIELD_SUFFIX}": yields[:, k] for k, crop in enumerate(crops)},
    }
    if locked is not None:
        columns[LOCKED] = locked
    west, south = 500_000.0, 5_700_000.0  # on the central meridian of UTM 13 N, so that north is up
    squares = [
        box(west + c * SIDE_M, south + r * SIDE_M, west + (c + 1) * SIDE_M, south + (r + 1) * SIDE_M)
        for r in range(rows)
        for c in range(cols)
    ]
    return Landscape(name, gpd.GeoDataFrame(columns, geometry=squares, crs="EPSG:32613"), crops)


def plan_for(
    landscape: Landscape, graph: NeighbourGraph, *, habitat_price: float = 812.0, adjacency_price: float = 4.06
) -> PlanStandIn:
    """Every polygon in its best class at the prices 294, 260, ... and shadow prices 7.4, 6.1, ... currency/t.

    Half of the potential is owed; classes of equal worth have a regret of 0 each, and the first of them is the label.
    """
    prices = {crop: 294.0 - 34.0 * k for k, crop in enumerate(landscape.crops)}
    shadow = {crop: max(7.4 - 1.3 * k, 0.0) for k, crop in enumerate(landscape.crops)}
    effective = np.array([prices[c] + shadow[c] for c in landscape.crops])
    worth = np.column_stack([landscape.yields * effective, landscape.connectivity * habitat_price])
    best = worth.argmax(axis=1)
    config = GLMConfig(prices=prices, supply_floors=dict.fromkeys(landscape.crops, 0.5))
    regret = worth.max(axis=1, keepdims=True) - worth
    return PlanStandIn(
        ids=landscape.ids,
        classes=landscape.classes,
        land_use=np.array(landscape.classes, dtype=object)[best],
        status=judge(best, regret, regret),
        regret_low=regret,
        regret_high=regret,
        config=config,
        floor_t=coefficients(landscape, graph, config).floor_t,
        shadow_price=shadow,
        habitat_price=habitat_price,
        adjacency_price=adjacency_price,
        hashes=Hashes(landscape.sha256, graph.sha256, "stand-in"),
    )


def build_source(rows: int, cols: int, *, role: Role = Role.TRAIN, **landscape: object) -> Source:
    """A grid with its graph and plan."""
    grid = grid_landscape(rows, cols, **landscape)  # type: ignore[arg-type]
    graph = neighbour_graph(grid)
    return Source(grid, graph, plan_for(grid, graph), role)  # type: ignore[arg-type]


def nine_squares() -> Source:
    """The 3 x 3 grid of the text fixtures: numbers that tell at a glance which polygon they belong to."""
    wheat = [3.00, 3.01, 3.02, 3.10, 3.11, 3.12, 3.20, 3.21, 11.26]
    oat = [2.50, 2.51, 2.52, 2.60, 0.00, 2.62, 2.70, 2.71, 2.72]
    return build_source(3, 3, yields=np.column_stack([wheat, oat]), connectivity=np.arange(1, 10) / 10)


@pytest.fixture
def nine() -> Source:
    return nine_squares()


@pytest.fixture
def source() -> Callable[..., Source]:
    return build_source


@pytest.fixture(scope="session")
def source_once() -> Callable[[int, int], Source]:
    """As ``source``, for properties that try many settings on the same grids."""
    return cache(build_source)


@pytest.fixture
def relabel() -> Callable[[Source, str], Source]:
    """A source whose plan puts every polygon into one class, best or not."""

    def everywhere(source: Source, land_use: str) -> Source:
        labels = np.full(len(source.landscape), land_use, dtype=object)
        plan = replace(source.solution, land_use=labels)  # type: ignore[type-var]
        return replace(source, solution=plan)

    return everywhere
