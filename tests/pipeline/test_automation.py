"""The drop folder's sensor and the retraining schedule, evaluated as the daemon would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg

from pipeline.assets import LANDSCAPES, grpo_model, oracle_plan
from pipeline.automation import landscape_folder, weekly_retraining
from pipeline.sources import embedded_sources
from tests.pipeline.conftest import settle


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


def test_retraining_says_why_it_skips(instance: dg.DagsterInstance) -> None:
    def evaluate() -> str | None:
        with dg.build_schedule_context(instance=instance) as context:
            asked = weekly_retraining(context)
        return asked.skip_message if isinstance(asked, dg.SkipReason) else None

    def happened(asset: dg.AssetsDefinition, partition: str | None = None) -> None:
        instance.report_runless_asset_event(dg.AssetMaterialization(asset.key, partition=partition))

    assert evaluate() == "no landscape has been solved yet"
    happened(oracle_plan, "farm")
    assert evaluate() is None
    happened(grpo_model)
    assert evaluate() == "no plan is newer than the last trained model"
    happened(oracle_plan, "farm")
    assert evaluate() is None


def test_the_code_server_loads_nothing_heavy() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, pipeline.definitions; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "dagster" in loaded
    assert not {"torch", "transformers", "trl", "peft", "vllm"} & set(loaded)
