"""Every plan of a small landscape, listed: the judge of the solver, of its bound and of the regret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from oracle.certificate import bound
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import InfeasibleError
from oracle.plan import TOLERANCE
from oracle.solution import Solution
from oracle.solve import solve


@dataclass(frozen=True, eq=False)
class EveryPlan:
    """All P assignments of allowed classes to n polygons."""

    c: Coefficients
    choice: np.ndarray
    """(P, n) class positions."""

    @cached_property
    def habitat(self) -> np.ndarray:
        """(P, n) bool."""
        return self.choice == len(self.c.crops)

    @cached_property
    def objective(self) -> np.ndarray:
        """(P,)"""
        both = self.habitat[:, self.c.pair_i] & self.habitat[:, self.c.pair_j]
        own = sum((self.c.own[i, self.choice[:, i]] for i in range(len(self.c))), np.zeros(len(self.choice)))
        return own + both @ self.c.pair_gain

    @cached_property
    def supply_t(self) -> np.ndarray:
        """(P, K)"""
        return np.column_stack([(self.choice == k) @ self.c.production_t[:, k] for k in range(len(self.c.crops))])

    @cached_property
    def habitat_fits(self) -> np.ndarray:
        """(P,) bool: the habitat share is kept."""
        share = self.habitat @ self.c.area_ha / self.c.area_ha.sum()
        least, greatest = self.c.habitat_share
        return (share >= least - TOLERANCE) & (share <= greatest + TOLERANCE)

    @cached_property
    def feasible(self) -> np.ndarray:
        """(P,) bool."""
        return self.habitat_fits & (self.supply_t >= self.c.floor_t * (1.0 - TOLERANCE)).all(axis=1)

    @cached_property
    def best(self) -> float:
        """-inf where no plan is feasible."""
        return float(self.objective[self.feasible].max(initial=-np.inf))

    @cached_property
    def regret(self) -> np.ndarray:
        """(n, K + 1) what forcing each class costs; infinite where no feasible plan has it."""
        plans, worth = self.choice[self.feasible], self.objective[self.feasible]
        forced = [
            [worth[plans[:, i] == k].max(initial=-np.inf) for k in range(len(self.c.classes))]
            for i in range(len(self.c))
        ]
        return self.best - np.array(forced)


def every_plan(c: Coefficients) -> EveryPlan:
    """Usable up to some 600,000 plans: 12 polygons of 3 classes."""
    options = [np.flatnonzero(row).astype(np.int8) for row in c.allowed]
    grid = np.meshgrid(*options, indexing="ij")
    return EveryPlan(c, np.column_stack([axis.ravel() for axis in grid]))


def assert_stands(c: Coefficients, plans: EveryPlan, solution: Solution) -> None:
    """The plan is the best, no bound is below it, every interval has the true regret, every status is true."""
    assert solution.objective == pytest.approx(plans.best, abs=1e-9)
    for bound_ in (solution.upper_bound, bound(c, solution.certificate, margin=0.0)):
        assert bound_ >= plans.best - 1e-15
    assert (solution.regret_low <= plans.regret + 1e-14).all()
    assert (solution.regret_high >= plans.regret - 1e-9).all()
    chosen = np.arange(len(c.classes)) == solution.choice[:, None]
    others = np.where(chosen, np.inf, plans.regret).min(axis=1)
    assert (others[solution.status == "unique"] > 0).all()
    assert (others[solution.status == "tied"] <= 1e-8).all()


def assert_solved(landscape, graph, config) -> None:
    """``solve`` finds what the list of all plans says, or that there is none."""
    c = coefficients(landscape, graph, config)
    plans = every_plan(c)
    if not plans.feasible.any():
        with pytest.raises(InfeasibleError):
            solve(landscape, graph, config)
        return
    solution = solve(landscape, graph, config)
    assert_stands(c, plans, solution)
