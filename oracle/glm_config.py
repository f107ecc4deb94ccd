"""The Global Land Manager's configuration: one class for YAML, JSON, the command line and Dagster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from oracle.errors import ConfigurationError
from oracle.landscape import HABITAT

# Manitoba 2025, CAD/t (provincial crop production guide; facts and figures only).
DEFAULT_PRICES: Mapping[str, float] = {"wheat": 294.0, "oat": 266.0, "corn": 226.0, "soy": 441.0}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class FloorKind(StrEnum):
    """What a supply floor's number is a share of."""

    CURRENT = "current"
    """Share of the current production (needs ``current_land_use``)."""
    POTENTIAL = "potential"
    """Share of the landscape's potential of that crop divided by the number of crops."""
    TONNES = "tonnes"
    """Not a share: tonnes."""


class Method(StrEnum):
    """How the plan is searched for; bound, certificate and regret are the same."""

    CORE = "core"
    """Among the polygons that the relaxation's prices leave open, then among all that a better plan could change."""
    MILP = "milp"
    """Among all polygons at once."""


class HabitatShare(BaseModel):
    """Least and greatest share of the landscape's area in habitat."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    min: float = Field(0.0, ge=0, le=1)
    max: float = Field(1.0, ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> HabitatShare:
        if self.min > self.max:
            raise ValueError(f"habitat_share: min {self.min} is above max {self.max}")
        return self


class GLMConfig(BaseModel):
    """Everything the Global Land Manager needs besides the landscape (equations: :mod:`oracle.glm`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connectivity_weight: float = Field(
        0.5, ge=0, lt=1, description="w: weight of connectivity against crop value, 0..1 (1 excluded)"
    )
    adjacency_gain: NonNegative = Field(
        1.0, description="g: gain for two neighbouring habitat polygons, relative to their own area"
    )
    adjacency_depth_m: Positive = Field(
        100.0, description="d: depth in metres that turns shared or facing length into hectares"
    )
    prices: dict[str, Positive] = Field(
        default_factory=lambda: dict(DEFAULT_PRICES), description="price of each crop, currency/t"
    )
    costs: dict[str, NonNegative] = Field(
        default_factory=dict, description="cost of each class, habitat included, currency/ha; absent = 0"
    )
    supply_floors: dict[str, NonNegative] = Field(
        default_factory=dict, description="s: floor of each crop's supply, in the unit of floor_kind; absent = 0"
    )
    floor_kind: FloorKind = Field(FloorKind.POTENTIAL, description="current, potential or tonnes")
    habitat_share: HabitatShare = Field(
        default_factory=HabitatShare, description="least and greatest share of the area in habitat"
    )
    method: Method = Field(Method.CORE, description="core, or milp: the whole programme handed to the solver")
    gap: float = Field(1e-4, ge=0, lt=1, description="relative gap to the certified bound at which the search stops")
    time_limit_s: Positive = Field(300.0, description="seconds after which the solve ends")
    proof_nodes: int = Field(
        10_000,
        ge=0,
        description="nodes that the search for the best plan that differs may take, to decide labels that the "
        "certificate leaves open; 0 = no such search",
    )
    threads: int = Field(1, ge=1, description="threads of the solver")
    seed: int = Field(0, ge=0, description="random seed of the solver")

    def price_of(self, crops: tuple[str, ...]) -> list[float]:
        """Prices in the order of ``crops``, currency/t.

        Raises
        ------
        ConfigurationError
            Where a crop has no price, or a floor names no crop of the landscape.
        """
        missing = [c for c in crops if c not in self.prices]
        if missing:
            raise ConfigurationError(
                f"no price for {', '.join(missing)}: add it to `prices` (currency/t), in a recipe under `glm` or by "
                f"--set prices.{missing[0]}=...; priced are {', '.join(self.prices)}"
            )
        unknown = [c for c in self.supply_floors if c not in crops]
        if unknown:
            raise ConfigurationError(
                f"supply_floors names {', '.join(unknown)}, which the landscape does not grow; "
                f"its crops are {', '.join(crops)}"
            )
        return [self.prices[c] for c in crops]

    def cost_of(self, crops: tuple[str, ...]) -> list[float]:
        """Costs in the order of ``crops``, habitat last, currency/ha; 0 where none is stated.

        Raises
        ------
        ConfigurationError
            Where a cost names no class of the landscape.
        """
        classes = (*crops, HABITAT)
        unknown = [c for c in self.costs if c not in classes]
        if unknown:
            raise ConfigurationError(
                f"costs names {', '.join(unknown)}, which is no class of the landscape; "
                f"its classes are {', '.join(classes)}"
            )
        return [self.costs.get(c, 0.0) for c in classes]

    @property
    def sha256(self) -> str:
        """Hash of the configuration's canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
