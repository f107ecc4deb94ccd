"""What a prompt shows and how it is laid out: one class for YAML, JSON, the command line and Dagster."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Context(StrEnum):
    """What a prompt states about the whole landscape."""

    NONE = "none"
    """Nothing: the polygon and its neighbours alone."""
    SUPPLY = "supply"
    """Supply floors and reference supply, in tonnes."""
    PRICES = "prices"
    """Prices with the shadow prices of the supply floors, and the worth of habitat."""


class Style(StrEnum):
    """What the answer is to consist of."""

    THINK = "think"
    """``<think>...</think><answer>class</answer>``."""
    ANSWER_ONLY = "answer_only"
    """``<answer>class</answer>``."""


class Layout(StrEnum):
    """How the fields are written down."""

    FULL = "full"
    """Instructions, rules of format and a list of dictionaries, for a model that reads English."""
    COMPACT = "compact"
    """One line of numbers in fixed width, for a model that is trained from scratch on such lines."""


class Labels(StrEnum):
    """What becomes of tied labels: those where another class costs the landscape nothing."""

    KEEP = "keep"
    """They stay; the oracle's class, chosen by its written rule, is the only right answer."""
    DROP_TIED = "drop_tied"
    """Their polygons become no row, in any split; neighbours still see them."""
    ACCEPT_SET = "accept_set"
    """They stay; every class that ties is a right answer as well (column ``accepted``)."""


class PromptConfig(BaseModel):
    """The variant of a prompt: what is shown (order, context), asked for (style, labels), and how (layout, digits)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: Literal[0, 1, 2] = Field(
        default=0,
        description="neighbours shown: 0 = the central polygon alone, 1 = first order, 2 = first and second order",
    )
    context: Context = Field(default=Context.PRICES, description="none, supply or prices")
    style: Style = Field(default=Style.THINK, description="think or answer_only")
    layout: Layout = Field(default=Layout.COMPACT, description="full or compact")
    labels: Labels = Field(default=Labels.KEEP, description="tied labels: keep, drop_tied or accept_set")
    yield_digits: int = Field(
        default=2,
        ge=1,
        le=4,
        description="decimals of a yield below 10 t/ha; from 10 on one less, so that all are as wide",
    )
    connectivity_digits: int = Field(default=2, ge=1, le=4, description="decimals of ecological connectivity")

    @property
    def sha256(self) -> str:
        """Hash of the configuration's canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
