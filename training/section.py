"""The base of every section of a training profile: read once, never changed, deaf to no key."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of :class:`training.config.TrainingConfig`; each stands beside the concept that it sets."""

    model_config = ConfigDict(extra="forbid", frozen=True)
