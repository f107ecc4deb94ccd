"""Settings of an evaluation: what is decided, how often, and how much of it."""

from __future__ import annotations

from pydantic import Field, field_validator

from prompts.split import Split
from training.section import Section


class EvaluationSection(Section):
    """What is evaluated and how much of it."""

    splits: tuple[str, ...] = (
        Split.HELD_OUT_BLOCK.value,
        Split.HELD_OUT_LANDSCAPE.value,
        Split.HELD_OUT_RANDOM.value,
    )
    max_rows: int = Field(
        default=2000, ge=1, description="rows per split, drawn once by the seed; the same for every model"
    )
    batch: int = Field(default=256, ge=1, description="completions generated at a time")
    max_completion_length: int | None = Field(default=None, ge=1, description="tokens; None = as in grpo")
    samples: int = Field(
        default=0, ge=0, description="sampled completions per prompt, beside the greedy one; 0 = none, no votes"
    )
    sampled_rows: int = Field(default=200, ge=1, description="rows per split that are sampled")
    temperature: float = Field(default=1.0, gt=0, description="of the samples")
    cited_rows: int = Field(
        default=100,
        ge=0,
        description="rows on which a number that the reasoning cites is changed and the model asked again; 0 = none",
    )
    plan_landscapes: int = Field(
        default=2, ge=0, description="held-out landscapes of which every polygon is decided, to price the whole plan"
    )
    repair_s: float = Field(default=2.0, gt=0, description="seconds to search for the smallest repair of a plan")

    @field_validator("splits")
    @classmethod
    def _known_splits(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in list(Split)]
        if unknown or not value:
            raise ValueError(f"no split is called {', '.join(unknown) or '(none given)'}; known are {', '.join(Split)}")
        return value
