"""The check that no training prompt shows what a held-out prompt shows.

It reads nothing but the finished dataset (split and shown polygons of every row), so it does not share a mistake
with the code that assigns the splits.

One exception, by its nature and by name: training prompts may show the polygons of ``held_out_random``, and those
prompts may show training polygons. Their centres must not be trained on, though, and towards the other held-out splits
every training prompt is held to the full rule.
"""

from __future__ import annotations

import pandas as pd

from oracle.errors import DatasetError, name_some
from prompts.split import Split

SEALED = (Split.HELD_OUT_BLOCK.value, Split.HELD_OUT_LANDSCAPE.value)
"""Held-out splits of which training prompts show nothing."""


def leaks(frame: pd.DataFrame) -> list[str]:
    """Polygons (``landscape:polygon``) that training prompts and held-out ones share against the rule; empty = no leak.

    Parameters
    ----------
    frame : DataFrame
        Rows of a prompt dataset, with ``split``, ``landscape`` and ``shown``.

    Raises
    ------
    DatasetError
        Where a row has a split that this check knows no rule for.
    """
    unknown = set(frame["split"]) - {s.value for s in Split}
    if unknown:
        raise DatasetError(
            f"split(s) {name_some(sorted(map(str, unknown)))} are unknown, so leaks cannot be told: expected "
            f"{', '.join(Split)}; build the dataset anew"
        )
    trained, train_centres, sealed, random_centres = set[str](), set[str](), set[str](), set[str]()
    for split, landscape, shown in zip(frame["split"], frame["landscape"], frame["shown"], strict=True):
        names = [f"{landscape}:{polygon}" for polygon in shown]
        if split == Split.TRAIN.value:
            trained.update(names)
            train_centres.add(names[0])
        elif split in SEALED:
            sealed.update(names)
        elif split == Split.HELD_OUT_RANDOM.value:
            random_centres.add(names[0])
    return sorted((trained & sealed) | (train_centres & random_centres))


def refuse_leaks(frame: pd.DataFrame) -> None:
    """Raise where :func:`leaks` finds one.

    Raises
    ------
    DatasetError
        Naming the polygons shown on both sides.
    """
    found = leaks(frame)
    if found:
        raise DatasetError(
            f"{len(found):,} polygon(s) are shown by training prompts and by held-out ones ({name_some(found)}): "
            "figures on the held-out rows would be too good; build the dataset anew, with a larger buffer"
        )
