"""How long the oracle takes, beside HiGHS's relaxation alone and beside other solvers on the whole programme.

``landoracle bench oracle`` starts a fresh process per size (``python -m benchmarks.oracle ...``), so that its peak
memory is that of this size. Landscapes are seeded quarter sections (:mod:`oracle.synthesis`) with a supply floor for
each of four crops. The landscape, its graph and their hashes are made before the clock starts; everything runs with
one thread, in the order solve, relaxation, peers, and the memory is that after the solve.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.peers import Peer, PeerTime, time_peer
from benchmarks.quarters import LARGEST, memory_mb, quarter_block
from oracle.coefficients import coefficients
from oracle.errors import ConfigurationError, LandoracleError
from oracle.files import write_atomically
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import GLMConfig
from oracle.highs import Status, run
from oracle.neighbours import neighbour_graph
from oracle.plan import relative_gap
from oracle.solve import Progress, solve
from oracle.synthesis import CropProfile, SynthesisConfig, grow

SIZES = (1_000, 3_000, 10_000)
_CROPS = {
    "wheat": CropProfile(mean_t_ha=4.0, cv=0.2, current_share=5),
    "oat": CropProfile(mean_t_ha=4.1, cv=0.22),
    "corn": CropProfile(mean_t_ha=6.9, cv=0.22, soil=0.6, cool_share=0.35, current_share=0.4),
    "soy": CropProfile(mean_t_ha=2.4, cv=0.22, soil=0.6, cool_share=0.2, current_share=1.2),
}


@dataclass(frozen=True)
class Asked:
    """One measurement."""

    polygons: int
    gap: float = 1e-5
    seed: int = 0
    floor: float = 0.8
    """Of every crop, as a share of potential / number of crops."""
    relaxation: bool = True
    peers: tuple[Peer, ...] = ()
    peer_limit_s: float = 120.0


@dataclass(frozen=True)
class OracleMeasurement:
    """One size: seconds, gaps, labels."""

    asked: Asked
    pairs: int
    floors_that_bind: int
    """With a price above 0."""
    plan_s: float
    """Until the plan and its certified bound stand."""
    solve_s: float
    """In all: with the search for other plans and the regret of every class."""
    gap: float
    unique: int
    on_the_solvers_word: int
    """Of the unique ones."""
    tied: int
    undecided: int
    memory_before_mb: float
    memory_peak_mb: float
    relaxation_s: float | None
    peers: tuple[PeerTime, ...]
    peer_gaps: tuple[float | None, ...]
    """Of each peer's plan to the certified bound; None without a plan."""

    @property
    def decided(self) -> float:
        """Share of the labels."""
        return 1.0 - self.undecided / self.asked.polygons

    def faster_than(self, peer: PeerTime) -> float:
        """How many times faster the plan stood; at least so many where the peer reached its limit."""
        return peer.seconds / self.plan_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"faster_than": {p.peer: self.faster_than(p) for p in self.peers}}


def measure_all(asked: Sequence[Asked], progress: Progress) -> tuple[OracleMeasurement, ...]:
    """Measure each in a process of its own, whose standard error says how far it is.

    Raises
    ------
    ConfigurationError
        Where a size is outside 100..1,000,000, or a peer is not installed.
    LandoracleError
        Where a measurement ended before its time.
    """
    wrong = [a.polygons for a in asked if not 100 <= a.polygons <= LARGEST]
    if wrong or not asked:
        raise ConfigurationError(f"sizes must lie in 100..{LARGEST:,} polygons; got {wrong or 'none'}")
    found = []
    for each in asked:
        progress(f"{each.polygons:,} polygons ...")
        command = [sys.executable, "-m", "benchmarks.oracle", json.dumps(asdict(each))]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise LandoracleError(f"measuring {each.polygons:,} polygons ended with code {done.returncode}")
        found.append(_from_json(done.stdout))
    return tuple(found)


def growth_exponent(found: Sequence[OracleMeasurement]) -> float | None:
    """Seconds of the plan grow with polygons to this power; None for a single size."""
    sizes = sorted({m.asked.polygons for m in found})
    if len(sizes) < 2:
        return None
    logs = np.log([[m.asked.polygons, m.plan_s] for m in found])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def draw_growth(found: Sequence[OracleMeasurement], path: Path) -> None:
    """Seconds against polygons on logarithmic axes: plan, whole solve, relaxation, peers."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    lines: dict[str, list[tuple[int, float]]] = {}
    for m in sorted(found, key=lambda m: m.asked.polygons):
        n = m.asked.polygons
        lines.setdefault("plan and certified bound", []).append((n, m.plan_s))
        lines.setdefault("with other plans and regret", []).append((n, m.solve_s))
        if m.relaxation_s is not None:
            lines.setdefault("HiGHS, relaxation alone", []).append((n, m.relaxation_s))
        for peer in m.peers:
            lines.setdefault(f"{peer.peer}, whole programme", []).append((n, peer.seconds))
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#000000", "#009E73", "#CC79A7", "#E69F00")
    for (name, points), colour, marker in zip(lines.items(), colours, "osD^vP*", strict=False):
        axes.loglog(*zip(*points, strict=True), color=colour, marker=marker, label=name)
    axes.set_xlabel("polygons")
    axes.set_ylabel("seconds, one thread")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(frameon=False)
    write_atomically(path, lambda p: figure.savefig(p, dpi=110, format="png"))


def growth(polygons: int, seed: int = 0) -> SynthesisConfig:
    """What grows on the quarter sections of a benchmark: four crops with correlated yields."""
    return SynthesisConfig(name=f"bench_{polygons}", seed=seed, township=1, range=1, meridian=2, crops=_CROPS)


def measure(asked: Asked, progress: Progress) -> OracleMeasurement:
    """Measure in this process."""
    landscape = grow(
        SynthesisConfig(name=f"bench_{asked.polygons}", seed=asked.seed, township=1, range=1, meridian=2, crops=_CROPS),
        quarter_block(asked.polygons),
    )
    progress(f"landscape of {len(landscape):,} quarter sections made")
    graph = _Contacts.of(landscape)
    config = GLMConfig(
        connectivity_weight=0.45,
        prices={"wheat": 280.0, "oat": 260.0, "corn": 155.0, "soy": 410.0},
        supply_floors=dict.fromkeys(_CROPS, asked.floor),
        gap=asked.gap,
        time_limit_s=3_600.0,
    )
    assert landscape.sha256
    before = memory_mb()
    solution = solve(landscape, graph, config, progress)
    peak = memory_mb()
    c = coefficients(landscape, graph, config)
    relaxation_s = None
    if asked.relaxation:
        progress("relaxation alone ...")
        answer = run(glm_arrays(c), config, config.time_limit_s, whole=False)
        if answer.status != Status.kOptimal:
            raise LandoracleError(f"the relaxation ended with {answer.ended!r} after {answer.seconds:.0f} s")
        relaxation_s = answer.seconds
    peers = []
    for peer in asked.peers:
        progress(f"{peer} ...")
        peers.append(time_peer(Peer(peer), c, asked.gap, asked.peer_limit_s))
    counts = {status: int((solution.status == status).sum()) for status in ("unique", "tied", "undecided")}
    return OracleMeasurement(
        asked=asked,
        pairs=len(c.pair_i),
        floors_that_bind=sum(price > 0 for price in solution.shadow_price.values()),
        plan_s=solution.plan_time_s,
        solve_s=solution.wall_time_s,
        gap=solution.gap,
        **counts,
        on_the_solvers_word=int((solution.proof == "search").sum()),
        memory_before_mb=before,
        memory_peak_mb=peak,
        relaxation_s=relaxation_s,
        peers=tuple(peers),
        peer_gaps=tuple(
            None if p.objective is None else relative_gap(p.objective, solution.upper_bound) for p in peers
        ),
    )


@dataclass(frozen=True, eq=False)
class _Contacts:
    """What the GLM needs of a neighbour graph, without the table of second-order neighbours."""

    shared: tuple[np.ndarray, np.ndarray, np.ndarray]
    sha256: str

    @classmethod
    def of(cls, landscape: Any) -> _Contacts:
        graph = neighbour_graph(landscape)
        return cls(graph.shared, graph.sha256)


def _from_json(text: str) -> OracleMeasurement:
    stated = json.loads(text)
    stated.pop("faster_than")
    stated["asked"]["peers"] = tuple(map(Peer, stated["asked"]["peers"]))
    asked = Asked(**stated.pop("asked"))
    peers = tuple(PeerTime(**{**p, "peer": Peer(p["peer"])}) for p in stated.pop("peers"))
    return OracleMeasurement(asked=asked, peers=peers, **{**stated, "peer_gaps": tuple(stated["peer_gaps"])})


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", file=sys.stderr, flush=True)

    measured = measure(Asked(**{**given, "peers": tuple(map(Peer, given["peers"]))}), say)
    assert math.isfinite(measured.gap)
    print(json.dumps(measured.to_dict()))
