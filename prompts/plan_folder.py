"""Solved landscapes on disk, as ``landoracle solve`` and the asset ``oracle_plan`` leave them."""

from __future__ import annotations

from pathlib import Path

from oracle.errors import DatasetError
from oracle.landscape import load_landscape
from oracle.neighbours import NeighbourGraph
from oracle.solution import load_solution
from prompts.source import Source
from prompts.split import Role

FILES = ("landscape.parquet", "graph.parquet", "solution.json")


def is_plan(folder: Path) -> bool:
    """Whether a folder holds what :func:`read_plan` reads."""
    return all((folder / name).is_file() for name in FILES)


def read_plan(folder: Path, role: Role = Role.TRAIN) -> Source:
    """A plan's landscape, graph and solution, as prompts are made of them.

    Raises
    ------
    DatasetError
        Where the folder holds no complete plan.
    """
    missing = [n for n in FILES if not (folder / n).is_file()]
    if missing:
        raise DatasetError(f"{folder} holds no plan (it lacks {', '.join(missing)}): run `landoracle solve` into it")
    return Source(
        load_landscape(folder / "landscape.parquet"),
        NeighbourGraph.load(folder / "graph.parquet"),
        load_solution(folder),
        role,
    )
