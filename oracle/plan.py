"""A plan's worth, supply and faults, recomputed from the coefficients with plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from oracle.coefficients import Coefficients
from oracle.exact import exact_sum

TOLERANCE = 1e-6
"""A floor or habitat share counts as met from this relative distance on (habitat: as a share of the area)."""


@dataclass(frozen=True)
class Terms:
    """A plan's objective, term by term."""

    crop_value: float
    """Objective units, at most 1 - w; net of the costs of all classes, habitat included."""
    connectivity: float
    """Objective units, 0..w."""
    crop_value_currency: float
    """Net of costs, as ``crop_value``."""
    connectivity_ha: float

    @property
    def objective(self) -> float:
        return self.crop_value + self.connectivity


def terms(c: Coefficients, choice: np.ndarray) -> Terms:
    """A plan's objective. ``choice`` is (n,) int: each polygon's position in ``c.classes``."""
    habitat = choice == len(c.crops)
    both = habitat[c.pair_i] & habitat[c.pair_j]
    value = c.value[np.arange(len(c)), choice]
    own_ha, pair_ha = c.connectivity_ha[habitat], c.pair_ha[both]
    return Terms(
        crop_value=math.fsum(value * c.unit_per_currency),
        connectivity=math.fsum(np.concatenate([own_ha, pair_ha]) * c.unit_per_ha),
        crop_value_currency=math.fsum(value),
        connectivity_ha=math.fsum(np.concatenate([own_ha, pair_ha])),
    )


def exact_objective(c: Coefficients, choice: np.ndarray) -> Fraction:
    """A plan's objective without rounding, in the coefficients as they are stored."""
    habitat = choice == len(c.crops)
    both = habitat[c.pair_i] & habitat[c.pair_j]
    return exact_sum(np.concatenate([c.own[np.arange(len(c)), choice], c.pair_gain[both]]))


def relative_gap(objective: float, upper_bound: float) -> float:
    """How far a plan may lie below the optimum, as a share of the bound (of the plan where that is larger in size)."""
    size = max(abs(objective), abs(upper_bound))
    return (upper_bound - objective) / size if size > 0 else 0.0


def supply_t(c: Coefficients, choice: np.ndarray) -> np.ndarray:
    """(K,) tonnes of each crop that a plan supplies."""
    grown = choice[:, None] == np.arange(len(c.crops))
    return np.array([math.fsum(column) for column in np.where(grown, c.production_t, 0.0).T])


def floor_met(production_t: np.ndarray, floor_t: float) -> bool:
    """Whether the tonnes of these polygons add up to the floor, less :data:`TOLERANCE`; decided without rounding."""
    return exact_sum(production_t) >= Fraction(floor_t) * (1 - Fraction(TOLERANCE))


def habitat_met(c: Coefficients, habitat: np.ndarray) -> tuple[bool, bool]:
    """Whether the (n,) bool polygons have the least, and at most the greatest, habitat area; without rounding."""
    area, total = exact_sum(c.area_ha[habitat]), exact_sum(c.area_ha)
    least, greatest = (Fraction(share) for share in c.habitat_share)
    return area >= (least - Fraction(TOLERANCE)) * total, area <= (greatest + Fraction(TOLERANCE)) * total


def habitat_area_share(c: Coefficients, choice: np.ndarray) -> float:
    """Share of the area in habitat, 0..1."""
    return math.fsum(c.area_ha[choice == len(c.crops)]) / math.fsum(c.area_ha)


def violations(c: Coefficients, choice: np.ndarray) -> list[str]:
    """What a plan breaks, a sentence each; empty = feasible (within :data:`TOLERANCE`, decided without rounding)."""
    broken = []
    wrong = int((~c.allowed[np.arange(len(c)), choice]).sum())
    if wrong:
        broken.append(f"{wrong} polygon(s) have a class that they may not have")
    for k, (crop, floor) in enumerate(zip(c.crops, c.floor_t, strict=True)):
        grown = c.production_t[choice == k, k]
        if not floor_met(grown, floor):
            broken.append(f"{crop}: {math.fsum(grown):,.3f} t are below the floor of {floor:,.3f} t")
    if not all(habitat_met(c, choice == len(c.crops))):
        least, greatest = c.habitat_share
        share = habitat_area_share(c, choice)
        broken.append(f"habitat on {share:.4%} of the area, asked for {least:.4%} to {greatest:.4%}")
    return broken
