"""``landoracle ceiling`` and ``landoracle counterfactuals`` from plans on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from oracle.neighbours import neighbour_graph
from oracle.solution import save_solution
from oracle.solve import solve
from oracle.synthesis import embedded_landscapes, synthesise
from pipeline.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans of a township each, and an order-1 dataset with prices of them."""
    folder = tmp_path_factory.mktemp("datasets")
    quick = [config for config in embedded_landscapes() if config.region == "black_soil"][:2]
    for name, config in zip(("plan", "other"), quick, strict=True):
        landscape = synthesise(config.model_copy(update={"townships_ns": 1, "townships_ew": 1}))
        graph = neighbour_graph(landscape)
        save_solution(folder / name, landscape, graph, solve(landscape, graph, config.glm))
    plans = (folder / "plan", "--held-out", folder / "other")
    made = run("prompts", *plans, "--out", folder / "dataset", "--order", 1, "--context", "prices", "--layout", "full")
    assert made.exit_code == 0, made.output
    return folder


def test_the_ceiling_as_table_json_and_plot(folder: Path) -> None:
    shown = run("ceiling", folder / "dataset")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.count("boosting, ") >= 6
    assert "smallest variant as good as the best: order" in shown.stdout
    stated = json.loads((folder / "dataset" / "ceiling.json").read_text())
    best = stated["variants"][-1]["best"]
    assert f" {best['accuracy']:.1%} {100 * best['wilson']['low']:.1f}-" in " ".join(shown.stdout.split())
    assert stated["split"] == "held_out_landscape"
    assert (folder / "dataset" / "ceiling.png").is_file()

    same = run("ceiling", folder / "dataset", "--out", folder / "elsewhere", "--json")
    assert json.loads(same.stdout) == stated


def test_a_variant_that_the_dataset_lacks_is_refused_in_one_sentence(folder: Path) -> None:
    refused = run("ceiling", folder / "dataset", "--order", 2)
    assert refused.exit_code == 1
    assert "no dataset given contains order 2" in " ".join(refused.stderr.split())
    assert run("ceiling", folder / "dataset", "--context", "weather").exit_code == 2


def test_counterfactuals_take_form_and_splits_from_the_dataset(folder: Path) -> None:
    made = run(
        "counterfactuals",
        folder / "plan",
        "--n",
        2,
        "--out",
        folder / "pairs",
        "--dataset",
        folder / "dataset",
        "--json",
    )
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["couples"] == 2
    pairs = pd.read_parquet(folder / "pairs" / "counterfactuals.parquet")
    assert len(pairs) == 4
    rows = pd.read_parquet(folder / "dataset" / "prompts.parquet").set_index("prompt_id")
    for _, pair in pairs.iterrows():
        original = rows.loc[pair["prompt_id"]]
        assert pair["split"] == original["split"] != "buffer"
        assert pair["prompt"][1]["content"] == original["prompt"][1]["content"]
        assert pair["answer"] == original["answer"]
        assert pair["target"] == original["target"]


def test_a_dataset_of_another_plan_is_refused(folder: Path, tmp_path: Path) -> None:
    run("prompts", folder / "other", "--out", tmp_path / "dataset")
    refused = run("counterfactuals", folder / "plan", "--n", 1, "--out", tmp_path, "--dataset", tmp_path / "dataset")
    assert refused.exit_code == 1
    assert "was not built from this plan" in " ".join(refused.stderr.split())
