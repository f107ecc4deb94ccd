"""Solved landscapes on disk, as ``landoracle solve`` and the asset ``oracle_plan`` leave them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from oracle.errors import ConfigurationError, DatasetError
from oracle.files import write_json
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from oracle.solution import WRITTEN, Solution, read_json, save_solution
from pipeline.folders import put_in_place

ORIGIN = "origin.json"


def write_plan(folder: Path, landscape: Landscape, graph: NeighbourGraph, solution: Solution, fingerprint: str) -> None:
    """Write a plan as a whole: readers see the old one, none, or the new one, never files of both.

    Parameters
    ----------
    folder : Path
        The plan's folder; everything is written beside it first.
    landscape, graph, solution
        What :func:`oracle.solution.save_solution` takes.
    fingerprint : str
        :meth:`pipeline.sources.Source.fingerprint` of what the landscape was read from, kept in ``origin.json``.
    """
    partial = folder.parent / ".partial" / folder.name
    shutil.rmtree(partial, ignore_errors=True)
    save_solution(partial, landscape, graph, solution)
    write_json(partial / ORIGIN, {"fingerprint": fingerprint})
    put_in_place(partial, folder)


def refuse_stale(folder: Path, fingerprint: str) -> None:
    """Check that a plan is of its source as it is now.

    Raises
    ------
    DatasetError
        Where there is no plan, or its source has changed since, e.g. into a file that cannot be read.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not there yet: materialize its partition")
    if not (folder / ORIGIN).is_file() or read_json(folder / ORIGIN).get("fingerprint") != fingerprint:
        raise DatasetError(
            f"{folder} was solved from an earlier state of its file or recipe: materialize its partition again "
            "(where that fails, its reason says what to mend in the file)"
        )


def refuse_folder(folder: Path, file: Path) -> None:
    """Check, before any work, that a folder can take what is made from ``file``.

    Raises
    ------
    ConfigurationError
        Where it is a file or below one, cannot be written to, or where a plan in it would overwrite ``file``.
    """
    nearest = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise ConfigurationError(f"--out {folder}: {nearest} is a file; name a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigurationError(f"--out {folder}: {nearest} cannot be written to; name another folder, or permit it")
    if file.resolve() in [(folder / name).resolve() for name in WRITTEN]:
        raise ConfigurationError(f"--out {folder}: a plan in it would overwrite {file}, which it is made from")
