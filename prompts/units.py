"""The same prompts in other units: prices in another currency, and each crop weighed in another unit of mass.

The oracle knows no units. With every price times c its objective is c times as large, and the optimum is the same; with
the yields of crop k times s_k and its price divided by s_k, a hectare of it is worth what it was worth, and its supply
floor is the same harvest. So a prompt in other units has the same label. A landscape has one set of prices, and a model
that sees few landscapes soon knows those sets by heart; in other units it has to multiply.

Only prompts that state prices and name no unit can say the same in other ones. Connectivity has no unit and stays.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from prompts.config import Context, Layout, PromptConfig
from prompts.neighbourhood import Neighbourhoods
from prompts.numbers import printed
from prompts.prices import stated_prices

CURRENCY, MASS = 4 / 3, 1.6
"""c lies between 1/CURRENCY and CURRENCY, s_k between 1/MASS and MASS, uniformly on a logarithmic scale.

Above 1/2 no printed yield becomes 0, which would say that the crop cannot grow.
"""
SYSTEMS = 36
"""Systems of units in one copy of a landscape's prompts, each for every 36th of them."""


def has_units(config: PromptConfig) -> bool:
    """Prompts of this form state prices and name no unit."""
    return config.context is Context.PRICES and config.layout is Layout.COMPACT


def in_other_units(shown: Neighbourhoods, config: PromptConfig, name: str) -> Neighbourhoods:
    """What the same prompts show in the units called ``name``: the same name, the same units.

    Parameters
    ----------
    shown : Neighbourhoods
        Of prompts that :func:`has_units`.
    config : PromptConfig
        Theirs.
    name : str
        Any; the factors are drawn by it and the landscape's name.
    """
    assert shown.prices is not None
    assert has_units(config)
    random = np.random.default_rng(list(hashlib.sha256(f"{shown.landscape}~{name}".encode()).digest()))
    currency = CURRENCY ** random.uniform(-1, 1)
    mass = MASS ** random.uniform(-1, 1, len(shown.crops))
    prices = shown.prices
    return replace(
        shown,
        yields=printed(shown.yields.value * mass, config.yield_digits, pad=True),
        prices=stated_prices(
            prices.market.value / mass * currency,
            prices.effective.value / mass * currency,
            prices.habitat.value * currency,
            prices.adjacency.value * currency,
            pad=True,
        ),
    )
