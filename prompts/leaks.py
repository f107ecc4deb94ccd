"""The check that no training prompt shows what a held-out prompt shows.

It reads nothing but the finished dataset (split and shown polygons of every row), so it does not share a mistake
with the code that assigns the splits.
"""

from __future__ import annotations

import pandas as pd

from oracle.errors import DatasetError, name_some
from prompts.split import Split


def leaks(frame: pd.DataFrame) -> list[str]:
    """Polygons (``landscape:polygon``) shown by a training prompt and by a held-out one; empty = no leak.

    Parameters
    ----------
    frame : DataFrame
        Rows of a prompt dataset, with ``split``, ``landscape`` and ``shown``.
    """
    trained, held_out = set[str](), set[str]()
    sides = {
        Split.TRAIN.value: trained,
        Split.HELD_OUT_BLOCK.value: held_out,
        Split.HELD_OUT_LANDSCAPE.value: held_out,
    }
    for split, landscape, shown in zip(frame["split"], frame["landscape"], frame["shown"], strict=True):
        if split in sides:
            sides[split].update(f"{landscape}:{polygon}" for polygon in shown)
    return sorted(trained & held_out)


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
