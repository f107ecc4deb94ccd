"""One order of polygons and pairs, by id, whatever the file's: what makes labels independent of the row order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oracle.certificate import Certificate
from oracle.coefficients import Coefficients
from oracle.regret import Regret, Searched


@dataclass(frozen=True, eq=False)
class Canonical:
    """The GLM's numbers with polygons sorted by id, pairs by their two polygons; and the way there and back."""

    coefficients: Coefficients
    order: np.ndarray
    """(n,) row positions in the file, sorted by id."""
    pair_order: np.ndarray
    """(E,) positions of the pairs in the file's order."""
    flipped: np.ndarray
    """(E,) bool, of the pairs in this order: the ends are exchanged."""

    def certificate_here(self, certificate: Certificate) -> Certificate:
        """The file's certificate in this order."""
        share = certificate.pair_share[self.pair_order]
        return replace(certificate, pair_share=np.where(self.flipped, 1.0 - share, share))

    def certificate_back(self, certificate: Certificate) -> Certificate:
        """A certificate of this order in the file's."""
        share = np.where(self.flipped, 1.0 - certificate.pair_share, certificate.pair_share)
        return replace(certificate, pair_share=_back(share, self.pair_order))

    def back(self, of_polygons: np.ndarray) -> np.ndarray:
        """Values per polygon in the file's order."""
        return _back(of_polygons, self.order)

    def regret_back(self, regret: Regret) -> Regret:
        return Regret(self.back(regret.low), self.back(regret.high), self.back(regret.status), self.back(regret.proof))

    def searched_back(self, searched: Searched) -> Searched:
        return Searched(tuple(self.back(other) for other in searched.others), searched.bound)

    def searched_here(self, searched: Searched) -> Searched:
        return Searched(tuple(other[self.order] for other in searched.others), searched.bound)


def canonical(c: Coefficients, ids: np.ndarray) -> Canonical:
    """Sort polygons by id (as text) and pairs by the positions of their ends, the smaller first."""
    order = np.argsort(ids.astype(str), kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    i, j = position[c.pair_i], position[c.pair_j]
    first, second = np.minimum(i, j), np.maximum(i, j)
    pair_order = np.lexsort((second, first))
    sorted_c = replace(
        c,
        area_ha=c.area_ha[order],
        allowed=c.allowed[order],
        production_t=c.production_t[order],
        connectivity_ha=c.connectivity_ha[order],
        pair_i=first[pair_order],
        pair_j=second[pair_order],
        pair_ha=c.pair_ha[pair_order],
    )
    return Canonical(sorted_c, order, pair_order, (i > j)[pair_order])


def _back(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    result = np.empty_like(values)
    result[order] = values
    return result
