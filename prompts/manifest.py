"""What a prompt dataset is made of, and the hashes that lead back to the solutions: ``manifest.json``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from prompts.config import PromptConfig
from prompts.split import BlockRule, Role, SplitConfig
from prompts.transforms import AugmentConfig

FORMAT = "landoracle-prompts-2"


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
    tied_dropped: int
    """Polygons that became no prompt, because their label is tied and ``labels`` is ``drop_tied``."""
    held_out_blocks: tuple[str, ...]
    yield_range_m: float | None
    """Distance from which on the yields no longer resemble each other (:mod:`prompts.autocorrelation`)."""
    block_m: float
    """Side of the blocks, m."""
    block_rule: BlockRule
    """What decided it."""
    gap: float
    """Relative gap of the solution that the labels come from."""
    solver: str
    landscape_sha256: str
    graph_sha256: str
    glm_config_sha256: str


class IntervalWidth(_Record):
    """Width of the 95 % Wilson interval that an accuracy measured on so many rows will have, 0..1."""

    at_65: float
    """At an accuracy of 0.65."""
    at_50: float
    """At 0.5, the widest that it can be."""


class SplitRecord(_Record):
    """The prompts of one split: how many, and the share of each class and label status among them."""

    prompts: int
    classes: dict[str, float]
    status: dict[str, float]
    interval: IntervalWidth | None = None
    """How sure a figure on this split can be; None for rows that nothing is measured on."""


class TokenRecord(_Record):
    """Tokens of the prompts in the tokenizer named, and the most that the training profile leaves for a prompt."""

    tokenizer: str
    limit: int
    least: int
    median: int
    percentile_95: int
    greatest: int


class Manifest(_Record):
    """Everything about a dataset that is not in its rows."""

    format: str
    template_version: str
    templates_sha256: str
    prompts: PromptConfig
    split_config: SplitConfig
    augment: AugmentConfig = AugmentConfig()
    sources: tuple[SourceRecord, ...]
    splits: dict[str, SplitRecord]
    tokens: TokenRecord | None = None
    """None where nobody counted."""
    notes: tuple[str, ...]
    """What a user of the dataset should know, a sentence each."""
    versions: dict[str, str]
    files: dict[str, str]
    """SHA-256 of each file beside the manifest."""
