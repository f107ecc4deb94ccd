"""The drop folder's sensor and the retraining schedule, evaluated as the daemon would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import geopandas as gpd
import pytest

from oracle.errors import LandscapeError
from oracle.files import write_json
from pipeline.assets import LANDSCAPES, prompt_dataset
from pipeline.automation import landscape_folder, retrain, solve_landscape, weekly_retraining
from pipeline.launchpad import Training
from pipeline.sources import embedded_sources, find_source
from pipeline.workspace import Workspace
from prompts.dataset import PromptDataset
from tests.pipeline.conftest import execute, settle, write_landscape
from training.config import load_profile


class Daemon:
    """Evaluates the sensor, applies its partition requests and keeps its cursor, like Dagster's daemon."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance, self.cursor = instance, None

    def tick(self) -> list[str]:
        """Partitions of the runs that this evaluation requests."""
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor)
        result = landscape_folder(context)
        for request in result.dynamic_partitions_requests:
            if isinstance(request, dg.AddDynamicPartitionsRequest):
                self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
            else:
                for key in request.partition_keys:
                    self.instance.delete_dynamic_partition(request.partitions_def_name, key)
        self.cursor = result.cursor
        return sorted(request.partition_key for request in result.run_requests)

    def partitions(self) -> set[str]:
        """Partitions besides the embedded ones."""
        return set(self.instance.get_dynamic_partitions(str(LANDSCAPES.name))) - set(embedded_sources())


def put(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    settle(file)


def test_a_file_comes_changes_goes_back_and_leaves(drop_folder: Path, instance: dg.DagsterInstance) -> None:
    daemon = Daemon(instance)
    assert daemon.tick() == []
    farm = drop_folder / "farm.geojson"
    put(farm, "A")
    assert daemon.tick() == ["farm"]
    assert daemon.partitions() == {"farm"}
    assert daemon.tick() == []  # nothing new
    put(farm, "B")
    assert daemon.tick() == ["farm"]
    put(farm, "A")
    assert daemon.tick() == ["farm"]  # back to an earlier content: its labels have to come back too
    put(farm.with_suffix(".yaml"), "id: FID")
    assert daemon.tick() == ["farm"]  # another recipe is another landscape
    farm.unlink()
    assert daemon.tick() == []
    assert daemon.partitions() == set()
    put(farm, "A")
    assert daemon.tick() == ["farm"]


def test_a_file_that_is_still_being_copied_waits(drop_folder: Path, instance: dg.DagsterInstance) -> None:
    daemon = Daemon(instance)
    farm = drop_folder / "farm.geojson"
    farm.write_text("half of i", encoding="utf-8")
    os.utime(farm, (time.time(), time.time()))
    assert daemon.tick() == []
    assert daemon.partitions() == set()
    settle(farm)
    assert daemon.tick() == ["farm"]


def test_every_part_of_a_shapefile_has_to_be_there(drop_folder: Path, instance: dg.DagsterInstance) -> None:
    daemon = Daemon(instance)
    for part in ("farm.shp", "farm.dbf"):
        put(drop_folder / part, "part")
    assert daemon.tick() == ["farm"]
    (drop_folder / "farm.dbf").write_text("half of", encoding="utf-8")  # a new state on its way
    assert daemon.tick() == []
    assert daemon.partitions() == {"farm"}  # it has not left
    settle(drop_folder / "farm.dbf")
    assert daemon.tick() == ["farm"]


def test_a_file_that_changes_while_it_is_solved_comes_after(drop_folder: Path, instance: dg.DagsterInstance) -> None:
    """Two runs of one landscape at once could end with the older file's labels."""
    daemon = Daemon(instance)
    farm = drop_folder / "farm.geojson"
    put(farm, "A")
    assert daemon.tick() == ["farm"]
    run = dg.DagsterRun("solve_landscape", status=dg.DagsterRunStatus.STARTED, tags={"dagster/partition": "farm"})
    instance.add_run(run)
    put(farm, "B")
    assert daemon.tick() == []
    assert daemon.tick() == []
    instance.report_run_canceled(run)
    assert daemon.tick() == ["farm"]
    assert daemon.tick() == []


def test_labels_follow_the_file(drop_folder: Path, workspace: Workspace, instance: dg.DagsterInstance) -> None:
    """A to B to A ends with A's labels; a file that breaks takes its plan out of the dataset, and no other."""
    daemon, labels = Daemon(instance), []
    write_landscape(drop_folder, "other", 3, "train")
    for seed in (1, 2, 1):
        write_landscape(drop_folder, "farm", seed, "train")
        asked = daemon.tick()
        assert asked == (["farm"] if labels else ["farm", "other"])
        for key in asked:
            assert execute(solve_landscape.name, instance, partition_key=key).success
        labels.append(gpd.read_parquet(workspace.plan("farm") / "labels.parquet")["land_use"].tolist())
    first, second, third = labels
    assert first == third != second
    assert daemon.tick() == []  # unchanged

    put(drop_folder / "farm.geojson", "{}")
    assert daemon.tick() == ["farm"]
    result = execute(solve_landscape.name, instance, partition_key="farm")
    assert not result.success
    dataset = execute(retrain.name, instance, asset_selection=[prompt_dataset.key])
    assert dataset.success
    (made,) = dataset.asset_materializations_for_node("prompt_dataset")
    assert "earlier state of its file" in made.metadata["skipped"].value["farm"]
    assert {s.landscape for s in PromptDataset.load(workspace.dataset).manifest.sources} == {"other"}

    for file in (drop_folder / "farm.geojson", drop_folder / "farm.yaml"):
        file.unlink()
    assert daemon.tick() == []
    dataset = execute(retrain.name, instance, asset_selection=[prompt_dataset.key])
    (made,) = dataset.asset_materializations_for_node("prompt_dataset")
    assert "farm" not in made.metadata["skipped"].value


def test_two_files_of_one_name_are_refused(drop_folder: Path) -> None:
    for name in ("farm.geojson", "farm.gpkg"):
        put(drop_folder / name, "{}")
    with pytest.raises(LandscapeError, match=r"farm\.geojson, farm\.gpkg would be the same landscape 'farm'"):
        find_source("farm").read()


def test_retraining_says_why_it_skips(
    drop_folder: Path, workspace: Workspace, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(**settings: object) -> str:
        resources = {"workspace": workspace, "training": Training(**settings)}
        with dg.build_schedule_context(instance=instance, resources=resources) as context:
            asked = weekly_retraining(context)
        if isinstance(asked, dg.SkipReason):
            return f"skipped: {asked.skip_message}"
        return asked.tags["landoracle/because"]

    assert evaluate() == "skipped: no landscape has been solved yet"
    write_landscape(drop_folder, "farm", 1, "train")
    instance.add_dynamic_partitions("landscapes", ["farm"])
    assert execute(solve_landscape.name, instance, partition_key="farm").success
    assert evaluate() == "no model has been trained yet"
    assert execute(retrain.name, instance, asset_selection=[prompt_dataset.key]).success
    dataset = PromptDataset.load(workspace.dataset)
    trained = {"config_sha256": load_profile("pocket").sha256, "dataset_sha256": dataset.sha256}
    write_json(workspace.model("grpo") / "run.json", trained)  # as a training leaves it
    assert evaluate() == (
        "skipped: nothing is new: the 1 plan(s) and the configuration are those of the last trained model"
    )
    assert evaluate(seed=7) == "the configuration is another than the last model's"
    write_landscape(drop_folder, "farm", 2, "train")
    assert evaluate() == "skipped: no landscape has been solved yet"  # its old plan counts for nothing
    assert execute(solve_landscape.name, instance, partition_key="farm").success
    assert evaluate() == "new or changed plans: farm"
    run = dg.DagsterRun("retrain", status=dg.DagsterRunStatus.STARTED)
    instance.add_run(run)
    assert evaluate() == f"skipped: a training is still under way (run {run.run_id[:8]})"


def test_the_code_server_loads_nothing_heavy() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, pipeline.definitions; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "dagster" in loaded
    assert not {"torch", "transformers", "trl", "peft", "vllm"} & set(loaded)
