"""More training prompts from the same landscape: what changes the text and cannot change the label.

The oracle knows areas, lengths, yields and connectivity, and no compass: turned or mirrored, a landscape has the same
plan. So a prompt whose position codes are turned with it has the same label. There are eight such symmetries; ``r90``
turns a quarter clockwise (what lay in the north lies in the east), ``m`` mirrors east and west, ``mr90`` mirrors, then
turns. The order in which a prompt lists its neighbours cannot matter either: ``s1``, ``s2``, ... are shuffled lists.
Nor can the units of its numbers: ``u1``, ``u2``, ... are in others (:mod:`prompts.units`).

A second-order code is one path of several, chosen by rule (:mod:`oracle.second_order`), and the rule looks at north: on
a grid ``N-NE`` turned half round is named ``SW-S`` and not ``S-SW``. Where a prompt shows that the other path exists
too (both of its steps are first-order neighbours, and its name is free), the rule is applied again; elsewhere the
turned path stays, which is true as well. A number (``NE2``) stays with its neighbour.

For training rows alone: held-out figures are of prompts as a planner would write them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from oracle.compass import CODES, COMPASS, opposite
from oracle.errors import DatasetError
from prompts.config import PromptConfig
from prompts.neighbourhood import CENTRAL, Neighbourhoods
from prompts.split import Split
from prompts.units import SYSTEMS, has_units, in_other_units

SYMMETRIES = ("r0", "r90", "r180", "r270", "m", "mr90", "mr180", "mr270")
"""The eight rotations and mirrors; ``r0`` changes nothing."""
SHUFFLE, UNITS = "s", "u"
COPY = "~"
"""Stands between the id of a prompt and the name of a transform: ``farms:r3c4~r90``."""

_RANK = {code: rank for rank, code in enumerate(CODES)}
_STEP = dict(zip(COMPASS, [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)], strict=True))
"""Each direction as steps to the east and to the north."""


class AugmentConfig(BaseModel):
    """Copies of training prompts with the same label."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rotations: bool = Field(default=False, description="add the other seven rotations and mirrors of every prompt")
    shuffles: int = Field(default=0, ge=0, description="add so many copies of every prompt with shuffled neighbours")
    units: int = Field(
        default=0, ge=0, description="add so many copies of every prompt in other units of currency and mass"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The transforms, in the order in which their copies follow."""
        turned = SYMMETRIES[1:] if self.rotations else ()
        counted = ((SHUFFLE, self.shuffles), (UNITS, self.units))
        return (*turned, *(f"{kind}{k + 1}" for kind, copies in counted for k in range(copies)))

    def refuse_pointless(self, prompts: PromptConfig) -> None:
        """Refuse copies that would say the same again, or something else.

        Raises
        ------
        DatasetError
            Where prompts of this form have no neighbours to turn or shuffle, or no prices to state in other units.
        """
        if prompts.order == 0 and (self.rotations or self.shuffles):
            raise DatasetError(
                "prompts of order 0 show no neighbours, so turned or shuffled copies would say the same again: "
                "set order to 1 or 2, or leave rotations and shuffles out"
            )
        if self.units and not has_units(prompts):
            raise DatasetError(
                "only prompts that state prices and name no unit can be copied in other units: set context to prices "
                "and layout to compact, or units to 0 (--units 0, augment.units in a profile)"
            )


def augmented_rows(
    rows_of: Callable[[Neighbourhoods, np.ndarray], pd.DataFrame],
    shown: Neighbourhoods,
    split: np.ndarray,
    rows: np.ndarray,
    config: AugmentConfig,
    prompts: PromptConfig,
) -> Iterator[pd.DataFrame]:
    """The transformed copies of a landscape's training rows, one frame per transform.

    Parameters
    ----------
    rows_of : callable
        Renders the prompts of row positions from neighbourhoods: a dataset's rows (:func:`prompts.rows.prompt_rows`).
    shown : Neighbourhoods
        Of n polygons, untransformed.
    split : (n,) array of str
        Only training rows are copied.
    rows : (m,) array of int
        Row positions of the polygons that are rows of the dataset.
    config : AugmentConfig
    prompts : PromptConfig
        The form of the prompts.

    Returns
    -------
    iterator of DataFrame
        As ``rows_of`` makes them, with the transform's name behind the id.
    """
    training = rows[split[rows] == Split.TRAIN.value]
    for name in config.names if len(training) else ():
        if name.startswith(UNITS):
            groups = [training[k::SYSTEMS] for k in range(min(SYSTEMS, len(training)))]
            systems = [in_other_units(shown, prompts, f"{name}.{k}") for k in range(len(groups))]
            frame = pd.concat(list(map(rows_of, systems, groups)), ignore_index=True)
        else:
            frame = rows_of(transformed(shown, name), training)
        yield frame.assign(prompt_id=[f"{i}{COPY}{name}" for i in frame["prompt_id"]])


def transformed(shown: Neighbourhoods, name: str) -> Neighbourhoods:
    """What the same prompts show after one of the :data:`SYMMETRIES` or a shuffle (``s1``, ``s2``, ...).

    Turned codes are listed in the stated order of any prompt (:mod:`prompts.neighbourhood`).
    """
    if name.startswith(SHUFFLE):
        return _relisted(shown, shown.position, [_shuffled(shown, i, name) for i in range(len(shown))])
    position = shown.position.copy()
    order = []
    for i in range(len(shown)):
        listed = slice(shown.start[i], shown.start[i + 1])
        position[listed] = turned(shown.position[listed].tolist(), name)
        order.append(sorted(range(listed.start, listed.stop), key=lambda m: _listing_key(str(position[m]))))
    return _relisted(shown, position, order)


def turned(codes: list[str], name: str) -> list[str]:
    """The position codes of one prompt's neighbours under one of the :data:`SYMMETRIES`, neighbour by neighbour.

    ``central`` stays. Codes that were different stay different.
    """
    quarter = int(name.lstrip("mr") or 0) // 90
    mirrored = name.startswith("m")

    def turn(step: str) -> str:
        if step not in _STEP:
            return step  # concentric: no direction
        index = -_RANK[step] if mirrored else _RANK[step]
        return COMPASS[(index + 2 * quarter) % len(COMPASS)]

    parsed = [(CENTRAL,) if code == CENTRAL else _steps(code) for code in codes]
    moved = [tuple(turn(step) for step in steps) for steps in parsed]
    near = {steps[0] for steps in moved if len(steps) == 1}
    taken = set(moved)
    numbers = [code[len("-".join(steps)) :] for code, steps in zip(codes, parsed, strict=True)]
    return ["-".join(_by_rule(steps, near, taken)) + number for steps, number in zip(moved, numbers, strict=True)]


def _by_rule(steps: tuple[str, ...], near: set[str], taken: set[tuple[str, ...]]) -> tuple[str, ...]:
    """The path that the oracle's rule names, of a second-order neighbour's two where both are known to exist."""
    other = steps[::-1]
    if len(steps) == 1 or steps == other or not set(steps) <= near & set(_STEP) or other in taken:
        return steps
    east, north = (_STEP[steps[0]][axis] + _STEP[steps[1]][axis] for axis in (0, 1))
    if north > 0 or (north == 0 and east < 0):  # the central polygon is the southern end
        return min(steps, other, key=_preference)
    back = min((_steps(opposite("-".join(path))) for path in (steps, other)), key=_preference)
    return _steps(opposite("-".join(back)))


def _preference(path: tuple[str, ...]) -> tuple[bool, int, int]:
    """N, E, S or W first; then the compass order of the steps (:mod:`oracle.second_order`)."""
    first, second = (_RANK[step] for step in path)
    return first % 2 == 1, first, second


def _steps(code: str) -> tuple[str, ...]:
    return tuple(code.rstrip("0123456789").split("-"))


def _listing_key(code: str) -> tuple[int, list[int], int]:
    steps = _steps(code)
    return len(steps), [_RANK[step] for step in steps], int(code[len("-".join(steps)) :] or 1)


def _shuffled(shown: Neighbourhoods, i: int, name: str) -> list[int]:
    seed = hashlib.sha256(f"{shown.landscape}:{shown.ids[i]}{COPY}{name}".encode()).digest()
    first, last = int(shown.start[i]), int(shown.start[i + 1])
    return (first + np.random.default_rng(list(seed)).permutation(last - first)).tolist()


def _relisted(shown: Neighbourhoods, position: np.ndarray, order: list[list[int]]) -> Neighbourhoods:
    flat = np.array([m for listed in order for m in listed], dtype=int)
    return replace(shown, member=shown.member[flat], position=position[flat])
