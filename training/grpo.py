"""Group Relative Policy Optimization (GRPO): the model is rewarded for deciding as the oracle does.

TRL's ``GRPOTrainer`` with the rewards of :mod:`training.rewards`. The policy starts from a finished SFT run, and the
KL anchor is that same run, also after a resume: the trainer is always built from the SFT folder, and a checkpoint is
only ever loaded into it.

What is added to the trainer, each in a file of its own:

:mod:`training.gate`         a group in which all decide alike moves nothing
:mod:`training.uncertainty`  prompts are drawn by how uncertain the policy is about them
:mod:`training.kl`           the weight of the KL term follows a schedule or a target; the reference may move
:mod:`training.guard`        a run that collapses is stopped and goes back to its best weights
:mod:`training.agreement`    generator and trainer are compared before the first step
:mod:`training.step_time`    seconds of every step by part
:mod:`training.curriculum`   easy prompts first

Logged beside TRL's own figures: ``decision_signal_frac`` and ``no_decision_signal_frac``, the shares of groups whose
decisions differ or not; ``no_decision_signal_advantage_share``, how much of all |advantage| the latter own while
nothing is gated.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from oracle.errors import ConfigurationError, TrainingError
from training.agreement import agreement_callback
from training.checkpoint import Kept
from training.config import Stage, TrainingConfig, profile_rewards, trainer_arguments
from training.curriculum import in_order, reading_in_order
from training.encode import template_prefill
from training.gate import gate, silent_advantage_share, silent_groups
from training.generate import generate
from training.generation_batch import generation_batch, usable_batch
from training.guard import EVIDENCE, KEPT_COMPLETIONS, Guard, answer_figures, guard_callback, held_out_sample
from training.kl import Anchor, anchor_callback
from training.models import load_tokenizer, lora
from training.run import COMPLETIONS, HELD_OUT, RunFolder, StopRequest, open_run
from training.samples import sampled_groups
from training.step_time import device_stopwatch, step_time_callback, timed
from training.trainer import run_callback, train_to_the_end, training_rows, use_threads
from training.turn import read_turn
from training.uncertainty import Votes, votes_on

if TYPE_CHECKING:
    import torch
    from transformers import TrainerCallback
    from trl import GRPOTrainer

COLUMNS = ("prompt_id", "prompt", "answer", "classes", "accepted", "regret_low")
"""Of the dataset's columns, those that rewards see; the first four are needed."""


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
        A prompt dataset's rows: ``prompt``, ``answer``, ``classes``, ``prompt_id``, ``split``; ``status`` and
        ``regret`` where it has them. Held-out rows are only looked at, by the guard.
    config : TrainingConfig
        Its ``grpo``, ``rewards``, ``draw``, ``kl``, ``guard`` and ``model`` sections; ``beta`` is explicit.
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
        if run.finished:
            return run.out
        args = trainer_arguments(
            config, Stage.GRPO, run.trainer_dir, run_name=run.name, **reading_in_order(config, Stage.GRPO)
        )
        batch = usable_batch(config)
        tokenizer = load_tokenizer(start)
        prefill = template_prefill(tokenizer)
        dataset = Dataset.from_dict({name: rows[name].tolist() for name in COLUMNS if name in rows})
        votes = votes_on(rows, config.draw, config.seed)
        guard = Guard(config.guard, run.trainer_dir, run.partial / EVIDENCE) if config.guard.on else None
        watch = device_stopwatch(use_cpu=args.use_cpu)
        trainer = timed(landoracle_trainer(run, prefill, votes, guard), watch)(
            model=str(start),
            reward_funcs=profile_rewards(config, prefill),
            args=args,
            train_dataset=in_order(dataset, rows, config, Stage.GRPO),
            processing_class=tokenizer,
            peft_config=lora(config.model),
        )
        anchor = Anchor(config.kl, trainer)
        kept: list[Kept] = [part for part in (votes, anchor, guard) if part is not None]
        trainer.add_callback(step_time_callback(trainer, watch))
        trainer.add_callback(agreement_callback(trainer, list(rows["prompt"]), config.logp_tolerance))
        if votes is not None and config.draw.first_votes:
            trainer.add_callback(first_votes_callback(trainer, votes, rows, config, prefill))
        trainer.add_callback(anchor_callback(anchor))
        if guard is not None:
            sample = held_out_sample(frame, config.guard, config.seed)
            trainer.add_callback(
                guard_callback(
                    guard,
                    trainer,
                    sample,
                    lambda trainer, rows: decided_rightly(trainer, rows, config, prefill),
                    lambda row: run.append(HELD_OUT, row),
                )
            )
        trainer.add_callback(run_callback(run, stop, unit=batch.resume_unit, kept=kept))
        return train_to_the_end(trainer, run, stop, tokenizer, kept=kept, guard=guard)


def decided_rightly(trainer: GRPOTrainer, rows: pd.DataFrame, config: TrainingConfig, prefill: str) -> float:
    """Share of ``rows`` that the policy decides as the oracle does, greedily; random numbers stay as they were."""
    return float(_right(trainer, rows, config, prefill, label="held out").mean())


def first_votes_callback(
    trainer: GRPOTrainer, votes: Votes, rows: pd.DataFrame, config: TrainingConfig, prefill: str
) -> TrainerCallback:
    """The callback that votes on ``draw.first_votes`` rows with the start weights, so that drawing knows some."""
    from accelerate.utils import broadcast_object_list
    from transformers import TrainerCallback

    group = generation_batch(config).group

    class FirstVotesCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step:
                return
            chosen, _by_weight = votes.draw(min(config.draw.first_votes, len(rows)))
            asked = rows.iloc[chosen.repeat(group)]
            right = _right(trainer, asked, config, prefill, label="first votes", temperature=args.temperature)
            share = [right.reshape(-1, group).mean(axis=1)]
            broadcast_object_list(share)
            votes.note(chosen, share[0], group)

    return FirstVotesCallback()


def _right(
    trainer: GRPOTrainer,
    rows: pd.DataFrame,
    config: TrainingConfig,
    prefill: str,
    *,
    label: str,
    temperature: float = 0.0,
) -> np.ndarray:
    import torch

    model = trainer.accelerator.unwrap_model(trainer.model)
    training = model.training
    with torch.random.fork_rng():
        written = generate(
            model,
            trainer.processing_class,
            list(rows["prompt"]),
            max_new_tokens=config.max_completion_length,
            batch=config.evaluation.batch,
            temperature=temperature,
            seed=config.seed,
            label=label,
        )
    model.train(training)
    return np.array(
        [
            read_turn(said.text, allowed, prefill).decision == answer
            for said, allowed, answer in zip(written, rows["classes"], rows["answer"], strict=True)
        ]
    )


def landoracle_trainer(run: RunFolder, prefill: str, votes: Votes | None, guard: Guard | None) -> type[GRPOTrainer]:
    """``GRPOTrainer`` that draws prompts by votes, gates groups, feeds the guard and keeps completions now and then.

    Parameters
    ----------
    run : RunFolder
        Where completions go; its configuration decides on the gate.
    prefill : str
        How turns are read.
    votes : Votes, optional
        Drawn from and added to; None = TRL's own order of prompts.
    guard : Guard, optional
        Gets the figures of every generation.
    """
    import torch
    from accelerate.utils import gather_object
    from trl import GRPOTrainer

    config = run.config

    class LandoracleTrainer(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            if votes is not None and self.model.training:
                inputs = self._drawn(len(inputs))
            scored: dict[str, Any] = super()._generate_and_score_completions(inputs)
            if self.model.training:
                self._keep_completions(scored["advantages"])
            return scored

        def _drawn(self, local: int) -> list[dict[str, Any]]:
            """This process's part of a generation; every process makes the same draw."""
            assert votes is not None
            everywhere = local * self.accelerator.num_processes
            self._rows, self._by_weight = votes.draw(everywhere // self.num_generations)
            repeated = self._rows.repeat(self.num_generations)
            first = local * self.accelerator.process_index
            return [self.train_dataset[int(row)] for row in repeated[first : first + local]]

        def _calculate_rewards(
            self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids: list[Any]
        ) -> torch.Tensor:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids)
            if bool(torch.isnan(rewards).any()):
                raise TrainingError("a reward gave no number; TRL would count it as 0")
            training = self.model.training
            group = self.num_generations if training else self.num_generations_eval
            names, decision = self.reward_func_names, config.decision_reward
            silent = silent_groups(rewards, names, group, decision)
            if training:
                self._written = inputs, completions, rewards, ~silent
                self._take_votes(rewards, silent, group)
                self._feed_guard(inputs, completions)
            share = silent_advantage_share(
                rewards, self.reward_weights.to(rewards.device), names, group, self.scale_rewards, decision
            )
            self._log_metric("no_decision_signal_frac", float(silent.float().mean()))
            self._log_metric("decision_signal_frac", 1 - float(silent.float().mean()))
            self._log_metric("no_decision_signal_advantage_share", share)
            return gate(rewards, names, group, decision) if config.gate_on_decision else rewards

        def _take_votes(self, rewards: torch.Tensor, silent: torch.Tensor, group: int) -> None:
            if votes is None or config.decision_reward not in self.reward_func_names:
                return
            decided = rewards[:, self.reward_func_names.index(config.decision_reward)].view(-1, group)
            votes.note(self._rows, decided.clamp(0, 1).mean(dim=1).cpu().numpy(), group)
            signal = ~silent.cpu().numpy()
            for name, part in (("signal/drawn", self._by_weight), ("signal/uniform", ~self._by_weight)):
                if part.any():
                    self._log_metric(name, float(signal[part].mean()))

        def _feed_guard(self, inputs: list[dict[str, Any]], completions: list[Any]) -> None:
            if guard is None:
                return
            turns = gather_object(
                [
                    read_turn(said, row["classes"], prefill, thinks=config.thinks)
                    for said, row in zip(completions, inputs, strict=True)
                ]
            )
            figures = answer_figures(turns, len(inputs[0]["classes"]))
            for name, value in figures.items():
                if not math.isnan(value):
                    self._log_metric(f"completions/{name}", value)
            guard.note({**figures, "clipped": self._metrics["train"]["completions/clipped_ratio"][-1]})
            guard.completions = [{"decision": t.decision, "text": t.text} for t in turns[:KEPT_COMPLETIONS]]

        def _keep_completions(self, advantages: torch.Tensor) -> None:
            step = self.state.global_step + 1
            if not self.accelerator.is_main_process or (step - 1) % config.completions_every:
                return
            inputs, completions, rewards, signal = self._written
            here = len(inputs)  # of all processes' completions, the first one's
            for row in sampled_groups(
                inputs,
                completions,
                rewards[:here].cpu().numpy(),
                advantages.cpu().numpy(),
                signal[: here // self.num_generations].cpu().numpy(),
                self.reward_func_names,
                self.reward_weights.cpu().numpy(),
                partial(read_turn, prefill=prefill, thinks=config.thinks),
            ):
                run.append(COMPLETIONS, {"step": step, **row})

    return LandoracleTrainer
