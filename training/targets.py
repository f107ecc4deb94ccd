"""What training rows teach where it is not the dataset's own rationale and label: two controls.

``targets: format_only``
    SFT imitates well-formed turns whose answers have nothing to do with the label (:mod:`prompts.warm_up`), so that
    GRPO starts with the format and has every decision still to teach.
``labels_shuffled: true``
    Training rows exchange their labels by the seed. What a run gains from these cannot come from the labels: some
    models' scores rise under random rewards (Shao et al. 2025, "Spurious rewards"). Held-out rows keep theirs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from prompts.config import Style
from prompts.warm_up import format_only_targets
from training.turn import ANSWER_CLOSE, ANSWER_OPEN

LABELS = ("answer", "accepted", "status", "regret_low", "regret_high")
"""Columns of the label, which change rows together."""


def as_taught(rows: pd.DataFrame, style: Style, *, format_only: bool, shuffled: bool, seed: int) -> pd.DataFrame:
    """Training rows with the targets and labels that a profile asks for; the rows themselves where it asks for none."""
    if shuffled:
        rows = shuffled_labels(rows, seed)
    if format_only:
        rows = rows.assign(target=format_only_targets(list(rows["prompt_id"]), list(rows["classes"]), style))
    return rows


def shuffled_labels(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows with labels exchanged at random, among rows of the same classes; shares of the classes stay.

    The target keeps its reasoning and ends with the new answer.
    """
    rows = rows.reset_index(drop=True)
    random = np.random.default_rng(seed)
    classes = rows["classes"].map("|".join)
    source = np.arange(len(rows))
    for allowed in sorted(classes.unique()):
        alike = np.flatnonzero(classes == allowed)
        source[alike] = random.permutation(alike)
    labels = {name: rows[name].iloc[source].to_numpy() for name in LABELS if name in rows}
    targets = [
        f"{target.rpartition(ANSWER_OPEN)[0]}{ANSWER_OPEN}{answer}{ANSWER_CLOSE}"
        for target, answer in zip(rows["target"], labels["answer"], strict=True)
    ]
    return rows.assign(**labels, target=targets)
