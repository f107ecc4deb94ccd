"""Preflight: every problem at once, before anything heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from oracle.errors import TrainingError
from training.config import Stage, load_profile, trainer_arguments
from training.generation_batch import generation_batch
from training.launch import environment
from training.memory import ModelSize, memory_problem, model_size, needed_bytes
from training.models import save_pocket
from training.preflight import preflight, problems


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=3, rows=20)


@pytest.fixture(scope="module")
def start(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_pocket(load_profile("pocket").model, frame, folder, seed=0)
    return folder


@pytest.mark.parametrize("stage", list(Stage))
def test_a_sound_dataset_and_profile_are_ready(frame: pd.DataFrame, start: Path, stage: Stage) -> None:
    assert problems(frame, load_profile("pocket"), stage, start=start) == []


@pytest.mark.parametrize(
    ("stage", "override", "said"),
    [
        (Stage.GRPO, "grpo.num_generations=7", "num_generations 7 must divide the completions of one generation, 256"),
        (Stage.GRPO, "processes=2", None),
        (Stage.GRPO, "grpo.num_iterations=4", "save_steps 25 must be a multiple of 4"),
        (Stage.GRPO, "grpo.steps_per_generation=4", "save_steps 25 must be a multiple of 4"),
        (Stage.GRPO, "grpo.save_total_limit=1", "save_total_limit must be 2 or more"),
        (Stage.GRPO, "grpo.repetition_penalty=1.2", "bends sampling"),
        (Stage.GRPO, "grpo.top_p=0.9", "bias the policy ratio"),
        (Stage.GRPO, "grpo.sync_ref_model=true", "write kl.reset_every"),
        (Stage.GRPO, "grpo.max_completion_length=20", "completions are cut at 20"),
        (Stage.GRPO, "rewards={format_reward: 1}", "no lu_reward"),
        (Stage.GRPO, "grpo.lerning_rate=1", "did you mean learning_rate"),
        (Stage.SFT, "model.max_length=64", "beyond model.max_length 64"),
        (Stage.SFT, "prompts.order=1", "the dataset's prompts have order 0, the profile says 1"),
        (Stage.SFT, "prompts.style=answer_only", "the dataset's prompts have style think"),
    ],
)
def test_each_problem_is_named(frame: pd.DataFrame, start: Path, stage: Stage, override: str, said: str | None) -> None:
    found = problems(frame, load_profile("pocket", [override]), stage, start=start)
    assert (found == []) if said is None else (said in "\n".join(found))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "barley"}, "must be one of the row's classes"),
        ({"target": "<think>x</think><answer>barley</answer>"}, "a gold target must be well-formed"),
        ({"target": "<answer>oat</answer>"}, "a gold target must be well-formed"),
        ({"split": "buffer"}, "no row in the split 'train'; its splits are buffer"),
    ],
)
def test_gold_that_would_not_score_is_found(frame: pd.DataFrame, change: dict[str, Any], said: str) -> None:
    (problem,) = problems(frame.assign(**change), load_profile("pocket"), Stage.SFT)
    assert said in problem


def test_all_problems_come_in_one_message(frame: pd.DataFrame) -> None:
    config = load_profile("pocket", ["sft.save_total_limit=1", "sft.lerning_rate=1", "model.max_length=64"])
    with pytest.raises(TrainingError) as raised:
        preflight(frame, config, Stage.SFT)
    assert str(raised.value).count("\n  - ") == 3


def test_grpo_needs_an_sft_run_and_a_dataset_its_columns(frame: pd.DataFrame) -> None:
    assert "--start" in problems(frame, load_profile("pocket"), Stage.GRPO)[-1]
    assert problems(frame.drop(columns="target"), load_profile("pocket"), Stage.SFT) == [
        "the dataset lacks the column(s) target: build it anew"
    ]


def test_the_gpu_profile_is_checked_without_a_gpu(frame: pd.DataFrame, start: Path) -> None:
    prompts = ["prompts.order=0", "prompts.layout=compact"]
    config = load_profile("gpu", prompts)
    assert problems(frame, config, Stage.GRPO, start=start, cpu=True) == []
    uneven = load_profile("gpu", [*prompts, "grpo.num_generations=5"])
    assert (
        "must divide the completions of one generation, 64"
        in problems(frame, uneven, Stage.GRPO, start=start, cpu=True)[0]
    )


def test_a_word_in_the_place_of_a_number_is_found_before_the_optimizer_is(frame: pd.DataFrame) -> None:
    config = load_profile("pocket", ["sft.learning_rate=fast", "sft.max_steps=many", "sft.optim=adamw_torch"])
    assert sorted(problems(frame, config, Stage.SFT)) == [
        "sft.learning_rate must be a number, not 'fast'",
        "sft.max_steps must be a number, not 'many'",
    ]


def test_a_template_that_opens_thinking_does_not_go_with_answers_alone(frame: pd.DataFrame, tmp_path: Path) -> None:
    save_pocket(load_profile("pocket").model, frame, tmp_path, seed=0)
    template = tmp_path / "chat_template.jinja"
    template.write_text(template.read_text() + "{% if add_generation_prompt %}<think>\n{% endif %}")
    bare = frame.assign(style="answer_only", target=[f"<answer>{a}</answer>" for a in frame["answer"]])
    config = load_profile("pocket", ["prompts.style=answer_only"])
    assert problems(bare, config, Stage.SFT) == []
    assert "opens a think block" in problems(bare, config, Stage.SFT, start=tmp_path)[0]
    assert problems(frame, load_profile("pocket"), Stage.SFT, start=tmp_path) == []


def test_memory_by_hand() -> None:
    """SFT of 1,000 parameters in float32, 2 rows of 10 + 20 tokens, width 4, 3 layers of 4 + 5, vocabulary 50."""
    more = ["sft.per_device_train_batch_size=2", "sft.gradient_checkpointing=false"]
    size = ModelSize(1000, 4, 3, 50, 5)
    config = load_profile("pocket", more)
    needed = needed_bytes(size, config, Stage.SFT, 10, 20)
    layer = 11 * 4 + 4 * 5
    assert needed == {
        "weights": 4000,
        "training state": 12_000,
        "logits": 60 * 50 * 8 * 4,
        "activations": 60 * 4 * layer * 4,
    }
    recomputed = load_profile("pocket", [more[0], "sft.gradient_checkpointing=true"])
    assert needed_bytes(size, recomputed, Stage.SFT, 10, 20)["activations"] == 60 * (3 * 4 + 2 * layer) * 4
    full = load_profile("pocket", [*more, "sft.packing=true"])  # two sequences of the whole window
    assert needed_bytes(size, full, Stage.SFT, 10, 20)["activations"] == 2 * 512 * 4 * layer * 4
    assert needed_bytes(size, config, Stage.GRPO, 10, 20)["weights"] == 8000
    large = ModelSize(1000, 4, 3, 151_936, 5)
    assert needed_bytes(large, full, Stage.SFT, 10, 20)["logits"] == 1024 * 32_768 * 8 * 4  # tiles, not all
    on_gpu = load_profile("pocket", [*more, "sft.packing=true", "sft.use_cpu=false"])
    assert needed_bytes(large, on_gpu, Stage.SFT, 10, 20)["logits"] == 1024 * 32_768 * 4
    assert sum(needed.values()) == 173_440
    assert memory_problem(needed, 200_000) is None
    assert "GiB are needed" in str(memory_problem(needed, 50_000))
    assert "GiB are needed" in str(memory_problem(needed, 200_000, vllm_share=0.6))


def test_a_model_s_size_is_read_from_its_headers(start: Path) -> None:
    from safetensors import safe_open

    with safe_open(start / "model.safetensors", "np") as file:
        counted = sum(file.get_tensor(name).size for name in file.keys())  # noqa: SIM118
    size = model_size(start)
    assert size is not None
    assert (size.parameters, size.width, size.layers, size.feed_forward) == (counted, 128, 4, 384)


def test_what_cannot_fit_is_said_with_the_rest(
    frame: pd.DataFrame, start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.preflight.device_bytes", lambda *, cpu: 10_000_000)
    found = problems(frame, load_profile("pocket", ["grpo.num_generations=7"]), Stage.GRPO, start=start)
    assert len(found) == 3  # the group does not divide the batch, in our words and TRL's
    assert "GiB are needed on one device" in found[-1]


def test_sizes_of_a_generation_are_trl_s_own(tmp_path: Path) -> None:
    for more in ([], ["grpo.gradient_accumulation_steps=2"], ["grpo.steps_per_generation=4", "grpo.save_steps=8"]):
        config = load_profile("pocket", more)
        args = trainer_arguments(config, Stage.GRPO, tmp_path)
        assert generation_batch(config).completions == args.generation_batch_size
        assert generation_batch(config).problems == ()
    assert generation_batch(config).resume_unit == 4


def test_the_estimate_holds_against_a_run(make_frame: Callable[..., pd.DataFrame], tmp_path: Path) -> None:
    """Two SFT steps of the pocket profile in a process of their own (the first case of ``benchmarks/memory.py``)."""
    prompts = tmp_path / "prompts.parquet"
    make_frame(landscapes=4, rows=60).to_parquet(prompts)
    command = [sys.executable, "-m", "benchmarks.memory", "--only", "0", "--here", str(prompts)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert 0.7 < found["estimate"] / found["peak"] < 1.4
