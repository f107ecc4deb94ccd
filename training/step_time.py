"""Where a GRPO step spends its time: seconds by part, logged as ``seconds/<part>`` beside the trainer's other figures.

=====================  ==================================================================================
``generation``         completions of the policy, by transformers or vLLM (with the weights' way there)
``rewards``            all reward functions
``log_probabilities``  of reference and generator, without gradients
``forward``            the policy's, with the loss
``backward``           the gradients, and what else belongs to a pass
``optimizer``          the optimizer's step, and what is left of the step
=====================  ==================================================================================

The parts add up to the step. A part's time excludes the parts within it. On a GPU the clock waits for the device at the
borders of parts, a few times in a step, so that work is counted where it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

GENERATION, REWARDS, LOG_PROBABILITIES = "generation", "rewards", "log_probabilities"
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
PARTS = (GENERATION, REWARDS, LOG_PROBABILITIES, FORWARD, BACKWARD, OPTIMIZER)
PREFIX = "seconds/"
_SCORES = "_get_per_token_logps_and_entropies"
# Methods of TRL's trainer, and the part of a step that they are.
_METHODS = {
    "_generate": GENERATION,
    "_calculate_rewards": REWARDS,
    _SCORES: LOG_PROBABILITIES,
    "compute_loss": FORWARD,
    "training_step": BACKWARD,
}


@dataclass
class Stopwatch:
    """Seconds by part; of parts within each other only the inner one runs.

    Parameters
    ----------
    synchronise : callable
        Waits for the device.
    """

    synchronise: Callable[[], None] = lambda: None
    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[list[float]] = field(default_factory=list)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what happens inside."""
        self.synchronise()
        self._open.append([time.perf_counter(), 0.0])
        try:
            yield
        finally:
            self.synchronise()
            began, within = self._open.pop()
            took = time.perf_counter() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + took - within
            if self._open:
                self._open[-1][1] += took


def device_stopwatch(*, use_cpu: bool) -> Stopwatch:
    """A stopwatch that waits for the GPU where one does the work."""
    import torch

    return Stopwatch(torch.cuda.synchronize) if torch.cuda.is_available() and not use_cpu else Stopwatch()


def timed(kind: type[GRPOTrainer], watch: Stopwatch) -> type[GRPOTrainer]:
    """The trainer with its parts on ``watch``."""
    import torch

    def method(name: str, part: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            learns = name == _SCORES and torch.is_grad_enabled()
            with watch.part(FORWARD if learns else part):
                return getattr(kind, name)(self, *args, **kwargs)

        return call

    return type(kind.__name__, (kind,), {name: method(name, part) for name, part in _METHODS.items()})


def step_time_callback(trainer: GRPOTrainer, watch: Stopwatch) -> TrainerCallback:
    """The callback that logs what ``watch`` counted in each optimizer step; what other callbacks do stays outside."""
    from transformers import TrainerCallback

    class StepTimeCallback(TrainerCallback):
        began = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watch.synchronise()
            watch.seconds.clear()
            self.began = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watch.synchronise()
            rest = time.perf_counter() - self.began - sum(watch.seconds.values())
            for part in PARTS:
                value = rest if part == OPTIMIZER else watch.seconds.get(part, 0.0)
                trainer._metrics["train"][f"{PREFIX}{part}"].append(value)

    return StepTimeCallback()
