"""The Global Land Manager as arrays: the same matrix as :func:`oracle.glm.pulp_model`, built without a Python loop.

Columns: ``x[i, k]`` polygon by polygon (habitat last), then ``z[e]``. Rows: ``class_<i>``, then ``pair_<e>_i`` and
``pair_<e>_j`` in turn, ``floor_<k>`` of every crop with a floor, ``habitat_least`` and ``habitat_greatest`` if asked.
Scales and tolerances are those of the PuLP model; a test holds the two equal, entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_array

from oracle.coefficients import Coefficients
from oracle.glm import floor_row_scale
from oracle.plan import TOLERANCE


@dataclass(frozen=True, eq=False)
class GLMArrays:
    """Maximise ``gain @ v`` with ``row_lower <= matrix @ v <= row_upper``, ``0 <= v <= upper``, some columns whole.

    For n polygons, K crops, E pairs: N = n (K + 1) + E columns, M = n + 2 E + floors + habitat rows.
    """

    gain: np.ndarray
    """(N,) n times the objective, so that a polygon is worth about 1."""
    upper: np.ndarray
    """(N,)"""
    integer: int
    """So many columns, from the first, are integral: n (K + 1)."""
    matrix: csc_array
    """(M, N)"""
    row_lower: np.ndarray
    row_upper: np.ndarray
    floors: np.ndarray
    """Crops (positions) that have a floor row, in the order of these rows."""
    habitat_rows: tuple[str, ...]
    polygons: int
    pairs: int

    @property
    def row_names(self) -> list[str]:
        """(M,) names, as in the PuLP model."""
        return [
            *(f"class_{i}" for i in range(self.polygons)),
            *(f"pair_{e}_{end}" for e in range(self.pairs) for end in "ij"),
            *(f"floor_{k}" for k in self.floors),
            *self.habitat_rows,
        ]

    @property
    def first_floor(self) -> int:
        """Position of the first floor row."""
        return self.polygons + 2 * self.pairs

    def choice(self, column: np.ndarray) -> np.ndarray:
        """(n,) class positions of a solver's (N,) column values."""
        return column[: self.integer].reshape(self.polygons, -1).argmax(axis=1)

    def column(self, choice: np.ndarray, c: Coefficients) -> np.ndarray:
        """(N,) column values of a plan."""
        whole = choice[:, None] == np.arange(self.integer // self.polygons)
        habitat = choice == len(c.crops)
        return np.concatenate([whole.ravel(), habitat[c.pair_i] & habitat[c.pair_j]]).astype(float)


def glm_arrays(c: Coefficients) -> GLMArrays:
    """The GLM's matrix, bounds and gains (this module's docstring)."""
    n, classes, pairs, asked = len(c), len(c.classes), len(c.pair_i), TOLERANCE / 2
    polygon, pair = np.arange(n), np.arange(pairs)
    h, z = polygon * classes + classes - 1, n * classes + pair
    ones = np.ones(pairs)

    rows = [np.repeat(polygon, classes), n + 2 * pair, n + 2 * pair, n + 2 * pair + 1, n + 2 * pair + 1]
    columns = [np.arange(n * classes), z, h[c.pair_i], z, h[c.pair_j]]
    entries = [np.ones(n * classes), ones, -ones, ones, -ones]
    lower, upper = [np.ones(n), np.full(2 * pairs, -np.inf)], [np.ones(n), np.zeros(2 * pairs)]
    row = n + 2 * pairs

    def add_row(column: np.ndarray, entry: np.ndarray, least: float, most: float) -> None:
        nonlocal row
        rows.append(np.full(n, row))
        columns.append(column)
        entries.append(entry)
        lower.append(np.array([least]))
        upper.append(np.array([most]))
        row += 1

    floors, scale = np.flatnonzero(c.floor_t > 0), floor_row_scale(c)
    for k in floors.tolist():
        add_row(polygon * classes + k, c.credited_t[:, k] / scale[k], c.floor_t[k] / scale[k] * (1 - asked), np.inf)
    area, (least, greatest) = c.area_ha / c.area_ha.mean(), c.habitat_share
    habitat_rows = []
    if least > 0:
        add_row(h, area, (least - asked) * n, np.inf)
        habitat_rows.append("habitat_least")
    if greatest < 1:
        add_row(h, area, -np.inf, (greatest + asked) * n)
        habitat_rows.append("habitat_greatest")

    matrix = coo_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(row, n * classes + pairs)
    ).tocsc()
    matrix.eliminate_zeros()
    return GLMArrays(
        gain=n * np.concatenate([c.own.ravel(), c.pair_gain]),
        upper=np.concatenate([c.allowed.ravel().astype(float), ones]),
        integer=n * classes,
        matrix=matrix,
        row_lower=np.concatenate(lower),
        row_upper=np.concatenate(upper),
        floors=floors,
        habitat_rows=tuple(habitat_rows),
        polygons=n,
        pairs=pairs,
    )
