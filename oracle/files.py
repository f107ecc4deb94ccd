"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
