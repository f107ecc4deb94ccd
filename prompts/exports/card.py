"""The card of an export (``README.md``): what loads it, what is in it, how far its labels can be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle.errors import DatasetError
from prompts.card import dataset_card
from prompts.dataset import PromptDataset
from prompts.exports.tables import rows_by_split

UNSTATED_LICENCE = "other"
_STATUS = ("unique", "tied", "undecided")


def export_card(
    dataset: PromptDataset, target: str, use: str, files: Iterable[str], ceiling: Mapping[str, Any] | None, licence: str
) -> str:
    """The card in Markdown; its front matter tells ``datasets.load_dataset(FOLDER)`` which file is which split.

    Parameters
    ----------
    dataset : PromptDataset
        What is exported.
    target : str
        The trainer.
    use : str
        How the trainer is pointed at the folder.
    files : iterable of str
        Files of the export, relative.
    ceiling : mapping or None
        Content of ``ceiling.json``, where the ceiling was measured.
    licence : str
        SPDX identifier, or ``other``.
    """
    parts = [
        _front_matter(sorted(files), licence),
        f"# Land-use decisions, for {target}\n",
        f"{use}\n",
        "`reward.py` scores a turn (decision 0.6, form 0.4; a gold answer scores 1) and needs nothing but Python. "
        "`manifest.json` states the SHA-256 of every file, of the dataset and of every landscape, graph and "
        "configuration that it was computed from.\n",
        "## How sure the labels are\n",
        *_table(["split", "rows", *_STATUS], _certainty(dataset)),
        "",
        "## Ceiling\n",
        *_ceiling(dataset, ceiling),
        "",
        _body(dataset_card(dataset.manifest), licence),
    ]
    return "\n".join(parts)


def read_ceiling(file: Path, dataset_sha256: str | None = None) -> dict[str, Any] | None:
    """Content of ``ceiling.json``; None where there is no such file, or where it is not of the dataset of this hash.

    Raises
    ------
    DatasetError
        Where the file is not what ``landoracle ceiling`` writes.
    """
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        _ceiling_rows(found)
        of_another = dataset_sha256 is not None and dataset_sha256 not in found["datasets"]
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{file} is not a measured ceiling ({error!r}): measure it anew") from error
    return None if of_another else dict(found)


def _front_matter(files: Sequence[str], licence: str) -> str:
    tables = [f for f in files if f.endswith((".parquet", ".jsonl"))]
    lines = ["---", f"license: {json.dumps(licence)}", "tags: [land-use, rlvr, spatial-optimisation]"]
    folders = sorted({str(Path(f).parent) for f in tables})
    lines += ["configs:"] if tables else []
    for folder in folders:
        default = len(folders) == 1 or folder == "."
        lines += [f"- config_name: {'default' if default else Path(folder).name}", "  data_files:"]
        for f in tables:
            if str(Path(f).parent) == folder:
                lines += [f"  - split: {Path(f).stem}", f"    path: {f}"]
    return "\n".join([*lines, "---", ""])


def _certainty(dataset: PromptDataset) -> list[list[str]]:
    rows = []
    for split, of_split in rows_by_split(dataset):
        shares = [sum(row["status"] == status for row in of_split) / len(of_split) for status in _STATUS]
        rows.append([split, f"{len(of_split):,}", *(f"{share:.1%}" for share in shares)])
    return rows


def _ceiling(dataset: PromptDataset, ceiling: Mapping[str, Any] | None) -> list[str]:
    if ceiling is None:
        return ["Not measured: how much of the oracle a reader of this prompt could know is open."]
    config = dataset.manifest.prompts
    rows = [
        [f"{order}{' (this one)' if (order, context) == (config.order, str(config.context)) else ''}", context, *rest]
        for order, context, *rest in _ceiling_rows(ceiling)
    ]
    told = "The best learners that see a prompt's own numbers, on the held-out rows: what a reader could know.\n"
    return [told, *_table(["order", "context", "learner", "accuracy", "95 % interval"], rows)]


def _ceiling_rows(ceiling: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    for each in ceiling["variants"]:
        variant, best = each["variant"], each["best"]
        interval = best["bootstrap"]
        rows.append(
            (
                variant["order"],
                variant["context"],
                f"{best['learner']}, {best['fields']}",
                f"{best['accuracy']:.1%}",
                f"{interval['low']:.1%} to {interval['high']:.1%}",
            )
        )
    return rows


def _body(card: str, licence: str) -> str:
    """The dataset's own card under this card's title; a licence that was stated replaces its line on the licence."""
    lines = card.removeprefix("# Land-use prompts\n").strip("\n").splitlines()
    if licence != UNSTATED_LICENCE:
        lines = [f"- Licence: {licence}." if line.startswith("- Licence:") else line for line in lines]
    return "\n".join(["## The dataset", "", *lines, ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [f"| {' | '.join(map(str, line))} |" for line in (head, ["---"] * len(head), *rows)]
