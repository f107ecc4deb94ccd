"""What a plan is worth whose every polygon somebody decided by himself, priced by the oracle's own objective.

A decision that looks right polygon by polygon may add up to a plan that misses supply floors. So beside the plan as
decided, with the floors that it misses, stands the same plan after the smallest repair that meets them
(:mod:`training.smallest_repair`), and the optimum.

A polygon on which nothing was decided, or a class that it may not have or that does not grow there, gets its worst
class. One that no prompt asks for (locked, or a tied label that the dataset left out) keeps the oracle's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oracle.coefficients import Coefficients, coefficients
from oracle.errors import DatasetError, name_some
from oracle.plan import TOLERANCE, supply_t, terms, violations
from prompts.source import Source
from training.smallest_repair import smallest_repair


@dataclass(frozen=True)
class RepairedPlan:
    """A plan after its smallest repair."""

    objective: float
    share: float | None
    """Of the optimum; None where that is not above 0."""
    changed: int
    """Polygons that got another class."""
    smallest: bool
    """Proven; else no smaller one was found in time."""


@dataclass(frozen=True)
class MissedFloor:
    """A crop that the plan supplies too little of, tonnes."""

    crop: str
    supply_t: float
    floor_t: float


@dataclass(frozen=True)
class PlanWorth:
    """One decider's plan of one landscape."""

    landscape: str
    decider: str
    polygons: int
    given: int
    """Polygons that no prompt asks for."""
    undecided: int
    """Without a decision, or with one that cannot be."""
    agree: int
    """Polygons with the oracle's class."""
    objective: float
    share: float | None
    """Of the optimum's objective, the floors set aside; None where that is not above 0."""
    optimum: float
    upper_bound: float
    """Certified: no plan that meets the floors exceeds it; one that misses them may."""
    missed: tuple[MissedFloor, ...]
    violations: tuple[str, ...]
    """Everything that the plan breaks, a sentence each."""
    repaired: RepairedPlan | None
    """None where none was found in time."""


@dataclass(frozen=True, eq=False)
class DecidedPlan:
    """A plan's worth, and its classes before and after the repair."""

    worth: PlanWorth
    choice: np.ndarray
    """(n,) int class positions."""
    repaired: np.ndarray | None


def plan_rows(frame: pd.DataFrame, plan: Source) -> pd.DataFrame:
    """The dataset's rows of a held-out landscape.

    Raises
    ------
    DatasetError
        Where the plan's labels are not the dataset's.
    """
    rows = frame[frame["landscape"] == plan.landscape.name]
    label = pd.Series(plan.solution.land_use, index=plan.landscape.ids.astype(str))
    of_plan = label.reindex(rows["polygon_id"])
    other = rows["polygon_id"][(of_plan.to_numpy() != rows["answer"].to_numpy())]
    if len(other):
        raise DatasetError(
            f"the plan of {plan.landscape.name!r} and the dataset have other labels for polygons {name_some(other)}: "
            "give the plan that the dataset was made from"
        )
    return rows


def decided_plan(plan: Source, decision: Mapping[str, str | None], decider: str, repair_s: float) -> DecidedPlan:
    """Price the plan that somebody's decisions make.

    Parameters
    ----------
    plan : Source
        The landscape with its graph and optimum.
    decision : mapping of polygon id to class
        None or anything that is no class: undecided.
    decider : str
        Whose they are.
    repair_s : float
        Seconds to search for the smallest repair.
    """
    landscape, solution = plan.landscape, plan.solution
    c = coefficients(landscape, plan.graph, solution.config)
    ids = landscape.ids.astype(str)
    asked = np.array([i in decision for i in ids])
    said = np.array([_position(c, decision.get(i)) for i in ids])
    possible = (said >= 0) & c.allowed[np.arange(len(c)), said]
    choice = np.where(asked, np.where(possible, said, _worst(c, solution.regret_low)), solution.choice)
    found = smallest_repair(c, choice, solution.config, repair_s)
    value, optimum = terms(c, choice).objective, solution.objective
    supply = supply_t(c, choice)
    short = supply < c.floor_t * (1 - TOLERANCE)
    worth = PlanWorth(
        landscape=landscape.name,
        decider=decider,
        polygons=len(c),
        given=int((~asked).sum()),
        undecided=int((asked & ~possible).sum()),
        agree=int((choice == solution.choice).sum()),
        objective=value,
        share=value / optimum if optimum > 0 else None,
        optimum=optimum,
        upper_bound=solution.upper_bound,
        missed=tuple(
            MissedFloor(crop, float(supply[k]), float(c.floor_t[k])) for k, crop in enumerate(c.crops) if short[k]
        ),
        violations=tuple(violations(c, choice)),
        repaired=None if found is None else _repaired(c, found.choice, found.changed, found.smallest, optimum),
    )
    return DecidedPlan(worth, choice, None if found is None else found.choice)


def _repaired(c: Coefficients, choice: np.ndarray, changed: int, smallest: bool, optimum: float) -> RepairedPlan:
    value = terms(c, choice).objective
    return RepairedPlan(value, value / optimum if optimum > 0 else None, changed, smallest)


def _position(c: Coefficients, name: str | None) -> int:
    return c.classes.index(name) if name in c.classes else -1


def _worst(c: Coefficients, regret_low: np.ndarray) -> np.ndarray:
    """(n,) the allowed class of greatest regret."""
    return np.where(c.allowed & np.isfinite(regret_low), regret_low, -1.0).argmax(axis=1)
