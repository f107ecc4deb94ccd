"""Folders appear whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path


def put_in_place(partial: Path, folder: Path) -> None:
    """Let a complete folder of the same file system take the place of ``folder``, which goes."""
    replaced = folder.parent / ".replaced" / folder.name
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        replaced.parent.mkdir(exist_ok=True)
        folder.rename(replaced)
    partial.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
