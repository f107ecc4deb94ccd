"""The core: the few polygons that prices leave open, as a small programme of their own.

At the certificate's prices a class that loses more than bound less plan cannot be in a better plan (reduced-cost
fixing; the core of a knapsack, Balas and Zemel 1980). What has one class left is fixed and leaves the programme.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oracle.certificate import Certificate, values
from oracle.coefficients import Coefficients
from oracle.glm_arrays import GLMArrays

_NO_MARGIN = 1e-12  # objective units times polygons: on patches that a cut leaves tied, prices decide nothing
_ROUNDING = 1e-12


def losses(c: Coefficients, certificate: Certificate) -> np.ndarray:
    """(n, K + 1) what each class loses against the polygon's best at the certificate's prices; inf: not allowed."""
    v = values(c, certificate)
    return v.max(axis=1, keepdims=True) - v


def open_closest(c: Coefficients, loss: np.ndarray, polygons: int) -> Coefficients:
    """The GLM with about so many polygons open: those whose second best class loses least.

    Open stay all without a margin and, of the others, the closest; there every class within the largest such margin
    is allowed.
    """
    margin = np.partition(loss, 1, axis=1)[:, 1] * len(c)
    clear = margin[(margin > _NO_MARGIN) & np.isfinite(margin)]
    within = np.partition(clear, polygons)[polygons] if polygons < len(clear) else np.inf
    return replace(c, allowed=c.allowed & (loss * len(c) <= within))


def open_to_better(c: Coefficients, loss: np.ndarray, gap: float) -> Coefficients:
    """The GLM with only the classes that a plan better by up to ``gap`` objective units could have."""
    return replace(c, allowed=c.allowed & (loss <= gap + _ROUNDING))


@dataclass(frozen=True, eq=False)
class Core:
    """A programme without what is settled, and the way back."""

    arrays: GLMArrays
    """Only the free columns, the rows that they have a part in, and those of the whole landscape."""
    free: np.ndarray
    """(F,) their positions in the whole programme."""
    settled: np.ndarray
    """(N,) values of the columns of the whole programme, 0 where free."""
    constant: float
    """What the settled columns are worth, in the arrays' units."""

    def column(self, free: np.ndarray) -> np.ndarray:
        """(N,) column of the whole programme."""
        whole = self.settled.copy()
        whole[self.free] = free
        return whole


def core(c: Coefficients, arrays: GLMArrays) -> Core:
    """Take what ``c.allowed`` settles out of the whole programme ``arrays``.

    Parameters
    ----------
    c : Coefficients
        With its ``allowed`` narrowed, by :func:`open_closest` say.
    arrays : GLMArrays
        Of the same polygons and pairs.
    """
    one = c.allowed.sum(axis=1) == 1
    one[0] &= not one.all()  # a programme needs a column
    may, must = c.allowed[:, -1], c.allowed[:, -1] & one
    both_may, both_must = may[c.pair_i] & may[c.pair_j], must[c.pair_i] & must[c.pair_j]
    free = np.flatnonzero(np.concatenate([(c.allowed & ~one[:, None]).ravel(), both_may & ~both_must]))
    settled = np.concatenate([(c.allowed & one[:, None]).ravel(), both_must]).astype(float)
    matrix = arrays.matrix[:, free]
    rows = np.union1d(matrix.indices, np.arange(arrays.first_floor, arrays.matrix.shape[0]))
    done = (arrays.matrix @ settled)[rows]
    small = replace(
        arrays,
        gain=arrays.gain[free],
        upper=np.ones(len(free)),
        integer=int(np.searchsorted(free, arrays.integer)),
        matrix=matrix[rows],
        row_lower=arrays.row_lower[rows] - done,
        row_upper=arrays.row_upper[rows] - done,
    )
    return Core(small, free, settled, float(arrays.gain @ settled))
