"""Yields that cannot be t/ha: another unit in disguise, found before the oracle believes it."""

from __future__ import annotations

import numpy as np

from oracle.errors import name_some
from oracle.recipe import BUSHELS_PER_ACRE, YieldUnit, to_t_ha

# Above any field's record or near it, t/ha of grain. Roots and fodder reach 100 t/ha, so other crops get more room.
GREATEST_T_HA: dict[str, float] = {
    "wheat": 20.0,
    "barley": 20.0,
    "oat": 20.0,
    "rye": 20.0,
    "corn": 25.0,
    "soy": 12.0,
    "canola": 10.0,
    "flax": 6.0,
    "pea": 12.0,
    "lentil": 8.0,
    "sunflower": 10.0,
}
GREATEST_OF_OTHERS_T_HA = 150.0
LEAST_T_HA = 0.02
"""A crop whose best yield is below this is not worth its seed: t/ha read as kg/ha."""


def implausible_yield(crop: str, unit: YieldUnit, t_ha: np.ndarray, ids: np.ndarray) -> str | None:
    """A sentence where the yields of ``crop``, read in ``unit`` and turned into t/ha, cannot be right; else None.

    It names the polygons and, for every other unit that would make sense of them, the yields in t/ha.

    Parameters
    ----------
    t_ha : (n,) float
        Yields after conversion, t/ha; NaN and what is not above 0 are left to other checks.
    ids : (n,) str
        Polygon ids.
    """
    with_yield = np.isfinite(t_ha) & (t_ha > 0)
    grown = t_ha[with_yield]
    if not len(grown):
        return None
    limit = GREATEST_T_HA.get(crop, GREATEST_OF_OTHERS_T_HA)
    if LEAST_T_HA <= grown.max() <= limit:
        return None
    raw = grown / to_t_ha(crop, unit)
    fitting = []
    for other in YieldUnit:
        if other == unit or (other == YieldUnit.BU_AC and crop not in BUSHELS_PER_ACRE):
            continue
        converted = raw * to_t_ha(crop, other)
        if 0.3 <= converted.max() <= limit:
            fitting.append(f"{other} (they would be {_range(converted)} t/ha)")
    beyond = with_yield & ((t_ha > limit) | (grown.max() < LEAST_T_HA))
    side = f"above {limit:g} t/ha" if grown.max() > limit else f"below {LEAST_T_HA} t/ha"
    found = f"{crop} yields are {_range(grown)} t/ha when read in {unit}"
    where = f"{int(beyond.sum()):,} of {len(grown):,} are {side}, which no field yields ({name_some(ids[beyond])})"
    advice = f"set `yield_unit` to {' or '.join(fitting)}" if fitting else "check the column and its unit"
    return f"{found}; {where}; {advice}"


def _range(values: np.ndarray) -> str:
    low, high = (f"{v:,.0f}" if v >= 100 else f"{v:.3g}" for v in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
