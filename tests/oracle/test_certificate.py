"""The bound holds whoever chose the multipliers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.certificate import Certificate, balanced, bound, regret_lows, values
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import CertificateError
from oracle.glm_config import GLMConfig, HabitatShare
from oracle.plan import TOLERANCE, terms, violations
from oracle.regret import regret

from .conftest import build_grid_graph, build_grid_landscape


def small_case():
    config = GLMConfig(
        supply_floors={"wheat": 0.7, "oat": 0.5}, habitat_share=HabitatShare(min=0.2, max=0.6), adjacency_gain=3.0
    )
    landscape = build_grid_landscape(2, 3, crops=("wheat", "oat"), seed=4)
    return coefficients(landscape, build_grid_graph(2, 3), config)


SMALL = small_case()
OPTIMUM = max(
    terms(SMALL, np.array(p)).objective
    for p in itertools.product(range(3), repeat=6)
    if not violations(SMALL, np.array(p))
)
multiplier = st.floats(0, 0.01)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.tuples(multiplier, multiplier), multiplier, multiplier, st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_any_multipliers_and_any_split_bound_the_best_of_all_plans(mu, least, greatest, shares):
    certificate = Certificate(np.array(mu), least, greatest, np.array(shares))
    assert bound(SMALL, certificate, margin=0.0) >= OPTIMUM - 1e-15  # which is itself a sum of floats


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.tuples(multiplier, multiplier), multiplier, multiplier, st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_balancing_the_splits_never_raises_the_bound(mu, least, greatest, shares):
    certificate = Certificate(np.array(mu), least, greatest, np.array(shares))
    assert bound(SMALL, balanced(SMALL, certificate)) <= bound(SMALL, certificate) + 1e-12


def test_balancing_decides_what_a_lopsided_split_leaves_open():
    """Two neighbours that both belong to habitat by their common gain only: each needs a part of it."""
    landscape = build_grid_landscape(
        1, 2, crops=("wheat",), yields=np.array([[3.0], [3.0]]), connectivity=np.array([0.5, 0.5])
    )
    config = GLMConfig(connectivity_weight=0.55, adjacency_gain=6.0)
    c = coefficients(landscape, build_grid_graph(1, 2), config)
    assert (c.habitat < c.crop[:, 0]).all()
    lopsided = Certificate(np.zeros(1), 0.0, 0.0, np.array([1.0]))
    plan = np.array([1, 1])
    assert regret(c, plan, lopsided).status.tolist() == ["unique", "undecided"]
    assert regret(c, plan, balanced(c, lopsided)).status.tolist() == ["unique", "unique"]


def test_the_bound_by_hand():
    """One field: 0.5 of crop value or 0.5 of connectivity; a floor of half the field at a price mu."""
    landscape = build_grid_landscape(1, 1, crops=("wheat",), yields=np.array([[4.0]]), connectivity=np.array([0.5]))
    c = coefficients(landscape, build_grid_graph(1, 1), GLMConfig(supply_floors={"wheat": 0.5}))
    tonnes = c.floor_t[0]  # what counts of the field's production: the floor, half of it
    certificate = Certificate(np.array([0.1 / tonnes]), 0.0, 0.0, np.array([]))
    np.testing.assert_allclose(values(c, certificate), [[0.6, 0.5]])
    assert bound(c, certificate, margin=0.0) == pytest.approx(0.6 - 0.1 * (1 - 1e-6), abs=1e-14)


def awkward_case(seed: int) -> tuple[Coefficients, Certificate]:
    """A small landscape and a certificate in numbers of very different sizes, so that sums do round."""
    rng = np.random.default_rng(seed)
    rows, cols = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    config = GLMConfig(
        connectivity_weight=float(rng.uniform(0, 0.9)),
        adjacency_gain=float(rng.choice([0.0, 1e-9, 3.0, 1e4])),
        costs={"wheat": float(rng.choice([0.0, 1e-7, 900.0])), "habitat": float(rng.choice([0.0, 33.3]))},
        supply_floors={"wheat": float(rng.uniform(0, 1)), "oat": float(rng.uniform(0, 1))},
        habitat_share=HabitatShare(min=float(rng.uniform(0, 0.3)), max=float(rng.uniform(0.4, 1))),
    )
    landscape = build_grid_landscape(rows, cols, crops=("wheat", "oat"), seed=seed)
    c = coefficients(landscape, build_grid_graph(rows, cols), config)
    mu, least, greatest = 10.0 ** rng.uniform(-12, 2, 2), *(10.0 ** rng.uniform(-12, 0, 2)).tolist()
    return c, Certificate(mu, least, greatest, rng.uniform(size=len(c.pair_i)))


def exact_values(c: Coefficients, certificate: Certificate) -> list[list[Fraction]]:
    """The equations of the certificate in fractions, polygon by polygon."""
    mu = [Fraction(m) for m in certificate.floor_multiplier]
    price = Fraction(certificate.habitat_least) - Fraction(certificate.habitat_greatest)
    habitat = [Fraction(h) + price * Fraction(a) for h, a in zip(c.habitat, c.area_ha, strict=True)]
    for i, j, gain, share in zip(c.pair_i, c.pair_j, c.pair_gain, certificate.pair_share, strict=True):
        habitat[i] += Fraction(share) * Fraction(gain)
        habitat[j] += (1 - Fraction(share)) * Fraction(gain)
    return [
        [*(Fraction(x) + m * Fraction(t) for x, m, t in zip(own, mu, credited, strict=True)), h]
        for own, credited, h in zip(c.crop, c.credited_t, habitat, strict=True)
    ]


def exact_bound(c: Coefficients, certificate: Certificate) -> Fraction:
    tolerance, area = Fraction(TOLERANCE), sum(map(Fraction, c.area_ha))
    floors = sum(Fraction(m) * Fraction(f) for m, f in zip(certificate.floor_multiplier, c.floor_t, strict=True))
    least, greatest = map(Fraction, c.habitat_share)
    return (
        sum(max(row) for row in exact_values(c, certificate))
        - floors * (1 - tolerance)
        - Fraction(certificate.habitat_least) * (least - tolerance) * area
        + Fraction(certificate.habitat_greatest) * (greatest + tolerance) * area
    )


def test_rounding_never_makes_the_bound_too_low():
    """Against fractions; the same sums in plain floats fall below the truth again and again."""
    too_low = 0
    for seed in range(150):
        c, certificate = awkward_case(seed)
        truth, found = exact_bound(c, certificate), bound(c, certificate, margin=0.0)
        size = float(sum(abs(max(row)) for row in exact_values(c, certificate))) + abs(float(truth))
        assert truth <= found <= truth + 1e-14 * size
        plain = math.fsum(
            [
                *values(c, certificate).max(axis=1),
                *(-certificate.floor_multiplier * c.floor_t * (1.0 - TOLERANCE)),
                -certificate.habitat_least * (c.habitat_share[0] - TOLERANCE) * math.fsum(c.area_ha),
                certificate.habitat_greatest * (c.habitat_share[1] + TOLERANCE) * math.fsum(c.area_ha),
            ]
        )
        too_low += plain < truth
    assert too_low > 30


def test_rounding_never_makes_a_regret_too_high():
    for seed in range(60):
        c, certificate = awkward_case(seed)
        choice = np.random.default_rng(seed).integers(0, 3, len(c))
        habitat = choice == 2
        both = habitat[c.pair_i] & habitat[c.pair_j]
        worth = sum(map(Fraction, [*c.own[np.arange(len(c)), choice], *c.pair_gain[both]]))
        forced = exact_bound(c, certificate) - worth
        found = regret_lows(c, certificate, choice)
        not_here = np.arange(3) == (choice[:, None] + 1) % 3
        locked = regret_lows(replace(c, allowed=~not_here), certificate, choice)
        np.testing.assert_array_equal(np.isinf(locked), not_here)
        for row, lows in zip(exact_values(c, certificate), found, strict=True):
            assert all(low <= max(row) - v - forced for low, v in zip(lows.tolist(), row, strict=True))


@pytest.mark.parametrize("prices", [(1e308, 0.0, 0.0), (0.0, 1e308, 1e308), (1e298, 0.0, 0.0), (0.0, 0.0, 1e306)])
def test_multipliers_too_large_for_floats_are_refused(prices):
    mu, least, greatest = prices
    with pytest.raises(CertificateError, match="too large"):
        bound(SMALL, Certificate(np.array([mu, 0.0]), least, greatest, np.full(7, 0.5)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"floor_multiplier": np.array([-1e-9, 0.0])}, "wheat is not"),
        ({"floor_multiplier": np.array([np.nan, 0.0])}, "wheat is not"),
        ({"floor_multiplier": np.zeros(3)}, "3 floor multiplier"),
        ({"habitat_greatest": -1.0}, "greatest habitat is not"),
        ({"pair_share": np.array([0, 0, 1.5, 0, 0, 0, 0])}, "pairs 2 do not"),
        ({"pair_share": np.array([0, 0, 0, np.nan, 0, 0, 0])}, "pairs 3 do not"),
        ({"pair_share": np.zeros(6)}, "6 pair share"),
    ],
)
def test_multipliers_that_prove_nothing_are_refused(change, reason):
    certificate = Certificate(np.zeros(2), 0.0, 0.0, np.full(7, 0.5))
    with pytest.raises(CertificateError, match=reason):
        bound(SMALL, replace(certificate, **change))
