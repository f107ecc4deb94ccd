"""How connected a plan's habitat is, reported apart from the objective.

Nodes are **patches**: habitat polygons that share a border or face each other across a gap, as in the GLM, taken as one
(movement inside a patch is free). Distances are edge to edge, in one local projection. With a_i the area of patch i
(ha), A the landscape's area (ha) and D the dispersal distance (m):

===============  =====================================================================================================
links            of IIC and of components: edges at most D apart. Of PC: p_ij = 0.5 ** (d_ij / D), a negative
                 exponential that is 0.5 at D; single steps of p below 0.1 (more than 3.3 D) are left out
IIC              sum_ij a_i a_j / (1 + nl_ij) / A^2, nl_ij = links on the path with the fewest, over both orders and
                 i = j; pairs without a path count 0 (Pascual-Hortal & Saura 2006, Landscape Ecology 21: 959-967)
PC               sum_ij a_i a_j p*_ij / A^2, p*_ij = the largest product of p along any path
                 (Saura & Pascual-Hortal 2007, Landscape and Urban Planning 83: 91-103)
ECA              sqrt(sum_ij a_i a_j p*_ij), ha: the one patch that would have the same PC
                 (Saura et al. 2011, Ecological Indicators 11: 1044-1050)
edge             perimeters of habitat polygons, less what two of them share, m
===============  =====================================================================================================

Above 1,000 patches IIC and PC are estimated: paths start from 1,000 patches drawn systematically in proportion to
their area (``sources`` says how many; below, all of them do and the figures are exact), and products below 0.001 count
as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import shapely
from scipy.sparse.csgraph import connected_components, dijkstra

from oracle.coefficients import SharedLengths
from oracle.errors import ConfigurationError
from oracle.files import write_json
from oracle.landscape import HABITAT, Landscape
from oracle.projection import to_local

CONNECTIVITY_FILE = "connectivity.json"
OF_PLAN, NOW = "connectivity_of_plan", "connectivity_now"
DISPERSAL_M = 1_000.0
LEAST_STEP = 0.1
"""Single steps of a smaller probability are no links of PC."""
LEAST_PATH = 0.001
MOST_SOURCES = 1_000
_TOUCHING = 1e-12
_CELLS = 4_000_000  # of a block of the matrix of path lengths


@dataclass(frozen=True)
class Connectivity:
    """Connectivity of one land use of a landscape; definitions in :mod:`oracle.connectivity`."""

    habitat_ha: float
    habitat_share: float
    """Of the landscape's area, 0..1."""
    patches: int
    largest_patch_ha: float
    components: int
    """Sets of patches that steps of at most ``dispersal_m`` connect."""
    largest_component_ha: float
    eca_ha: float
    iic: float
    pc: float
    edge_m: float
    dispersal_m: float
    sources: int
    """Patches from which paths were followed; all of them unless there are more than 1,000."""


@dataclass(frozen=True, eq=False)
class Patches:
    """P patches of habitat, and how far apart those are that lie near each other."""

    area_ha: np.ndarray
    """(P,)"""
    i: np.ndarray
    j: np.ndarray
    """(L,) patches of each near pair, i < j."""
    distance_m: np.ndarray
    """(L,) edge to edge."""

    def __len__(self) -> int:
        return len(self.area_ha)

    def links(self, weight: np.ndarray) -> sp.csr_array:
        """(P, P) symmetric matrix of the near pairs' weights; 0 is no link."""
        i, j, w = (a[weight > 0] for a in (self.i, self.j, weight))
        pairs = (np.concatenate([i, j]), np.concatenate([j, i]))
        return sp.csr_array((np.concatenate([w, w]), pairs), shape=(len(self), len(self)))


def connectivity(
    landscape: Landscape, graph: SharedLengths, land_use: np.ndarray, dispersal_m: float = DISPERSAL_M
) -> Connectivity:
    """Connectivity of the habitat in ``land_use``, (n,) str.

    Raises
    ------
    ConfigurationError
        Where ``dispersal_m`` is not above 0.
    """
    if not (dispersal_m > 0 and math.isfinite(dispersal_m)):
        raise ConfigurationError(f"the dispersal distance is {dispersal_m} m; it must be above 0")
    habitat = np.asarray(land_use) == HABITAT
    i, j, length_m = graph.shared
    inside = habitat[i] & habitat[j]
    polygons = to_local(landscape.polygons.geometry).to_numpy()[habitat]
    row = np.cumsum(habitat) - 1
    n = len(polygons)
    touching = sp.coo_array((np.ones(inside.sum()), (row[i[inside]], row[j[inside]])), shape=(n, n))
    count, patch = connected_components(touching, directed=False) if n else (0, np.zeros(0, dtype=int))
    area = np.bincount(patch, landscape.areas_ha[habitat], minlength=count)
    patches = _near(polygons, patch, area, dispersal_m * math.log2(1.0 / LEAST_STEP))

    landscape_ha = float(landscape.areas_ha.sum())
    near = patches.distance_m <= dispersal_m
    steps = patches.links(near.astype(float))
    components, component = connected_components(steps, directed=False) if count else (0, np.zeros(0, dtype=int))
    component_ha = np.bincount(component, area, minlength=components)
    sources = _sources(area)
    # A path's cost is its length over D, so its probability is 0.5 ** cost; corners touch: 0 would be no link
    halvings = patches.links(np.maximum(patches.distance_m / dispersal_m, _TOUCHING))
    pc = _sum(area, sources, halvings, lambda cost: 0.5**cost, limit=math.log2(1.0 / LEAST_PATH))
    iic = _sum(area, sources, steps, lambda count: 1.0 / (1.0 + count))
    return Connectivity(
        habitat_ha=float(area.sum()),
        habitat_share=float(area.sum()) / landscape_ha,
        patches=count,
        largest_patch_ha=float(area.max(initial=0.0)),
        components=components,
        largest_component_ha=float(component_ha.max(initial=0.0)),
        eca_ha=math.sqrt(pc),
        iic=iic / landscape_ha**2,
        pc=pc / landscape_ha**2,
        edge_m=max(float(shapely.length(polygons).sum() - 2.0 * length_m[inside].sum()), 0.0),
        dispersal_m=dispersal_m,
        sources=min(count, MOST_SOURCES),
    )


def save_connectivity(
    folder: Path, landscape: Landscape, graph: SharedLengths, land_use: np.ndarray, dispersal_m: float = DISPERSAL_M
) -> dict[str, dict[str, float]]:
    """Write ``connectivity.json``: the figures of a plan and, where it is known, of the current land use beside them.

    Raises
    ------
    ConfigurationError
        As :func:`connectivity`.
    """
    figures = {OF_PLAN: asdict(connectivity(landscape, graph, land_use, dispersal_m))}
    if landscape.current is not None:
        figures[NOW] = asdict(connectivity(landscape, graph, landscape.current, dispersal_m))
    write_json(Path(folder) / CONNECTIVITY_FILE, figures)
    return figures


def _near(polygons: np.ndarray, patch: np.ndarray, area: np.ndarray, reach_m: float) -> Patches:
    """Pairs of patches at most ``reach_m`` apart."""
    left, right = shapely.STRtree(polygons).query(polygons, predicate="dwithin", distance=reach_m)
    between = (left < right) & (patch[left] != patch[right])
    left, right = left[between], right[between]
    distance = shapely.distance(polygons[left], polygons[right])
    i, j = np.minimum(patch[left], patch[right]), np.maximum(patch[left], patch[right])
    order = np.lexsort((distance, j, i))
    i, j, distance = i[order], j[order], distance[order]
    first = np.ones(len(i), dtype=bool)
    first[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    return Patches(area, i[first], j[first], distance[first])


def _sources(area: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Patches from which paths start, and the area for which each stands."""
    if len(area) <= MOST_SOURCES:
        return np.arange(len(area)), area
    order = np.argsort(-area, kind="stable")
    ends = np.cumsum(area[order])
    share = ends[-1] / MOST_SOURCES
    drawn, times = np.unique(order[np.searchsorted(ends, (np.arange(MOST_SOURCES) + 0.5) * share)], return_counts=True)
    return drawn, times * share


def _sum(
    area: np.ndarray,
    sources: tuple[np.ndarray, np.ndarray],
    links: sp.csr_array,
    worth: Callable[[np.ndarray], np.ndarray],
    limit: float = np.inf,
) -> float:
    """sum_ij a_i a_j worth(cheapest path from i to j), over the paths that cost at most ``limit``."""
    start, stands_for = sources
    total = 0.0
    block = max(1, _CELLS // max(len(area), 1))
    for k in range(0, len(start), block):
        cost = dijkstra(links, indices=start[k : k + block], limit=limit)
        total += float(stands_for[k : k + block] @ (np.where(np.isfinite(cost), worth(cost), 0.0) @ area))
    return total
