"""The published recipe, key by key, becomes a profile."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from oracle.errors import ConfigurationError
from training.config import RENAMED, RESERVED, load_profile
from training.migrate import migrate

RECIPE = Path(__file__).parent / "open_r1_recipe.yaml"


def test_every_key_of_the_recipe_is_accounted_for(tmp_path: Path) -> None:
    old = yaml.safe_load(RECIPE.read_text())
    migration = migrate(RECIPE)
    said = {change.key for change in migration.changes}
    taken = {key for key, value in old.items() if migration.profile["grpo"].get(key, object()) == value}
    assert set(old) == taken | (said & set(old))
    assert all(change.reason for change in migration.changes)


def test_the_profile_says_what_the_recipe_said(tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text(yaml.safe_dump(migrate(RECIPE).profile, sort_keys=False))
    config = load_profile(profile)
    assert config.rewards == {"lu_reward": 3.0, "format_reward": 2.0, "repetition_penalty": 1.0}
    assert (config.model.dtype, config.model.attn_implementation) == ("bfloat16", "flash_attention_2")
    assert (config.model.max_length, config.max_completion_length, config.seed) == (9096, 4096, 42)
    assert config.grpo["warmup_steps"] == 0.1
    assert config.grpo["beta"] == 0.04
    assert config.grpo["save_total_limit"] == 2
    assert (config.grpo["learning_rate"], config.grpo["temperature"], config.evaluation.batch) == (1e-6, 0.7, 4)
    assert not {*RENAMED, *RESERVED} & set(config.grpo)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "must hold keys and values"),
        ("profile: x", "is a profile already"),
        ("reward_funcs: [lu_reward]\nreward_weights: [1, 2]", "1 reward_funcs, but 2 reward_weights"),
        ("reward_funcs: [accuracy]", "unknown reward accuracy"),
        ("a: [", "cannot be read as YAML"),
        ("max_prompt_length: many", "max_prompt_length 'many' must be a number"),
        ("reward_funcs: lu_reward", "reward_funcs must be a list of names"),
        ("reward_funcs: [lu_reward]\nreward_weights: [much]", "reward_weights one of numbers"),
        ("reward_funcs: [lu_reward, lu_reward]\nreward_weights: [3, 1]", "names lu_reward twice"),
    ],
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        migrate(path)


def test_a_key_without_a_value_is_as_good_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    keys = ("max_prompt_length", "max_completion_length", "vllm_gpu_memory_utilization", "reward_weights", "beta")
    path.write_text("\n".join(f"{key}:" for key in keys) + "\nreward_funcs: [lu_reward]\n")
    migration = migrate(path)
    assert {change.key for change in migration.changes if "no value" in change.reason} == set(keys)
    path.write_text("reward_funcs: [lu_reward]\n")
    assert migration.profile == migrate(path).profile
