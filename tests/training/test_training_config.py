"""Profiles: complete, explicit about the KL anchor, and deaf to no name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oracle.errors import ConfigurationError
from training.config import PROFILES, RENAMED, Stage, load_profile, trainer_arguments

ON_CPU = {"use_cpu": True, "bf16": False}


@pytest.mark.parametrize("name", sorted(p.stem for p in PROFILES.glob("*.yaml")))
def test_trl_takes_every_profile(name: str, tmp_path: Path) -> None:
    config = load_profile(name)
    trainer_arguments(config, Stage.SFT, tmp_path, **ON_CPU)
    grpo = trainer_arguments(config, Stage.GRPO, tmp_path, **ON_CPU, use_vllm=False)
    assert grpo.beta == config.grpo["beta"] > 0
    assert grpo.reward_weights == [
        config.rewards[name] for name in ("lu_reward", "format_reward", "repetition_penalty")
    ]
    assert grpo.save_total_limit >= 2
    assert grpo.remove_unused_columns is False


def test_the_gpu_profile_carries_the_published_recipe(tmp_path: Path) -> None:
    config = load_profile("gpu")
    grpo = trainer_arguments(config, Stage.GRPO, tmp_path, **ON_CPU, use_vllm=False)
    assert (grpo.learning_rate, grpo.temperature, grpo.num_generations, grpo.num_train_epochs) == (1e-6, 0.7, 4, 4)
    assert (grpo.gradient_accumulation_steps, grpo.max_completion_length, grpo.warmup_steps) == (4, 4096, 0.1)
    assert grpo.lr_scheduler_kwargs == {"min_lr_rate": 0.1}
    assert config.rewards == {"lu_reward": 3.0, "format_reward": 2.0, "repetition_penalty": 1.0}
    assert config.model.name == "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"
    assert (config.grpo["use_vllm"], config.grpo["vllm_mode"]) == (True, "colocate")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("grpo.warmup_ratio=0.1", "warmup_steps"),
        ("grpo.max_prompt_length=5000", "model.max_length"),
        ("grpo.torch_dtype=bfloat16", "model.dtype"),
        ("sft.attn_implementation=sdpa", "model.attn_implementation"),
        ("grpo.vllm_device=auto", "vllm_mode"),
        ("grpo.reward_weights=[3, 2, 1]", "weight under each reward's name"),
        ("sft.output_dir=x", "--out"),
        ("grpo.beta=null", "beta must be given"),
        ("grpo.beta=0", "allow_zero_beta"),
        ("grpo.beta=-0.1", "0 or more"),
        ("rewards.lu_rewrad=1", "lu_rewrad"),
        ("repetition.max_penalty=0.5", "repetition.max_penalty"),
        ("modle.kind=hub", "modle"),
        ("prompts.order=3", "prompts.order"),
        ("model.kind=hub", "model.name"),
        ("grpo.beta.x=1", "is a value, not a section"),
        ("grpo.beta", "key=value"),
        ("evaluation.splits=[held_out_blok]", "no split is called held_out_blok; known are train, held_out_block"),
        ("evaluation.splits=[]", "no split is called"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(override: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_profile("pocket", [override])


@pytest.mark.parametrize(("stage", "near"), [(Stage.SFT, "learning_rate"), (Stage.GRPO, "learning_rate")])
def test_a_misspelt_trl_setting_is_refused_with_the_nearest_name(stage: Stage, near: str, tmp_path: Path) -> None:
    config = load_profile("pocket", [f"{stage.value}.lerning_rate=1e-4"])
    with pytest.raises(ConfigurationError, match=f"lerning_rate.*{near}"):
        trainer_arguments(config, stage, tmp_path)


def test_no_name_called_old_is_still_trl_s_own(tmp_path: Path) -> None:
    from trl import GRPOConfig

    fields = set(GRPOConfig.__dataclass_fields__)
    set_elsewhere = {"trust_remote_code"}
    assert not (set(RENAMED) - set_elsewhere) & fields


def test_overrides_apply_in_order_and_read_scientific_notation() -> None:
    config = load_profile("pocket", ["grpo.beta=1", "grpo.beta=1e-3", "prompts.order=1", "allow_zero_beta=true"])
    assert (config.grpo["beta"], config.prompts.order, config.allow_zero_beta) == (0.001, 1, True)
    assert load_profile("pocket", ["grpo.beta=0", "allow_zero_beta=true"]).grpo["beta"] == 0
    assert config.sha256 != load_profile("pocket").sha256


def test_a_configuration_has_one_hash_however_its_settings_are_ordered() -> None:
    one = ["grpo.epsilon=0.1", "grpo.top_p=0.9"]
    assert load_profile("pocket", one).sha256 == load_profile("pocket", one[::-1]).sha256


def test_files_that_are_no_profiles_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gpu, pocket, smollm2"):
        load_profile("pockett")
    listed = tmp_path / "list.yaml"
    listed.write_text("- 1\n")
    with pytest.raises(ConfigurationError, match=r"list\.yaml must hold keys"):
        load_profile(listed)
