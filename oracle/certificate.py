"""An upper bound on every plan's objective that anybody can recompute, without a solver.

Prices relax the constraints that tie polygons together. Take any multipliers mu_k >= 0 on the supply floors,
lambda, kappa >= 0 on the least and greatest habitat area, and for every neighbour pair any split of its gain q_ij
between the two ends. Then no plan exceeds ::

    sum_i max_c v_ic  -  sum_k mu_k F_k  -  lambda m A  +  kappa M A

    v_ik = objective of crop k on i + mu_k * tonnes that count          (tonnes: min(A_i y_ik, F_k))
    v_ih = objective of habitat on i + i's shares of its pair gains + (lambda - kappa) A_i

since z_ij <= share * h_i + (1 - share) * h_j, and a feasible plan meets the floors F. F, m and M are taken at the
tolerance at which a plan still counts as feasible. Forcing class c on polygon i lowers the bound by max v_i - v_ic.
The multipliers come from the relaxation's duals, but the bound holds whoever chose them (weak duality; Geoffrion
1974, Lagrangean relaxation for integer programming).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from oracle.coefficients import Coefficients
from oracle.errors import CertificateError, name_some
from oracle.plan import TOLERANCE


@dataclass(frozen=True, eq=False)
class Certificate:
    """Multipliers of the bound, for K crops and E neighbour pairs.

    Parameters
    ----------
    floor_multiplier : (K,) array
        mu, objective units per tonne, 0 or more.
    habitat_least, habitat_greatest : float
        lambda and kappa, objective units per hectare, 0 or more.
    pair_share : (E,) array
        Share of each pair's gain credited to its first polygon, 0..1; the rest goes to the second.
    """

    floor_multiplier: np.ndarray
    habitat_least: float
    habitat_greatest: float
    pair_share: np.ndarray


def values(c: Coefficients, certificate: Certificate) -> np.ndarray:
    """(n, K + 1) value v of every class on every polygon at the certificate's prices; -inf where not allowed.

    Raises
    ------
    CertificateError
        Where a multiplier is missing, negative or not a number, or a share lies outside 0..1: that proves nothing.
    """
    _check(c, certificate)
    first = certificate.pair_share * c.pair_gain
    habitat = c.habitat + (certificate.habitat_least - certificate.habitat_greatest) * c.area_ha
    habitat = habitat + np.bincount(c.pair_i, first, minlength=len(c))
    habitat = habitat + np.bincount(c.pair_j, c.pair_gain - first, minlength=len(c))
    v = np.column_stack([c.crop + certificate.floor_multiplier * c.credited_t, habitat])
    return np.where(c.allowed, v, -np.inf)


def bound(c: Coefficients, certificate: Certificate) -> float:
    """The certified upper bound on the objective of every feasible plan.

    Raises
    ------
    CertificateError
        As :func:`values`.
    """
    least, greatest = c.habitat_share
    area = math.fsum(c.area_ha)
    return math.fsum(
        [
            *values(c, certificate).max(axis=1),
            *(-certificate.floor_multiplier * c.floor_t * (1.0 - TOLERANCE)),
            -certificate.habitat_least * (least - TOLERANCE) * area,
            certificate.habitat_greatest * (greatest + TOLERANCE) * area,
        ]
    )


def balanced(c: Coefficients, certificate: Certificate, rounds: int = 200) -> Certificate:
    """The same prices with pair gains split so that more polygons are clearly for or against habitat.

    A relaxation's duals leave many polygons undecided for no reason but where the solver happened to put the credit.
    Each round lets credit flow along every pair from the end with the larger surplus (habitat's value less the best
    crop's) to the other, with Metropolis weights and within the pair's gain. The bound is a sum of convex functions of
    the surpluses and each round averages these, so it never rises.

    Raises
    ------
    CertificateError
        As :func:`values`.
    """
    v = values(c, certificate)
    can, must = c.allowed[:, -1], ~c.allowed[:, :-1].any(axis=1)
    fixed = ~can | must
    surplus = np.zeros(len(c))
    surplus[~fixed] = (v[:, -1] - v[:, :-1].max(axis=1))[~fixed]
    far = max(1.0, float(np.abs(surplus).max()))
    surplus[fixed] = np.where(can[fixed], far, -far)  # credit leaves where it always counts
    i, j, gain = c.pair_i, c.pair_j, c.pair_gain
    degree = np.bincount(i, minlength=len(c)) + np.bincount(j, minlength=len(c))
    weight = 1.0 / (1.0 + np.maximum(degree[i], degree[j]))
    first = certificate.pair_share * gain
    for _ in range(rounds):
        flow = np.clip(weight * (surplus[i] - surplus[j]), first - gain, first)  # from i to j
        first = first - flow
        moved = np.bincount(j, flow, minlength=len(c)) - np.bincount(i, flow, minlength=len(c))
        surplus = np.where(fixed, surplus, surplus + moved)
    share = np.divide(first, gain, out=certificate.pair_share.copy(), where=gain > 0)
    return replace(certificate, pair_share=np.clip(share, 0.0, 1.0))


def _check(c: Coefficients, certificate: Certificate) -> None:
    mu, share = certificate.floor_multiplier, certificate.pair_share
    if mu.shape != (len(c.crops),) or share.shape != c.pair_gain.shape:
        raise CertificateError(
            f"the certificate has {mu.size} floor multiplier(s) and {share.size} pair share(s); "
            f"this landscape needs {len(c.crops)} and {c.pair_gain.size}"
        )
    prices = np.array([*mu, certificate.habitat_least, certificate.habitat_greatest])
    names = np.array([*c.crops, "least habitat", "greatest habitat"], dtype=object)
    bad = ~(np.isfinite(prices) & (prices >= 0))
    if bad.any():
        raise CertificateError(f"multipliers must be numbers, 0 or more: {name_some(names[bad])} is not")
    bad = ~((share >= 0) & (share <= 1))
    if bad.any():
        raise CertificateError(f"pair shares must lie in 0..1: those of pairs {name_some(np.flatnonzero(bad))} do not")
