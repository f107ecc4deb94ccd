"""Numbers as a prompt prints them.

Everything downstream (rationale, baselines, checks of a model's reasoning) uses the *printed* value, so that nobody
knows more than the reader of the prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Printed:
    """An array of numbers as text, and the values that the text states.

    Parameters
    ----------
    text : ndarray of str
        The printed numbers.
    value : ndarray of float
        ``float(text)``, same shape.
    """

    text: np.ndarray
    value: np.ndarray


def printed(values: np.ndarray, decimals: int, *, pad: bool) -> Printed:
    """Print non-negative numbers with one width, giving up a decimal for every further digit before the point.

    With two decimals every number below 10,000 takes four characters: ``3.12``, ``11.3``, ``0301``. A small model
    then finds each digit at a fixed place, and no number has more than three or four digits to read.

    Parameters
    ----------
    values : ndarray of float
        Any shape, 0 or more.
    decimals : int
        Decimals of a number below 10.
    pad : bool
        Zeros in front of numbers that have no decimal left (``0301``); else plain (``301``).
    """
    flat = np.asarray(values, dtype=float).ravel()
    left = np.full(flat.shape, decimals)
    for given_up in range(decimals):  # 9.995 would print as 10.00: it belongs to the numbers from 10 on
        left -= flat >= 10.0 ** (given_up + 1) - 0.5 * 10.0 ** (given_up - decimals)
    width = decimals + 2 if pad else 0
    formats = {d: f"%0{width}.{d}f" for d in range(decimals + 1)}
    text = [formats[d] % v for d, v in zip(left.tolist(), flat.tolist(), strict=True)]
    shape = np.shape(values)
    return Printed(np.array(text, dtype=object).reshape(shape), np.array(text, dtype=float).reshape(shape))
