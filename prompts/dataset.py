"""The prompt dataset: solved landscapes in, labelled and split prompts out, with the hashes that lead back.

A polygon with a locked land use becomes no row: the lock decides it, and the prompt does not show the lock. Nor does
one with a tied label where ``labels`` is ``drop_tied``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pydantic import ValidationError

from oracle.errors import DatasetError, name_some
from oracle.files import write_atomically
from oracle.landscape import LOCKED, Landscape
from oracle.regret import Status
from prompts.card import dataset_card
from prompts.config import Labels, PromptConfig
from prompts.leaks import refuse_leaks
from prompts.manifest import FORMAT, Manifest, SourceRecord
from prompts.neighbourhood import Neighbourhoods, neighbourhoods
from prompts.render import TEMPLATE_VERSION, templates_sha256
from prompts.rows import parquet_bytes, prompt_rows, to_frame
from prompts.source import Source, refuse_unusable
from prompts.split import Role, Split, SplitConfig, assign_splits
from prompts.summary import notes_on, split_records, token_record
from prompts.tokens import TokenAudit, count_tokens
from prompts.transforms import AugmentConfig, augmented_rows

__all__ = ["CARD", "MANIFEST", "PROMPTS", "PromptDataset", "Source", "build_dataset"]

PROMPTS, CARD, MANIFEST = "prompts.parquet", "card.md", "manifest.json"


@dataclass(frozen=True, eq=False)
class PromptDataset:
    """Prompts with their labels, and where they come from.

    Parameters
    ----------
    frame : DataFrame
        One row per prompt, columns of :mod:`prompts.rows`.
    manifest : Manifest
        Configuration, sources, shares, versions and hashes.
    """

    frame: pd.DataFrame
    manifest: Manifest

    @cached_property
    def sha256(self) -> str:
        """Hash of ``prompts.parquet``; the manifest states it."""
        return self.manifest.files[PROMPTS]

    def split(self, *splits: Split | str) -> pd.DataFrame:
        """The rows of the splits named, with a fresh index."""
        return self.frame[self.frame["split"].isin([str(s) for s in splits])].reset_index(drop=True)

    def save(self, folder: Path) -> None:
        """Write ``prompts.parquet``, ``card.md`` and, last, ``manifest.json``; equal datasets give equal bytes."""
        files = {PROMPTS: parquet_bytes(self.frame), CARD: dataset_card(self.manifest).encode()}
        files[MANIFEST] = (self.manifest.model_dump_json(indent=2) + "\n").encode()
        for name, content in files.items():
            write_atomically(Path(folder) / name, partial(Path.write_bytes, data=content))

    @classmethod
    def load(cls, folder: Path) -> PromptDataset:
        """Read a saved dataset.

        Raises
        ------
        DatasetError
            Where a file is missing, is not what the manifest says, or was written by another version.
        """
        folder = Path(folder)
        missing = [name for name in (MANIFEST, PROMPTS, CARD) if not (folder / name).is_file()]
        if missing:
            raise DatasetError(f"{folder} is not a prompt dataset: it lacks {', '.join(missing)}; build it first")
        try:
            manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        except ValidationError as error:
            raise DatasetError(f"{folder / MANIFEST} is not a manifest of format {FORMAT}: {error}") from error
        if manifest.format != FORMAT:
            raise DatasetError(f"{folder} has format {manifest.format!r}, expected {FORMAT!r}: build it anew")
        for name in (PROMPTS, CARD):
            if _sha256((folder / name).read_bytes()) != manifest.files.get(name):
                raise DatasetError(f"{folder / name} is not the file that its manifest describes: build it anew")
        return cls(to_frame(pq.read_table(folder / PROMPTS).to_pydict()), manifest)


def build_dataset(
    sources: Iterable[Source],
    config: PromptConfig | None = None,
    split_config: SplitConfig | None = None,
    audit: TokenAudit | None = None,
    augment: AugmentConfig | None = None,
) -> PromptDataset:
    """Render every polygon of solved landscapes as a labelled, split prompt.

    Parameters
    ----------
    sources : iterable of Source
        Landscapes may differ in their crops; taken in the order given.
    config : PromptConfig, optional
        Variant of the prompts.
    split_config : SplitConfig, optional
        Blocks, buffer and random share.
    augment : AugmentConfig, optional
        Copies of training prompts that have the same label; none by default.
    audit : TokenAudit, optional
        Counts the tokens of every prompt; without it the manifest says that nobody counted.

    Raises
    ------
    DatasetError
        Where a solution, graph and landscape do not belong together, a class name cannot stand in a prompt, a
        landscape comes twice, a training prompt shows what a held-out one shows, or a prompt is too long.
    """
    config, split_config, augment = config or PromptConfig(), split_config or SplitConfig(), augment or AugmentConfig()
    augment.refuse_pointless(config)
    frames: list[pd.DataFrame] = []
    records: list[SourceRecord] = []
    for source in sources:
        rows, record = _rows_of(source, config, split_config, augment)
        frames.append(rows)
        records.append(record)
    if not frames:
        raise DatasetError("no landscape was given: a dataset needs at least one solved landscape")
    _refuse_doubles(records)
    frame = pd.concat(frames, ignore_index=True)
    refuse_leaks(frame)
    if audit is not None:
        frame["prompt_tokens"] = pd.array(count_tokens(frame, audit, config), dtype="Int64")
    manifest = Manifest(
        format=FORMAT,
        template_version=TEMPLATE_VERSION,
        templates_sha256=templates_sha256(),
        prompts=config,
        split_config=split_config,
        augment=augment,
        sources=tuple(records),
        splits=split_records(frame),
        tokens=token_record(frame, audit),
        notes=notes_on(frame, records),
        versions={name: metadata.version(name) for name in ("pandas", "pyarrow", "jinja2")},
        files={},
    )
    files = {PROMPTS: _sha256(parquet_bytes(frame)), CARD: _sha256(dataset_card(manifest).encode())}
    return PromptDataset(frame, manifest.model_copy(update={"files": files}))


def _rows_of(
    source: Source, config: PromptConfig, split_config: SplitConfig, augment: AugmentConfig
) -> tuple[pd.DataFrame, SourceRecord]:
    landscape, solution, role = source.landscape, source.solution, Role(source.role)
    refuse_unusable(source)
    shown = neighbourhoods(landscape, source.graph, solution, config)
    splits = assign_splits(landscape, source.graph, shown, role, split_config)
    decided = _decided(landscape)
    tied = decided & (solution.status == Status.TIED.value) & (config.labels is Labels.DROP_TIED)
    rows = np.flatnonzero(decided & ~tied)

    def rows_of(neighbourhoods: Neighbourhoods, rows: np.ndarray) -> pd.DataFrame:
        return prompt_rows(landscape, solution, neighbourhoods, splits, config, rows)

    copies = augmented_rows(rows_of, shown, splits.split, rows, augment, config)
    frame = pd.concat([rows_of(shown, rows), *copies], ignore_index=True)
    record = SourceRecord(
        landscape=landscape.name,
        role=role,
        classes=landscape.classes,
        polygons=len(landscape),
        locked=int((~decided).sum()),
        tied_dropped=int(tied.sum()),
        held_out_blocks=splits.held_out_blocks,
        yield_range_m=_to_metres(splits.size.yield_range_m),
        block_m=round(splits.size.side_m, 1),
        block_rule=splits.size.rule,
        gap=float(solution.gap),
        solver=solution.solver,
        landscape_sha256=landscape.sha256,
        graph_sha256=source.graph.sha256,
        glm_config_sha256=solution.config.sha256,
    )
    return frame, record


def _decided(landscape: Landscape) -> np.ndarray:
    if LOCKED not in landscape.polygons:
        return np.ones(len(landscape), dtype=bool)
    return landscape.polygons[LOCKED].isna().to_numpy()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refuse_doubles(records: list[SourceRecord]) -> None:
    names = [r.landscape for r in records]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DatasetError(f"landscape(s) {name_some(twice)} were given twice: give every landscape a name of its own")
    trained = {r.landscape_sha256 for r in records if r.role is Role.TRAIN}
    both = [r.landscape for r in records if r.role is Role.HELD_OUT and r.landscape_sha256 in trained]
    if both:
        raise DatasetError(f"held-out landscape(s) {name_some(both)} are also trained on under another name")


def _to_metres(distance_m: float | None) -> float | None:
    return None if distance_m is None else round(distance_m, 1)
