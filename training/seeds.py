"""The same run with several seeds: mean and range of its figures.

Runs belong together when their names are equal but for their last number (``mine-1``, ``mine-2``) and their records
(``run.json``) agree in stage, dataset and every setting but the seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from training.decision_figures import SplitFigures
from training.run import RUN

FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "mcc")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


@dataclass(frozen=True)
class Spread:
    """One figure over several seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in their seed."""

    name: str
    """With ``*`` in the place of the number."""
    runs: tuple[str, ...]
    figures: dict[str, dict[str, Spread]]
    """By split, then by figure."""


def seed_groups(models: Mapping[str, Path], figures: Mapping[str, dict[str, SplitFigures]]) -> tuple[SeedGroup, ...]:
    """The groups of at least two runs among the models evaluated.

    Parameters
    ----------
    models : mapping of str to Path
        Folders of the runs by their names.
    figures : mapping of str to (mapping of split to SplitFigures)
        Of each of them.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, folder in models.items():
        record = _record(folder)
        if record is not None and _LAST_NUMBER.search(name):
            groups.setdefault((_LAST_NUMBER.sub("*", name), record), []).append(name)
    return tuple(
        SeedGroup(pattern, tuple(names), _spreads([figures[name] for name in names]))
        for (pattern, _), names in groups.items()
        if len(names) > 1
    )


def _record(folder: Path) -> str | None:
    path = folder / RUN
    if not path.is_file():
        return None
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    settings = {key: value for key, value in run["config"].items() if key not in ("seed", "threads", "processes")}
    return json.dumps([run["stage"], run["dataset_sha256"], settings], sort_keys=True)


def _spreads(runs: list[dict[str, SplitFigures]]) -> dict[str, dict[str, Spread]]:
    found: dict[str, dict[str, Spread]] = {}
    for split in runs[0]:
        values = {name: np.array([getattr(run[split], name) for run in runs]) for name in FIGURES}
        found[split] = {name: Spread(float(v.mean()), float(v.min()), float(v.max())) for name, v in values.items()}
    return found
