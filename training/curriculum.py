"""A curriculum: easy prompts first (Platanios et al. 2019, "Competence-based Curriculum Learning for NMT", section 2).

How hard a row is, the oracle knows: the less the landscape loses by the second best class, the closer is the decision.
Rows are ranked by that margin within their landscape, since landscapes differ in their worth. At a point t of a run,
from 0 to 1, prompts are drawn uniformly from the easiest share

    c(t) = min(1, start + (1 - start) t / pace)

of the rows, so from ``pace`` on from all of them. The order of a whole run is laid down before it begins, as a function
of seed, rows and settings alone: a resumed run goes on in it.

Within one dataset that is all. Orders and contexts are datasets of their own, and a curriculum over them is a chain of
runs, each of which starts with the weights of the one before (``--start``): order 0 with prices, order 1 with prices,
order 1 without.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from oracle.errors import TrainingError
from training.generation_batch import generation_batch
from training.section import Section

if TYPE_CHECKING:
    from datasets import Dataset

    from training.config import Stage, TrainingConfig

COLUMNS = ("regret_low", "classes", "answer", "landscape")
EPOCHS = 3
"""The trainer's own default."""


class CurriculumSection(Section):
    """Which rows a run sees when."""

    by: Literal["none", "regret"] = Field(default="none", description="regret: rows of a wide margin first")
    start: float = Field(default=0.2, gt=0, le=1, description="share of the rows, the easiest, that a run begins with")
    pace: float = Field(default=0.5, gt=0, le=1, description="share of the run after which all rows are drawn from")


def margins(rows: pd.DataFrame) -> np.ndarray:
    """What the landscape loses at least by each row's second best class.

    Parameters
    ----------
    rows : DataFrame
        ``regret_low`` (one number a class), ``classes`` and ``answer``.

    Returns
    -------
    ndarray
        (n,) objective units; 0 where the label is tied or undecided.

    Raises
    ------
    TrainingError
        Where a column is missing.
    """
    missing = [name for name in COLUMNS if name not in rows]
    if missing:
        raise TrainingError(f"curriculum.by regret reads the column(s) {', '.join(missing)}: build the dataset anew")
    others = (
        min((r for r, c in zip(regret, classes, strict=True) if c != answer), default=0.0)
        for regret, classes, answer in zip(rows["regret_low"], rows["classes"], rows["answer"], strict=True)
    )
    return np.fromiter(others, dtype=float, count=len(rows))


def easiest_first(rows: pd.DataFrame) -> np.ndarray:
    """(n,) positions of the rows, those of the widest margin in their landscape first; equal ones as they stand."""
    margin = pd.Series(margins(rows))
    rank = margin.groupby(rows["landscape"].to_numpy()).rank(ascending=False, method="first", pct=True)
    return np.argsort(rank.to_numpy(), kind="stable")


def easiest_share(section: CurriculumSection, done: np.ndarray) -> np.ndarray:
    """The share c of the rows, the easiest, that is drawn from at the points ``done`` of a run, each in [0, 1]."""
    return np.minimum(1.0, section.start + (1 - section.start) * done / section.pace)


def run_order(rows: pd.DataFrame, section: CurriculumSection, draws: int, seed: int) -> np.ndarray:
    """The rows of a whole run.

    Parameters
    ----------
    rows : DataFrame
        Training rows.
    section : CurriculumSection
        The profile's.
    draws : int
        Rows that the run reads.
    seed : int
        Of the draws.

    Returns
    -------
    ndarray
        (draws,) positions, in the order of reading.
    """
    share = easiest_share(section, np.arange(draws) / max(draws, 1))
    allowed = np.maximum(np.ceil(share * len(rows)), 1).astype(int)
    return easiest_first(rows)[np.random.default_rng(seed).integers(0, allowed)]


def draws_of(config: TrainingConfig, stage: Stage, rows: int) -> int:
    """How many rows a run of the profile reads, of a dataset of ``rows``: those of its steps, else of its epochs."""
    settings = config.section(stage)
    steps = settings.get("max_steps", -1)
    if steps <= 0:
        return math.ceil(rows * settings.get("num_train_epochs", EPOCHS))
    if stage == "grpo":
        batch = generation_batch(config)
        return math.ceil(steps / batch.resume_unit) * batch.completions // batch.group
    each = settings.get("per_device_train_batch_size", 8) * settings.get("gradient_accumulation_steps", 1)
    return int(steps * each * config.processes)


def in_order(dataset: Dataset, rows: pd.DataFrame, config: TrainingConfig, stage: Stage) -> Dataset:
    """The dataset made of ``rows`` as a run reads it, first to last; as it is where the profile has no curriculum."""
    section = config.curriculum
    if section.by == "none":
        return dataset
    return dataset.select(run_order(rows, section, draws_of(config, stage, len(rows)), config.seed))


def reading_in_order(config: TrainingConfig, stage: Stage) -> dict[str, Any]:
    """TRL's settings that keep that order and read it once; none without a curriculum."""
    if config.curriculum.by == "none":
        return {}
    order = {"shuffle_dataset": False} if stage == "grpo" else {"train_sampling_strategy": "sequential"}
    return {"num_train_epochs": 1, **order}
