"""``landoracle prompts`` and ``landoracle bench prompts``: the token audit, the settings of splits and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.prompts import five_crop_source, row_by_row
from pipeline import token_audit
from pipeline.cli import app
from prompts.config import PromptConfig
from prompts.dataset import PromptDataset
from prompts.neighbourhood import neighbourhoods
from prompts.render import render
from tests.pipeline.conftest import write_landscape
from training.config import load_profile
from training.encode import prompt_ids
from training.models import pocket_tokenizer
from training.trainer import training_rows


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A solved township."""
    folder = tmp_path_factory.mktemp("solved")
    solved = run("solve", write_landscape(folder, "farms", 3, "train"), "--out", folder / "plan")
    assert solved.exit_code == 0, solved.output
    return folder / "plan"


def build(plan: Path, to: Path, *options: object) -> tuple[dict[str, Any], PromptDataset]:
    result = run("prompts", plan, "--out", to, *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), PromptDataset.load(to)


def test_tokens_are_those_of_the_tokenizer_that_training_makes(plan: Path, tmp_path: Path) -> None:
    said, dataset = build(plan, tmp_path, "--profile", "pocket")
    config = load_profile("pocket")
    tokenizer = pocket_tokenizer(training_rows(dataset.frame, config), config.model.max_length)
    expected = [len(ids) for ids in prompt_ids(tokenizer, dataset.frame["prompt"].tolist())]
    assert dataset.frame["prompt_tokens"].tolist() == expected
    assert said["tokens_per_prompt"]["greatest"] == max(expected)
    assert said["tokens_per_prompt"]["limit"] == config.model.max_length - config.max_completion_length


def test_a_profile_too_small_for_its_prompts_is_told_at_once(plan: Path, tmp_path: Path) -> None:
    profile = tmp_path / "small.yaml"
    text = (Path(token_audit.__file__).parents[1] / "training" / "profiles" / "pocket.yaml").read_text()
    profile.write_text(text.replace("max_length: 512", "max_length: 200"))
    result = run("prompts", plan, "--out", tmp_path / "dataset", "--profile", profile, "--order", 2)
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert "have more tokens than the 136 that the profile leaves for a prompt" in said
    assert "lower `order` (it is 2)" in said
    assert not (tmp_path / "dataset").exists()


def test_a_tokenizer_that_is_not_at_hand_is_said_and_no_hindrance(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    profile = tmp_path / "elsewhere.yaml"
    profile.write_text(f"profile: elsewhere\nmodel: {{kind: hub, name: {tmp_path / 'absent'}}}\n")
    result = run("prompts", plan, "--out", tmp_path / "dataset", "--profile", profile)
    assert result.exit_code == 0, result.output
    assert "tokens are not counted" in result.stderr
    assert any("tokens were not counted" in n for n in PromptDataset.load(tmp_path / "dataset").manifest.notes)


def test_splits_and_labels_can_be_set(plan: Path, tmp_path: Path) -> None:
    options = ("--labels", "accept_set", "--block-m", 2500, "--buffer", 1, "--random-share", 0, "--context", "supply")
    said, dataset = build(plan, tmp_path, *options)
    assert said["prompts_per_split"]["held_out_random"] == 0
    assert dataset.manifest.prompts.labels == "accept_set"
    assert (dataset.manifest.sources[0].block_rule, dataset.manifest.sources[0].block_m) == ("set", 2500)
    assert dataset.frame["floor_t"].notna().all()
    for option in (("--labels", "both"), ("--buffer", 0), ("--random-share", 0.9), ("--context", "weather")):
        assert run("prompts", plan, "--out", tmp_path / "no", *option).exit_code == 2


def test_bench_measures_rendering_beside_a_peer() -> None:
    done = run("bench", "prompts", "--polygons", 144, "--repeats", 1, "--json")
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    assert (measured["prompts"], measured["crops"]) == (144, 5)
    assert 10 < measured["mean_neighbours"] < 24
    assert measured["times_peer"] == pytest.approx(measured["render_per_s"] / measured["peer_per_s"])
    assert measured["render_per_s"] > measured["build_and_save_per_s"] > 0


def test_the_peer_of_the_benchmark_writes_the_same_prompts() -> None:
    source = five_crop_source(144, seed=0)
    config = PromptConfig.model_validate({"order": 2, "layout": "full"})
    shown = neighbourhoods(source.landscape, source.graph, source.solution, config)
    for (_, user), theirs in zip(render(shown, config), row_by_row(shown, config), strict=True):
        (mine_head, mine), (their_head, their) = (
            text.split("central one first\n") for text in (user["content"], theirs)
        )
        assert mine_head == their_head
        assert json.loads(mine) == json.loads(their)
