"""The whole asset graph, materialized once on two small landscapes from files, with a model that trains in seconds."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import geopandas as gpd
import pytest

from pipeline.assets import FROM_ALL, LANDSCAPES, PER_LANDSCAPE
from pipeline.automation import retrain, solve_landscape
from pipeline.checks import CHECKS
from pipeline.definitions import defs
from pipeline.launchpad import as_settings
from pipeline.workspace import Workspace
from prompts.dataset import PromptDataset
from tests.pipeline.conftest import execute, settle, write_landscape

TINY = [
    "model.hidden=32",
    "model.layers=1",
    "model.intermediate=64",
    "sft.max_steps=6",
    "sft.save_steps=3",
    "grpo.max_steps=2",
    "grpo.save_steps=1",
    "grpo.per_device_train_batch_size=8",
    "grpo.num_generations=4",
    "grpo.max_completion_length=32",
    "evaluation.max_rows=40",
    "threads=1",
]


@pytest.mark.usefixtures("drop_folder")
def test_from_files_to_held_out_accuracy(
    drop_folder: Path,
    workspace: Workspace,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("LANDORACLE_STORE", f"file://{tmp_path}/store")
    files = {
        "near": write_landscape(drop_folder, "near", 1, "train"),
        "far": write_landscape(drop_folder, "far", 2, "held_out"),
    }
    (drop_folder / "broken.geojson").write_text("{}", encoding="utf-8")
    settle(drop_folder / "broken.geojson")
    instance.add_dynamic_partitions(str(LANDSCAPES.name), [*files, "broken", "absent"])

    for key in files:
        assert execute(solve_landscape.name, instance, partition_key=key).success
    for key, reason in {"broken": "broken.geojson", "absent": "put absent.geojson"}.items():
        result = execute(solve_landscape.name, instance, partition_key=key)
        assert not result.success
        (failure,) = result.filter_events(lambda event: event.is_step_failure)
        assert reason in failure.step_failure_data.user_failure_data.description

    config = {"resources": {"training": {"config": as_settings(TINY)}}}
    result = execute(retrain.name, instance, run_config=config)
    assert result.success, [e.step_failure_data for e in result.filter_events(lambda e: e.is_step_failure)]

    labels = gpd.read_file(workspace.plan("near") / "labels.gpkg")
    assert len(labels) == 144
    figures = json.loads((workspace.plan("near") / "connectivity.json").read_text(encoding="utf-8"))
    assert set(figures) == {"connectivity_of_plan", "connectivity_now"}
    dataset = PromptDataset.load(workspace.dataset)
    assert {r.landscape: r.role for r in dataset.manifest.sources} == {"near": "train", "far": "held_out"}
    answers = dataset.frame[dataset.frame["landscape"] == "near"].set_index("polygon_id")["answer"]
    assert answers.to_dict() == labels.set_index("id")["land_use"].to_dict()

    (made,) = result.asset_materializations_for_node("prompt_dataset")
    assert set(made.metadata["skipped"].value) == {"broken", "absent"}
    checks = {e.check_name: e.passed for e in result.get_asset_check_evaluations()}
    assert checks["no_leak"]
    assert checks["gold_reward"]
    assert checks["label_share"]
    assert checks["token_limit"]
    assert checks["no_collapse"]
    assert "promotion" in checks
    assert "accuracy_beats_majority" in checks  # six steps teach little: it may well fail, and blocks nothing

    report = json.loads((workspace.path / "report.json").read_text(encoding="utf-8"))
    seen = report["accuracy"]["held_out_landscape"]
    assert {"SFT", "SFT + GRPO", "majority"} <= set(seen)
    assert all(f["rows"] == 40 and f["low"] <= f["accuracy"] <= f["high"] for f in seen.values())
    assert report["lineage"]["dataset_sha256"] == dataset.sha256
    page = workspace.report.read_text(encoding="utf-8")
    assert report["headline"] in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing from outside

    other = Workspace(root=str(tmp_path / "other"))  # every asset has published what it finished
    finished = {path.relative_to(workspace.path) for path in workspace.finished()}
    other.fetch(*(other.path / path for path in finished))
    assert {path.relative_to(other.path) for path in other.finished()} == finished
    assert {"dataset", "models/sft", "models/grpo", "evaluation", "report.html"} <= {p.as_posix() for p in finished}
    weights = "models/grpo/model.safetensors"
    assert (other.path / weights).read_bytes() == (workspace.path / weights).read_bytes()


def test_what_a_solved_landscape_shows(drop_folder: Path, workspace: Workspace, instance: dg.DagsterInstance) -> None:
    write_landscape(drop_folder, "near", 1, "train")
    instance.add_dynamic_partitions(str(LANDSCAPES.name), ["near"])
    result = execute(solve_landscape.name, instance, partition_key="near")
    (made,) = result.asset_materializations_for_node("oracle_plan")
    shown = {name: entry.value for name, entry in made.metadata.items()}
    assert len(shown["map"]) < 1000  # beyond it the UI hides a picture behind a link
    assert shown["map"].startswith("![plan](data:image/png;base64,")
    assert 1000 < len(shown["map_large"]) <= 50_000  # every materialization's is kept
    shares = [shown[f"{status}_label_share"] for status in ("unique", "tied", "undecided")]
    assert sum(shares) == pytest.approx(1)
    assert isinstance(shown["gap"], float)  # numbers plot over time
    described = {column.name: column.description for column in shown["dagster/column_schema"].columns}
    assert described["land_use"] == "class in the optimum: the label"
    assert "t/ha" in described["wheat_yield"]
    assert {"passed": all(e.passed for e in result.get_asset_check_evaluations())} == {"passed": True}


def test_every_asset_is_described_owned_and_linked_to_its_code() -> None:
    for asset in defs.assets:
        (spec,) = asset.specs
        assert spec.description
        assert spec.owners == ["team:landoracle"]
        assert spec.kinds
        assert spec.tags["stage"] in ("oracle", "prompts", "training", "evaluation")
        (link,) = spec.metadata["dagster/code_references"].code_references
        assert link.file_path.endswith("pipeline/assets.py")
        assert link.line_number > 1
    assert all(check.check_specs_by_output_name["result"].description for check in CHECKS)


def test_graph_reads_at_a_glance() -> None:
    names = [a.key.to_user_string() for a in (*PER_LANDSCAPE, *FROM_ALL)]
    assert names == [
        "landscape",
        "neighbour_graph",
        "oracle_plan",
        "prompt_dataset",
        "sft_model",
        "grpo_model",
        "held_out_accuracy",
        "served_policy",
        "report",
    ]
    dg.Definitions.validate_loadable(defs)
