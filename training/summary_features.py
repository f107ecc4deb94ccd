"""What a reader could work out from a prompt without caring where each neighbour lies, as numbers for baselines.

A tree cannot form these by itself from :func:`prompts.features.feature_table`: comparisons between the classes at the
stated prices, and the neighbours of each order taken together.

What the trees read is either :func:`listed_numbers` or :func:`numbers_together`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from prompts.features import feature_table
from prompts.neighbourhood import CENTRAL


def listed_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Every number as listed, each neighbour's under its position code, and :func:`margin_table`."""
    return pd.concat([feature_table(frame), margin_table(frame)], axis=1)


def numbers_together(frame: pd.DataFrame) -> pd.DataFrame:
    """The central polygon's numbers and what is stated, :func:`neighbour_table` and :func:`margin_table`."""
    listed = feature_table(frame)
    central = [name for name in map(str, listed) if "." not in name or name.startswith(f"{CENTRAL}.")]
    return pd.concat([listed[central], neighbour_table(frame), margin_table(frame)], axis=1)


def margin_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How far each class lies above the best other one on the central polygon.

    Columns ``<class>_margin``, currency/ha at the stated prices, ``<crop>_yield_margin``, t/ha. NaN where a landscape
    has not the class or a prompt no prices.

    Parameters
    ----------
    frame : DataFrame
        Rows of a prompt dataset.

    Returns
    -------
    DataFrame of float, index of ``frame``
    """
    return _by_crops(frame, _margins)


def neighbour_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The shown neighbours of each order taken together, so that their order and directions do not count.

    Columns per order o: ``neighbours_o`` (how many), ``connectivity_o_mean``, ``_max`` and ``_above`` (share with less
    connectivity than the central polygon), ``barren_o`` (share on which nothing can be grown), per crop
    ``<crop>_o_mean`` and ``<crop>_o_max`` (t/ha). With prices also ``habitat_o``, the share worth more in habitat than
    in any crop, ``surplus_o_mean`` and ``_max`` of that difference (currency/ha), and for the first order
    ``border_worth``: what a metre of border to each of these neighbours adds up to, were the central polygon habitat
    (currency/m). NaN where a prompt shows no such neighbour.

    Parameters
    ----------
    frame : DataFrame
        Rows of a prompt dataset.

    Returns
    -------
    DataFrame of float, index of ``frame``
    """
    return _by_crops(frame, _neighbours)


def _by_crops(frame: pd.DataFrame, table_of: Callable[[pd.DataFrame, tuple[str, ...]], pd.DataFrame]) -> pd.DataFrame:
    rows = frame.reset_index(drop=True)
    crops_of = rows["classes"].map(lambda classes: tuple(classes[:-1]))
    parts = [table_of(rows[crops_of == crops], crops) for crops in crops_of.unique()]
    return pd.concat(parts).sort_index().set_axis(frame.index) if parts else pd.DataFrame(index=frame.index)


def _margins(frame: pd.DataFrame, crops: tuple[str, ...]) -> pd.DataFrame:
    yields = np.array([shown[0] for shown in frame["yields"]], dtype=float)
    connectivity = np.array([shown[0] for shown in frame["connectivity"]], dtype=float)
    columns = dict(zip((f"{c}_yield_margin" for c in crops), _above_others(yields).T, strict=True))
    price, habitat = _prices(frame, len(crops))
    values = np.column_stack([yields * price, connectivity * habitat])
    columns |= dict(zip((f"{c}_margin" for c in (*crops, HABITAT)), _above_others(values).T, strict=True))
    return pd.DataFrame(columns, index=frame.index)


def _above_others(values: np.ndarray) -> np.ndarray:
    if values.shape[1] == 1:
        return values
    ranked = np.sort(values, axis=1)
    best, second = ranked[:, -1:], ranked[:, -2:-1]
    return values - np.where(values == best, second, best)


def _prices(frame: pd.DataFrame, crops: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) and (n,), NaN where not stated."""
    price = [np.full(crops, np.nan) if p is None else p for p in frame["effective_price"]]
    return np.array(price, dtype=float).reshape(-1, crops), frame["habitat_price"].to_numpy(dtype=float)


def _neighbours(frame: pd.DataFrame, crops: tuple[str, ...]) -> pd.DataFrame:
    lengths = frame["positions"].map(len).to_numpy()
    row = np.repeat(np.arange(len(frame)), lengths)
    positions = np.concatenate([np.asarray(p, dtype=object) for p in frame["positions"]])
    yields = np.concatenate([np.asarray(y, dtype=float).reshape(-1, len(crops)) for y in frame["yields"]])
    connectivity = np.concatenate([np.asarray(e, dtype=float) for e in frame["connectivity"]])
    central = np.cumsum(lengths) - lengths
    order = np.where(np.char.find(positions.astype(str), "-") >= 0, 2, 1)
    order[central] = 0
    price, habitat = _prices(frame, len(crops))
    surplus = connectivity * habitat[row] - (yields * price[row]).max(axis=1)
    own, n = connectivity[central], len(frame)
    columns: dict[str, np.ndarray] = {}
    for o in range(1, int(order.max(initial=0)) + 1):
        here = order == o
        of = row[here]
        count = np.bincount(of, minlength=n).astype(float)

        def mean(values: np.ndarray, of: np.ndarray = of, count: np.ndarray = count) -> np.ndarray:
            total = np.bincount(of, values.astype(float), minlength=n)
            return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)

        def most(values: np.ndarray, of: np.ndarray = of, count: np.ndarray = count) -> np.ndarray:
            top = np.full(n, -np.inf)
            np.maximum.at(top, of, values)
            return np.where(count > 0, top, np.nan)

        columns[f"neighbours_{o}"] = count
        columns[f"connectivity_{o}_mean"] = mean(connectivity[here])
        columns[f"connectivity_{o}_max"] = most(connectivity[here])
        columns[f"connectivity_{o}_above"] = mean(connectivity[here] < own[of])
        columns[f"barren_{o}"] = mean(yields[here].max(axis=1) <= 0)
        for k, crop in enumerate(crops):
            columns[f"{crop}_{o}_mean"] = mean(yields[here, k])
            columns[f"{crop}_{o}_max"] = most(yields[here, k])
        if np.isfinite(habitat).all():
            columns[f"habitat_{o}"] = mean(surplus[here] > 0)
            columns[f"surplus_{o}_mean"] = mean(surplus[here])
            columns[f"surplus_{o}_max"] = most(surplus[here])
            if o == 1 and frame["adjacency_price"].notna().all():
                per_metre = np.where(surplus[here] > 0, (connectivity[here] + own[of]) / 2, 0.0)
                columns["border_worth"] = np.bincount(of, per_metre, minlength=n) * frame["adjacency_price"].to_numpy()
    return pd.DataFrame(columns, index=frame.index)
