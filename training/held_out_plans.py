"""Plans of the landscapes that a dataset holds out, and no others: what a model's own plans are priced against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oracle.errors import DatasetError
from oracle.solution import SOLUTION, read_json
from prompts.manifest import Manifest, SourceRecord
from prompts.plan_folder import is_plan, read_plan
from prompts.source import Source, refuse_unusable
from prompts.split import Role


def held_out_plans(folders: Sequence[Path], manifest: Manifest, at_most: int | None = None) -> list[Source]:
    """The plans from which the dataset's held-out landscapes were labelled.

    Parameters
    ----------
    folders : sequence of Path
        Plans, or folders of plans; in the latter those of other landscapes than the dataset's held-out ones are left
        aside.
    manifest : Manifest
        The dataset's.
    at_most : int, optional
        So many landscapes, by the order of the manifest.

    Raises
    ------
    DatasetError
        Where a folder holds no plan, or a plan is another than the dataset was made from.
    """
    sources = {record.landscape: record for record in manifest.sources if record.role is Role.HELD_OUT}
    plans: dict[str, Source] = {}
    for folder in folders:
        given = is_plan(folder)
        for path in [folder] if given else _plans_in(folder):
            name = str(read_json(path / SOLUTION).get("landscape"))
            if name in sources:
                plans[name] = _read(path, sources[name])
            elif given:
                known = ", ".join(sources) or "none"
                raise DatasetError(f"{path} is of {name!r}, which this dataset does not hold out; it does: {known}")
    return [plans[name] for name in sources if name in plans][:at_most]


def optima(folders: Sequence[Path], manifest: Manifest) -> dict[str, tuple[float, int]]:
    """Objective and polygons of the dataset's landscapes whose plans lie in the folders; others are left aside."""
    sources = {(record.landscape, record.landscape_sha256): record.polygons for record in manifest.sources}
    found = {}
    for folder in folders:
        for path in [folder] if is_plan(folder) else _plans_in(folder):
            stated = read_json(path / SOLUTION)
            name = str(stated["landscape"])
            if (name, stated["hashes"]["landscape"]) in sources:
                found[name] = (float(stated["objective"]), sources[name, stated["hashes"]["landscape"]])
    return found


def _plans_in(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.iterdir()) if is_plan(path)] if folder.is_dir() else []
    if not found:
        raise DatasetError(f"{folder} is no plan and holds none: name a folder that `landoracle solve` wrote")
    return found


def _read(path: Path, record: SourceRecord) -> Source:
    plan = read_plan(path, Role.HELD_OUT)
    refuse_unusable(plan)
    for what, stated, own in (
        ("landscape", record.landscape_sha256, plan.landscape.sha256),
        ("neighbour graph", record.graph_sha256, plan.graph.sha256),
        ("GLM configuration", record.glm_config_sha256, plan.solution.config.sha256),
    ):
        if stated != own:
            raise DatasetError(
                f"{path}: the dataset was made from another {what} of {record.landscape!r} (sha256 {stated[:12]}, here "
                f"{own[:12]}): give the plan that it was made from, or build the dataset anew"
            )
    return plan
