"""Yields that cannot be t/ha: another unit in disguise, found before the oracle believes it."""

from __future__ import annotations

import numpy as np

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


def implausible_yield(crop: str, unit: YieldUnit, t_ha: np.ndarray) -> str | None:
    """A sentence where the yields of ``crop``, read in ``unit`` and turned into t/ha, cannot be right; else None.

    Parameters
    ----------
    t_ha : (n,) float
        Yields after conversion, t/ha; NaN and negative ones are left to the landscape's contract.
    """
    grown = t_ha[np.isfinite(t_ha) & (t_ha > 0)]
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
        best = raw.max() * to_t_ha(crop, other)
        if 0.3 <= best <= limit:
            fitting.append(f"{other} (the highest would be {best:.2f} t/ha)")
    found = f"{crop} yields {grown.min():.3g} to {grown.max():.3g} t/ha when read in {unit}"
    side = f"above {limit:g} t/ha" if grown.max() > limit else f"below {LEAST_T_HA} t/ha"
    advice = f"set `yield_unit` to {' or '.join(fitting)}" if fitting else "check the column and its unit"
    return f"{found}, {side}, which no field yields; {advice}"
