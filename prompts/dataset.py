"""The prompt dataset: solved landscapes in, labelled and split prompts out, with the hashes that lead back.

A polygon with a locked land use becomes no row: the lock decides it, and the prompt does not show the lock.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from oracle.errors import DatasetError, name_some
from oracle.files import write_atomically
from oracle.landscape import LOCKED, Landscape
from oracle.neighbours import NeighbourGraph
from prompts.card import dataset_card
from prompts.config import PromptConfig
from prompts.leaks import refuse_leaks
from prompts.manifest import FORMAT, Manifest, SourceRecord, SplitRecord
from prompts.neighbourhood import neighbourhoods
from prompts.render import TEMPLATE_VERSION, templates_sha256
from prompts.rows import parquet_bytes, prompt_rows, to_frame
from prompts.split import Role, Split, SplitConfig, assign_splits

if TYPE_CHECKING:
    from oracle.solution import Solution

PROMPTS, CARD, MANIFEST = "prompts.parquet", "card.md", "manifest.json"

_FORBIDDEN_IN_NAMES = "<>|\n\r\t"


@dataclass(frozen=True, eq=False)
class Source:
    """One solved landscape that prompts are made of.

    Parameters
    ----------
    landscape : Landscape
    graph : NeighbourGraph
        Of this landscape.
    solution : Solution
        Of this landscape and graph.
    role : Role
        ``train``: to train on, with held-out blocks; ``held_out``: never trained on.
    """

    landscape: Landscape
    graph: NeighbourGraph
    solution: Solution
    role: Role


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
        return cls(to_frame(pq.read_table(folder / PROMPTS)), manifest)


def build_dataset(
    sources: Iterable[Source], config: PromptConfig | None = None, split_config: SplitConfig | None = None
) -> PromptDataset:
    """Render every polygon of solved landscapes as a labelled, split prompt.

    Parameters
    ----------
    sources : iterable of Source
        Landscapes may differ in their crops; taken in the order given.
    config : PromptConfig, optional
        Variant of the prompts.
    split_config : SplitConfig, optional
        Blocks and buffer.

    Raises
    ------
    DatasetError
        Where a solution, graph and landscape do not belong together, a class name cannot stand in a prompt, a
        landscape comes twice, or a training prompt shows what a held-out one shows.
    """
    config, split_config = config or PromptConfig(), split_config or SplitConfig()
    tables: list[pa.Table] = []
    records: list[SourceRecord] = []
    for source in sources:
        table, record = _rows_of(source, config, split_config)
        tables.append(table)
        records.append(record)
    if not tables:
        raise DatasetError("no landscape was given: a dataset needs at least one solved landscape")
    _refuse_doubles(records)
    frame = to_frame(pa.concat_tables(tables))
    refuse_leaks(frame)
    manifest = Manifest(
        format=FORMAT,
        template_version=TEMPLATE_VERSION,
        templates_sha256=templates_sha256(),
        prompts=config,
        split_config=split_config,
        sources=tuple(records),
        splits=_split_records(frame),
        notes=_notes(frame, records),
        versions={name: metadata.version(name) for name in ("pandas", "pyarrow", "jinja2")},
        files={},
    )
    files = {PROMPTS: _sha256(parquet_bytes(frame)), CARD: _sha256(dataset_card(manifest).encode())}
    return PromptDataset(frame, manifest.model_copy(update={"files": files}))


def _rows_of(source: Source, config: PromptConfig, split_config: SplitConfig) -> tuple[pa.Table, SourceRecord]:
    landscape, solution, role = source.landscape, source.solution, Role(source.role)
    _refuse_strangers(source)
    _refuse_class_names(landscape)
    shown = neighbourhoods(landscape, source.graph, solution, config)
    splits = assign_splits(landscape, source.graph, shown, role, split_config)
    rows = np.flatnonzero(_decided(landscape))
    table = prompt_rows(landscape, solution, shown, splits, config, rows)
    record = SourceRecord(
        landscape=landscape.name,
        role=role,
        classes=landscape.classes,
        polygons=len(landscape),
        locked=len(landscape) - len(rows),
        held_out_blocks=splits.held_out_blocks,
        gap=float(solution.gap),
        solver=solution.solver,
        landscape_sha256=landscape.sha256,
        graph_sha256=source.graph.sha256,
        glm_config_sha256=solution.config.sha256,
    )
    return table, record


def _decided(landscape: Landscape) -> np.ndarray:
    if LOCKED not in landscape.polygons:
        return np.ones(len(landscape), dtype=bool)
    return landscape.polygons[LOCKED].isna().to_numpy()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refuse_strangers(source: Source) -> None:
    name, landscape, solution = source.landscape.name, source.landscape, source.solution
    if not np.array_equal(solution.ids, landscape.ids) or tuple(solution.classes) != landscape.classes:
        raise DatasetError(
            f"the solution is not of landscape {name!r}: its polygons or classes differ; solve this landscape anew"
        )
    for what, solved, own in (
        ("landscape", solution.hashes.landscape, landscape.sha256),
        ("graph", solution.hashes.graph, source.graph.sha256),
    ):
        if solved != own:
            raise DatasetError(
                f"the solution of {name!r} was computed from another {what} (sha256 {solved[:12]}, here {own[:12]}); "
                "solve it anew"
            )
    unknown = sorted(set(solution.land_use.tolist()) - set(landscape.classes))
    if unknown:
        raise DatasetError(
            f"labels of {name!r} must be one of {', '.join(landscape.classes)}; found {name_some(unknown)}"
        )


def _refuse_class_names(landscape: Landscape) -> None:
    """Answers are compared after NFKC, strip and case-folding: names must stay apart then, and fit in a tag."""
    plain = [unicodedata.normalize("NFKC", c).strip().casefold() for c in landscape.classes]
    bad = [
        c
        for c, p in zip(landscape.classes, plain, strict=True)
        if not p or p != c.casefold() or any(sign in c for sign in _FORBIDDEN_IN_NAMES) or plain.count(p) > 1
    ]
    if bad:
        raise DatasetError(
            f"landscape {landscape.name!r}: class names {name_some(json.dumps(b) for b in bad)} cannot be answers: "
            "expected distinct names (upper and lower case are the same) without < > | or line breaks; "
            "rename the crops in the recipe"
        )


def _refuse_doubles(records: list[SourceRecord]) -> None:
    names = [r.landscape for r in records]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DatasetError(f"landscape(s) {name_some(twice)} were given twice: give every landscape a name of its own")
    trained = {r.landscape_sha256 for r in records if r.role is Role.TRAIN}
    both = [r.landscape for r in records if r.role is Role.HELD_OUT and r.landscape_sha256 in trained]
    if both:
        raise DatasetError(f"held-out landscape(s) {name_some(both)} are also trained on under another name")


def _split_records(frame: pd.DataFrame) -> dict[str, SplitRecord]:
    records = {}
    for split in Split:
        rows = frame[frame["split"] == split.value]
        records[split.value] = SplitRecord(
            prompts=len(rows), classes=_shares(rows["answer"]), status=_shares(rows["status"])
        )
    return records


def _shares(values: pd.Series) -> dict[str, float]:
    counts = values.value_counts().sort_index()
    return {str(value): round(int(count) / len(values), 6) for value, count in counts.items()}


def _notes(frame: pd.DataFrame, records: list[SourceRecord]) -> tuple[str, ...]:
    notes = []
    splits = set(frame["split"])
    without = [r.landscape for r in records if r.role is Role.TRAIN and not r.held_out_blocks]
    if without:
        notes.append(f"no block is held out in {name_some(without)}: too few polygons for a block and its buffer")
    if not splits & {Split.HELD_OUT_BLOCK.value, Split.HELD_OUT_LANDSCAPE.value}:
        notes.append("nothing is held out, so nothing can be evaluated: add a landscape, or lower buffer or block_side")
    if Split.TRAIN.value not in splits:
        notes.append("nothing is left to train on: every landscape is held out")
    locked = sum(r.locked for r in records)
    if locked:
        notes.append(f"{locked:,} polygons with a locked land use became no prompt")
    return tuple(notes)
