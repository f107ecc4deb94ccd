"""The numbers of the Global Land Manager for one landscape; the equations stand in :mod:`oracle.glm`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np

from oracle.errors import ConfigurationError
from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import HABITAT, Landscape

SQUARE_METRES_PER_HA = 10_000.0


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
    costs : (K + 1,) array
        Currency/ha of each class, habitat last.
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
    costs: np.ndarray
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
        """V, currency: gross, so that a cost changes its own class only, not what all the rest counts for."""
        return math.fsum((self.production_t * self.prices).max(axis=1))

    @cached_property
    def connectivity_scale(self) -> float:
        """C, ha."""
        return math.fsum(chain(self.connectivity_ha.tolist(), self.pair_ha.tolist()))

    @cached_property
    def value(self) -> np.ndarray:
        """(n, K + 1) currency of each class on each polygon: what its crop sells for, less what it costs."""
        gross = np.column_stack([self.production_t * self.prices, np.zeros(len(self))])
        return gross - self.area_ha[:, None] * self.costs

    @property
    def unit_per_currency(self) -> float:
        """Objective units, (1 - w) / V; 0 where V is 0."""
        return (1.0 - self.connectivity_weight) / self.crop_value_scale if self.crop_value_scale > 0 else 0.0

    @property
    def unit_per_ha(self) -> float:
        """Objective units of a hectare of habitat of connectivity 1, w / C; 0 where C is 0."""
        return self.connectivity_weight / self.connectivity_scale if self.connectivity_scale > 0 else 0.0

    @cached_property
    def crop(self) -> np.ndarray:
        """(n, K) objective of each crop on each polygon."""
        return self.value[:, :-1] * self.unit_per_currency

    @cached_property
    def habitat(self) -> np.ndarray:
        """(n,) objective of each polygon in habitat, without its neighbours."""
        return self.connectivity_ha * self.unit_per_ha + self.value[:, -1] * self.unit_per_currency

    @cached_property
    def pair_gain(self) -> np.ndarray:
        """(E,) objective gained where both neighbours are habitat."""
        return self.pair_ha * self.unit_per_ha

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
        return self.unit_per_ha * self.currency_per_unit

    @property
    def adjacency_price(self) -> float:
        """Currency per metre between two habitats of mean connectivity 1."""
        return self.adjacency_ha_per_m * self.habitat_price


def coefficients(landscape: Landscape, graph: SharedLengths, config: GLMConfig) -> Coefficients:
    """The GLM's numbers for a landscape, its neighbour graph and a configuration.

    Raises
    ------
    ConfigurationError
        Where a crop has no price, a floor names no crop or a cost no class of the landscape, or ``floor_kind`` is
        ``current`` and the landscape has no ``current_land_use``.
    """
    prices = np.array(config.price_of(landscape.crops), dtype=float)
    costs = np.array(config.cost_of(landscape.crops), dtype=float)
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
        costs=costs,
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
        return asked * _sums(production) / len(landscape.crops)
    if landscape.current is None:
        raise ConfigurationError(
            f"floor_kind 'current' takes shares of the current production, but landscape {landscape.name!r} has no "
            "column current_land_use: add it, or set floor_kind to 'potential' or 'tonnes'"
        )
    grown = landscape.current[:, None] == np.array(landscape.crops, dtype=object)
    return asked * _sums(production * grown)


def _sums(columns: np.ndarray) -> np.ndarray:
    """Exact, so that the order of the rows does not show."""
    return np.array([math.fsum(column) for column in columns.T])
