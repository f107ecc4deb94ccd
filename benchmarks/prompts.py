"""How fast prompts are made: rendering alone and the whole dataset, beside a peer that renders row by row.

The prompts are the longest there are: order 2, full layout, with prices, five crops. The landscape is seeded and solved
before the clock starts (the gap does not matter here). Collecting is timed with rendering: it prints the numbers.

The peer writes each prompt from the same numbers as anybody would: the Jinja template rendered per row, and
``json.dumps`` of each polygon's dictionary. Its text differs in the last zeros of a number (3.1 for 3.10) alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.oracle import growth
from benchmarks.quarters import quarter_block
from oracle.landscape import CONNECTIVITY, YIELD_SUFFIX
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from oracle.synthesis import CropProfile, grow
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.neighbourhood import Neighbourhoods, neighbourhoods
from prompts.render import render, user_head
from prompts.split import Role

WANTED_PER_S = 20_000
_FIFTH = {"canola": CropProfile(mean_t_ha=2.3, cv=0.22)}
_CONFIG = PromptConfig.model_validate({"order": 2, "context": "prices", "style": "think", "layout": "full"})


@dataclass(frozen=True)
class PromptBenchmark:
    """Prompts per second in one process on one core (medians of the turns)."""

    prompts: int
    crops: int
    mean_neighbours: float
    mean_characters: float
    render_per_s: float
    collect_and_render_per_s: float
    peer_per_s: float
    build_per_s: float
    """Landscape, graph and solution to a dataset in memory: splits, targets, leak check, hashes."""
    build_and_save_per_s: float

    @property
    def times_peer(self) -> float:
        return self.render_per_s / self.peer_per_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"times_peer": self.times_peer, "wanted_per_s": WANTED_PER_S}


def benchmark_prompts(polygons: int, repeats: int, seed: int = 0) -> PromptBenchmark:
    """Make the prompts of a seeded landscape of five crops ``repeats`` times."""
    source = five_crop_source(polygons, seed)
    n = len(source.landscape)

    def collect() -> Neighbourhoods:
        return neighbourhoods(source.landscape, source.graph, source.solution, _CONFIG)

    def save() -> None:
        with TemporaryDirectory() as folder:
            build_dataset([source], _CONFIG).save(Path(folder))

    shown = collect()
    steps: dict[str, Callable[[], object]] = {
        "render": lambda: render(shown, _CONFIG),
        "both": lambda: render(collect(), _CONFIG),
        "peer": lambda: row_by_row(shown, _CONFIG),
        "build": lambda: build_dataset([source], _CONFIG),
        "save": save,
    }
    for step in steps.values():  # the first turn compiles templates and imports libraries
        step()
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    rate = {name: n / median(taken) for name, taken in seconds.items()}
    return PromptBenchmark(
        prompts=n,
        crops=len(source.landscape.crops),
        mean_neighbours=len(shown.member) / n,
        mean_characters=sum(len(m["content"]) for chat in render(shown, _CONFIG) for m in chat) / n,
        render_per_s=rate["render"],
        collect_and_render_per_s=rate["both"],
        peer_per_s=rate["peer"],
        build_per_s=rate["build"],
        build_and_save_per_s=rate["save"],
    )


def five_crop_source(polygons: int, seed: int) -> Source:
    """A solved landscape of so many quarter sections and five crops."""
    config = growth(polygons, seed)
    glm = config.glm.model_copy(update={"prices": config.glm.prices | {"canola": 600.0}, "gap": 1e-2})
    landscape = grow(config.model_copy(update={"crops": config.crops | _FIFTH, "glm": glm}), quarter_block(polygons))
    graph = neighbour_graph(landscape)
    return Source(landscape, graph, solve(landscape, graph, glm), Role.TRAIN)


def row_by_row(shown: Neighbourhoods, config: PromptConfig) -> list[str]:
    """The peer: each user message by the template and ``json.dumps``."""
    texts = []
    for i in range(len(shown)):
        listed = [
            json.dumps(
                {"position": position}
                | {
                    f"{crop}{YIELD_SUFFIX}": float(value)
                    for crop, value in zip(shown.crops, shown.yields.value[m], strict=True)
                }
                | {CONNECTIVITY: float(shown.connectivity.value[m])}
            )
            for position, m in zip(shown.positions(i), shown.rows(i), strict=True)
        ]
        polygons = ",\n".join(f"  {record}" for record in listed)
        texts.append(f"{user_head(shown, config, isolated=len(listed) == 1)}[\n{polygons}\n]")
    return texts
