"""What intake says about a file: repairs, rows left out, doubts, and problems that stand in its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.errors import name_some


@dataclass(frozen=True)
class Remark:
    """Something that intake did or saw: what, on how many polygons or pairs, on which, and the first few in detail."""

    what: str
    count: int
    ids: tuple[str, ...]
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = self.what if not self.count else f"{self.what}: {self.count:,}"
        named = "; ".join(self.details) if self.details else name_some(self.ids)
        more = f" and {self.count - len(self.details):,} more" if 0 < len(self.details) < self.count else ""
        return f"{said} ({named}{more})" if named else said


@dataclass
class Notes:
    """Collects remarks and problems while intake works."""

    problems: list[str] = field(default_factory=list)
    repairs: list[Remark] = field(default_factory=list)
    dropped: list[Remark] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)


def remark(what: str, ids: Iterable[object] = (), details: Iterable[str] = ()) -> Remark:
    """A remark on these polygons."""
    listed = tuple(str(i) for i in ids)
    return Remark(what, len(listed), listed, tuple(details))
