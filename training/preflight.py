"""Preflight: everything that would stop or spoil a run, found before anything heavy and said in one message."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from oracle.errors import ConfigurationError, TrainingError, name_some
from prompts.config import PromptConfig
from training.config import Stage, TrainingConfig, trainer_arguments
from training.encode import prompt_ids, template_prefill
from training.generation_batch import generation_batch
from training.memory import device_bytes, memory_problem, model_size, needed_bytes
from training.models import load_tokenizer, pocket_tokenizer, start_weights
from training.rewards import build_rewards
from training.trainer import training_rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

COLUMNS = ("prompt_id", "prompt", "answer", "classes", "target", "split", "block", "landscape", "polygon_id")
VARIANT = ("order", "context", "style", "layout")
"""Settings of the prompts that every row states."""
RECORDED = ("labels", "yield_digits", "connectivity_digits")
"""Those that only the dataset's manifest states."""
TRACKERS = ("tensorboard", "wandb", "trackio")
AUDITED = 20_000
"""So many prompts, the longest by characters, have their tokens counted."""


def preflight(
    frame: pd.DataFrame,
    config: TrainingConfig,
    stage: Stage,
    *,
    start: str | Path | None = None,
    cache: Path = Path("runs/cache"),
    cpu: bool = False,
    prompts: PromptConfig | None = None,
) -> None:
    """Check a dataset, a profile and start weights together.

    Parameters
    ----------
    frame : DataFrame
        A prompt dataset's rows.
    config : TrainingConfig
        The profile.
    stage : Stage
        What is to run.
    start : str or Path, optional
        Start weights; needed for GRPO, else those of the ``model`` section.
    cache : Path
        Where unpacked weights are kept between runs.
    cpu : bool
        Check a GPU profile on a machine without one.
    prompts : PromptConfig, optional
        How the dataset's prompts were made, from its manifest: held against the profile where the rows do not say.

    Raises
    ------
    TrainingError
        With every problem found, a line each.
    """
    found = problems(frame, config, stage, start=start, cache=cache, cpu=cpu, prompts=prompts)
    if found:
        listed = "\n".join(f"  - {p}" for p in found)
        raise TrainingError(f"{stage.value} with profile {config.profile!r} cannot start:\n{listed}")


def problems(
    frame: pd.DataFrame,
    config: TrainingConfig,
    stage: Stage,
    *,
    start: str | Path | None = None,
    cache: Path = Path("runs/cache"),
    cpu: bool = False,
    prompts: PromptConfig | None = None,
) -> list[str]:
    """The problems that :func:`preflight` raises, a sentence each; empty = ready."""
    missing = [c for c in COLUMNS if c not in frame]
    if missing:
        return [f"the dataset lacks the column(s) {', '.join(missing)}: build it anew"]
    try:
        rows = training_rows(frame, config)
    except TrainingError as error:
        return [str(error)]
    found = _variant_problems(frame, config, prompts) + _setting_problems(config, stage, cpu)
    if stage is Stage.GRPO and start is None:
        return [*found, "GRPO starts from a finished SFT run: give its folder with --start"]
    try:
        tokenizer = _tokenizer(rows, config, start, cache)
    except TrainingError as error:
        return [*found, str(error)]
    found += _gold_problems(rows, config, tokenizer)
    asked = frame[frame["split"].isin(config.evaluation.splits)]
    lengths, prompt, target = _length_problems(pd.concat([rows, asked]), config, tokenizer)
    completion = target if stage is Stage.SFT else config.max_completion_length
    return found + lengths + _memory_problems(config, stage, start, (prompt, completion), cpu)


def _variant_problems(frame: pd.DataFrame, config: TrainingConfig, prompts: PromptConfig | None) -> list[str]:
    wanted = config.prompts.model_dump(mode="json")
    made = {name: frame[name].unique().tolist() for name in VARIANT if name in frame}
    if prompts is not None:
        recorded = prompts.model_dump(mode="json")
        made |= {name: [recorded[name]] for name in RECORDED}
    found = []
    for name, values in made.items():
        others = [v for v in values if v != wanted[name]]
        if others:
            found.append(
                f"the dataset's prompts have {name} {name_some(others)}, the profile says {wanted[name]}: "
                f"build the dataset with the profile, or set prompts.{name}"
            )
    return found


def _setting_problems(config: TrainingConfig, stage: Stage, cpu: bool) -> list[str]:
    on_cpu: dict[str, Any] = {"use_cpu": True, "bf16": False, "fp16": False} if cpu else {}
    if cpu and stage is Stage.GRPO:
        on_cpu["use_vllm"] = False
    section = config.section(stage)
    found = []
    if section.get("save_total_limit") == 1:
        found.append(f"{stage.value}.save_total_limit must be 2 or more: a broken checkpoint needs the one before it")
    trackers = section.get("report_to", [])
    for name in [trackers] if isinstance(trackers, str) else trackers:
        if name in TRACKERS and not find_spec(name):
            found.append(f"{stage.value}.report_to names {name}, which is not installed: pip install {name}")
    if not cpu and config.model.attention == "flash_attention_2" and not find_spec("flash_attn"):
        found.append("model.attn_implementation: flash_attention_2 needs the package flash-attn; write auto or sdpa")
    if stage is Stage.GRPO:
        found += _group_problems(config)
    try:
        arguments = trainer_arguments(config, stage, Path("preflight"), **on_cpu)
    except ConfigurationError as error:
        return [*found, str(error)]
    defaults = {field.name: field.default for field in fields(arguments)}
    for name, value in section.items():
        if _is_number(defaults.get(name)) and isinstance(value, str):  # the optimizer would fail on it, much later
            found.append(f"{stage.value}.{name} must be a number, not {value!r}")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _group_problems(config: TrainingConfig) -> list[str]:
    settings = config.grpo
    if not settings:
        return [f"profile {config.profile!r} has no grpo section; beta at least is needed"]
    found = list(generation_batch(config).problems)
    if config.decision_reward not in config.rewards:
        found.append(f"rewards has no {config.decision_reward}: nothing would reward the right decision")
    if settings.get("repetition_penalty", 1.0) != 1.0:
        found.append("grpo.repetition_penalty bends sampling; the reward of that name stands under rewards")
    if settings.get("top_p", 1.0) != 1.0 or settings.get("top_k", 0) not in (0, None) or settings.get("min_p"):
        found.append("grpo.top_p, top_k and min_p must stay off: they bias the policy ratio")
    if settings.get("sync_ref_model"):
        found.append("grpo.sync_ref_model moves the KL anchor, which no checkpoint of TRL keeps; write kl.reset_every")
    return found


def _tokenizer(
    rows: pd.DataFrame, config: TrainingConfig, start: str | Path | None, cache: Path
) -> PreTrainedTokenizerBase:
    if start is None and config.model.kind == "pocket":
        return pocket_tokenizer(rows, config.model.max_length)
    return load_tokenizer(start or start_weights(config, rows, cache, cache))


def _gold_problems(rows: pd.DataFrame, config: TrainingConfig, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    found = []
    ids = rows["prompt_id"].to_numpy(dtype=object)
    foreign = np.array([a not in c for a, c in zip(rows["answer"], rows["classes"], strict=True)])
    if foreign.any():
        found.append(f"the oracle's class must be one of the row's classes; it is not in {name_some(ids[foreign])}")
    opened = template_prefill(tokenizer)
    if opened and not config.thinks:
        found.append(
            "the model's chat template opens a think block, but the prompts ask for the answer only: use style think, "
            "or a model without that template"
        )
    known = rows[~foreign]
    columns = {"answer": list(known["answer"]), "classes": list(known["classes"])}
    names = ["format_reward"] if config.targets == "format_only" else ["lu_reward", "format_reward"]
    rewards = build_rewards(names, prefill=opened, thinks=config.thinks)
    scores = [reward(list(known["prompt"]), list(known["target"]), **columns) for reward in rewards]
    wrong = (np.array(scores) != 1).any(axis=0)
    if wrong.any():
        found.append(
            f"a gold target must be well-formed and decide for the oracle's class, so that "
            f"{' and '.join(names)} give 1; {int(wrong.sum())} do not ({name_some(ids[~foreign][wrong])})"
        )
    return found


def _length_problems(
    used: pd.DataFrame, config: TrainingConfig, tokenizer: PreTrainedTokenizerBase
) -> tuple[list[str], int, int]:
    """Problems of length in the rows that will be read, and the tokens of the longest prompt and target."""
    used = used.reset_index(drop=True)
    characters = used["prompt"].map(lambda messages: sum(len(m["content"]) for m in messages))
    used = used.loc[characters.sort_values(ascending=False, kind="stable").index[:AUDITED]]
    used = used.reset_index(drop=True)
    prompts = np.array([len(i) for i in prompt_ids(tokenizer, list(used["prompt"]))])
    targets = np.array([len(i) + 1 for i in tokenizer(list(used["target"]), add_special_tokens=False)["input_ids"]])
    ids = used["prompt_id"].to_numpy(dtype=object)
    limit, room = config.max_prompt_tokens, config.max_completion_length
    found = []
    long = prompts > limit
    if long.any():
        found.append(
            f"a prompt has up to {prompts.max()} tokens; with a completion of up to {room} that is beyond "
            f"model.max_length {config.model.max_length}, which leaves {limit}, in {int(long.sum())} rows "
            f"({name_some(ids[long])}): raise it, or show fewer neighbours"
        )
    cut = targets > room
    if cut.any():
        found.append(
            f"a target has up to {targets.max()} tokens, but completions are cut at {room} "
            f"(grpo.max_completion_length) in {int(cut.sum())} rows ({name_some(ids[cut])})"
        )
    return found, int(prompts.max()), int(targets.max())


def _memory_problems(
    config: TrainingConfig, stage: Stage, start: str | Path | None, tokens: tuple[int, int], cpu: bool
) -> list[str]:
    """Where the start weights are a local folder: whether a run is likely to fit this machine's device."""
    size = model_size(Path(start)) if start is not None and Path(start).is_dir() else None
    if size is None or (cpu and not config.section(stage).get("use_cpu")):
        return []  # no weights at hand, or a profile for another machine
    on_cpu = bool(config.section(stage).get("use_cpu"))
    shared = config.section(stage).get("use_vllm") and config.section(stage).get("vllm_mode", "colocate") == "colocate"
    share = config.section(stage).get("vllm_gpu_memory_utilization", 0.3) if shared else 0.0
    problem = memory_problem(needed_bytes(size, config, stage, *tokens), device_bytes(cpu=on_cpu), share)
    return [problem] if problem else []
