"""Sums of floats without rounding, for what rounding must not decide.

``math.fsum`` returns the float nearest to the exact sum. What is left after taking that off is found in the same way,
until nothing is: the floats found add up to the exact sum (Shewchuk 1997, Adaptive precision floating-point arithmetic,
Discrete & Computational Geometry 18: 305-363).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain

import numpy as np


def exact_sum(values: Iterable[float] | np.ndarray) -> Fraction:
    """The sum of finite floats, exact; ValueError where one is not finite."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    found: list[float] = []
    while (part := math.fsum(chain(listed, found))) != 0.0:
        if not math.isfinite(part):
            raise ValueError("the sum of numbers of which one is infinite or none is not exact")
        found.append(-part)
    return -sum(map(Fraction, found), Fraction(0))


def rounded_up(x: Fraction) -> float:
    """The least float that is not below ``x``."""
    nearest = float(x)
    return nearest if nearest >= x else math.nextafter(nearest, math.inf)


def rounded_down(x: Fraction) -> float:
    """The greatest float that is not above ``x``."""
    return -rounded_up(-x)
