"""What a model's own run says about it, beside its weights: how it is to be asked, and whether the guard stopped it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from prompts.config import Style
from training.run import RUN


@dataclass(frozen=True)
class ModelRecord:
    """One model of an evaluation."""

    style: str
    """Of the turns that it was trained to write; each model is asked in its own."""
    stopped: str | None
    """Why the guard stopped its run, which then went back to earlier weights; None where it trained to its end."""


def model_record(folder: Path, style: Style) -> ModelRecord:
    """The record of a run's folder; weights that were not trained here are asked in ``style``."""
    path = Path(folder) / RUN
    if not path.is_file():
        return ModelRecord(style.value, None)
    run = json.loads(path.read_text(encoding="utf-8"))
    return ModelRecord(run["config"]["prompts"]["style"], run.get("stopped"))
