"""Small landscapes in a drop folder of their own, and a workspace below a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from oracle.synthesis import embedded_landscapes, synthesise
from pipeline import sources
from pipeline.definitions import defs
from pipeline.workspace import Workspace

RECIPE = """\
role: {role}
glm:
  connectivity_weight: 0.45
  prices: {{wheat: 280, oat: 260, corn: 160, soy: 400}}
  supply_floors: {{wheat: 0.6, oat: 0.6, corn: 0.3, soy: 0.3}}
"""


def write_landscape(folder: Path, name: str, seed: int, role: str) -> Path:
    """One township (144 quarter sections) as GeoJSON with its recipe, old enough to be no copy in progress."""
    config = embedded_landscapes()[0].model_copy(update={"seed": seed, "townships_ns": 1, "townships_ew": 1})
    file = folder / f"{name}.geojson"
    synthesise(config).polygons.to_file(file, engine="pyogrio")
    file.with_suffix(".yaml").write_text(RECIPE.format(role=role), encoding="utf-8")
    settle(file)
    return file


def settle(file: Path) -> None:
    past = file.stat().st_mtime - 10 * sources.SETTLED_S
    os.utime(file, (past, past))


@pytest.fixture
def drop_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty drop folder that the pipeline watches instead of ``data/landscapes``."""
    folder = tmp_path / "landscapes"
    folder.mkdir()
    monkeypatch.setattr(sources, "DROP_FOLDER", folder)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The folder that the assets write to."""
    monkeypatch.setenv("LANDORACLE_WORKSPACE", str(tmp_path / "runs"))
    return Workspace(root=str(tmp_path / "runs"))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's storage in a temporary folder."""
    with dg.instance_for_test() as temporary:
        yield temporary


def execute(job: str, instance: dg.DagsterInstance, **more: Any) -> dg.ExecuteInProcessResult:
    """Run a job in this process, over storage of its own; no exception when a step fails."""
    config = {"loggers": {"console": {"config": {}}}, **more.pop("run_config", {})}
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance, raise_on_error=False, run_config=config, **more
    )
