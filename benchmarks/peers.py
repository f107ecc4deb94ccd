"""Other ways to solve the same programme: the whole MILP as PuLP writes it, given to one solver with one thread."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import pulp

from oracle.coefficients import Coefficients
from oracle.errors import ConfigurationError
from oracle.glm import pulp_model

_WITH_PLAN = (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)


class Peer(StrEnum):
    HIGHS = "highs"
    """PuLP + HiGHS."""
    CBC = "cbc"
    """PuLP + CBC, which comes with PuLP."""
    SCIP = "scip"
    """OR-tools' SCIP."""
    CP_SAT = "cp-sat"
    """OR-tools' CP-SAT."""


_PARAMETERS = {
    Peer.SCIP: "limits/gap = {gap}",
    Peer.CP_SAT: "relative_gap_limit:{gap},num_workers:1",
}


@dataclass(frozen=True)
class PeerTime:
    """One peer on one landscape."""

    peer: Peer
    seconds: float
    """With the building of the programme by PuLP."""
    limit_s: float
    objective: float | None
    """None where it found no plan."""

    @property
    def finished(self) -> bool:
        return self.seconds < self.limit_s


def time_peer(peer: Peer, c: Coefficients, gap: float, limit_s: float) -> PeerTime:
    """Solve the whole programme to a relative gap, or until the limit.

    Raises
    ------
    ConfigurationError
        Where the peer needs OR-tools and it is not installed.
    """
    if peer in _PARAMETERS and find_spec("ortools") is None:
        raise ConfigurationError(f"the peer {peer} needs OR-tools: pip install '.[bench]'")
    began = time.monotonic()
    model, _ = pulp_model(c)
    if peer in _PARAMETERS:
        worth = _with_ortools(peer, model, gap, limit_s)
    else:
        solver = pulp.HiGHS if peer is Peer.HIGHS else pulp.PULP_CBC_CMD
        model.solve(solver(msg=False, threads=1, gapRel=gap, timeLimit=limit_s))
        worth = pulp.value(model.objective) if model.sol_status in _WITH_PLAN else None
    seconds = time.monotonic() - began
    return PeerTime(peer, seconds, limit_s, None if worth is None else worth / len(c))


def _with_ortools(peer: Peer, model: pulp.LpProblem, gap: float, limit_s: float) -> float | None:
    from ortools.linear_solver.python import model_builder

    programme = model_builder.Model()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "glm.mps"
        model.writeMPS(str(file), mpsSense=pulp.LpMinimize)  # the objective negated
        programme.import_from_mps_file(str(file))
    solver = model_builder.Solver("sat" if peer is Peer.CP_SAT else "scip")
    solver.set_solver_specific_parameters(_PARAMETERS[peer].format(gap=gap))
    solver.set_time_limit_in_seconds(limit_s)
    status = solver.solve(programme)
    found = status in (model_builder.SolveStatus.OPTIMAL, model_builder.SolveStatus.FEASIBLE)
    return -solver.objective_value if found else None
