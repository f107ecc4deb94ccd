"""How many completions GRPO generates at once, and after how many optimizer steps they are used up.

TRL generates once in ``steps_per_generation * num_iterations`` forward passes, of which ``gradient_accumulation_steps``
make an optimizer step. A checkpoint does not hold completions, so a resumed run is exact only where a generation ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oracle.errors import ConfigurationError

if TYPE_CHECKING:
    from training.config import TrainingConfig


@dataclass(frozen=True)
class GenerationBatch:
    """Sizes of one generation, from a profile's ``grpo`` section with TRL's defaults.

    Parameters
    ----------
    completions : int
        Generated at once, over all processes.
    group : int
        Samples per prompt.
    resume_unit : int
        Optimizer steps after which a generation is used up.
    problems : tuple of str
        What does not fit together, a sentence each.
    """

    completions: int
    group: int
    resume_unit: int
    problems: tuple[str, ...]


def usable_batch(config: TrainingConfig) -> GenerationBatch:
    """The sizes that a profile asks for.

    Raises
    ------
    ConfigurationError
        With all that does not fit together.
    """
    batch = generation_batch(config)
    if batch.problems:
        raise ConfigurationError("; ".join(batch.problems))
    return batch


def generation_batch(config: TrainingConfig) -> GenerationBatch:
    """The sizes that a profile asks for, and what is wrong with them."""
    settings = config.grpo
    group = settings.get("num_generations", 8)
    accumulation = settings.get("gradient_accumulation_steps", 1)
    per_step = settings.get("per_device_train_batch_size", 8) * config.processes
    completions = settings.get("generation_batch_size") or per_step * settings.get("steps_per_generation", accumulation)
    passes = max(completions // per_step, 1) * settings.get("num_iterations", 1)
    unit = math.lcm(passes, accumulation) // accumulation
    problems = []
    if completions % group:
        problems.append(
            f"grpo.num_generations {group} must divide the completions of one generation, {completions} "
            "(per_device_train_batch_size x processes x steps_per_generation)"
        )
    save_steps = settings.get("save_steps", 500)
    if settings.get("save_strategy", "steps") == "steps" and save_steps % unit:
        problems.append(
            f"grpo.save_steps {save_steps} must be a multiple of {unit}, the steps that share one generation; "
            "else a resumed run differs from an uninterrupted one"
        )
    return GenerationBatch(completions, group, unit, tuple(problems))
