"""The product's own errors: what was wrong, where, what was expected and what to do.

Everything that a user can cause ends in one of these; a traceback of a library is a defect.
"""

from __future__ import annotations

from collections.abc import Iterable


class LandoracleError(Exception):
    """Base of every error that Landoracle raises on purpose."""


class LandscapeError(LandoracleError):
    """A polygon file or table is not a usable landscape."""


class ConfigurationError(LandoracleError):
    """A setting is unknown, out of range or contradicts another one."""


class InfeasibleError(LandoracleError):
    """No plan satisfies the supply floors, habitat shares and locks together."""


class SolveError(LandoracleError):
    """The solver ended without a plan that can be used (time limit, numerical trouble)."""


class CertificateError(LandoracleError):
    """A certificate does not prove what the solution beside it claims."""


class DatasetError(LandoracleError):
    """A prompt dataset cannot be built or read as asked."""


class TrainingError(LandoracleError):
    """A training or evaluation run cannot start, go on or be trusted."""


def name_some(ids: Iterable[object], at_most: int = 5) -> str:
    """``"a, b, c, d, e and 12 more"``: the first few polygon ids of a list, and how many are left."""
    listed = [str(i) for i in ids]
    shown = ", ".join(listed[:at_most])
    return shown if len(listed) <= at_most else f"{shown} and {len(listed) - at_most:,} more"
