"""Checkpoints that can be trusted: the newest one whose every file is whole.

The trainer writes a checkpoint file by file, and takes the newest folder on resume even where it was cut off. So each
finished checkpoint gets an inventory as its last file, and a folder that does not match its inventory does not count.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Protocol

from oracle.files import write_json

INVENTORY = "inventory.json"
PREFIX = "checkpoint-"


class Kept(Protocol):
    """A part of a run's state that the trainer's own checkpoint lacks: votes, KL anchor, guard."""

    def save(self, checkpoint: Path) -> None:
        """Write it into a checkpoint that is not yet sealed."""
        ...

    def load(self, checkpoint: Path) -> None:
        """Take it from a complete checkpoint."""
        ...


def step_of(checkpoint: Path) -> int:
    """The step of a ``checkpoint-<step>`` folder."""
    return int(checkpoint.name.removeprefix(PREFIX))


def seal(checkpoint: Path) -> None:
    """Write the inventory: the checkpoint is complete."""
    write_json(checkpoint / INVENTORY, _sizes(checkpoint))


def is_complete(checkpoint: Path) -> bool:
    """Whether every file that the inventory names is there in its full size."""
    try:
        listed = json.loads((checkpoint / INVENTORY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    found = _sizes(checkpoint)
    return all(found.get(name) == size for name, size in listed.items())


def newest_complete(folder: Path) -> Path | None:
    """The complete checkpoint of the highest step in ``folder``, or None.

    Checkpoints after it are deleted: they are broken, and a resumed run will write them again.
    """
    checkpoints = sorted(
        (p for p in folder.glob(f"{PREFIX}*") if p.name.removeprefix(PREFIX).isdigit()), key=step_of, reverse=True
    )
    for checkpoint in checkpoints:
        if is_complete(checkpoint):
            return checkpoint
        shutil.rmtree(checkpoint, ignore_errors=True)  # several processes may look at once
    return None


def _sizes(checkpoint: Path) -> dict[str, int]:
    return {
        str(p.relative_to(checkpoint)): p.stat().st_size
        for p in sorted(checkpoint.rglob("*"))
        if p.is_file() and p.name != INVENTORY
    }
