"""The KL anchor: how strongly the policy is held to its reference, and when the reference moves.

The weight beta of the KL term is fixed, follows a schedule, or is controlled: after every step

    beta <- beta * (1 + gain * clip((KL - target) / target, -0.2, 0.2))

(Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences", eq. 4 of section 2.2, with gain 0.1). KL is
TRL's figure ``kl``: an estimate in nats per token, where Ziegler et al. take the sum over a completion.

The reference may be set to the policy every so many steps, with the optimizer's moments forgotten (Liu et al. 2025,
"ProRL"). Beta and a moved reference are kept in every checkpoint, so a resumed run is exact; until it first moves, the
reference is the SFT model.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from oracle.files import write_json
from training.section import Section

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

KL, REFERENCE = "kl.json", "reference.safetensors"
CLIP = 0.2


class KLSection(Section):
    """What becomes of ``grpo.beta``, the weight that a run starts with."""

    control: Literal["fixed", "linear", "cosine", "target"] = "fixed"
    to: float | None = Field(default=None, gt=0, description="linear, cosine: beta at the end")
    steps: int | None = Field(default=None, ge=1, description="linear, cosine: steps to get there; None = the run")
    target: float | None = Field(default=None, gt=0, description="target: nats per token")
    gain: float = Field(default=0.1, gt=0, lt=5, description="target: of the proportional controller")
    reset_every: int | None = Field(
        default=None, ge=1, description="steps after which the reference becomes the policy; None = never"
    )

    @model_validator(mode="after")
    def _fits(self) -> KLSection:
        scheduled = self.control in ("linear", "cosine")
        if scheduled != (self.to is not None) or (self.steps is not None and not scheduled):
            raise ValueError("kl.to is needed with control linear or cosine, and kl.to and kl.steps only there")
        if (self.control == "target") != (self.target is not None):
            raise ValueError("kl.target is needed with control: target, and only there")
        return self


def scheduled_beta(section: KLSection, start: float, step: int, steps: int) -> float:
    """Beta after ``step`` of a schedule's ``steps`` steps, from ``start`` to ``section.to``."""
    if section.to is None:
        return start
    done = min(step / max(section.steps or steps, 1), 1.0)
    if section.control == "cosine":
        done = (1 - math.cos(math.pi * done)) / 2
    return start + (section.to - start) * done


def controlled_beta(section: KLSection, beta: float, kl: float) -> float:
    """Beta after a step whose KL was ``kl`` nats per token; the same where that is no number."""
    if section.target is None or not math.isfinite(kl):
        return beta
    error = max(-CLIP, min(CLIP, (kl - section.target) / section.target))
    return beta * (1 + section.gain * error)


class Anchor:
    """Beta and reference of one run.

    Parameters
    ----------
    section : KLSection
        The profile's.
    trainer : GRPOTrainer
        Its ``beta`` and ``ref_model`` are set.
    """

    def __init__(self, section: KLSection, trainer: GRPOTrainer) -> None:
        self.section, self.trainer = section, trainer
        self.start = trainer.beta
        self.moved_at: int | None = None

    def step(self, step: int, steps: int) -> None:
        """Set beta for the step after ``step``, and move the reference where it is time."""
        trainer, section = self.trainer, self.section
        if section.control == "target":
            trainer.beta = controlled_beta(section, trainer.beta, last_kl(trainer))
        elif section.control != "fixed":
            trainer.beta = scheduled_beta(section, self.start, step, steps)
        if section.control != "fixed":
            trainer._metrics["train"]["beta"].append(trainer.beta)
        if section.reset_every is not None and step % section.reset_every == 0 and step < steps:
            self._move()
            self.moved_at = step

    def save(self, checkpoint: Path) -> None:
        """Write beta, and the reference once it has moved, into a checkpoint."""
        write_json(checkpoint / KL, {"beta": self.trainer.beta, "moved_at": self.moved_at})
        if self.moved_at is not None:
            from safetensors.torch import save_file

            reference = {name: p.detach().cpu().contiguous() for name, p in self._reference().named_parameters()}
            save_file(reference, checkpoint / REFERENCE)

    def load(self, checkpoint: Path) -> None:
        """Take beta and reference from a checkpoint."""
        state = json.loads((checkpoint / KL).read_text(encoding="utf-8"))
        self.trainer.beta, self.moved_at = state["beta"], state["moved_at"]
        if self.moved_at is not None:
            from safetensors.torch import load_file

            copy_parameters(load_file(checkpoint / REFERENCE), self._reference())

    def _reference(self) -> Any:
        return self.trainer.accelerator.unwrap_model(self.trainer.ref_model)

    def _move(self) -> None:
        policy = self.trainer.accelerator.unwrap_model(self.trainer.model)
        copy_parameters(dict(policy.named_parameters()), self._reference())
        optimizer = getattr(self.trainer.optimizer, "optimizer", self.trainer.optimizer)
        optimizer.state = defaultdict(dict)


def anchor_callback(anchor: Anchor) -> TrainerCallback:
    """The callback that moves an anchor after every step."""
    from transformers import TrainerCallback

    class AnchorCallback(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            anchor.step(state.global_step, state.max_steps)

    return AnchorCallback()


def last_kl(trainer: GRPOTrainer) -> float:
    """Mean KL of the last optimizer step, nats per token; NaN where beta is 0."""
    values = trainer._metrics["train"].get("kl") or []
    last = values[-trainer.args.gradient_accumulation_steps :]
    return sum(last) / len(last) if last else math.nan


def copy_parameters(source: dict[str, Any], target: Any) -> None:
    """Write the weights ``source`` (by name) into the module ``target``."""
    import torch

    with torch.no_grad():
        for name, weights in target.named_parameters():
            if name in source:
                weights.copy_(source[name])
