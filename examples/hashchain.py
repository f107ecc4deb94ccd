"""HashChain: several chains of hashes are listed link by link in mixed order; find the end of the shortest chain.

Another task for the same trainer: a generator, the reference solution as a rationale for SFT, and a reward of its own,
named in the profile as ``examples.hashchain:end_of_shortest``. Run it with ``python -m examples.hashchain OUT``.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from training.config import load_profile
from training.grpo import run_grpo
from training.sft import run_sft
from training.turn import read_turn

REWARD = "examples.hashchain:end_of_shortest"
PROFILE = [
    f"rewards={{{REWARD}: 3.0, format_reward: 2.0}}",
    *(f"decision_reward={REWARD}", "prompts.context=none", "draw.by=uncertainty", "guard.evaluate_every=10"),
    *("sft.per_device_train_batch_size=64", "sft.max_steps=1500"),
    *("grpo.per_device_train_batch_size=64", "grpo.max_completion_length=48", "grpo.learning_rate=1e-4"),
]


def puzzles(count: int, seed: int, lengths: tuple[int, ...] = (1, 2), hashes: str = "abcdef") -> pd.DataFrame:
    """``count`` puzzles, all different, with a chain of each of ``lengths`` links; a tenth of them is held out."""
    random = np.random.default_rng(seed)
    rows: dict[str, dict[str, Any]] = {}
    while len(rows) < count:
        letters = iter(random.permutation(list(hashes)))
        chains = [[str(next(letters)) for _ in range(length + 1)] for length in random.permutation(lengths)]
        links = [f"{a}>{b}" for chain in chains for a, b in pairwise(chain)]
        text = " ".join(random.permutation(links)) + "\n"
        shortest = min(chains, key=len)
        rows[text] = {
            "prompt": [{"role": "user", "content": text}],
            "answer": shortest[-1],
            "classes": sorted(chain[-1] for chain in chains),
            "target": f"<think>{' '.join('>'.join(c) for c in sorted(chains, key=len))}</think>"
            f"<answer>{shortest[-1]}</answer>",
        }
    frame = pd.DataFrame(rows.values()).assign(prompt_id=[f"hashchain:{i}" for i in range(count)])
    return frame.assign(split=np.where(np.arange(count) < count / 10, "held_out_landscape", "train"))


def end_of_shortest(
    prompts: list[Any], completions: list[Any], answer: list[str], classes: Any, **_: Any
) -> list[float]:
    """1 where the end of the shortest chain is named; nothing for being near."""
    triples = zip(completions, answer, classes, strict=True)
    return [float(read_turn(said, ends).decision == right) for said, right, ends in triples]


def train(out: Path, frame: pd.DataFrame, overrides: tuple[str, ...] = ()) -> tuple[Path, Path]:
    """SFT, then GRPO; the folders of both runs."""
    config = load_profile("pocket", [*PROFILE, *overrides])
    sft = run_sft(frame, config, out / "sft")
    return sft, run_grpo(frame, config, out / "grpo", sft)


if __name__ == "__main__":
    train(Path(sys.argv[1]), puzzles(2_000, seed=0))
