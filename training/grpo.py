"""Group Relative Policy Optimization (GRPO): the model is rewarded for deciding as the oracle does.

TRL's ``GRPOTrainer`` with the rewards of :mod:`training.rewards`. The policy starts from a finished SFT run, and the
KL anchor is that same run, also after a resume: the trainer is always built from the SFT folder, and a checkpoint is
only ever loaded into it.

One change to the trainer. In a group whose samples all decide alike, differences of format or repetition are all that
is left, and scaling blows them up into advantages as large as any. So once every sample of a group is well-formed and
all have the same land-use reward, the group moves nothing. ``no_decision_signal_frac`` logs the share of groups whose
land-use rewards are all equal, gated or not.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from oracle.errors import ConfigurationError, TrainingError
from training.config import Stage, TrainingConfig, trainer_arguments
from training.encode import template_prefill
from training.models import load_tokenizer, lora
from training.rewards import build_rewards
from training.run import COMPLETIONS, RunFolder, StopRequest, open_run
from training.trainer import run_callback, train_to_the_end, training_rows, use_threads
from training.turn import text_of

if TYPE_CHECKING:
    import torch
    from trl import GRPOTrainer


def run_grpo(
    frame: pd.DataFrame,
    config: TrainingConfig,
    out: Path,
    start: Path,
    *,
    dataset_sha256: str = "",
    stop: StopRequest | None = None,
) -> Path:
    """Train with GRPO on the split ``train`` and leave a complete run in ``out``.

    Parameters
    ----------
    frame : DataFrame
        A prompt dataset's rows: ``prompt``, ``answer``, ``classes``, ``prompt_id``, ``split``.
    config : TrainingConfig
        Its ``grpo``, ``rewards`` and ``model`` sections; ``beta`` is explicit.
    out : Path
        The run's folder (:mod:`training.run`).
    start : Path
        A finished SFT run (or a hub's name): start and KL anchor.
    dataset_sha256 : str
        Hash of the dataset, kept in ``run.json``.
    stop : StopRequest, optional
        Asked after every step.

    Returns
    -------
    Path
        ``out``.

    Raises
    ------
    TrainingError
        Where the run cannot start or its weights are not finite; :class:`~training.run.RunInterrupted` on request.
    ConfigurationError
        Where ``save_steps`` would make a resumed run differ from an uninterrupted one.
    """
    use_threads(config.threads)
    from datasets import Dataset

    stop = stop or StopRequest()
    if not config.grpo:
        raise ConfigurationError(f"profile {config.profile!r} has no grpo section; beta at least is needed")
    rows = training_rows(frame, config)
    with open_run(out, Stage.GRPO, config, dataset_sha256, start) as run:
        args = trainer_arguments(config, Stage.GRPO, run.trainer_dir)
        unit = resume_unit(args.steps_per_generation, args.num_iterations, args.gradient_accumulation_steps)
        if args.save_strategy == "steps" and args.save_steps % unit:
            raise ConfigurationError(
                f"grpo.save_steps {args.save_steps} must be a multiple of {unit}, the steps that share one generation; "
                "else a resumed run differs from an uninterrupted one"
            )
        tokenizer = load_tokenizer(start)
        columns = {name: rows[name].tolist() for name in ("prompt_id", "prompt", "answer", "classes")}
        trainer = gated_trainer(run)(
            model=str(start),
            reward_funcs=build_rewards(
                list(config.rewards),
                prefill=template_prefill(tokenizer),
                thinks=config.thinks,
                ngram=config.repetition.ngram,
                max_penalty=config.repetition.max_penalty,
            ),
            args=args,
            train_dataset=Dataset.from_dict(columns),
            processing_class=tokenizer,
            peft_config=lora(config.model),
            callbacks=[run_callback(run, stop, unit=unit)],
        )
        return train_to_the_end(trainer, run, stop, tokenizer)


def resume_unit(steps_per_generation: int, num_iterations: int, accumulation: int) -> int:
    """Optimizer steps after which a generation is used up: a resumed run is exact at multiples of it only.

    TRL generates once in ``steps_per_generation * num_iterations`` forward passes, of which ``accumulation`` make an
    optimizer step, and a checkpoint does not hold completions.
    """
    return math.lcm(steps_per_generation * num_iterations, accumulation) // accumulation


def gate(rewards: torch.Tensor, names: list[str], group: int) -> tuple[torch.Tensor, float]:
    """Give every sample of a group without a decision signal the group's mean, so that its advantages are 0.

    Parameters
    ----------
    rewards : Tensor
        (n, R) rewards apart, groups of ``group`` rows after each other.
    names : list of str
        The R names.
    group : int
        Samples per prompt.

    Returns
    -------
    Tensor, float
        (n, R) rewards with the gated groups' replaced, and the share of groups whose land-use rewards are all equal.
        Without ``lu_reward`` nothing is gated; without ``format_reward`` every sample counts as well-formed.
    """
    if "lu_reward" not in names:
        return rewards, 0.0
    grouped = rewards.view(-1, group, len(names))
    decided = grouped[:, :, names.index("lu_reward")]
    silent = (decided == decided[:, :1]).all(dim=1)
    gated = silent
    if "format_reward" in names:
        gated = silent & (grouped[:, :, names.index("format_reward")] == 1).all(dim=1)
    levelled = grouped.mean(dim=1, keepdim=True).expand_as(grouped)
    return levelled.where(gated[:, None, None], grouped).reshape_as(rewards), float(silent.float().mean())


def gated_trainer(run: RunFolder) -> type[GRPOTrainer]:
    """``GRPOTrainer`` that gates groups on the decision and keeps a group of completions now and then."""
    import torch
    from trl import GRPOTrainer

    class DecisionGatedTrainer(GRPOTrainer):
        def _calculate_rewards(
            self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids: list[Any]
        ) -> torch.Tensor:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids)
            if bool(torch.isnan(rewards).any()):
                raise TrainingError("a reward gave no number; TRL would count it as 0")
            group = self.num_generations if self.model.training else self.num_generations_eval
            self._keep_completions(inputs, completions, rewards, group)
            levelled, silent = gate(rewards, self.reward_func_names, group)
            self._log_metric("no_decision_signal_frac", silent)
            return levelled if run.config.gate_on_decision else rewards

        def _keep_completions(
            self, inputs: list[dict[str, Any]], completions: list[Any], rewards: torch.Tensor, group: int
        ) -> None:
            step = self.state.global_step + 1
            if not self.accelerator.is_main_process or (step - 1) % run.config.completions_every:
                return
            for row, said, values in zip(inputs[:group], completions[:group], rewards[:group].tolist(), strict=True):
                apart = dict(zip(self.reward_func_names, values, strict=True))
                run.append(
                    COMPLETIONS,
                    {
                        "step": step,
                        "prompt_id": row["prompt_id"],
                        "answer": row["answer"],
                        "text": text_of(said),
                        **apart,
                    },
                )

    return DecisionGatedTrainer
