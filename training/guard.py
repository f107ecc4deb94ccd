"""The collapse guard: stops a run that is being ruined, keeps the evidence, and goes back to its best weights.

Six figures of every generation are watched, each as the mean of the last ``window`` generations:

==================  ===================================================================================
``answer_entropy``  entropy of the decisions over the classes, as a share of its largest possible value
``commonest``       share of the commonest decision
``well_formed``     share of well-formed turns
``clipped``         share of completions cut at the limit
``kl``              to the reference, nats per token
``repetition``      mean share of a completion's word trigrams that stood in it before
==================  ===================================================================================

A limit counts once the run has kept it, at its start or over a whole window: training that starts without format is
not stopped for having none, but for losing it. On a breach the run ends with its best weights: those that decided most
held-out rows rightly, greedily, on a small fixed sample evaluated every so many steps (the weights that the run started
from are the first candidate). Reward does not choose: it is what a collapsing run still earns. ``guard.json`` says why,
with the window's figures and the last completions.

The sample comes from ``held_out_block`` where there is one, else from ``held_out_landscape``: where the guard went
back, figures on that split are a little flattered, since it chose by them; those on the other are not.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pydantic import Field

from oracle.files import write_atomically, write_json
from training.kl import copy_parameters, last_kl
from training.rewards import repeated_share
from training.section import Section
from training.turn import Turn

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

EVIDENCE, STATE, BEST = "guard.json", "guard_state.json", "best.safetensors"
SPLITS = ("held_out_block", "held_out_landscape")
KEPT_COMPLETIONS = 16


class GuardSection(Section):
    """Limits of the guard; None takes one away."""

    on: bool = True
    window: int = Field(default=5, ge=1, description="generations whose mean is held against the limits")
    min_answer_entropy: float | None = Field(default=0.05, ge=0, le=1)
    max_commonest: float | None = Field(default=0.98, ge=0, le=1)
    min_well_formed: float | None = Field(default=0.5, ge=0, le=1)
    max_clipped: float | None = Field(default=0.5, ge=0, le=1)
    max_kl: float | None = Field(default=1.0, gt=0, description="nats per token")
    max_repetition: float | None = Field(default=0.5, ge=0, le=1)
    evaluate_every: int | None = Field(default=50, ge=1, description="steps between two looks at held-out rows")
    rows: int = Field(default=200, ge=1, description="held-out rows looked at, drawn once by the seed")

    @property
    def limits(self) -> dict[str, tuple[str, float]]:
        """``{figure: (which bound, value)}``."""
        bounds = {
            "answer_entropy": ("min", self.min_answer_entropy),
            "commonest": ("max", self.max_commonest),
            "well_formed": ("min", self.min_well_formed),
            "clipped": ("max", self.max_clipped),
            "kl": ("max", self.max_kl),
            "repetition": ("max", self.max_repetition),
        }
        return {name: (which, value) for name, (which, value) in bounds.items() if value is not None}


def answer_figures(turns: Sequence[Turn], classes: int) -> dict[str, float]:
    """The figures of a generation that its turns tell; NaN for those of the answer where nothing was decided."""
    decided = Counter(turn.decision for turn in turns if turn.decision is not None)
    shares = np.array(list(decided.values())) / max(decided.total(), 1)
    entropy = float(-(shares * np.log(shares)).sum()) / math.log(max(classes, 2)) if decided else math.nan
    return {
        "answer_entropy": entropy,
        "commonest": float(shares.max()) if decided else math.nan,
        "well_formed": float(np.mean([turn.well_formed for turn in turns])),
        "repetition": float(np.mean([repeated_share(turn.text) for turn in turns])),
    }


@dataclass(frozen=True)
class Breach:
    """A limit that no longer holds."""

    figure: str
    value: float
    bound: str
    limit: float
    step: int

    def __str__(self) -> str:
        side = "above" if self.bound == "max" else "below"
        return f"{self.figure} {self.value:.3g} is {side} guard.{self.bound}_{self.figure} {self.limit:g}"


class Guard:
    """What is known of a run's health.

    Parameters
    ----------
    section : GuardSection
        The profile's.
    folder : Path
        Where the best weights are kept while the run works.
    evidence : Path
        Where ``guard.json`` is written on a breach.
    """

    def __init__(self, section: GuardSection, folder: Path, evidence: Path) -> None:
        self.section, self.folder, self.evidence = section, folder, evidence
        self.windows: dict[str, deque[float]] = {name: deque(maxlen=section.window) for name in section.limits}
        self.kept_once: set[str] = set()
        self.best: dict[str, float] | None = None
        self.breach: Breach | None = None
        self.completions: list[dict[str, Any]] = []

    def note(self, figures: dict[str, float]) -> None:
        """Take in figures of a generation; those that are no number are left out."""
        for name, value in figures.items():
            if name in self.windows and math.isfinite(value):
                window = self.windows[name]
                window.append(value)
                full = len(window) == self.section.window
                if (full or len(window) == 1) and self._holds(name, sum(window) / len(window)):
                    self.kept_once.add(name)

    def judge(self, step: int) -> Breach | None:
        """The first limit that the last window breaks, having been kept before."""
        for name in sorted(self.kept_once):
            window = self.windows[name]
            mean = sum(window) / len(window)
            if len(window) == self.section.window and not self._holds(name, mean):
                which, limit = self.section.limits[name]
                self.breach = Breach(name, mean, which, limit, step)
                return self.breach
        return None

    def candidate(self, trainer: GRPOTrainer, step: int, accuracy: float, rows: int) -> None:
        """Keep the weights of ``step`` where they decide more of the held-out rows rightly than any before."""
        if self.best is not None and accuracy <= self.best["accuracy"]:
            return
        self.best = {"step": step, "accuracy": accuracy, "rows": rows}
        if trainer.accelerator.is_main_process:
            from safetensors.torch import save_file

            weights = {name: p.detach().cpu().contiguous() for name, p in _trained(trainer)}
            kept = {name: str(value) for name, value in self.best.items()}
            write_atomically(self.folder / BEST, lambda path: save_file(weights, path, metadata=kept))

    def go_back(self, trainer: GRPOTrainer) -> str:
        """Load the best weights, write the evidence, and say what happened."""
        from safetensors.torch import load_file

        assert self.breach is not None
        assert self.best is not None
        copy_parameters(load_file(self.folder / BEST), trainer.accelerator.unwrap_model(trainer.model))
        said = (
            f"stopped by the guard after step {self.breach.step}: {self.breach}. Went back to the weights of step "
            f"{self.best['step']:.0f}"
        )
        if self.best["rows"]:
            said += f", which decided {self.best['accuracy']:.1%} of {self.best['rows']:.0f} held-out rows rightly"
        evidence = {
            "reason": said,
            "breach": vars(self.breach),
            "best": self.best,
            "limits": self.section.model_dump(),
            "window": {name: list(values) for name, values in self.windows.items()},
            "completions": self.completions,
        }
        write_json(self.evidence, evidence)
        return said

    def save(self, checkpoint: Path) -> None:
        """Write the windows into a checkpoint."""
        state = {
            "windows": {name: list(values) for name, values in self.windows.items()},
            "kept_once": sorted(self.kept_once),
        }
        write_json(checkpoint / STATE, state)

    def load(self, checkpoint: Path) -> None:
        """Take the windows from a checkpoint; the best weights lie beside it."""
        from safetensors import safe_open

        state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        for name, values in state["windows"].items():
            self.windows[name].extend(values)
        self.kept_once = set(state["kept_once"])
        if (self.folder / BEST).is_file():
            with safe_open(self.folder / BEST, "pt") as file:
                self.best = {name: float(value) for name, value in file.metadata().items()}

    def _holds(self, name: str, value: float) -> bool:
        which, limit = self.section.limits[name]
        return value <= limit if which == "max" else value >= limit


def held_out_sample(frame: pd.DataFrame, section: GuardSection, seed: int) -> pd.DataFrame:
    """The rows that choose the best weights: of the first of :data:`SPLITS` that has any; empty where none has."""
    for split in SPLITS:
        rows = frame[frame["split"] == split]
        if len(rows):
            return rows.sample(n=min(section.rows, len(rows)), random_state=seed).sort_index()
    return frame.iloc[:0]


def guard_callback(
    guard: Guard, trainer: GRPOTrainer, held_out: pd.DataFrame, decide: Any, record: Any
) -> TrainerCallback:
    """The callback that judges after every step and looks at held-out rows now and then.

    Parameters
    ----------
    guard, trainer
        Of the run.
    held_out : DataFrame
        The sample.
    decide : callable
        ``decide(trainer, rows) -> float``: share of the rows decided rightly, greedily.
    record : callable
        ``record(row)`` keeps a row with ``step``, ``accuracy`` and ``rows``.
    """
    from transformers import TrainerCallback

    every = guard.section.evaluate_every if len(held_out) else None

    def look(step: int) -> None:
        rows = len(held_out) if every is not None else 0
        accuracy = decide(trainer, held_out) if rows else 0.0
        guard.candidate(trainer, step, accuracy, rows)
        if rows and trainer.accelerator.is_main_process:
            record({"step": step, "accuracy": accuracy, "rows": rows})

    class GuardCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if guard.best is None:
                look(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            guard.note({"kl": last_kl(trainer)})
            if every is not None and state.global_step % every == 0:
                look(state.global_step)
            if guard.judge(state.global_step) is not None:
                control.should_training_stop = True

    return GuardCallback()


def _trained(trainer: GRPOTrainer) -> list[tuple[str, Any]]:
    model = trainer.accelerator.unwrap_model(trainer.model)
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
