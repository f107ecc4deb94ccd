"""The labels as a table: a landscape's columns, then what its solution says of each polygon.

``land_use``; ``status`` and ``proof`` (:mod:`oracle.regret`); and per class ``regret_<class>_low`` and ``_high``, in
objective units. An infinite regret is null: a null ``high`` beside a number in ``low`` means that no feasible plan with
the class was found; both null, that the polygon may not have the class.

A column of the file that has one of these names, or one of fiboa's, in any case, becomes ``<column>_original``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import geopandas as gpd
import numpy as np

from oracle.fiboa import FIBOA_COLUMNS, crop_columns
from oracle.landscape import Landscape
from oracle.polygon_file import unused

if TYPE_CHECKING:
    from oracle.solution import Solution

_PER_POLYGON = ("land_use", "status", "proof")


def names_in_labels(landscape: Landscape) -> dict[str, str]:
    """Column of the landscape -> its name in the labels, geometry last."""
    regrets = (f"regret_{name}_{end}" for name in landscape.classes for end in ("low", "high"))
    taken = {name.casefold() for name in (*_PER_POLYGON, *regrets, *FIBOA_COLUMNS)}
    own = [str(c) for c in landscape.polygons.columns if c != "geometry"]
    names: dict[str, str] = {}
    for column in own:
        clash = column.casefold() in taken
        names[column] = unused(f"{column}_original", [*taken, *own, *names.values()]) if clash else column
    return names | {"geometry": "geometry"}


def labels(landscape: Landscape, solution: Solution) -> gpd.GeoDataFrame:
    """The landscape's table with the solution's columns in front of the geometry."""
    table = landscape.polygons.rename(columns=names_in_labels(landscape))
    table["land_use"] = solution.land_use
    table["status"] = solution.status.astype(str)
    table["proof"] = solution.proof.astype(str)
    for k, name in enumerate(solution.classes):
        for end, values in (("low", solution.regret_low[:, k]), ("high", solution.regret_high[:, k])):
            table[f"regret_{name}_{end}"] = np.where(np.isfinite(values), values, np.nan)
    return table[[*(c for c in table.columns if c != "geometry"), "geometry"]]


def with_crop_columns(table: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """:func:`labels` with fiboa's crop columns in front of the geometry."""
    coded = table.assign(**crop_columns(table["land_use"].to_numpy(dtype=object)).set_axis(table.index))
    return coded[[*table.columns[:-1], *FIBOA_COLUMNS, "geometry"]]
