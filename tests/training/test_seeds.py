"""Which runs count as seeds of one another."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from training.seeds import seed_groups


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
