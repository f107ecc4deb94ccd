"""Controls beside a run: several seeds each, with and without thinking, in one evaluation and one table."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from pipeline.cli import app
from prompts.config import PromptConfig, Style
from prompts.dataset import PromptDataset, Source, build_dataset
from prompts.split import Role
from tests.prompts.conftest import grid_landscape
from training.asked import Asked
from training.config import load_profile
from training.encode import prompt_texts
from training.models import load_tokenizer, save_pocket
from training.paired import block_permutation

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=2048"),
    *("prompts.layout=full", "grpo.max_completion_length=8", "threads=1"),
    *("evaluation.max_rows=15", "evaluation.samples=0", "evaluation.cited_rows=0"),
]
KINDS = {"thinks": (), "shuffled": ("labels_shuffled=true",), "answer_only": ("prompts.style=answer_only",)}
SEEDS = (1, 2, 3)
WHY = "stopped by the guard after step 5: kl 1.01 is above guard.max_kl 1. Went back to the weights of step 0."


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = GLMConfig(prices={"wheat": 280.0, "oat": 250.0}, supply_floors={"wheat": 0.8, "oat": 0.5})
    sources = []
    for k, (name, role) in enumerate({"near": Role.TRAIN, "far": Role.HELD_OUT}.items()):
        landscape = grid_landscape(5, 5, name=name, seed=k)
        graph = neighbour_graph(landscape)
        sources.append(Source(landscape, graph, solve(landscape, graph, config), role))
    folder = tmp_path_factory.mktemp("controls") / "dataset"
    build_dataset(sources, PromptConfig.model_validate({"layout": "full"})).save(folder)
    return folder


@pytest.fixture(scope="module")
def models(dataset: Path) -> dict[str, Path]:
    """Random weights with the record of a run: three seeds of each kind, and a base that was not trained here."""
    frame = PromptDataset.load(dataset).frame
    found = {}
    for kind, changes in KINDS.items():
        for seed in SEEDS:
            config = load_profile("pocket", [*TINY, *changes, f"seed={seed}"])
            folder = found[f"{kind}-{seed}"] = dataset.parent / f"{kind}-{seed}"
            save_pocket(config.model, frame, folder, seed=100 * len(found) + seed)
            stopped = WHY if (kind, seed) == ("thinks", 2) else None
            settings = config.model_dump(mode="json")
            record = {"stage": "sft", "dataset_sha256": "d", "config": settings, "stopped": stopped}
            (folder / "run.json").write_text(json.dumps(record))
    found["base"] = dataset.parent / "base"
    save_pocket(load_profile("pocket", TINY).model, frame, found["base"], seed=0)
    return found


@pytest.fixture(scope="module")
def evaluated(dataset: Path, models: dict[str, Path]) -> tuple[Path, str]:
    """The folder of the evaluation, and what the command printed."""
    out = dataset.parent / "evaluation"
    result = run("evaluate", *(f"{name}={path}" for name, path in models.items()), dataset, "--out", out)
    assert result.exit_code == 0, result.output
    return out, result.output


def test_everybody_stands_in_one_table_with_three_seeds(evaluated: tuple[Path, str]) -> None:
    found = json.loads((evaluated[0] / "evaluation.json").read_text())
    lines = {line["name"]: line for line in found["over_seeds"]["held_out_landscape"]}
    assert {name: len(line["runs"]) for name, line in lines.items() if name not in found["baselines"]} == {
        "thinks-*": 3,
        "shuffled-*": 3,
        "answer_only-*": 3,
        "base": 1,
    }
    assert set(found["baselines"]) < set(lines)
    table = pd.read_parquet(evaluated[0] / "predictions.parquet")
    table = table[table["split"] == "held_out_landscape"]
    right = table.pivot_table("correct", "prompt_id", "model", aggfunc="first").astype(float)
    best, *others = lines.values()
    assert best["against_best"] is None
    block = table.drop_duplicates("prompt_id").set_index("prompt_id")["block"][right.index].to_numpy(dtype=str)
    for line in others:
        mine, theirs = right[line["runs"]].mean(axis=1), right[best["runs"]].mean(axis=1)
        assert line["accuracy"]["mean"] == pytest.approx(mine.mean())
        assert line["against_best"]["difference"] == pytest.approx((mine - theirs).mean())
        p = block_permutation(theirs.to_numpy(), mine.to_numpy(), block)
        assert line["against_best"]["block_permutation_p"] == pytest.approx(p)


def test_answer_only_models_are_asked_for_the_answer_alone_about_the_same_rows(
    evaluated: tuple[Path, str], dataset: Path, models: dict[str, Path]
) -> None:
    rows = pd.read_parquet(evaluated[0] / "predictions.parquet")
    decided = rows[rows["model"].isin(models)].groupby("model")["prompt_id"].agg(set)
    assert decided.map(frozenset).nunique() == 1
    frame = PromptDataset.load(dataset).frame
    asked = frame[frame["prompt_id"].isin(decided.iloc[0])]
    tokenizer = load_tokenizer(models["base"])
    thinking = {hashlib.sha256(text.encode()).hexdigest() for text in prompt_texts(tokenizer, list(asked["prompt"]))}
    files = [
        {json.loads(line)["prompt"] for line in path.read_text().splitlines()}
        for path in (evaluated[0] / "completions").iterdir()
    ]
    assert sum(keys == thinking for keys in files) == 7  # three seeds of two kinds, and the base as the dataset asks
    (bare,) = {frozenset(keys) for keys in files if keys != thinking}
    assert len(bare) == len(thinking)
    assert not bare & thinking


def test_counterfactual_pairs_and_edited_prompts_are_asked_in_the_same_style(dataset: Path) -> None:
    loaded = PromptDataset.load(dataset)
    pairs = loaded.frame[["classes", "prompt"]].assign(edited_prompt=loaded.frame["prompt"])
    given = Asked(loaded.frame, loaded.frame, load_profile("pocket", TINY), loaded.manifest.prompts, pairs)
    bare = given.in_style(Style.ANSWER_ONLY)
    assert not bare.config.thinks
    assert bare.prompts is not None
    assert bare.prompts.style is Style.ANSWER_ONLY
    assert bare.pairs is not None
    for prompts in (bare.rows["prompt"], bare.everything["prompt"], bare.pairs["prompt"], bare.pairs["edited_prompt"]):
        assert not any("<think>" in message["content"] for messages in prompts for message in messages)
    assert "<think>" in pairs["prompt"][0][0]["content"]  # what was given stays as it is
    again = bare.in_style(Style.THINK)
    assert again.rows["prompt"].tolist() == loaded.frame["prompt"].tolist()


def test_a_run_that_the_guard_stopped_is_marked_wherever_it_is_shown(
    evaluated: tuple[Path, str], tmp_path: Path
) -> None:
    out, printed = evaluated
    records = json.loads((out / "evaluation.json").read_text())["records"]
    assert {name for name, record in records.items() if record["stopped"]} == {"thinks-2"}
    assert f"thinks-2 was {WHY}" in " ".join(printed.split())
    page = (out / "report.html").read_text(encoding="utf-8")
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert f"† thinks-2 was {WHY}" in text
    assert "thinks-2† " in text
    assert "thinks-*† " in text
    assert "thinks-1† " not in text
    assert "answer_only-1, answer_only-2, answer_only-3 were trained to answer without thinking" in text
    assert json.loads((out / "report.json").read_text())["stopped"] == {"thinks-2": WHY}

    last = tmp_path / "last"  # the model that an evaluation names last is the one compared
    last.mkdir()
    shutil.copy(out / "predictions.parquet", last)
    found = json.loads((out / "evaluation.json").read_text())
    found["models"]["thinks-2"] = found["models"].pop("thinks-2")
    (last / "evaluation.json").write_text(json.dumps(found))
    compared = run("compare", f"stopped={last}", f"base={out}")
    assert compared.exit_code == 0, compared.output
    assert f"stopped was {WHY}" in " ".join(compared.output.split())
    assert "base was" not in compared.output
