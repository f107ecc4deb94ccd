"""The Global Land Manager (GLM): which polygon grows what, and which is left to habitat.

For polygon i, crop k and neighbour pair ij::

    maximise    (1 - w) * sum_ik A_i p_k y_ik x_ik / V
                  + w * [ sum_i A_i e_i h_i  +  g * sum_ij l_ij (e_i + e_j)/2 * d/10,000 * z_ij ] / C

    subject to  sum_k x_ik + h_i  =  1                     one class per polygon
                z_ij <= h_i,  z_ij <= h_j                  the pair counts where both are habitat
                sum_i A_i y_ik x_ik  >=  s_k S_k           supply floor of crop k, over the landscape
                m A  <=  sum_i A_i h_i  <=  M A            least and greatest habitat share
                x_ik = 0 where y_ik = 0, locked classes fixed;   x, h binary

=====  =====================  ==================================================================
A_i    ha                     geodesic area; A their sum
y_ik   t/ha                   yield
p_k    currency/t             price
e_i    0..1                   ecological connectivity
l_ij   m                      border shared, or length along which the two face each other
d      m                      depth that turns l_ij into hectares (10,000 m2 each)
g      1                      adjacency gain
w      0..1                   connectivity weight
V      currency               crop value with every polygon in its best crop
C      ha                     connectivity with every polygon in habitat
S_k    t                      reference supply, see :class:`oracle.glm_config.FloorKind`
m, M   0..1                   habitat share
=====  =====================  ==================================================================

Both terms of the objective are shares of what is possible, so the objective lies in 0..1 and has no unit.
Where V or C is 0 its term is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from oracle.errors import ConfigurationError
from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import HABITAT, Landscape

if TYPE_CHECKING:
    import pulp

SQUARE_METRES_PER_HA = 10_000.0
TOLERANCE = 1e-6
"""A floor or habitat share counts as met from this relative distance on (habitat: as a share of the area)."""


class SharedLengths(Protocol):
    """What the GLM needs of a neighbour graph."""

    @property
    def shared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(i, j, length in m) of every unordered pair with a border or a gap, i < j."""
        ...

    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The GLM's numbers for n polygons, K crops and E neighbour pairs.

    Parameters
    ----------
    crops : tuple of str
        The K crops; ``classes`` adds habitat as the last.
    area_ha : (n,) array
    allowed : (n, K + 1) array of bool
    production_t : (n, K) array
        Tonnes of each crop on each polygon.
    prices : (K,) array
        Currency/t.
    floor_t : (K,) array
        Supply floors, t.
    connectivity_ha : (n,) array
        Area times connectivity of each polygon.
    pair_i, pair_j : (E,) arrays of int
        Row positions of the neighbours.
    pair_ha : (E,) array
        Hectares of connectivity gained where both are habitat.
    habitat_share : (least, greatest) share of the area
    connectivity_weight : float
        w.
    adjacency_ha_per_m : float
        g d / 10,000: hectares that one metre between two habitats of mean connectivity 1 adds.
    """

    crops: tuple[str, ...]
    area_ha: np.ndarray
    allowed: np.ndarray
    production_t: np.ndarray
    prices: np.ndarray
    floor_t: np.ndarray
    connectivity_ha: np.ndarray
    pair_i: np.ndarray
    pair_j: np.ndarray
    pair_ha: np.ndarray
    habitat_share: tuple[float, float]
    connectivity_weight: float
    adjacency_ha_per_m: float

    def __len__(self) -> int:
        return len(self.area_ha)

    @property
    def classes(self) -> tuple[str, ...]:
        return (*self.crops, HABITAT)

    @cached_property
    def crop_value_scale(self) -> float:
        """V, currency."""
        return math.fsum((self.production_t * self.prices).max(axis=1))

    @cached_property
    def connectivity_scale(self) -> float:
        """C, ha."""
        return math.fsum([*self.connectivity_ha, *self.pair_ha])

    @cached_property
    def crop(self) -> np.ndarray:
        """(n, K) objective of each crop on each polygon."""
        scale = self.crop_value_scale
        return self.production_t * self.prices * ((1.0 - self.connectivity_weight) / scale if scale > 0 else 0.0)

    @cached_property
    def _unit_per_ha(self) -> float:
        return self.connectivity_weight / self.connectivity_scale if self.connectivity_scale > 0 else 0.0

    @cached_property
    def habitat(self) -> np.ndarray:
        """(n,) objective of each polygon in habitat, without its neighbours."""
        return self.connectivity_ha * self._unit_per_ha

    @cached_property
    def pair_gain(self) -> np.ndarray:
        """(E,) objective gained where both neighbours are habitat."""
        return self.pair_ha * self._unit_per_ha

    @cached_property
    def own(self) -> np.ndarray:
        """(n, K + 1) objective of every class on every polygon, without its neighbours."""
        return np.column_stack([self.crop, self.habitat])

    @cached_property
    def credited_t(self) -> np.ndarray:
        """(n, K) tonnes that count towards a floor: at most the floor itself.

        One polygon cannot do more than meet a floor, so whole-polygon plans meet a floor by ``credited_t`` exactly
        where they meet it by ``production_t``, and the relaxation is tighter.
        """
        return np.minimum(self.production_t, self.floor_t)

    @property
    def currency_per_unit(self) -> float:
        """V / (1 - w): the crop value, in currency, that one objective unit is worth."""
        return self.crop_value_scale / (1.0 - self.connectivity_weight)

    @property
    def habitat_price(self) -> float:
        """Currency that a hectare of habitat of connectivity 1 is worth, w V / ((1 - w) C); 0 where C is 0."""
        return self._unit_per_ha * self.currency_per_unit

    @property
    def adjacency_price(self) -> float:
        """Currency per metre between two habitats of mean connectivity 1."""
        return self.adjacency_ha_per_m * self.habitat_price


def coefficients(landscape: Landscape, graph: SharedLengths, config: GLMConfig) -> Coefficients:
    """The GLM's numbers for a landscape, its neighbour graph and a configuration.

    Raises
    ------
    ConfigurationError
        Where a crop has no price, a floor names no crop of the landscape, or ``floor_kind`` is ``current`` and the
        landscape has no ``current_land_use``.
    """
    prices = np.array(config.price_of(landscape.crops), dtype=float)
    area, e = landscape.areas_ha, landscape.connectivity
    production = area[:, None] * landscape.yields
    i, j, length_m = (np.asarray(a) for a in graph.shared)
    adjacency_ha_per_m = config.adjacency_gain * config.adjacency_depth_m / SQUARE_METRES_PER_HA
    return Coefficients(
        crops=landscape.crops,
        area_ha=area,
        allowed=landscape.allowed,
        production_t=production,
        prices=prices,
        floor_t=_floors(landscape, production, config),
        connectivity_ha=area * e,
        pair_i=i.astype(np.int64),
        pair_j=j.astype(np.int64),
        pair_ha=adjacency_ha_per_m * length_m * (e[i] + e[j]) / 2.0,
        habitat_share=(config.habitat_share.min, config.habitat_share.max),
        connectivity_weight=config.connectivity_weight,
        adjacency_ha_per_m=adjacency_ha_per_m,
    )


def _floors(landscape: Landscape, production: np.ndarray, config: GLMConfig) -> np.ndarray:
    asked = np.array([config.supply_floors.get(c, 0.0) for c in landscape.crops], dtype=float)
    if not asked.any() or config.floor_kind is FloorKind.TONNES:
        return asked
    if config.floor_kind is FloorKind.POTENTIAL:
        return asked * production.sum(axis=0) / len(landscape.crops)
    if landscape.current is None:
        raise ConfigurationError(
            f"floor_kind 'current' takes shares of the current production, but landscape {landscape.name!r} has no "
            "column current_land_use: add it, or set floor_kind to 'potential' or 'tonnes'"
        )
    grown = landscape.current[:, None] == np.array(landscape.crops, dtype=object)
    return asked * (production * grown).sum(axis=0)


@dataclass(frozen=True)
class Terms:
    """A plan's objective, term by term."""

    crop_value: float
    """Objective units, 0..1 - w."""
    connectivity: float
    """Objective units, 0..w."""
    crop_value_currency: float
    connectivity_ha: float

    @property
    def objective(self) -> float:
        return self.crop_value + self.connectivity


def terms(c: Coefficients, choice: np.ndarray) -> Terms:
    """A plan's objective. ``choice`` is (n,) int: each polygon's position in ``c.classes``."""
    habitat = choice == len(c.crops)
    rows, crops = np.flatnonzero(~habitat), choice[~habitat]
    both = habitat[c.pair_i] & habitat[c.pair_j]
    return Terms(
        crop_value=math.fsum(c.crop[rows, crops]),
        connectivity=math.fsum([*c.habitat[habitat], *c.pair_gain[both]]),
        crop_value_currency=math.fsum(c.production_t[rows, crops] * c.prices[crops]),
        connectivity_ha=math.fsum([*c.connectivity_ha[habitat], *c.pair_ha[both]]),
    )


def supply_t(c: Coefficients, choice: np.ndarray) -> np.ndarray:
    """(K,) tonnes of each crop that a plan supplies."""
    grown = choice[:, None] == np.arange(len(c.crops))
    return np.array([math.fsum(column) for column in np.where(grown, c.production_t, 0.0).T])


def habitat_area_share(c: Coefficients, choice: np.ndarray) -> float:
    """Share of the area in habitat, 0..1."""
    return math.fsum(c.area_ha[choice == len(c.crops)]) / math.fsum(c.area_ha)


def violations(c: Coefficients, choice: np.ndarray) -> list[str]:
    """What a plan breaks, a sentence each; empty = feasible (within :data:`TOLERANCE`)."""
    broken = []
    wrong = int((~c.allowed[np.arange(len(c)), choice]).sum())
    if wrong:
        broken.append(f"{wrong} polygon(s) have a class that they may not have")
    for crop, floor, supplied in zip(c.crops, c.floor_t, supply_t(c, choice), strict=True):
        if supplied < floor * (1.0 - TOLERANCE):
            broken.append(f"{crop}: {supplied:,.3f} t are below the floor of {floor:,.3f} t")
    least, greatest = c.habitat_share
    share = habitat_area_share(c, choice)
    if not least - TOLERANCE <= share <= greatest + TOLERANCE:
        broken.append(f"habitat on {share:.4%} of the area, asked for {least:.4%} to {greatest:.4%}")
    return broken


@dataclass(frozen=True, eq=False)
class PulpVariables:
    """The variables of :func:`pulp_model`, addressed as in the equations."""

    x: list[list[pulp.LpVariable]]
    """x[i][k], and x[i][K] for habitat: h_i."""
    z: list[pulp.LpVariable]
    """z[e] for the neighbour pair e."""


def pulp_model(c: Coefficients, *, relaxed: bool = False) -> tuple[pulp.LpProblem, PulpVariables]:
    """The GLM as written in this module's docstring, in PuLP; ``relaxed`` drops the integrality.

    The objective is multiplied by n, so that a polygon is worth about 1, and the supply rows are divided by their
    largest entry: the solver's tolerances are absolute. Floors and habitat share are asked for at half the
    :data:`TOLERANCE`, so that equal fields whose areas differ in the eighth digit do not decide what is feasible, and
    the solver's own tolerance still fits in. Constraints are named ``class_<i>``, ``pair_<e>_i``,
    ``pair_<e>_j``, ``floor_<k>``, ``habitat_least`` and ``habitat_greatest``.
    """
    import pulp  # here, so that checking a certificate loads no solver

    n, habitat, asked = len(c), len(c.crops), TOLERANCE / 2
    category = pulp.LpContinuous if relaxed else pulp.LpInteger  # LpBinary would reset the bounds
    x = [
        [pulp.LpVariable(f"x_{i}_{k}", 0, int(allowed), category) for k, allowed in enumerate(row)]
        for i, row in enumerate(c.allowed)
    ]
    z = [pulp.LpVariable(f"z_{e}", 0, 1) for e in range(len(c.pair_i))]  # integral where h is
    h = [row[habitat] for row in x]

    model = pulp.LpProblem("GLM", pulp.LpMaximize)
    own = [(x[i][k], n * v) for i, row in enumerate(c.own.tolist()) for k, v in enumerate(row)]
    pairs = [(z[e], n * gain) for e, gain in enumerate(c.pair_gain.tolist())]
    model += pulp.LpAffineExpression(own + pairs)
    for i, row in enumerate(x):
        model += pulp.LpAffineExpression([(v, 1) for v in row]) == 1, f"class_{i}"
    for e, (i, j) in enumerate(zip(c.pair_i.tolist(), c.pair_j.tolist(), strict=True)):
        model += pulp.LpAffineExpression([(z[e], 1), (h[i], -1)]) <= 0, f"pair_{e}_i"
        model += pulp.LpAffineExpression([(z[e], 1), (h[j], -1)]) <= 0, f"pair_{e}_j"
    for k in np.flatnonzero(c.floor_t > 0).tolist():
        scale = floor_row_scale(c)[k]
        tonnes = [(x[i][k], t / scale) for i, t in enumerate(c.credited_t[:, k].tolist())]
        model += pulp.LpAffineExpression(tonnes) >= c.floor_t[k] / scale * (1 - asked), f"floor_{k}"
    least, greatest = c.habitat_share
    mean_area = c.area_ha.mean()
    area = pulp.LpAffineExpression([(h[i], a) for i, a in enumerate((c.area_ha / mean_area).tolist())])
    if least > 0:
        model += area >= (least - asked) * n, "habitat_least"
    if greatest < 1:
        model += area <= (greatest + asked) * n, "habitat_greatest"
    return model, PulpVariables(x, z)


def floor_row_scale(c: Coefficients) -> np.ndarray:
    """(K,) tonnes by which :func:`pulp_model` divides each supply row: its largest entry, 1 where that is 0."""
    largest = c.credited_t.max(axis=0)
    return np.where(largest > 0, largest, 1.0)
