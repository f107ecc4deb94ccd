"""One claim of a completion, and what can be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_ROUNDING = 1e-9  # of binary fractions: 0.43 for 0.425 is half a digit away


class Status(StrEnum):
    """What the prompt has to say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Quantity(StrEnum):
    """What a claim is about."""

    YIELD = "yield"
    CONNECTIVITY = "connectivity"
    PRICE = "price"
    WORTH = "worth"
    SUPPLY = "supply"
    RESULT = "result"
    """Of arithmetic that the completion writes down."""
    SCORE = "score"
    """Yield and connectivity in one number."""
    UNKNOWN = "unknown"


class Relation(StrEnum):
    """What a comparison says of its subject."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    MORE = "more"
    LESS = "less"


@dataclass(frozen=True)
class Claim:
    """A number, or a comparison, that a completion states.

    Parameters
    ----------
    start, end : int
        Where it stands in the text; of a comparison, its word (``highest``, ``>``).
    text : str
        The completion's words there; of a number, without thousands separators.
    status : Status
        Whether the prompt supports it.
    quantity : Quantity
        What it is about, as far as can be told.
    subject : str or None
        The class it is about, the larger or smaller one of a comparison.
    position : str or None
        The position it is about; None where it speaks of several.
    mean_of : str or None
        ``mean``, ``maximum`` or ``minimum`` where it summarises the direct neighbours.
    true : float or None
        What the prompt says, where the claim is about one number.
    relation : Relation or None
        Of a comparison.
    against : str or None
        The class or position that the subject is compared with; None for a superlative.
    """

    start: int
    end: int
    text: str
    status: Status
    quantity: Quantity = Quantity.UNKNOWN
    subject: str | None = None
    position: str | None = None
    mean_of: str | None = None
    true: float | None = None
    relation: Relation | None = None
    against: str | None = None


def half_digit(text: str) -> float:
    """Half of the last printed digit of a number: 0.05 for ``3.1``, 0.5 for ``301``."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def matches(text: str, true: float) -> bool:
    """The number ``text`` is ``true`` to the digits that it prints: they differ by half of the last digit at most."""
    return abs(float(text) - true) <= half_digit(text) + _ROUNDING * max(1.0, abs(true))


def judged(holds: bool) -> Status:
    """Supported or contradicted."""
    return Status.SUPPORTED if holds else Status.CONTRADICTED
