"""How long the oracle takes: the relaxation alone, the whole solve, and plain PuLP with HiGHS on the whole programme.

Landscapes are seeded quarter sections (:mod:`oracle.synthesis`) in whole townships of 144, with a supply floor for each
of four crops. The landscape, its graph and their hashes are made before the clock starts.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import pulp

from oracle.coefficients import coefficients
from oracle.errors import ConfigurationError
from oracle.glm import pulp_model
from oracle.glm_arrays import glm_arrays
from oracle.glm_config import GLMConfig
from oracle.highs import run
from oracle.neighbours import neighbour_graph
from oracle.solve import Progress, solve
from oracle.synthesis import CropProfile, SynthesisConfig, synthesise

PER_TOWNSHIP = 144
MOST_TOWNSHIPS = 1_200
_CROPS = {
    "wheat": CropProfile(mean_t_ha=4.0, cv=0.2, current_share=5),
    "oat": CropProfile(mean_t_ha=4.1, cv=0.22),
    "corn": CropProfile(mean_t_ha=6.9, cv=0.22, soil=0.6, cool_share=0.35, current_share=0.4),
    "soy": CropProfile(mean_t_ha=2.4, cv=0.22, soil=0.6, cool_share=0.2, current_share=1.2),
}


@dataclass(frozen=True)
class OracleBenchmark:
    """Seconds and gaps of one landscape; the peer's are None where it was not asked for."""

    polygons: int
    pairs: int
    gap_asked: float
    floors_that_bind: int
    """With a price above 0: each makes the relaxation fractional on a few polygons."""
    relaxation_s: float
    solve_s: float
    gap: float
    unique: int
    tied: int
    undecided: int
    peer_s: float | None = None
    peer_limit_s: float | None = None
    peer_gap: float | None = None
    """Of the peer's plan to the certified bound; None without a plan."""

    @property
    def times_relaxation(self) -> float:
        return self.solve_s / self.relaxation_s

    @property
    def times_faster(self) -> float | None:
        """Than the peer; a lower limit where the peer reached its time limit."""
        return None if self.peer_s is None else self.peer_s / self.solve_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"times_relaxation": self.times_relaxation, "times_faster": self.times_faster}


def benchmark_landscape(polygons: int, seed: int = 0) -> SynthesisConfig:
    """Whole townships, nearly square, of at least so many quarter sections.

    Raises
    ------
    ConfigurationError
        Where the survey's grid holds fewer.
    """
    townships = math.ceil(polygons / PER_TOWNSHIP)
    if not 1 <= townships <= MOST_TOWNSHIPS:
        raise ConfigurationError(f"{polygons:,} polygons: 1 to {MOST_TOWNSHIPS * PER_TOWNSHIP:,} can be made")
    east_west = min(math.ceil(math.sqrt(townships)), 30)
    return SynthesisConfig(
        name=f"bench_{polygons}",
        seed=seed,
        township=1,
        range=1,
        meridian=2,
        townships_ew=east_west,
        townships_ns=math.ceil(townships / east_west),
        crops=_CROPS,
    )


def benchmark_oracle(
    polygons: int,
    *,
    gap: float = 1e-5,
    seed: int = 0,
    peer: bool = False,
    peer_limit_s: float = 120.0,
    progress: Progress | None = None,
) -> OracleBenchmark:
    """Time the relaxation, the solve with certificate and regret, and, if asked, the peer; all with one thread."""
    say = progress or (lambda _: None)
    landscape = synthesise(benchmark_landscape(polygons, seed))
    graph = neighbour_graph(landscape)
    config = GLMConfig(
        connectivity_weight=0.45,
        prices={"wheat": 280.0, "oat": 260.0, "corn": 155.0, "soy": 410.0},
        supply_floors=dict.fromkeys(_CROPS, 0.8),
        gap=gap,
        time_limit_s=3_600.0,
    )
    c = coefficients(landscape, graph, config)
    hashes = landscape.sha256[:8], graph.sha256[:8]
    say(f"landscape {hashes[0]}, graph {hashes[1]}: {len(c):,} polygons and {len(c.pair_i):,} pairs")
    began = time.monotonic()
    run(glm_arrays(c), config, config.time_limit_s, whole=False)
    relaxation_s = time.monotonic() - began
    say(f"relaxation alone: {relaxation_s:.1f} s")
    solution = solve(landscape, graph, config, progress)
    peer_s = peer_gap = None
    if peer:
        began = time.monotonic()
        model, _ = pulp_model(c)
        model.solve(pulp.HiGHS(msg=False, threads=1, gapRel=gap, timeLimit=peer_limit_s))
        peer_s = time.monotonic() - began
        found = pulp.value(model.objective) / len(c) if model.sol_status in _WITH_PLAN else None
        peer_gap = None if found is None else (solution.upper_bound - found) / solution.upper_bound
    counts = {status: int((solution.status == status).sum()) for status in ("unique", "tied", "undecided")}
    return OracleBenchmark(
        polygons=len(c),
        pairs=len(c.pair_i),
        gap_asked=gap,
        floors_that_bind=sum(price > 0 for price in solution.shadow_price.values()),
        relaxation_s=relaxation_s,
        solve_s=solution.wall_time_s,
        gap=solution.gap,
        peer_s=peer_s,
        peer_limit_s=peer_limit_s if peer else None,
        peer_gap=peer_gap,
        **counts,
    )


_WITH_PLAN = (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
