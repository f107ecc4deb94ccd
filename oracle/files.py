"""Files appear whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file of the same name in a folder beside ``path``, then move it into place.

    A reader sees the old file or the new one, never a part; where ``write`` fails, the old file stays.

    Parameters
    ----------
    path : Path
        The file wanted; its folder is made where it does not exist.
    write : callable
        Called once with the path to write to; the name and suffix are those of ``path``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        beside = Path(folder) / path.name
        write(beside)
        _sync(beside)
        beside.replace(path)
    _sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all."""
    write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an indented JSON file, whole or not at all; NaN and infinity, which JSON has not, are errors."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
