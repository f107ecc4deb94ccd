"""Check a solved folder from the landscape up, with plain arithmetic and no solver.

Read: ``landscape.parquet``, ``graph.parquet``, ``labels.parquet``, ``solution.json``, ``certificate.json``.
Recomputed: hashes, the neighbour graph by the rule that its file states, areas, the GLM's coefficients, feasibility,
objective, supply, floors, prices, bound, regret and status. Where rounding could decide it may not: feasibility is
decided exactly, the bound and the lower ends of the regret are held against ones that are safe against rounding
(:mod:`oracle.certificate`). Taken as given: that the graph's rule (gap, facing length) is the one wanted, and the run's
history (solver, its own bound, wall time), and the bound of a search for the best plan that differs: what rests on that
alone is counted; the pictures and ``connectivity.json`` are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracle.canonical import canonical
from oracle.certificate import bound, regret_lows
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import CertificateError, LandscapeError, name_some
from oracle.labels import names_in_labels
from oracle.landscape import Landscape, load_landscape
from oracle.neighbours import NeighbourGraph, neighbour_graph
from oracle.plan import Terms, relative_gap, supply_t, terms, violations
from oracle.regret import Proof, judge, regret, searchable
from oracle.solution import (
    GRAPH,
    LABELS,
    LANDSCAPE,
    SOLUTION,
    Hashes,
    Solution,
    load_solution,
    read_table,
)

AGREEMENT = 1e-9
"""Objective units, or relative for tonnes and currency, within which a stated and a recomputed number agree."""


@dataclass(frozen=True)
class Verification:
    """What was proven about a folder."""

    landscape: str
    polygons: int
    objective: float
    upper_bound: float
    gap: float
    unique: int
    tied: int
    undecided: int
    on_the_solvers_word: int
    """Of the unique ones: by a search's bound, not by the certificate."""

    def __str__(self) -> str:
        return (
            f"{self.landscape}: {self.polygons:,} polygons, feasible, objective {self.objective:.6f}; no plan exceeds "
            f"{self.upper_bound:.6f}, so it is at most {100 * self.gap:.2g} % below the optimum; labels: "
            f"{self.unique:,} unique ({self.on_the_solvers_word:,} on the solver's word), {self.tied:,} tied, "
            f"{self.undecided:,} undecided"
        )


def verify(folder: Path) -> Verification:
    """Check that a folder's certificate proves what its solution claims.

    Raises
    ------
    CertificateError
        With the first reason found: a file missing or malformed, a hash, label, multiplier, yield, interval or figure
        that does not agree with what follows from the landscape.
    """
    folder = Path(folder)
    solution = load_solution(folder)
    try:
        landscape = load_landscape(folder / LANDSCAPE)
        graph = NeighbourGraph.load(folder / GRAPH)
    except LandscapeError as error:
        raise CertificateError(f"{folder}: {error}") from error
    _check_hashes(landscape, graph, solution)
    _check_graph(landscape, graph)
    _check_labels(folder, landscape, solution)
    c = coefficients(landscape, graph, solution.config)
    plan = _check_plan(c, solution)
    _check_bound(c, solution)
    _check_regret(c, solution)
    counts = {status: int((solution.status == status).sum()) for status in ("unique", "tied", "undecided")}
    return Verification(
        solution.landscape,
        len(landscape),
        plan.objective,
        solution.upper_bound,
        relative_gap(plan.objective, solution.upper_bound),
        **counts,
        on_the_solvers_word=int((solution.proof == Proof.SEARCH).sum()),
    )


def _check_hashes(landscape: Landscape, graph: NeighbourGraph, solution: Solution) -> None:
    found = Hashes(landscape.sha256, graph.sha256, solution.config.sha256)
    for what, file in (("landscape", LANDSCAPE), ("graph", GRAPH), ("config", SOLUTION)):
        if getattr(found, what) != getattr(solution.hashes, what):
            raise CertificateError(
                f"the {what} in {file} is not the one solved: its hash is {getattr(found, what)[:12]}..., "
                f"the solution was made from {getattr(solution.hashes, what)[:12]}..."
            )
    if not np.array_equal(graph.ids.astype(str), landscape.ids.astype(str)):
        raise CertificateError(f"{GRAPH} does not have the ids of {LANDSCAPE}")


def _check_graph(landscape: Landscape, graph: NeighbourGraph) -> None:
    if graph.config is None:
        raise CertificateError(
            f"{GRAPH} does not state the rule (gap, facing length) that its pairs follow, so it cannot be recomputed; "
            "solve the landscape again with a graph from `neighbour_graph`"
        )
    difference = graph.difference(neighbour_graph(landscape, graph.config))
    if difference is not None:
        raise CertificateError(f"{GRAPH} is not the neighbour graph of {LANDSCAPE}: stated against found, {difference}")


def _check_labels(folder: Path, landscape: Landscape, solution: Solution) -> None:
    if not np.array_equal(solution.ids, landscape.ids):
        raise CertificateError(f"{LABELS} does not have the ids of {LANDSCAPE}, in its order")
    unknown = ~np.isin(solution.land_use.astype(str), solution.classes)
    if unknown.any():
        raise CertificateError(
            f"{LABELS}: land_use of {name_some(solution.ids[unknown])} is none of {solution.classes}"
        )
    table = read_table(folder / LABELS)
    for column, name in names_in_labels(landscape).items():
        if name not in table or not table[name].equals(landscape.polygons[column].reset_index(drop=True)):
            raise CertificateError(f"{LABELS}: column {name!r} differs from {column!r} in {LANDSCAPE}")


def _check_plan(c: Coefficients, solution: Solution) -> Terms:
    broken = violations(c, solution.choice)
    if broken:
        raise CertificateError("the plan is not feasible: " + "; ".join(broken))
    found = terms(c, solution.choice)
    for name in ("crop_value", "connectivity", "crop_value_currency", "connectivity_ha"):
        _agree(name, getattr(solution.terms, name), getattr(found, name))
    _agree("supply_t", solution.supply_t, supply_t(c, solution.choice))
    _agree("floor_t", solution.floor_t, c.floor_t)
    return found


def _check_bound(c: Coefficients, solution: Solution) -> None:
    found = bound(c, solution.certificate, margin=0.0)
    if solution.upper_bound < found:
        raise CertificateError(
            f"upper_bound is stated as {solution.upper_bound!r}, but the certificate proves no less than {found!r}"
        )
    _agree("upper_bound", solution.upper_bound, max(found, solution.objective))
    shadow_price = solution.certificate.floor_multiplier * c.currency_per_unit
    _agree("shadow_price", np.array(list(solution.shadow_price.values())), shadow_price)
    _agree("habitat_price", solution.habitat_price, c.habitat_price)
    _agree("adjacency_price", solution.adjacency_price, c.adjacency_price)


def _check_regret(c: Coefficients, solution: Solution) -> None:
    for other in solution.searched.others:
        broken = violations(c, other)
        if broken:
            raise CertificateError("another plan of the certificate is not feasible: " + "; ".join(broken))
    sorted_by_id = canonical(c, solution.ids)
    found = sorted_by_id.regret_back(
        regret(
            sorted_by_id.coefficients,
            solution.choice[sorted_by_id.order],
            sorted_by_id.certificate_here(solution.certificate),
            sorted_by_id.searched_here(solution.searched),
        )
    )
    for end, stated, recomputed in (
        ("low", solution.regret_low, found.low),
        ("high", solution.regret_high, found.high),
    ):
        differs = ~np.isclose(stated, recomputed, rtol=0.0, atol=AGREEMENT)
        if differs.any():
            polygon, k = np.argwhere(differs)[0]
            raise CertificateError(
                f"regret_{solution.classes[k]}_{end} of {solution.ids[polygon]} is {stated[polygon, k]:.9f}, "
                f"but {recomputed[polygon, k]:.9f} follows from the certificate ({int(differs.sum())} differ)"
            )
    by_certificate = regret_lows(c, solution.certificate, solution.choice)
    by_search = solution.objective - solution.searched.bound
    asked = searchable(solution.choice, solution.regret_high, by_search)
    proven = np.maximum(by_certificate, np.where(asked, by_search, -np.inf))
    unproven = (solution.regret_low > 0) & (solution.regret_low > proven)
    if unproven.any():
        polygon, k = np.argwhere(unproven)[0]
        raise CertificateError(
            f"regret_{solution.classes[k]}_low of {solution.ids[polygon]} is "
            f"{float(solution.regret_low[polygon, k])!r}, but only {float(proven[polygon, k])!r} is proven "
            f"({int(unproven.sum())} are too high)"
        )
    wrong = solution.status != judge(solution.choice, solution.regret_low, solution.regret_high)
    if wrong.any():
        raise CertificateError(f"status of {name_some(solution.ids[wrong])} does not follow from the regret intervals")
    wrong = solution.proof != found.proof
    if wrong.any():
        raise CertificateError(f"proof of {name_some(solution.ids[wrong])} is not what the status rests on")


def _agree(name: str, stated: float | np.ndarray, found: float | np.ndarray) -> None:
    if not np.allclose(stated, found, rtol=AGREEMENT, atol=AGREEMENT):
        raise CertificateError(f"{name} is stated as {stated}, but recomputed as {found}")
