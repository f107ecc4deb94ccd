"""The prompt's own fields as numbers, for baselines that may know what the prompt says and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT
from prompts.neighbourhood import CENTRAL


def feature_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row of numbers per prompt, as printed in it.

    Columns: ``<position>.<crop>_yield`` and ``<position>.ecological_connectivity`` for every position that occurs;
    where prices are shown ``<crop>_effective_price``, ``habitat_price`` and so on, and the products
    ``<crop>_value`` = central yield times effective price and ``habitat_value`` = central connectivity times habitat
    price (currency/ha), which a tree cannot form by itself; where supply is shown ``<crop>_floor_t``,
    ``<crop>_reference_supply_t`` and their ratio ``<crop>_floor_share``. NaN where a prompt does not show a field.

    Parameters
    ----------
    frame : DataFrame
        Rows of a prompt dataset; landscapes may differ in crops and neighbours.

    Returns
    -------
    DataFrame of float, index of ``frame``, columns in order of first appearance
    """
    rows = frame.reset_index(drop=True)
    crops_of = rows["classes"].map(lambda classes: tuple(classes[:-1]))
    parts = [_features(rows[crops_of == crops], crops) for crops in crops_of.unique()]
    return pd.concat(parts).sort_index().set_axis(frame.index) if parts else pd.DataFrame(index=frame.index)


def _features(frame: pd.DataFrame, crops: tuple[str, ...]) -> pd.DataFrame:
    lengths = frame["positions"].map(len).to_numpy()
    row = np.repeat(np.arange(len(frame)), lengths)
    positions = np.concatenate([np.asarray(p, dtype=object) for p in frame["positions"]])
    yields = np.concatenate([np.asarray(y, dtype=float).reshape(-1, len(crops)) for y in frame["yields"]])
    connectivity = np.concatenate([np.asarray(e, dtype=float) for e in frame["connectivity"]])
    names = [*(f"{crop}_yield" for crop in crops), "ecological_connectivity"]
    values = np.column_stack([yields, connectivity])
    codes, place = _codes(positions)
    flat = np.full((len(frame), len(codes), len(names)), np.nan)
    flat[row, place] = values
    columns = {f"{code}.{name}": flat[:, c, v] for c, code in enumerate(codes) for v, name in enumerate(names)}
    for what in ("market_price", "supplement", "effective_price", "floor_t", "reference_supply_t"):
        if frame[what].notna().any():
            prices = np.array([np.full(len(crops), np.nan) if p is None else p for p in frame[what]], dtype=float)
            columns |= {f"{crop}_{what}": prices[:, k] for k, crop in enumerate(crops)}
    for what in ("habitat_price", "adjacency_price"):
        if frame[what].notna().any():
            columns[what] = frame[what].to_numpy(dtype=float)
    if f"{crops[0]}_effective_price" in columns:
        for crop in crops:
            columns[f"{crop}_value"] = columns[f"{CENTRAL}.{crop}_yield"] * columns[f"{crop}_effective_price"]
        columns[f"{HABITAT}_value"] = columns[f"{CENTRAL}.ecological_connectivity"] * columns["habitat_price"]
    if f"{crops[0]}_floor_t" in columns:
        for crop in crops:
            floor, reference = columns[f"{crop}_floor_t"], columns[f"{crop}_reference_supply_t"]
            shown = reference > 0
            columns[f"{crop}_floor_share"] = np.divide(floor, reference, np.full(len(frame), np.nan), where=shown)
    return pd.DataFrame(columns, index=frame.index)


def _codes(positions: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Codes with ``central`` first, then by name; and the place of each entry among them."""
    codes, inverse = np.unique(positions.astype(str), return_inverse=True)
    order = np.argsort(codes != CENTRAL, kind="stable")
    place = np.empty(len(codes), dtype=int)
    place[order] = np.arange(len(codes))
    return codes[order].tolist(), place[inverse]
