"""What a prompt dataset is made from: a solved landscape, and what has to hold before its polygons become prompts."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oracle.errors import DatasetError, name_some
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from prompts.split import Role

if TYPE_CHECKING:
    from oracle.solution import Solution

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


def refuse_unusable(source: Source) -> None:
    """Check that a source is of one piece and its class names can be answers.

    Raises
    ------
    DatasetError
        Where solution, graph and landscape do not belong together, or a class name cannot stand in an answer tag.
    """
    _refuse_strangers(source)
    _refuse_class_names(source.landscape)


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
