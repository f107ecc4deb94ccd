"""Writing an export: the trainer's files, the rewards, the card and a manifest of SHA-256, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from oracle.errors import DatasetError
from prompts.dataset import PromptDataset
from prompts.exports import openr1, openrlhf, trl, verifiers, verl
from prompts.exports.card import UNSTATED_LICENCE, export_card
from prompts.exports.tables import rows_by_split
from prompts.leaks import refuse_leaks

FORMAT = "landoracle-export-1"
CARD, MANIFEST, REWARD = "README.md", "manifest.json", "reward.py"


class Target(StrEnum):
    """Whose files are written."""

    TRL = "trl"
    OPENR1 = "openr1"
    VERL = "verl"
    OPENRLHF = "openrlhf"
    VERIFIERS = "verifiers"


_FILES: Mapping[Target, tuple[Callable[[PromptDataset], dict[str, bytes]], str]] = {
    Target.TRL: (trl.files, trl.USE),
    Target.OPENR1: (openr1.files, openr1.USE),
    Target.VERL: (verl.files, verl.USE),
    Target.OPENRLHF: (openrlhf.files, openrlhf.USE),
    Target.VERIFIERS: (verifiers.files, verifiers.USE),
}


def export(
    dataset: PromptDataset,
    target: Target,
    folder: Path,
    *,
    rewards: str,
    ceiling: Mapping[str, Any] | None = None,
    licence: str = UNSTATED_LICENCE,
) -> dict[str, Any]:
    """Write a dataset as the files of one trainer; equal datasets give equal bytes.

    Parameters
    ----------
    dataset : PromptDataset
        Rows of every split but ``buffer`` are written, each split's apart.
    target : Target
        The trainer.
    folder : Path
        New, empty, or an earlier export, which is replaced as a whole.
    rewards : str
        Text of ``reward.py`` (:mod:`training.reward_file`).
    ceiling : mapping, optional
        Content of ``ceiling.json``, for the card.
    licence : str
        SPDX identifier of the licence, for the card.

    Returns
    -------
    dict
        The manifest: ``rows`` per split, ``files`` with their SHA-256, and the dataset's own manifest.

    Raises
    ------
    DatasetError
        Where there is nothing to export, a training row shows what a held-out one shows, or ``folder`` holds
        something that is no export.
    """
    refuse_leaks(dataset.frame)
    _refuse_strange_folder(folder)
    build, use = _FILES[target]
    files = build(dataset)
    rows = {split: len(of_split) for split, of_split in rows_by_split(dataset)}
    if not rows:
        raise DatasetError("the dataset has no row to export: every row is in the buffer")
    files[f"{verifiers.PACKAGE}/{REWARD}" if target is Target.VERIFIERS else REWARD] = rewards.encode()
    files[CARD] = export_card(dataset, target.value, use, files, ceiling, licence).encode()
    manifest = {
        "format": FORMAT,
        "target": target.value,
        "rows": rows,
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
        "dataset": dataset.manifest.model_dump(mode="json"),
    }
    files[MANIFEST] = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    _write_folder(folder, files)
    return manifest


def _refuse_strange_folder(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        ours = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        ours = False
    if not ours:
        raise DatasetError(f"{folder} holds something that is no export: give a new folder, or empty this one")


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write beside, then move into place; an earlier export goes only when the new one is complete."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
        new, old = Path(beside) / "new", Path(beside) / "old"
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
