"""One number of a solved landscape changed: a yield, a connectivity, a price or a supply floor, in printed steps.

An edit moves the number as printed by whole steps of its last printed digit, so that the prompt shows exactly what was
changed and no edit is smaller than what a reader can see. A floor that is a share moves by 0.01; one in tonnes by the
third of its leading digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import CONNECTIVITY, YIELD_SUFFIX, Landscape
from prompts.config import PromptConfig
from prompts.prices import PRICE_DECIMALS

_FLOOR_STEP = 0.01
_MOST_OF_LARGEST = 1.5
"""A yield is not raised beyond this multiple of the landscape's largest of that crop."""


class Field(StrEnum):
    """What an edit changes."""

    YIELD = "yield"
    CONNECTIVITY = "connectivity"
    PRICE = "price"
    FLOOR = "floor"


@dataclass(frozen=True)
class Dial:
    """A number that can be edited: of one crop, of one polygon, or both.

    Parameters
    ----------
    field : Field
    crop : str or None
        None for connectivity.
    polygon : str or None
        Its id; None for prices and floors.
    now : float
        The number, as printed.
    step : float
        One unit of its last printed digit.
    least, greatest : float
        Where it may be moved to.
    unit : str
    """

    field: Field
    crop: str | None
    polygon: str | None
    now: float
    step: float
    least: float
    greatest: float
    unit: str

    def after(self, steps: int) -> float:
        """The number after so many steps, up or down."""
        return round(self.now + steps * self.step, 6)

    def reaches(self, steps: int) -> bool:
        return self.least <= self.after(steps) <= self.greatest

    def steps_to(self, value: float) -> int:
        """Steps to a value, at least one, rounded away from the present number."""
        apart = (value - self.now) / self.step
        return math.ceil(max(apart, 1.0) - 1e-9) if apart > 0 else math.floor(min(apart, -1.0) + 1e-9)


def dial(
    landscape: Landscape,
    config: GLMConfig,
    prompts: PromptConfig,
    field: Field,
    *,
    crop: str | None = None,
    polygon: str | None = None,
) -> Dial:
    """The number of that name, with the step and range in which it is edited.

    A yield stays above 0 (0 would say that the crop cannot be grown) and connectivity within 0..1.
    """
    if field is Field.YIELD:
        k, i = landscape.crops.index(str(crop)), landscape.ids.tolist().index(polygon)
        now, step = _printed(float(landscape.yields[i, k]), prompts.yield_digits)
        return Dial(field, crop, polygon, now, step, step, _MOST_OF_LARGEST * landscape.yields[:, k].max(), "t/ha")
    if field is Field.CONNECTIVITY:
        i, step = landscape.ids.tolist().index(polygon), 10.0**-prompts.connectivity_digits
        now = round(float(landscape.connectivity[i]), prompts.connectivity_digits)
        return Dial(field, None, polygon, now, step, step, 1.0, "0..1")
    if field is Field.PRICE:
        now, step = _printed(config.prices[str(crop)], PRICE_DECIMALS)
        return Dial(field, crop, None, now, step, step, 3.0 * now, "currency/t")
    now = config.supply_floors.get(str(crop), 0.0)
    if config.floor_kind is FloorKind.TONNES:
        step = 10.0 ** (math.floor(math.log10(now)) - 2) if now > 0 else 1.0
        return Dial(field, crop, None, now, step, 0.0, math.inf, "t")
    return Dial(field, crop, None, now, _FLOOR_STEP, 0.0, math.inf, f"share of {config.floor_kind} supply")


def edited(landscape: Landscape, config: GLMConfig, dial: Dial, steps: int) -> tuple[Landscape, GLMConfig]:
    """The landscape and its configuration with the number moved by so many steps; the given ones stay as they are."""
    value = dial.after(steps)
    if dial.field is Field.PRICE:
        return landscape, config.model_copy(update={"prices": config.prices | {str(dial.crop): value}})
    if dial.field is Field.FLOOR:
        return landscape, config.model_copy(update={"supply_floors": config.supply_floors | {str(dial.crop): value}})
    column = CONNECTIVITY if dial.field is Field.CONNECTIVITY else f"{dial.crop}{YIELD_SUFFIX}"
    polygons = landscape.polygons.copy()
    polygons.loc[polygons["id"] == dial.polygon, column] = value
    return Landscape(landscape.name, polygons, landscape.crops), config


def _printed(value: float, decimals: int) -> tuple[float, float]:
    """A number as :func:`prompts.numbers.printed` writes it, and a unit of its last digit."""
    for left in range(decimals, 0, -1):
        if round(value, left) < 10.0 ** (decimals - left + 1):
            return round(value, left), 10.0**-left
    return float(round(value)), 1.0
