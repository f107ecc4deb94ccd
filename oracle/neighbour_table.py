"""The neighbour graph as a table: one row per ordered pair, with names instead of row positions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from oracle.compass import CODES, opposite_index
from oracle.first_order import KINDS, FirstOrder
from oracle.second_order import SecondOrder

SAME_M, SAME_DEG = 0.002, 2e-6
"""Lengths and azimuths this near are the same in two tables: they were rounded, perhaps by another machine."""

SCHEMA = pa.schema(
    [
        ("source", pa.large_string()),
        ("target", pa.large_string()),
        ("order", pa.int64()),
        ("code", pa.large_string()),
        ("position", pa.large_string()),
        ("kind", pa.large_string()),
        ("border_m", pa.float64()),
        ("facing_m", pa.float64()),
        ("gap_m", pa.float64()),
        ("distance_m", pa.float64()),
        ("azimuth_deg", pa.float64()),
    ]
)
COLUMNS = tuple(SCHEMA.names)


def neighbour_table(near: FirstOrder, far: SecondOrder, ids: np.ndarray, id_rank: np.ndarray) -> pd.DataFrame:
    """Both orders and directions, sorted by source, order, code and distance; repeated codes are numbered.

    Parameters
    ----------
    near, far
        Neighbours of both orders, by row positions.
    ids : (n,) str
        What the row positions stand for.
    id_rank : (n,) int
        Rank of each id; decides what nothing else does.
    """
    one, two = len(near.source), 2 * len(far.source)
    rows = {
        "source": np.concatenate([near.source, far.source, far.target]),
        "target": np.concatenate([near.target, far.target, far.source]),
        "first": np.concatenate([near.code, far.first_code, opposite_index(far.second_code)]),
        "second": np.concatenate([np.full(one, -1), far.second_code, opposite_index(far.first_code)]),
        "distance_m": np.round(np.concatenate([near.distance_m, far.distance_m, far.distance_m]), 3),
        "azimuth_deg": np.concatenate([near.azimuth_deg, far.azimuth_deg, far.azimuth_deg + 180.0]),
    }
    rows["azimuth_deg"] = np.round(rows["azimuth_deg"], 6) % 360.0
    path = rows["first"] * 10 + rows["second"] + 1
    same = rows["source"] * 200 + np.repeat([0, 100], [one, two]) + path
    order = np.argsort(same)
    start = np.flatnonzero(np.diff(same[order], prepend=-1))
    run = np.diff(start, append=len(same))
    several = order[np.repeat(run > 1, run)]
    keys = np.round(rows["azimuth_deg"][several], 1) % 360.0, np.round(rows["distance_m"][several]), same[several]
    order[np.repeat(run > 1, run)] = several[np.lexsort((id_rank[rows["target"][several]], *keys))]
    number = np.arange(len(same)) - np.repeat(start, run)

    def named(values: list[str] | np.ndarray, at: np.ndarray) -> pa.Array:
        return pa.array(values, pa.large_string()).take(pa.array(at))

    paths = [name for a in CODES for name in (a, *(f"{a}-{b}" for b in CODES))]
    code = named(paths, path[order])
    suffix = named(["", *(str(k) for k in range(2, int(number.max(initial=0)) + 2))], number)
    kind = np.concatenate([near.kind, np.full(two, -1)])[order]
    lengths = {name: np.concatenate([getattr(near, name), np.full(two, np.nan)])[order] for name in COLUMNS[6:9]}
    columns = {
        "source": named(ids, rows["source"][order]),
        "target": named(ids, rows["target"][order]),
        "order": np.where(order < one, 1, 2),
        "code": code,
        "position": pc.binary_join_element_wise(code, suffix, pa.scalar("", pa.large_string())),
        "kind": pa.array(KINDS, pa.large_string()).take(pa.array(kind, mask=kind < 0)),
        **lengths,
        "distance_m": rows["distance_m"][order],
        "azimuth_deg": rows["azimuth_deg"][order],
    }
    return pa.table(columns, schema=SCHEMA).to_pandas()


def table_difference(
    one: pd.DataFrame,
    ends_of_one: tuple[np.ndarray, np.ndarray],
    other: pd.DataFrame,
    ends_of_other: tuple[np.ndarray, np.ndarray],
    ids: np.ndarray,
) -> str | None:
    """The first difference between two tables in words, or None where they agree in whatever order of rows.

    Parameters
    ----------
    one, other : DataFrame
        With this module's columns.
    ends_of_one, ends_of_other : (rows,) int each
        Their rows' sources and targets as positions in ``ids``.
    """
    n = len(ids)
    keys = [source * n + target for source, target in (ends_of_one, ends_of_other)]
    orders = [np.argsort(key, kind="stable") for key in keys]
    keys = [key[order] for key, order in zip(keys, orders, strict=True)]
    if not np.array_equal(*keys):
        strange = np.setxor1d(*keys)
        if not len(strange):
            return "a pair is listed twice"
        source, target = np.divmod(strange[0], n)
        return f"{ids[source]} -> {ids[target]} is in one of them only ({len(strange):,} such pairs)"
    for name in COLUMNS[2:]:
        a, b = (table[name].to_numpy()[order] for table, order in zip((one, other), orders, strict=True))
        differs = ~_same(name, a, b) & ~(pd.isna(a) & pd.isna(b))
        if differs.any():
            at = int(np.argmax(differs))
            source, target = np.divmod(keys[0][at], n)
            return (
                f"{name} of {ids[source]} -> {ids[target]} is {a[at]} in one and {b[at]} in the other "
                f"({int(differs.sum()):,} such rows)"
            )
    return None


def _same(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if name.endswith("_m"):
        return np.abs(a - b) <= SAME_M
    if name.endswith("_deg"):
        return np.abs((a - b + 180.0) % 360.0 - 180.0) <= SAME_DEG
    return np.asarray(a == b)
