"""``landoracle export`` and ``landoracle launch slurm`` from the command line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from prompts.config import PromptConfig
from prompts.dataset import build_dataset
from tests.prompts.conftest import build_source


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "data set"
    build_dataset([build_source(12, 12)], PromptConfig.model_validate({"style": "answer_only"})).save(folder)
    return folder


@pytest.mark.parametrize("target", ["trl", "openr1", "verl", "openrlhf", "verifiers"])
def test_export_writes_what_it_says(dataset: Path, tmp_path: Path, target: str) -> None:
    done = run("export", dataset, "--to", target, "--out", tmp_path / "out", "--prefill", "<think>\\n", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    written = {str(f.relative_to(tmp_path / "out")) for f in (tmp_path / "out").rglob("*") if f.is_file()}
    assert written == {*said["files"], "manifest.json"}
    (reward,) = (tmp_path / "out").rglob("reward.py")
    settings = reward.read_text(encoding="utf-8")
    assert "PREFILL = '<think>\\n'" in settings
    assert "THINKS = False" in settings  # the prompts ask for the answer alone
    assert "Not measured" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_export_refuses_with_one_sentence(dataset: Path, tmp_path: Path) -> None:
    assert run("export", dataset, "--to", "nemo", "--out", tmp_path / "out").exit_code == 2
    (dataset / "ceiling.json").write_text("{}")
    refused = run("export", dataset, "--to", "verl", "--out", tmp_path / "out")
    assert refused.exit_code == 1
    assert "ceiling.json is not a measured ceiling" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_the_script_and_writes_nothing(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("slurm: {nodes: 8, partition: gpu, environment: {A: file, B: file}}\n")
    done = run(
        *("launch", "slurm", tmp_path / "data set", "--out", tmp_path / "out", "--cluster", cluster, "--dry-run"),
        *("--nodes", 2, "--gpus-per-node", 4, "--time", "4-00:00", "--account", "lab", "--profile", "gpu"),
        *("--module", "cuda/12.6", "--module", "gcc", "--env", "B=x=1 2", "--set", "grpo.beta=0.02", "--stage", "grpo"),
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    for line in (
        *("#SBATCH --nodes=2", "#SBATCH --gpus-per-node=4", "#SBATCH --time=4-00:00", "#SBATCH --partition=gpu"),
        *("#SBATCH --account=lab", "module load cuda/12.6", "module load gcc", "export A=file", "export B='x=1 2'"),
        *("export HF_HUB_OFFLINE=1", "    --num_machines 2 \\", "    --set grpo.beta=0.02 \\"),
    ):
        assert line in lines
    assert done.stdout.count("\nstage ") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--partition", "a;b"], 1, "partition"),
        (["--env", "HOME"], 2, "NAME=VALUE"),
        (["--stage", "both"], 2, "--stage"),
        (["--set", "processes=3"], 1, "nodes and gpus_per_node"),
        (["--set", "sft.warmup_ratio=0.1"], 1, "warmup_steps"),
    ],
)
def test_a_wrong_option_is_refused_before_a_script_is_written(
    tmp_path: Path, options: list[str], code: int, reason: str
) -> None:
    done = run("launch", "slurm", tmp_path, "--out", tmp_path / "out", "--dry-run", *options)
    assert done.exit_code == code
    assert reason in done.stderr
    assert "#SBATCH" not in done.stdout


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ([], {"sft": None, "grpo": "out/sft"}),
        (["--start", "easier/sft"], {"sft": "easier/sft", "grpo": "out/sft"}),
        (["--start", "easier/grpo", "--stage", "grpo"], {"grpo": "easier/grpo"}),
    ],
)
def test_only_the_first_stage_starts_from_the_weights_given(
    monkeypatch: pytest.MonkeyPatch, options: list[str], starts: dict[str, str | None]
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr("training.launch.run_command", commands.append)
    done = run("train", "harder", "--out", "out", *options)
    assert done.exit_code == 0, done.output
    stated = [dict(itertools.pairwise(command)) for command in commands]
    assert {Path(found["--out"]).name: found.get("--start") for found in stated} == starts
