"""Pairs of prompts that differ by one small edit: a flip, which changes the oracle's class, and a non-flip.

A reader that has learned the decision follows the flip and stays with the non-flip. The whole landscape is solved again
for every edit; original and edited label are both proven (``unique``).

1. What to edit: at the certificate's prices a polygon's classes can be compared by themselves
   (:mod:`oracle.explain`), which predicts the size at which a yield, its connectivity or a price flips it. A neighbour
   is edited where it is about to become habitat (or to leave it) and the border between the two outweighs the polygon's
   margin. A floor's effect cannot be told beforehand: floors are moved, and whatever polygons flip are taken.
2. How far: the edit is narrowed down to the smallest number of printed steps with another proven label. It is dropped
   where half of it already changes the label (unproven): then the proof, and not the decision, asked for its size.
3. The non-flip has the same number of steps on the same polygon: the same number the other way, else the same kind of
   number of another crop.

A pair, and a flip with its non-flip, belong to the split of the original prompt; ``buffer`` rows are not edited.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from oracle.certificate import values
from oracle.coefficients import coefficients
from oracle.errors import DatasetError, InfeasibleError
from oracle.explain import explain
from oracle.landscape import HABITAT, Landscape
from oracle.regret import Status
from oracle.solution import Solution
from oracle.solve import solve
from prompts.config import Context, PromptConfig
from prompts.dataset import Source
from prompts.edits import Dial, Field, dial, edited
from prompts.neighbourhood import neighbourhoods
from prompts.rationale import targets
from prompts.render import render
from prompts.split import Split

Progress = Callable[[int, int, int], None]
"""(couples found, couples wanted, landscapes solved)."""

_LARGEST_CHANGE = 0.3  # of the present number: beyond, an edit is no small one
_NO_MARGIN = 1e-12
_GROWTHS = (1.05, 1.4)  # of the predicted size, until the label flips
_FLOOR_CHANGES = (0.05, 0.1, 0.2)
_SOLVES_PER_COUPLE = 10
"""So many solves count as much as a couple found when the kinds of edits take turns."""
_HOPELESS = 40
"""Solves without a couple after which a kind of edit is left alone."""


class Kind(StrEnum):
    """What an edit did to the label."""

    FLIP = "flip"
    NON_FLIP = "non_flip"


@dataclass(frozen=True, eq=False)
class _Try:
    """What is to be flipped by which number, in which direction and presumably how far."""

    row: int
    dial: Dial
    steps: int


def counterfactuals(
    source: Source,
    config: PromptConfig,
    split_of: Mapping[str, tuple[str, str]],
    n: int,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Up to ``n`` couples of a flip and a non-flip: 2 n rows, each a pair of an original and an edited prompt.

    Columns: ``pair_id``, ``couple`` (flip and non-flip share it), ``kind``, ``prompt_id`` (of the original),
    ``landscape``, ``polygon_id``, ``split``, ``block``; the edit: ``field``, ``crop``, ``edited_polygon``,
    ``edited_position`` (in the prompt; null for prices and floors), ``from``, ``to``, ``unit``, ``steps``; and
    ``classes``, ``prompt``, ``answer``, ``target``, ``edited_prompt``, ``edited_answer``, ``edited_target``.

    Parameters
    ----------
    source : Source
        A solved landscape.
    config : PromptConfig
        Variant of the prompts. Neighbours are edited where the prompt shows them, floors where it states prices or
        supply.
    split_of : mapping of polygon id to (split, block)
        The polygons that may be edited, as the dataset splits them.
    n : int
        Couples wanted; fewer where the landscape has not so many.
    seed : int
        Of the order in which polygons are tried.
    progress : callable, optional

    Raises
    ------
    DatasetError
        Where no polygon has a proven label and a split other than buffer.
    """
    oracle = _Oracle(source, config)
    usable = [
        row
        for row, (polygon, status) in enumerate(
            zip(source.landscape.ids.tolist(), source.solution.status.tolist(), strict=True)
        )
        if status == Status.UNIQUE and split_of.get(polygon, (Split.BUFFER, ""))[0] != Split.BUFFER
    ]
    if not usable:
        raise DatasetError(
            f"landscape {source.landscape.name!r} has no polygon with a proven label outside of the buffer: solve it "
            "with a smaller gap, or give a dataset in which it has training or held-out rows"
        )
    usable.sort(key=lambda row: hashlib.sha256(f"{seed}:{source.landscape.ids[row]}".encode()).digest())
    rows: list[dict[str, object]] = []
    taken: set[int] = set()
    streams = _streams_of_tries(oracle, usable)
    while streams and len(rows) < 2 * n:
        if progress is not None:
            progress(len(rows) // 2, n, oracle.solved)
        stream = min(streams, key=lambda s: s.spent)  # so that each kind of edit gets its share
        before = oracle.solved
        attempt = stream.next()
        fresh = attempt is not None and attempt.row not in taken
        flip = _smallest_flip(oracle, attempt) if attempt is not None and fresh else None
        other = _non_flip(oracle, attempt.row, flip) if attempt is not None and flip is not None else None
        stream.solves += oracle.solved - before
        streams = [s for s in streams if not s.over]
        if attempt is None or flip is None or other is None:
            continue
        taken.add(attempt.row)
        stream.found += 1
        for kind, (number, steps) in ((Kind.FLIP, flip), (Kind.NON_FLIP, other)):
            rows.append(_pair(oracle, split_of, len(rows) // 2, kind, attempt.row, number, steps))
    if progress is not None:
        progress(len(rows) // 2, n, oracle.solved)
    return pd.DataFrame(rows)


class _Oracle:
    """The landscape solved again after edits; every edit once."""

    def __init__(self, source: Source, prompts: PromptConfig) -> None:
        self.source, self.prompts = source, prompts
        self.solved = 0
        solution = source.solution
        self.coefficients = coefficients(source.landscape, source.graph, solution.config)
        self.values = values(self.coefficients, solution.certificate)
        """(n, K + 1) worth of every class at the certificate's prices, objective units."""
        self.gap = solution.upper_bound - solution.objective
        self._done: dict[tuple[Dial, int], tuple[Landscape, Solution] | None] = {}

    def after(self, number: Dial, steps: int) -> tuple[Landscape, Solution] | None:
        """The edited landscape and its plan; None where the number cannot go there or no plan is feasible."""
        if not number.reaches(steps):
            return None
        if (number, steps) not in self._done:
            landscape, config = edited(self.source.landscape, self.source.solution.config, number, steps)
            self.solved += 1
            try:
                self._done[number, steps] = landscape, solve(landscape, self.source.graph, config)
            except InfeasibleError:
                self._done[number, steps] = None
        return self._done[number, steps]

    def label(self, row: int, number: Dial, steps: int) -> tuple[str, bool] | None:
        """A polygon's class after an edit, and whether it is proven."""
        found = self.after(number, steps)
        if found is None:
            return None
        return str(found[1].land_use[row]), bool(found[1].status[row] == Status.UNIQUE)

    def margin(self, row: int, other: str) -> float:
        """What another class lacks to the polygon's own (all that this is worth, where it cannot be there)."""
        of = self.values[row]
        classes = self.source.landscape.classes
        own = of[classes.index(self.original(row))]
        lack = own - of[classes.index(other)]
        return max(float(lack if np.isfinite(lack) else own), _NO_MARGIN)

    def original(self, row: int) -> str:
        return str(self.source.solution.land_use[row])

    def dial(self, field: Field, crop: str | None = None, row: int | None = None) -> Dial:
        landscape, solution = self.source.landscape, self.source.solution
        polygon = None if row is None else str(landscape.ids[row])
        return dial(landscape, solution.config, self.prompts, field, crop=crop, polygon=polygon)


class _Stream:
    """The tries of one kind of edit, with what they have cost and brought."""

    def __init__(self, tries: Iterator[_Try | None]) -> None:
        self._tries = tries
        self.solves, self.found, self._ended = 0, 0, False

    @property
    def spent(self) -> float:
        return self.found + self.solves / _SOLVES_PER_COUPLE

    @property
    def over(self) -> bool:
        return self._ended or (self.found == 0 and self.solves > _HOPELESS)

    def next(self) -> _Try | None:
        """The next try, or None where there is none at this place."""
        try:
            return next(self._tries)
        except StopIteration:
            self._ended = True
            return None


def _streams_of_tries(oracle: _Oracle, usable: list[int]) -> list[_Stream]:
    own = [_own_edits(oracle, usable, field) for field in (Field.YIELD, Field.CONNECTIVITY, Field.PRICE)]
    neighbours = [_neighbour_edits(oracle, usable)] if oracle.prompts.order >= 1 else []
    floors = [_floor_edits(oracle, usable)] if oracle.prompts.context is not Context.NONE else []
    return [_Stream(tries) for tries in (*own, *neighbours, *floors)]


def _predicted(oracle: _Oracle, row: int, field: Field) -> tuple[Dial, int, str] | None:
    """The number of one kind, the steps at which a flip of a polygon should be proven, and to what.

    At fixed prices a flip needs the polygon's margin to the other class, and its proof the landscape's gap beyond it.
    None where the gap is larger than the margin, for then half of the edit would change the label already.
    """
    source = oracle.source
    told = explain(source.landscape, source.graph, source.solution, str(source.landscape.ids[row]))
    for flip in told.flips:
        crop, _, what = flip.factor.rpartition(" ")
        if what != field:
            continue
        beyond = oracle.gap / oracle.margin(row, flip.becomes)
        value = flip.then + (flip.then - flip.now) * beyond
        if beyond < 1 and 0 < abs(value - flip.now) <= _LARGEST_CHANGE * flip.now:
            number = oracle.dial(field, crop or None, None if field is Field.PRICE else row)
            return number, number.steps_to(value), flip.becomes
    return None


def _own_edits(oracle: _Oracle, usable: list[int], field: Field) -> Iterator[_Try | None]:
    for row in usable:
        found = _predicted(oracle, row, field)
        yield None if found is None else _Try(row, found[0], found[1])


def _neighbour_edits(oracle: _Oracle, usable: list[int]) -> Iterator[_Try | None]:
    """Neighbours whose own flip to or from habitat should carry the polygon along, the surest first."""
    c, v = oracle.coefficients, oracle.values
    margin = np.abs(v[:, -1] - v[:, :-1].max(axis=1))
    wanted = set(usable)
    both_ways = zip([*c.pair_i, *c.pair_j], [*c.pair_j, *c.pair_i], [*c.pair_gain, *c.pair_gain], strict=True)
    near = sorted((margin[i] / gain, int(i), int(j)) for i, j, gain in both_ways if gain > margin[i] and i in wanted)
    for _, i, j in near:
        for field in (Field.CONNECTIVITY, Field.YIELD):
            found = _predicted(oracle, j, field)
            if found is not None and (found[2] == HABITAT) != (oracle.original(i) == HABITAT):
                yield _Try(i, found[0], found[1])
        yield None


def _floor_edits(oracle: _Oracle, usable: list[int]) -> Iterator[_Try | None]:
    """Move each floor; of the polygons that another proven class took over, every one in the order of trial."""
    for change in _FLOOR_CHANGES:
        for crop in oracle.source.landscape.crops:
            number = oracle.dial(Field.FLOOR, crop)
            for sign in (1, -1):
                steps = sign * max(1, round(change * max(number.now, number.step) / number.step))
                found = oracle.after(number, steps)
                yield None
                if found is None:
                    continue
                changed = (found[1].land_use != oracle.source.solution.land_use) & (found[1].status == Status.UNIQUE)
                yield from (_Try(row, number, steps) for row in usable if changed[row])


def _smallest_flip(oracle: _Oracle, attempt: _Try) -> tuple[Dial, int] | None:
    """The fewest steps with another proven class; None where there are none near by, or half as many flip it too."""
    row, number, before = attempt.row, attempt.dial, oracle.original(attempt.row)

    def flips(steps: int) -> bool:
        found = oracle.label(row, number, steps)
        return found is not None and found[0] != before and found[1]

    sign, predicted = int(math.copysign(1, attempt.steps)), abs(attempt.steps)
    low, high = 0, 0
    for growth in _GROWTHS:
        tried = math.ceil(predicted * growth)
        if flips(sign * tried):
            high = tried
            break
        low = tried
    if high == 0:
        return None
    probe = max(low + 1, math.ceil(0.85 * high)) if low == 0 else (low + high) // 2
    while high - low > 1:
        if low < probe < high:
            low, high = (low, probe) if flips(sign * probe) else (probe, high)
        probe = (low + high) // 2
        if probe in (low, high):
            break
    half = oracle.label(row, number, sign * (high // 2)) if high >= 2 else (before, True)
    if half is None or half[0] != before:
        return None
    return number, sign * high


def _non_flip(oracle: _Oracle, row: int, flip: tuple[Dial, int]) -> tuple[Dial, int] | None:
    """An edit of as many steps that leaves the label proven as it was."""
    number, steps = flip
    edits = [(number, -steps)]
    for crop in oracle.source.landscape.crops if number.crop is not None else ():
        where = None if number.polygon is None else oracle.source.landscape.ids.tolist().index(number.polygon)
        other = oracle.dial(number.field, crop, where)
        if crop != number.crop and other.now > 0:
            edits += [(other, -abs(steps)), (other, abs(steps))]
    for other, by in edits:
        if oracle.label(row, other, by) == (oracle.original(row), True):
            return other, by
    return None


def _pair(
    oracle: _Oracle,
    split_of: Mapping[str, tuple[str, str]],
    couple: int,
    kind: Kind,
    row: int,
    number: Dial,
    steps: int,
) -> dict[str, object]:
    source, config = oracle.source, oracle.prompts
    landscape, polygon = source.landscape, str(source.landscape.ids[row])
    after = oracle.after(number, steps)
    assert after is not None  # it was solved when it was chosen
    here = np.array([row])
    prompt_id = f"{landscape.name}:{polygon}"
    split, block = split_of[polygon]
    pair: dict[str, object] = {
        "pair_id": f"{prompt_id}#{kind}",
        "couple": f"{landscape.name}#{couple}",
        "kind": kind.value,
        "prompt_id": prompt_id,
        "landscape": landscape.name,
        "polygon_id": polygon,
        "split": str(split),
        "block": block,
        "field": number.field.value,
        "crop": number.crop,
        "edited_polygon": number.polygon,
        "edited_position": None,
        "from": number.now,
        "to": number.after(steps),
        "unit": number.unit,
        "steps": steps,
        "classes": list(landscape.classes),
    }
    for prefix, of, plan in (("", landscape, source.solution), ("edited_", *after)):
        shown = neighbourhoods(of, source.graph, plan, config)
        if number.polygon is not None:
            ids = [str(shown.ids[m]) for m in shown.rows(row)]
            pair["edited_position"] = shown.positions(row)[ids.index(number.polygon)]
        pair[f"{prefix}prompt"] = render(shown, config, here)[0]
        pair[f"{prefix}answer"] = str(plan.land_use[row])
        pair[f"{prefix}target"] = targets(shown, plan.land_use, config, here)[0]
    return pair
