"""What a retraining would find new: plans that came, changed or left, and another configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oracle.errors import LandoracleError, name_some
from oracle.solution import SOLUTION, read_json
from pipeline.plans import refuse_stale
from pipeline.sources import find_source
from pipeline.workspace import Workspace
from prompts.dataset import MANIFEST, PROMPTS
from training.config import Stage, TrainingConfig
from training.run import RUN

Hashes = tuple[str, str, str]
"""SHA-256 of a solved landscape, its neighbour graph and the GLM's configuration."""


def usable_plans(workspace: Workspace, keys: Iterable[str]) -> dict[str, Hashes]:
    """Of the landscapes ``keys`` those whose plan is of their file as it is now, with what was solved."""
    plans = {}
    for key in sorted(keys):
        try:
            refuse_stale(workspace.plan(key), find_source(key).fingerprint())
            hashes = read_json(workspace.plan(key) / SOLUTION)["hashes"]
        except LandoracleError:
            continue
        plans[key] = (hashes["landscape"], hashes["graph"], hashes["config"])
    return plans


def what_is_new(workspace: Workspace, plans: Mapping[str, Hashes], config: TrainingConfig) -> list[str]:
    """Reasons to train again; empty where the last model has seen all this.

    Parameters
    ----------
    workspace : Workspace
    plans : mapping
        From :func:`usable_plans`.
    config : TrainingConfig
        What the retraining would be configured as.
    """
    run, manifest = workspace.model(Stage.GRPO) / RUN, workspace.dataset / MANIFEST
    if not run.is_file() or not manifest.is_file():
        return ["no model has been trained yet"]
    trained, dataset = read_json(run), read_json(manifest)
    news = []
    if trained["dataset_sha256"] != dataset["files"][PROMPTS]:
        news.append("the dataset is newer than the model")
    if trained["config_sha256"] != config.sha256:
        news.append("the configuration is another than the last model's")
    used = {
        (s["landscape_sha256"], s["graph_sha256"], s["glm_config_sha256"]): s["landscape"] for s in dataset["sources"]
    }
    if came := [key for key, hashes in plans.items() if hashes not in used]:
        news.append(f"new or changed plans: {name_some(came)}")
    if left := [name for hashes, name in used.items() if hashes not in plans.values() and name not in came]:
        news.append(f"plans that are no more: {name_some(left)}")
    return news
