"""What a regional planner could announce: the prices at which the landscape's optimum becomes a local decision.

With the shadow price mu_k (currency/t) of crop k's supply floor, a polygon in crop k is worth y_k (p_k + mu_k)
currency/ha, and in habitat e times the habitat price; every metre of border between two habitat polygons adds the
adjacency price times their mean connectivity. The prices come from the relaxation of the same landscape and are the
same for all its polygons; a landscape that nobody solved has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oracle.landscape import Landscape
from prompts.numbers import Printed, printed

if TYPE_CHECKING:
    from oracle.solution import Solution

PRICE_DECIMALS = 2  # below 10 currency/t; the usual price has three digits and prints as an integer


@dataclass(frozen=True, eq=False)
class Prices:
    """The announced prices of one landscape of K crops, as printed.

    Parameters
    ----------
    market : Printed
        (K,) price of each crop, currency/t.
    supplement : Printed
        (K,) what the supply floor adds, currency/t: the difference of the printed effective and market price.
    effective : Printed
        (K,) market price and supplement together, currency/t.
    habitat : Printed
        () worth of a hectare of habitat at ecological connectivity 1, currency/ha.
    adjacency : Printed
        () worth of a metre of border between two habitat polygons at mean connectivity 1, currency/m.
    """

    market: Printed
    supplement: Printed
    effective: Printed
    habitat: Printed
    adjacency: Printed


def announced_prices(landscape: Landscape, solution: Solution, *, pad: bool) -> Prices:
    """The prices of a solved landscape, printed with or without zeros in front (:func:`prompts.numbers.printed`)."""
    price = np.array(solution.config.price_of(landscape.crops))
    shadow = np.array([solution.shadow_price[crop] for crop in landscape.crops])
    return stated_prices(
        price, price + shadow, np.array(solution.habitat_price), np.array(solution.adjacency_price), pad=pad
    )


def stated_prices(
    market: np.ndarray, effective: np.ndarray, habitat: np.ndarray, adjacency: np.ndarray, *, pad: bool
) -> Prices:
    """Prices as printed: (K,) of the crops, currency/t, of habitat, currency/ha, and of adjacency, currency/m."""
    of_market, of_effective = (printed(price, PRICE_DECIMALS, pad=pad) for price in (market, effective))
    difference = [f"{d:g}" for d in np.round(of_effective.value - of_market.value, PRICE_DECIMALS)]
    return Prices(
        market=of_market,
        supplement=Printed(np.array(difference, dtype=object), np.array(difference, dtype=float)),
        effective=of_effective,
        habitat=printed(habitat, PRICE_DECIMALS, pad=pad),
        adjacency=printed(adjacency, PRICE_DECIMALS, pad=pad),
    )
