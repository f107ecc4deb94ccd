"""What a prompt dataset is made of, and the hashes that lead back to the solutions: ``manifest.json``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from prompts.config import PromptConfig
from prompts.split import Role, SplitConfig

FORMAT = "landoracle-prompts-1"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceRecord(_Record):
    """One landscape of a dataset."""

    landscape: str
    role: Role
    classes: tuple[str, ...]
    polygons: int
    locked: int
    """Polygons that became no prompt, because a lock and not the optimum decides them."""
    held_out_blocks: tuple[str, ...]
    gap: float
    """Relative gap of the solution that the labels come from."""
    solver: str
    landscape_sha256: str
    graph_sha256: str
    glm_config_sha256: str


class SplitRecord(_Record):
    """The prompts of one split: how many, and the share of each class and label status among them."""

    prompts: int
    classes: dict[str, float]
    status: dict[str, float]


class Manifest(_Record):
    """Everything about a dataset that is not in its rows."""

    format: str
    template_version: str
    templates_sha256: str
    prompts: PromptConfig
    split_config: SplitConfig
    sources: tuple[SourceRecord, ...]
    splits: dict[str, SplitRecord]
    notes: tuple[str, ...]
    """What a user of the dataset should know, a sentence each."""
    versions: dict[str, str]
    files: dict[str, str]
    """SHA-256 of each file beside the manifest."""
