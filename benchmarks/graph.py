"""How long the neighbour graph takes, beside libpysal's strict rook contiguity on the same polygons in the same run.

``landoracle bench graph`` starts a fresh process per size (``python -m benchmarks.graph SIZE REPEATS``), so that its
peak memory is that of this size. The polygons are quarter sections of the Dominion Land Survey in EPSG:3347. The two
builders take turns; the time of each is the median of its turns. They do not do the same work: libpysal lists
first-order contacts; Landoracle measures borders and gaps, and adds geodesic directions and second-order neighbours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from libpysal.graph import Graph

from benchmarks.quarters import LARGEST, memory_mb, quarter_block
from oracle.errors import ConfigurationError, LandoracleError
from oracle.landscape import CONNECTIVITY, Landscape
from oracle.neighbours import neighbour_graph

SIZES = (10_000, 30_000, 100_000)
T = TypeVar("T")


@dataclass(frozen=True)
class GraphMeasurement:
    """One size: seconds (medians), their ratio, and the peak resident memory of the process."""

    polygons: int
    rows: int
    graph_s: float
    libpysal_s: float
    ratio: float
    memory_before_mb: float
    memory_peak_mb: float


@dataclass(frozen=True)
class GraphBenchmark:
    """All sizes, and the exponent of growth: 1 is linear; None for a single size."""

    sizes: tuple[GraphMeasurement, ...]
    growth_exponent: float | None

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def run(sizes: Sequence[int] = SIZES, repeats: int = 3) -> GraphBenchmark:
    """Measure every size in a process of its own.

    Raises
    ------
    ConfigurationError
        Where a size is outside 100..1,000,000.
    LandoracleError
        Where a measurement ended before its time, with what it said last.
    """
    wrong = [n for n in sizes if not 100 <= n <= LARGEST]
    if wrong or not sizes:
        raise ConfigurationError(f"sizes must lie in 100..{LARGEST:,} polygons; got {wrong or 'none'}")
    measured = []
    for polygons in sorted(set(sizes)):
        command = [sys.executable, "-m", "benchmarks.graph", str(polygons), str(repeats)]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it was killed, perhaps for want of memory"])[-1]
            raise LandoracleError(f"measuring {polygons:,} polygons ended with code {done.returncode}: {last}")
        measured.append(GraphMeasurement(**json.loads(done.stdout)))
    exponent = None
    if len(measured) > 1:
        logs = np.log([[m.polygons, m.graph_s] for m in measured])
        exponent = round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 3)
    return GraphBenchmark(tuple(measured), exponent)


def quarter_section_landscape(polygons: int) -> Landscape:
    """So many quarter sections that all grow the same."""
    quarters = quarter_block(polygons)
    return Landscape("quarter-sections", quarters.assign(wheat_yield=3.0, **{CONNECTIVITY: 0.5}), ("wheat",))


def measure(polygons: int, repeats: int) -> GraphMeasurement:
    """Time both builders in this process."""
    landscape = quarter_section_landscape(polygons)
    named = landscape.polygons.set_index("id")
    before = memory_mb()
    seconds: dict[str, list[float]] = {"graph": [], "libpysal": []}
    for turn in range(repeats):
        graph = _timed(seconds["graph"], lambda: neighbour_graph(landscape))
        rows = len(graph.table)
        del graph
        if turn == 0:
            peak = memory_mb()
        _timed(seconds["libpysal"], lambda: Graph.build_contiguity(named, rook=True, strict=True))
    ours, theirs = median(seconds["graph"]), median(seconds["libpysal"])
    return GraphMeasurement(
        polygons, rows, round(ours, 3), round(theirs, 3), round(ours / theirs, 3), round(before), round(peak)
    )


def _timed(seconds: list[float], build: Callable[[], T]) -> T:
    start = time.perf_counter()
    built = build()
    seconds.append(time.perf_counter() - start)
    return built


if __name__ == "__main__":
    print(json.dumps(asdict(measure(int(sys.argv[1]), int(sys.argv[2])))))
