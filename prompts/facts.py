"""What one prompt states, looked up by class and position: the only ground on which a completion is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.landscape import HABITAT
from prompts.neighbourhood import CENTRAL


@dataclass(frozen=True, eq=False)
class Facts:
    """The printed numbers of one prompt with K crops and P polygons.

    Parameters
    ----------
    classes : tuple of str
        The K crops, then ``habitat``.
    positions : tuple of str
        (P,) position codes, ``central`` first.
    yields : ndarray
        (P, K) t/ha.
    connectivity : ndarray
        (P,) ecological connectivity.
    market_price, supplement, effective_price : ndarray or None
        (K,) currency/t; None where the prompt does not state them.
    habitat_price, adjacency_price : float or None
        Currency/ha and currency/m.
    floor_t, reference_supply_t : ndarray or None
        (K,) tonnes.
    """

    classes: tuple[str, ...]
    positions: tuple[str, ...]
    yields: np.ndarray
    connectivity: np.ndarray
    market_price: np.ndarray | None = None
    supplement: np.ndarray | None = None
    effective_price: np.ndarray | None = None
    habitat_price: float | None = None
    adjacency_price: float | None = None
    floor_t: np.ndarray | None = None
    reference_supply_t: np.ndarray | None = None

    @property
    def crops(self) -> tuple[str, ...]:
        """The classes without habitat."""
        return self.classes[:-1]

    @property
    def first_order(self) -> list[int]:
        """Places of the direct neighbours among the positions."""
        return [p for p, code in enumerate(self.positions) if code != CENTRAL and "-" not in code]

    def worth(self) -> np.ndarray | None:
        """(K + 1,) worth of each class at the centre at the stated prices, currency/ha (:mod:`prompts.rationale`)."""
        if self.effective_price is None or self.habitat_price is None:
            return None
        return np.append(self.yields[0] * self.effective_price, self.connectivity[0] * self.habitat_price)


def facts_of(row: Mapping[str, Any]) -> Facts:
    """The facts in one row of a prompt dataset (:mod:`prompts.rows`); columns that it lacks or leaves null are None.

    Raises
    ------
    KeyError
        Where ``classes``, ``positions``, ``yields`` or ``connectivity`` is missing: not a row of a prompt dataset.
    """
    vectors = ("market_price", "supplement", "effective_price", "floor_t", "reference_supply_t")
    classes = tuple(row["classes"])
    if classes[-1] != HABITAT:
        raise ValueError(f"the classes of a prompt end with {HABITAT!r}, these are {list(classes)}")
    return Facts(
        classes=classes,
        positions=tuple(row["positions"]),
        yields=np.array([list(y) for y in row["yields"]], dtype=float),
        connectivity=np.array(list(row["connectivity"]), dtype=float),
        **{name: _vector(row.get(name)) for name in vectors},
        habitat_price=_number(row.get("habitat_price")),
        adjacency_price=_number(row.get("adjacency_price")),
    )


def _vector(value: Any) -> np.ndarray | None:
    return None if value is None or np.ndim(value) == 0 else np.array(list(value), dtype=float)


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)
