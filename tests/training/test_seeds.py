"""Which runs count as seeds of one another."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from training.seeds import SeedGroup, seed_groups, seed_table


def _run(folder: Path, *, seed: int, rate: float = 1e-3, dataset: str = "d") -> Path:
    folder.mkdir(parents=True)
    config = {"seed": seed, "threads": seed, "sft": {"learning_rate": rate}}
    record = {"stage": "sft", "dataset_sha256": dataset, "config": config}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def test_runs_that_differ_in_their_seed_alone_are_one_group(tmp_path: Path) -> None:
    models = {
        "mine-1 SFT": _run(tmp_path / "a", seed=1),
        "mine-2 SFT": _run(tmp_path / "b", seed=2),
        "mine-3 SFT": _run(tmp_path / "c", seed=3, rate=1e-2),  # another learning rate
        "mine-4 SFT": _run(tmp_path / "d", seed=4, dataset="shuffled"),  # another dataset
        "other-5 SFT": _run(tmp_path / "e", seed=5),  # another name
        "base": tmp_path,  # no run
    }
    accuracy = dict(zip(models, (0.6, 0.7, 0.1, 0.2, 0.3, 0.0), strict=True))
    figures = {
        name: {"held_out_block": SimpleNamespace(accuracy=a, balanced_accuracy=a, macro_f1=a, mcc=a)}
        for name, a in accuracy.items()
    }
    (group,) = seed_groups(models, figures)  # type: ignore[arg-type]
    assert (group.name, group.runs) == ("mine-* SFT", ("mine-1 SFT", "mine-2 SFT"))
    spread = group.figures["held_out_block"]["accuracy"]
    assert (spread.mean, spread.low, spread.high) == (pytest.approx(0.65), 0.6, 0.7)


def test_everybody_beside_the_best_by_hand() -> None:
    """Eight rows of four blocks; two seeds of ``mine`` decide the first block rightly once and the third always."""
    block = [f"b{i // 2}" for i in range(8)]

    def table(*correct: int) -> pd.DataFrame:
        return pd.DataFrame({"split": "held_out_block", "block": block, "correct": np.array(correct, dtype=bool)})

    tables = {
        "mine-1": table(1, 1, 0, 0, 1, 1, 0, 0),
        "mine-2": table(0, 0, 0, 0, 1, 1, 0, 0),
        "single": table(0, 0, 0, 0, 0, 0, 0, 0),
        "majority": table(1, 1, 1, 1, 1, 1, 1, 1),
    }
    lines = seed_table([SeedGroup("mine-*", ("mine-1", "mine-2"), {})], tables)["held_out_block"]
    best, mine, single = lines
    assert (best.name, best.runs, best.against_best) == ("majority", ("majority",), None)
    assert (mine.accuracy.mean, mine.accuracy.low, mine.accuracy.high) == (0.375, 0.25, 0.5)
    assert mine.against_best is not None
    assert mine.against_best.difference == pytest.approx(-0.625)
    # Blocks differ by -1, -2, 0, -2, all one way: of the 8 patterns of signs 2 reach the sum.
    assert mine.against_best.block_permutation_p == 2 / 8
    assert mine.against_best.block_bootstrap is None  # of four blocks
    assert single.against_best is not None
    assert (single.accuracy.mean, single.against_best.block_permutation_p) == (0.0, 2 / 16)


def test_a_seed_more_or_less_lucky_is_no_difference() -> None:
    """Two seeds that are right on each other's errors: together like the one that is right on every second row."""
    halves = {"mine-1": [1, 0] * 4, "mine-2": [0, 1] * 4, "other": [1, 0, 0, 1] * 2}
    tables = {
        name: pd.DataFrame({"split": "s", "block": list("aabbccdd"), "correct": np.array(right, dtype=bool)})
        for name, right in halves.items()
    }
    first, second = seed_table([SeedGroup("mine-*", ("mine-1", "mine-2"), {})], tables)["s"]
    assert {first.name, second.name} == {"mine-*", "other"}
    assert second.against_best is not None
    assert (second.against_best.difference, second.against_best.block_permutation_p) == (0.0, 1.0)
