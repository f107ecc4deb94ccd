"""What the landscape owes: the supply floor of each crop beside the reference supply that floors are shares of, tonnes.

The reference supply S_k is what the current land use supplies, where the landscape states one and its floors are not
shares of the potential; else an even share of the potential: what crop k would supply everywhere, divided by the
number of crops (:mod:`oracle.glm`). Unlike shadow prices, floors are known before anybody solves the landscape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import Landscape
from prompts.numbers import Printed

if TYPE_CHECKING:
    from oracle.solution import Solution

WIDTH = 6  # digits of a padded number; every landscape below a million tonnes of a crop prints as wide


@dataclass(frozen=True, eq=False)
class Supply:
    """Supply floors and reference supply of one landscape of K crops, as printed: whole tonnes.

    Parameters
    ----------
    floor : Printed
        (K,) tonnes that every plan has to supply.
    reference : Printed
        (K,) tonnes of the reference supply.
    of_current : bool
        The reference is the supply of the current land use, not an even share of the potential.
    """

    floor: Printed
    reference: Printed
    of_current: bool


def announced_supply(landscape: Landscape, solution: Solution, *, pad: bool) -> Supply:
    """Floors and reference supply of a solved landscape, printed with or without zeros in front."""
    return Supply(
        floor=whole_tonnes(solution.floor_t, pad=pad),
        reference=whole_tonnes(reference_supply_t(landscape, solution.config), pad=pad),
        of_current=_of_current(landscape, solution.config),
    )


def reference_supply_t(landscape: Landscape, config: GLMConfig) -> np.ndarray:
    """(K,) reference supply of each crop, t (this module's docstring)."""
    production = landscape.areas_ha[:, None] * landscape.yields
    if _of_current(landscape, config):
        assert landscape.current is not None
        production = production * (landscape.current[:, None] == np.array(landscape.crops, dtype=object))
    totals = np.array([math.fsum(column) for column in production.T])  # exact: the order of the rows does not show
    return totals if _of_current(landscape, config) else totals / len(landscape.crops)


def _of_current(landscape: Landscape, config: GLMConfig) -> bool:
    return landscape.current is not None and config.floor_kind is not FloorKind.POTENTIAL


def whole_tonnes(tonnes: np.ndarray, *, pad: bool) -> Printed:
    """Tonnes as a prompt prints them, with or without zeros in front."""
    text = [f"{t:0{WIDTH}.0f}" if pad else f"{t:.0f}" for t in np.asarray(tonnes, dtype=float).tolist()]
    return Printed(np.array(text, dtype=object), np.array(text, dtype=float))
