"""An upper bound on every plan's objective that anybody can recompute, without a solver.

Prices relax the constraints that tie polygons together. Take any multipliers mu_k >= 0 on the supply floors,
lambda, kappa >= 0 on the least and greatest habitat area, and for every neighbour pair any split of its gain q_ij
between the two ends. Then no plan exceeds ::

    sum_i max_c v_ic  -  sum_k mu_k F_k  -  lambda m A  +  kappa M A

    v_ik = objective of crop k on i + mu_k * tonnes that count          (tonnes: min(A_i y_ik, F_k))
    v_ih = objective of habitat on i + i's shares of its pair gains + (lambda - kappa) A_i

since z_ij <= share * h_i + (1 - share) * h_j, and a feasible plan meets the floors F. F, m and M are taken at the
tolerance at which a plan still counts as feasible. Forcing class c on polygon i lowers the bound by max v_i - v_ic.
The multipliers come from :mod:`oracle.lagrangian`, but the bound holds whoever chose them (weak duality; Geoffrion
1974, Lagrangean relaxation for integer programming).

**Rounding** cannot make it too low. Given are the floats of :class:`oracle.coefficients.Coefficients` and of the
certificate. A value v_ic comes from r additions and multiplications of floats: at most 4 for a crop, and for habitat 8
and one per neighbour pair. With u = 2^-53 and S the sum of the sizes of what is added up, its error is below
r u S / (1 - r u) (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1). Twice r u S is added to
every v_ic, which also covers the rounding of that sum and of S itself. Everything after that is exact: the maximum,
the sum over polygons (:mod:`oracle.exact`) and the terms in F, m and M (fractions). The result is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from oracle.coefficients import Coefficients
from oracle.errors import CertificateError, name_some
from oracle.exact import exact_sum, rounded_up
from oracle.plan import TOLERANCE, exact_objective

MARGIN = 1e-12
"""Objective units by which a bound is stated too high, so that areas that another machine computes differently in the
last digit do not break its proof."""
_UNIT_ROUNDOFF = 2.0**-53
_SMALLEST, _LARGEST = float(np.finfo(float).tiny), 1e300


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


def bound(c: Coefficients, certificate: Certificate, *, margin: float = MARGIN) -> float:
    """The certified upper bound on the objective of every feasible plan, safe against rounding, plus ``margin``.

    Raises
    ------
    CertificateError
        As :func:`values`, and where the multipliers are so large that the bound is no number.
    """
    return rounded_up(_exact_bound(c, certificate, _safe_values(c, certificate)) + Fraction(margin))


def regret_lows(c: Coefficients, certificate: Certificate, choice: np.ndarray) -> np.ndarray:
    """(n, K + 1) what forcing each class costs at least; safe against rounding. Infinite for classes not allowed.

    It is the plan's objective less the bound with the class forced, the bound less max v_i plus v_ic; where that is
    below 0, nothing is proven.

    Raises
    ------
    CertificateError
        As :func:`bound`.
    """
    v = _safe_values(c, certificate)
    gap = rounded_up(_exact_bound(c, certificate, v) - exact_objective(c, choice))
    lost = np.nextafter(v.max(axis=1, keepdims=True) - v, -np.inf)
    return np.where(c.allowed, np.nextafter(lost - gap, -np.inf), np.inf)


def _safe_values(c: Coefficients, certificate: Certificate) -> np.ndarray:
    """(n, K + 1) :func:`values`, raised to be no less than the exact ones (this module's docstring)."""
    ends = np.concatenate([c.pair_i, c.pair_j])
    degree = np.bincount(ends, minlength=len(c))
    gains = np.bincount(ends, np.tile(c.pair_gain, 2), minlength=len(c))
    with np.errstate(over="ignore", invalid="ignore"):
        v = values(c, certificate)
        price = abs(certificate.habitat_least - certificate.habitat_greatest)
        crop = 4.0 * (np.abs(c.crop) + certificate.floor_multiplier * c.credited_t)
        habitat = (8.0 + degree) * (np.abs(c.habitat) + price * c.area_ha + gains)
        v = v + (2.0 * _UNIT_ROUNDOFF * np.column_stack([crop, habitat]) + _SMALLEST)
    if not np.isfinite(v[c.allowed]).all():
        raise _too_large()
    return v


def _exact_bound(c: Coefficients, certificate: Certificate, v: np.ndarray) -> Fraction:
    tolerance, area = Fraction(TOLERANCE), exact_sum(c.area_ha)
    least, greatest = (Fraction(share) for share in c.habitat_share)
    floors = sum(
        Fraction(mu) * Fraction(floor) for mu, floor in zip(certificate.floor_multiplier, c.floor_t, strict=True)
    )
    found = (
        exact_sum(v.max(axis=1))
        - floors * (1 - tolerance)
        - Fraction(certificate.habitat_least) * (least - tolerance) * area
        + Fraction(certificate.habitat_greatest) * (greatest + tolerance) * area
    )
    if abs(found) > _LARGEST:
        raise _too_large()
    return found


def _too_large() -> CertificateError:
    return CertificateError("the certificate's multipliers are too large: the bound that they give is no number")


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
