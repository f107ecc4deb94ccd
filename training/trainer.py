"""What SFT and GRPO share: figures of every step, progress, stopping on request, resuming, the final weights."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from oracle.errors import TrainingError
from training.checkpoint import PREFIX, Kept, seal
from training.config import TrainingConfig
from training.guard import Guard
from training.models import save_merged
from training.progress import Progress
from training.run import METRICS, RunFolder, RunInterrupted, StopRequest
from training.targets import as_taught

if TYPE_CHECKING:
    from transformers import Trainer, TrainerCallback

# Figures worth a place in the progress line, where the trainer logs them.
SHOWN = {
    "loss": "loss",
    "mean_token_accuracy": "tokens right",
    "reward": "reward",
    "rewards/lu_reward/mean": "decisions",
    "kl": "kl",
    "decision_signal_frac": "signal",
}
# The SFT trainer counts these from 0 after a resume.
NOT_RESUMED = {"num_tokens"}


def run_callback(run: RunFolder, stop: StopRequest, *, unit: int = 1, kept: Sequence[Kept] = ()) -> TrainerCallback:
    """The callback that keeps a run's folder.

    Parameters
    ----------
    run : RunFolder
        Where figures go.
    stop : StopRequest
        Asked after every step.
    unit : int
        Checkpoints fall on multiples of so many steps; GRPO cannot resume in the middle of a generation.
    kept : sequence of Kept
        Written into every checkpoint before it is sealed.
    """
    from transformers import TrainerCallback

    class RunCallback(TrainerCallback):
        def __init__(self) -> None:
            self._progress: Progress | None = None
            self._figures: dict[str, float] = {}

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                self._progress = Progress(run.identity.stage.value, state.max_steps, done=state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self._progress is not None:
                self._progress.update(state.global_step, self._figures)
            if stop.requested and state.global_step % unit == 0 and state.global_step < state.max_steps:
                control.should_save = control.should_training_stop = True

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            if not state.is_world_process_zero or not logs or "loss" not in logs:
                return
            numbers = {k: v for k, v in logs.items() if isinstance(v, int | float) and k not in NOT_RESUMED}
            self._figures = {name: numbers[key] for key, name in SHOWN.items() if key in numbers}
            run.append(METRICS, {"step": state.global_step, **numbers})

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                checkpoint = Path(args.output_dir) / f"{PREFIX}{state.global_step}"
                for part in kept:
                    part.save(checkpoint)
                seal(checkpoint)

    return RunCallback()


def train_to_the_end(
    trainer: Trainer,
    run: RunFolder,
    stop: StopRequest,
    tokenizer: Any,
    *,
    kept: Sequence[Kept] = (),
    guard: Guard | None = None,
) -> Path:
    """Train from the last complete checkpoint, or the start, and finish the run's folder.

    ``kept`` is read from the checkpoint as well. A run that ``guard`` stopped is finished with its best weights.

    Raises
    ------
    RunInterrupted
        Where ``stop`` was requested; the checkpoint of that step is complete.
    TrainingError
        Where the weights are no longer finite.
    """
    from transformers import PrinterCallback, ProgressCallback

    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    with trainer.args.main_process_first(local=False):
        checkpoint = run.checkpoint()
    if checkpoint is not None:
        for part in kept:
            part.load(checkpoint)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    step = trainer.state.global_step
    stopped = guard.go_back(trainer) if guard is not None and guard.breach is not None else None
    if stopped is None and step < trainer.state.max_steps:
        raise RunInterrupted(f"stopped after step {step}; the same command goes on from there")
    if not trainer.accelerator.is_main_process:
        return run.out
    model = trainer.accelerator.unwrap_model(trainer.model)
    broken = [name for name, weights in model.named_parameters() if not bool(weights.isfinite().all())]
    if broken:
        raise TrainingError(f"{broken[0]} is not finite after step {step}: lower the learning rate and train again")
    save_merged(model, tokenizer, run.partial)
    if stopped is not None:
        print(stopped, file=sys.stderr)
    return run.finish(stopped)


def drawn(frame: pd.DataFrame, at_most: int | None, seed: int) -> pd.DataFrame:
    """``at_most`` rows of ``frame`` by ``seed``, in their own order; all of them where it is None."""
    if at_most is None or len(frame) <= at_most:
        return frame
    return frame.sample(n=at_most, random_state=seed).sort_index()


def training_rows(frame: pd.DataFrame, config: TrainingConfig) -> pd.DataFrame:
    """Rows of the split ``train`` with the targets and labels that the profile asks for.

    At most ``max_train_rows``, of at most ``max_train_landscapes``.

    Raises
    ------
    TrainingError
        Where there is none.
    """
    rows = frame[frame["split"] == "train"]
    if rows.empty:
        raise TrainingError("the dataset has no row in the split 'train'; its splits are " + _splits(frame))
    if config.max_train_landscapes is not None:
        landscapes = drawn(rows[["landscape"]].drop_duplicates(), config.max_train_landscapes, config.seed)
        rows = rows[rows["landscape"].isin(landscapes["landscape"])]
    return as_taught(
        drawn(rows, config.max_train_rows, config.seed),
        config.prompts.style,
        format_only=config.targets == "format_only",
        shuffled=config.labels_shuffled,
        seed=config.seed,
    )


def use_threads(threads: int | None) -> None:
    """Limit torch to so many CPU threads; None leaves it alone. Quiet the libraries' own bars."""
    import datasets
    import torch
    from transformers.utils import logging

    datasets.disable_progress_bars()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if threads is not None:
        torch.set_num_threads(threads)


def _splits(frame: pd.DataFrame) -> str:
    return ", ".join(sorted(map(str, frame["split"].unique()))) or "none"
