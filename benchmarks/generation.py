"""How much faster completions come when what prompts have in common is read once (:mod:`training.shared_prefix`).

``python -m benchmarks.generation`` takes some minutes on one core. The model is the ``pocket`` profile's with random
weights, which hardly ever ends its turn: every completion runs to its limit. Prompts are real ones of one embedded
landscape. With and without take turns on the same prompts with the same seed; the median of the turns counts, and the
completions of both are compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.gpu_grpo import prompt_frame
from oracle.files import write_json
from prompts.config import PromptConfig
from training.config import load_profile
from training.encode import prompt_ids
from training.generate import Writer
from training.models import load_model, load_tokenizer, save_pocket
from training.shared_prefix import LEAST_SAVED, saved_share

ALWAYS_WHOLE = 2.0
"""More than can be saved: every prompt is read whole."""
VARIANTS = {"compact, order 0": ("compact", 0), "full, order 1": ("full", 1)}


@dataclass(frozen=True)
class Measured:
    """One kind of prompt and completion."""

    prompts: str
    samples: int
    """Of each prompt; 1 = greedy."""
    batch: int
    prompt_tokens: float
    completion_tokens: int
    saved: float
    """Share of the batch's prompt tokens that is not read."""
    whole_s: float
    shared_s: float
    same: float
    """Share of the completions that are equal with and without."""

    @property
    def ratio(self) -> float:
        """How many times as fast."""
        return self.whole_s / self.shared_s


def benchmark_generation(batch: int, samples: int, lengths: Sequence[int], repeats: int) -> list[Measured]:
    """Measure greedy and sampled completions of short and long prompts.

    Parameters
    ----------
    batch : int
        Completions at a time.
    samples : int
        Of each prompt, where there are several.
    lengths : sequence of int
        Tokens of a completion.
    repeats : int
        Turns of each way.
    """
    found = []
    for name, (layout, order) in VARIANTS.items():
        variant = PromptConfig.model_validate({"layout": layout, "order": order, "context": "prices"})
        frame = prompt_frame(variant, batch)
        section = load_profile("pocket", ["model.max_length=4096"]).model
        with tempfile.TemporaryDirectory() as folder:
            save_pocket(section, frame, Path(folder), seed=0)
            model, tokenizer = load_model(folder, section), load_tokenizer(folder)
        ids = prompt_ids(tokenizer, list(frame["prompt"]))
        for k in (1, samples):
            rows = [row for row in ids[: batch // k] for _ in range(k)]
            for length in lengths:
                writer = partial(Writer, model, tokenizer, max_new_tokens=length, temperature=float(k > 1))
                found.append(_measure(writer, rows, repeats, prompts=name, samples=k, completion_tokens=length))
    return found


def _measure(writer: Any, rows: list[list[int]], repeats: int, **described: Any) -> Measured:
    import torch

    ways = {"whole": writer(least_saved=ALWAYS_WHOLE), "shared": writer(least_saved=LEAST_SAVED)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    written: dict[str, list[Any]] = {}
    ways["shared"].write(rows[:1])  # the first call of a process takes longer
    for _ in range(repeats):
        for name, way in ways.items():
            torch.manual_seed(0)
            began = time.perf_counter()
            written[name] = way.write(rows)
            seconds[name].append(time.perf_counter() - began)
    return Measured(
        **described,
        batch=len(rows),
        prompt_tokens=sum(map(len, rows)) / len(rows),
        saved=saved_share(rows),
        whole_s=median(seconds["whole"]),
        shared_s=median(seconds["shared"]),
        same=sum(a == b for a, b in zip(*written.values(), strict=True)) / len(rows),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64, help="completions at a time")
    parser.add_argument("--samples", type=int, default=4, help="of each prompt, where there are several")
    parser.add_argument("--tokens", type=int, action="append", help="of a completion; repeatable; 16 and 64")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each way; the median counts")
    parser.add_argument("--out", type=Path, help="JSON")
    asked = parser.parse_args(arguments)
    found = benchmark_generation(asked.batch, asked.samples, asked.tokens or (16, 64), asked.repeats)
    table = Table(title=f"Completions in batches of {asked.batch}", title_justify="left")
    for heading in ("prompts", "samples", "tokens", "saved", "whole, s", "shared, s", "times as fast", "same"):
        table.add_column(heading, justify="left" if heading == "prompts" else "right")
    for m in found:
        tokens = f"{m.prompt_tokens:.0f} + {m.completion_tokens}"
        times = (f"{m.whole_s:.2f}", f"{m.shared_s:.2f}", f"{m.ratio:.2f}", f"{m.same:.1%}")
        table.add_row(m.prompts, str(m.samples), tokens, f"{m.saved:.0%}", *times)
    Console().print(table)
    if asked.out is not None:
        write_json(asked.out, json.loads(json.dumps([asdict(m) | {"ratio": m.ratio} for m in found])))


if __name__ == "__main__":
    main()
