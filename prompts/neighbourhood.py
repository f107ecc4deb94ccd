"""What one prompt shows: the central polygon, then its neighbours in a stated order.

First-order neighbours come in compass order (N, NE, ..., NW), then second-order ones in the compass order of their
two steps, concentric ones (``C``) last; where a code occurs twice (``NE``, ``NE2``), in the order of that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from oracle.compass import CODES
from oracle.errors import DatasetError, name_some
from oracle.landscape import Landscape
from oracle.neighbours import NeighbourGraph
from prompts.config import Context, Layout, PromptConfig
from prompts.numbers import Printed, printed
from prompts.prices import Prices, announced_prices
from prompts.supply import Supply, announced_supply

if TYPE_CHECKING:
    from oracle.solution import Solution

CENTRAL = "central"


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The neighbourhoods of all n polygons of one landscape, as printed.

    Parameters
    ----------
    landscape : str
        Its name.
    crops : tuple of str
        Its K crops.
    ids : ndarray
        (n,) polygon ids.
    yields : Printed
        (n, K) yields, t/ha.
    connectivity : Printed
        (n,) ecological connectivity.
    start : ndarray
        (n + 1,) polygon i shows the neighbours ``member[start[i]:start[i + 1]]``.
    member : ndarray
        (m,) row positions of neighbours.
    position : ndarray
        (m,) position codes, unique within one prompt (``N``, ``NE2``, ``N-NE``).
    prices : Prices or None
        What is announced for the landscape; None where the prompt states none.
    supply : Supply or None
        Its supply floors and reference supply; None where the prompt states none.
    """

    landscape: str
    crops: tuple[str, ...]
    ids: np.ndarray
    yields: Printed
    connectivity: Printed
    start: np.ndarray
    member: np.ndarray
    position: np.ndarray
    prices: Prices | None
    supply: Supply | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, i: int) -> list[int]:
        """Row positions of what prompt i shows, the central polygon first."""
        return [i, *self.member[self.start[i] : self.start[i + 1]].tolist()]

    def positions(self, i: int) -> list[str]:
        """Position codes of what prompt i shows, ``central`` first."""
        return [CENTRAL, *self.position[self.start[i] : self.start[i + 1]].tolist()]


def neighbourhoods(
    landscape: Landscape, graph: NeighbourGraph, solution: Solution | None, config: PromptConfig
) -> Neighbourhoods:
    """Collect what the prompts of a landscape show.

    Raises
    ------
    DatasetError
        Where prices or supply are to be shown and there is no solution, prices and the solution has costs per hectare,
        or the graph is of another landscape.
    """
    context = config.context
    if context is not Context.NONE and solution is None:
        raise DatasetError(
            f"landscape {landscape.name!r} has no solution, so its prompts cannot state {context}: "
            "solve it first or set `context: none`"
        )
    if context is Context.PRICES and solution is not None and any(solution.config.costs.values()):
        raise DatasetError(
            f"landscape {landscape.name!r} was solved with costs per hectare, which prices per tonne cannot state, so "
            "its prompts would not tell what a class is worth: set `context: none` or `context: supply`"
        )
    pad = config.layout is Layout.COMPACT
    start, member, position = _shown_neighbours(landscape, graph, config.order)
    return Neighbourhoods(
        landscape=landscape.name,
        crops=landscape.crops,
        ids=landscape.ids,
        yields=printed(landscape.yields, config.yield_digits, pad=pad),
        connectivity=_connectivity(landscape, config),
        start=start,
        member=member,
        position=position,
        prices=announced_prices(landscape, solution, pad=pad) if context is Context.PRICES and solution else None,
        supply=announced_supply(landscape, solution, pad=pad) if context is Context.SUPPLY and solution else None,
    )


def _connectivity(landscape: Landscape, config: PromptConfig) -> Printed:
    text = [f"{v:.{config.connectivity_digits}f}" for v in landscape.connectivity.tolist()]
    return Printed(np.array(text, dtype=object), np.array(text, dtype=float))


def _shown_neighbours(
    landscape: Landscape, graph: NeighbourGraph, order: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not np.array_equal(graph.ids, landscape.ids):
        strangers = np.setdiff1d(graph.ids.astype(str), landscape.ids.astype(str))
        raise DatasetError(
            f"the neighbour graph is not of landscape {landscape.name!r}: it has {len(graph.ids):,} polygons against "
            f"{len(landscape):,}, or another order (unknown: {name_some(strangers) or 'none'}); compute it anew"
        )
    rows = (graph.table["order"] <= order).to_numpy()
    source, target = (ends[rows] for ends in graph.positions)
    position = graph.table["position"].to_numpy(dtype=object)[rows]
    stated = np.lexsort((*_position_keys(position), graph.table["order"].to_numpy()[rows], source))
    start = np.concatenate([[0], np.bincount(source, minlength=len(landscape)).cumsum()])
    return start, target[stated], position[stated]


def _position_keys(position: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort keys, least important first: number, second step, first step."""
    inverse, codes = pd.factorize(position)
    rank = {code: r for r, code in enumerate(CODES)}
    keys = np.zeros((len(codes), 3), dtype=int)
    for row, code in enumerate(codes.tolist()):
        letters = code.rstrip("0123456789")
        steps = [rank[step] for step in letters.split("-")]
        keys[row] = int(code[len(letters) :] or 1), steps[-1], steps[0]
    number, second, first = keys[inverse].T
    return number, second, first
