"""From an open-r1 GRPO recipe to a profile: every key taken over, moved or dropped, each with its reason.

The recipes of open-r1 describe a run in one flat YAML file under names that TRL has since renamed or given up. A value
is never changed in silence: what becomes of a key stands in the list that comes with the profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from oracle.errors import ConfigurationError
from training.config import RENAMED, RESERVED, validated
from training.rewards import DEFAULT_WEIGHTS

THEN_BETA = 0.04
"""TRL's default at the time of these recipes; today's is 0."""
NUMBERS = ("max_prompt_length", "max_completion_length", "vllm_gpu_memory_utilization")
"""Values that are reckoned with here; the others are checked as the profile's."""
# Model settings and where they stand in a profile.
MODEL: Mapping[str, str] = {
    "model_name_or_path": "name",
    "torch_dtype": "dtype",
    "attn_implementation": "attn_implementation",
}
DROPPED: Mapping[str, str] = {
    "max_prompt_length": "TRL no longer trims prompts; added to model.max_length, which prompts are held against",
    "do_eval": "`landoracle evaluate` does it, greedily, by split and beside baselines",
    "eval_strategy": "`landoracle evaluate` does it; guard.evaluate_every looks at held-out rows meanwhile",
    "evaluation_strategy": "`landoracle evaluate` does it; guard.evaluate_every looks at held-out rows meanwhile",
    "per_device_eval_batch_size": "written to evaluation.batch",
    "push_to_hub": "nothing is uploaded",
    "hub_model_id": "nothing is uploaded",
    "hub_strategy": "nothing is uploaded",
    "log_completions": "a group of completions is always kept, every completions_every steps",
    "dataset_name": "the dataset is an argument of `landoracle train`",
    "dataset_config": "the dataset is an argument of `landoracle train`",
    "dataset_prompt_column": "the dataset's columns are its own",
    "system_prompt": "prompts come from the dataset",
    "chat_template": "the model's own chat template is used",
    "model_revision": "give a folder as model.name to pin a model",
}


@dataclass(frozen=True)
class Change:
    """What became of one key of the old file: written under another name, or dropped (``today`` is None)."""

    key: str
    today: str | None
    reason: str


@dataclass(frozen=True)
class Migration:
    """A profile and how it came about.

    Parameters
    ----------
    profile : dict
        What to write as YAML; :func:`training.config.load_profile` takes it.
    changes : tuple of Change
        Every key that is not taken over as it stands, in the order of the old file; then what was added.
    """

    profile: dict[str, Any]
    changes: tuple[Change, ...]


def migrate(recipe: Path) -> Migration:
    """Turn an open-r1 recipe into a profile.

    Parameters
    ----------
    recipe : Path
        A flat YAML file.

    Raises
    ------
    ConfigurationError
        Where it is not one, or a value cannot be taken over; names file and key.
    """
    try:
        old = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{recipe} cannot be read as YAML: {error}") from error
    if not isinstance(old, dict) or not all(isinstance(key, str) for key in old):
        raise ConfigurationError(f"{recipe} must hold keys and values, as open-r1's recipes do")
    if "profile" in old:
        raise ConfigurationError(f"{recipe} is a profile already: `landoracle train --profile {recipe}`")
    changes = [
        Change(key, None, "has no value, as if it were not there") for key, value in old.items() if value is None
    ]
    old = {key: value for key, value in old.items() if value is not None}
    wrong = [f"{key} {old[key]!r}" for key in NUMBERS if not _is_number(old.get(key, 0))]
    if wrong:
        raise ConfigurationError(f"{recipe}: {', '.join(wrong)} must be a number")
    model = _model(old, changes)
    grpo: dict[str, Any] = {}
    evaluation = {"batch": old["per_device_eval_batch_size"]} if "per_device_eval_batch_size" in old else {}
    for key, value in old.items():
        if key in MODEL or key in {"reward_funcs", "reward_weights", "max_prompt_length"}:
            continue  # said below or already
        _setting(key, value, grpo, changes, has_step_evaluation=old.get("eval_strategy") == "steps")
    profile: dict[str, Any] = {"profile": recipe.stem, "model": model}
    profile["rewards"] = _rewards(old, recipe, changes)
    repetition = {
        name: old[key]
        for key, name in (("repetition_n_grams", "ngram"), ("repetition_max_penalty", "max_penalty"))
        if key in old
    }
    if "beta" not in grpo:
        grpo["beta"] = THEN_BETA
        changes.append(
            Change("beta", "grpo.beta", f"was TRL's default {THEN_BETA} then; today's is 0, the run that collapses")
        )
    if grpo.get("scale_rewards") is None:
        grpo["scale_rewards"] = "batch"
        changes.append(
            Change(
                "scale_rewards",
                "grpo.scale_rewards",
                "batch, as in Landoracle's profiles; then, and by TRL's default, by the group's own deviation: group",
            )
        )
    profile |= {"grpo": grpo, "gate_on_decision": True}
    for name, section in (("repetition", repetition), ("evaluation", evaluation)):
        if section:
            profile[name] = section
    if "seed" in old:
        profile["seed"] = old["seed"]
    validated(profile, recipe)
    return Migration(profile, tuple(changes))


def _model(old: Mapping[str, Any], changes: list[Change]) -> dict[str, Any]:
    model: dict[str, Any] = {
        "kind": "hub",
        "name": old.get("model_name_or_path", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
    }
    if "model_name_or_path" not in old:
        changes.append(
            Change("model_name_or_path", "model.name", "the file names no model; this is that of the published run")
        )
    for key, name in MODEL.items():
        if key in old:
            model[name] = old[key]
            changes.append(Change(key, f"model.{name}", "settings of the model stand together"))
    if model.get("dtype") == "auto":
        del model["dtype"]
    room = old.get("max_completion_length", 256)
    if "max_prompt_length" in old:
        model["max_length"] = old["max_prompt_length"] + room
        changes.append(Change("max_prompt_length", "model.max_length", DROPPED["max_prompt_length"]))
    return model


def _setting(key: str, value: Any, grpo: dict[str, Any], changes: list[Change], *, has_step_evaluation: bool) -> None:
    """Take one key of the old file into the grpo section, or say why not."""
    if key == "seed":
        changes.append(Change(key, "seed", "one seed for everything"))
    elif key == "warmup_ratio":
        grpo["warmup_steps"] = value
        changes.append(Change(key, "grpo.warmup_steps", "a number below 1 is a share of the steps"))
    elif key == "vllm_device":
        grpo["vllm_mode"] = "colocate"
        changes.append(Change(key, "grpo.vllm_mode", f"was {value}, a GPU of its own; now vLLM shares every GPU"))
    elif key == "vllm_gpu_memory_utilization":
        grpo[key] = min(value, 0.3)
        if value > 0.3:
            changes.append(
                Change(key, f"grpo.{key}", f"was {value} on a GPU of its own; colocated, training needs the rest")
            )
    elif key == "save_total_limit" and value == 1:
        grpo[key] = 2
        changes.append(Change(key, f"grpo.{key}", "was 1; a half-written checkpoint needs the one before it"))
    elif key == "report_to":
        grpo[key] = value
    elif key == "evaluation_strategy" or key in DROPPED or (key == "eval_steps" and has_step_evaluation):
        reason = DROPPED.get(key, DROPPED["eval_strategy"])
        changes.append(Change(key, "evaluation.batch" if key == "per_device_eval_batch_size" else None, reason))
    elif key in ("repetition_n_grams", "repetition_max_penalty"):
        name = "ngram" if key == "repetition_n_grams" else "max_penalty"
        changes.append(Change(key, f"repetition.{name}", "settings of one reward stand together"))
    elif key in RENAMED or key in RESERVED:
        changes.append(Change(key, None, (RENAMED | RESERVED)[key]))  # type: ignore[operator]
    else:
        grpo[key] = value


def _rewards(old: Mapping[str, Any], recipe: Path, changes: list[Change]) -> dict[str, float]:
    names = old.get("reward_funcs")
    if names is None:
        changes.append(Change("reward_funcs", "rewards", "the file names none; these are the published run's"))
        return dict(DEFAULT_WEIGHTS)
    weights = old.get("reward_weights", [1.0] * len(names))
    if not isinstance(names, list) or not isinstance(weights, list) or not all(map(_is_number, weights)):
        raise ConfigurationError(f"{recipe}: reward_funcs must be a list of names, reward_weights one of numbers")
    if len(weights) != len(names):
        raise ConfigurationError(f"{recipe}: {len(names)} reward_funcs, but {len(weights)} reward_weights")
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise ConfigurationError(
            f"{recipe}: reward_funcs names {', '.join(twice)} twice: give it once, with one weight"
        )
    changes.append(Change("reward_funcs", "rewards", "a weight under each reward's name"))
    if "reward_weights" in old:
        changes.append(Change("reward_weights", "rewards", "went by position; now by name"))
    return dict(zip(names, map(float, weights), strict=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
