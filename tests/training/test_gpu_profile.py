"""What can be held against a GPU run without a GPU: configurations, trackers, and the benchmark's own arithmetic."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.gpu_grpo import ARCHITECTURE, main
from oracle.errors import ConfigurationError
from prompts.config import Labels
from training.config import PROFILES, Stage, load_profile, trainer_arguments
from training.launch import environment
from training.preflight import problems
from training.step_time import GENERATION, PARTS, Stopwatch

ON_CPU = {"use_cpu": True, "bf16": False, "use_vllm": False}


@pytest.mark.parametrize(("name", "processes", "kind"), [("one_gpu", 1, "NO"), ("four_gpus", 4, "MULTI_GPU")])
def test_accelerate_resolves_its_configurations(name: str, processes: int, kind: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    path = PROFILES / "accelerate" / f"{name}.yaml"
    config = load_config_from_file(str(path))
    assert (config.num_processes, config.num_machines, config.mixed_precision) == (processes, 1, "bf16")
    assert config.distributed_type == kind
    parsed = launch_command_parser().parse_args(["--config_file", str(path), "-m", "training", "grpo"])
    assert (parsed.module, parsed.training_script, parsed.training_script_args) == (True, "training", ["grpo"])


def test_flash_attention_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_profile("gpu").model
    assert model.attn_implementation == "auto"
    for installed, wanted in ((None, "sdpa"), (object(), "flash_attention_2")):
        monkeypatch.setattr("training.config.find_spec", lambda name, found=installed: found)
        assert model.attention == wanted
    assert load_profile("gpu", ["model.attn_implementation=eager"]).model.attention == "eager"


def test_vllm_sleeps_and_activations_are_recomputed(tmp_path: Path) -> None:
    config = load_profile("gpu")
    assert config.grpo["vllm_enable_sleep_mode"] is True
    for stage, more in ((Stage.SFT, {"use_cpu": True, "bf16": False}), (Stage.GRPO, ON_CPU)):
        assert trainer_arguments(config, stage, tmp_path, **more).gradient_checkpointing is True


def test_sft_packs_its_rows(tmp_path: Path) -> None:
    arguments = trainer_arguments(load_profile("gpu"), Stage.SFT, tmp_path, use_cpu=True, bf16=False, max_length=None)
    assert (arguments.packing, arguments.packing_strategy) == (True, "bfd")
    with pytest.raises(ConfigurationError, match=r"grpo\.packing"):
        trainer_arguments(load_profile("gpu", ["grpo.packing=true"]), Stage.GRPO, tmp_path, **ON_CPU)
    with pytest.raises(ConfigurationError, match="takes log-probabilities in tiles by itself"):
        load_profile("gpu", ["grpo.use_liger_kernel=true"])


@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_trackers_are_a_setting_and_stay_offline(
    tracker: str, make_frame: Callable[..., pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_profile("pocket", [f"sft.report_to={tracker}"])
    arguments = trainer_arguments(config, Stage.SFT, tmp_path)
    assert arguments.report_to == [tracker]
    assert (arguments.trackio_space_id, arguments.push_to_hub) == (None, False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr("training.launch.find_spec", lambda name: name)  # as if it were installed
    assert environment()["WANDB_MODE"] == "offline"
    monkeypatch.setenv("WANDB_MODE", "online")
    assert environment()["WANDB_MODE"] == "online"  # who says so, means it
    monkeypatch.setattr("training.preflight.find_spec", lambda name: None)
    (problem,) = problems(make_frame(landscapes=2, rows=10), config, Stage.SFT)
    assert f"pip install {tracker}" in problem


def test_labels_and_digits_of_the_dataset_are_held_against_the_profile(make_frame: Callable[..., pd.DataFrame]) -> None:
    frame, config = make_frame(landscapes=2, rows=10), load_profile("pocket")
    assert problems(frame, config, Stage.SFT, prompts=config.prompts) == []
    made = config.prompts.model_copy(update={"labels": Labels.DROP_TIED, "yield_digits": 3})
    found = problems(frame, config, Stage.SFT, prompts=made)
    assert [f"prompts.{name}" in problem for name, problem in zip(("labels", "yield_digits"), found, strict=True)] == [
        True,
        True,
    ]


def test_the_random_model_has_the_size_of_the_real_one() -> None:
    """1.78 G parameters, head and embedding apart, by the widths of its matrices."""
    h, n, m, v = (ARCHITECTURE[k] for k in ("hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size"))
    keys = h * ARCHITECTURE["num_key_value_heads"] // ARCHITECTURE["num_attention_heads"]
    layer = 2 * h * h + 2 * h * keys + h + 2 * keys + 3 * h * m + 2 * h
    assert 2 * v * h + n * layer + h == 1_777_088_000


def test_a_part_s_time_leaves_out_the_parts_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 4.0, 10.0])
    monkeypatch.setattr("training.step_time.time.perf_counter", lambda: next(times))
    watch = Stopwatch()
    with watch.part("outer"), watch.part("inner"):
        pass
    assert watch.seconds == {"inner": 3.0, "outer": 7.0}


def test_the_benchmark_runs_on_a_cpu_and_its_parts_make_a_step(tmp_path: Path) -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main(["--tiny", "--steps", "1", "--completions", "8", "--out", str(tmp_path / "grpo.json")])
    found = json.loads((tmp_path / "grpo.json").read_text())
    assert found["step_s"] == pytest.approx(sum(found["seconds"].values()))
    assert all(found["seconds"][part] > 0 for part in PARTS)
    assert (found["completion_tokens"], found["completions_per_step"], found["rollout_by"]) == (16, 8, "transformers")
    assert found["rollout_tokens_per_s"] * found["seconds"][GENERATION] == pytest.approx(8 * 16)
    assert (found["vllm_alone_tokens_per_s"], found["waiting_share"]) == (None, None)
