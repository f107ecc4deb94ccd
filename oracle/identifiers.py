"""Polygon ids: unique text, refused where they are empty or repeated unless the recipe asks to number them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from oracle.errors import name_some
from oracle.remarks import Notes, remark


def as_text(values: pd.Series) -> pd.Series:
    """Values as text: whole numbers without ``.0``, missing ones as None."""

    def one(value: object) -> str | None:
        if isinstance(value, (list, dict, tuple, np.ndarray)):
            return str(value)
        if value is None or value is pd.NA or value != value:
            return None
        whole = isinstance(value, (float, np.floating)) and np.isfinite(value) and value == int(value)
        return str(int(value)) if whole else str(value)  # type: ignore[call-overload]

    return pd.Series([one(v) for v in values], index=values.index, dtype=object)


def row_numbers(rows: int, notes: Notes) -> pd.Series:
    """``"0"``, ``"1"``, ...: what ``id: row`` in a recipe asks for."""
    ids = pd.Series([str(i) for i in range(rows)], dtype=object)
    notes.repairs.append(remark("ids are row numbers, counted from 0", ids))
    return ids


def identifiers(values: pd.Series, column: str, notes: Notes, *, make_unique: bool) -> pd.Series:
    """(n,) unique text. With ``make_unique`` an empty id becomes ``row-<row>`` and a repeated one gets ``-2``, ``-3``.

    Ids that are to be told apart only as text (``01`` and ``1``, ``1`` and ``1.0``) are repeated ones: the next
    program that reads them as numbers would join their rows. Made unique, they stay as they are written.
    """
    text = as_text(values)
    trimmed = text.map(lambda v: v.strip() if isinstance(v, str) else None)
    if (changed := text.notna() & (trimmed != text)).any():
        notes.repairs.append(remark("blanks around the id trimmed", trimmed[changed]))
    empty = trimmed.isna() | (trimmed == "")
    # A stand-in lets the other checks name the row.
    stand_in = pd.Series([f"row-{i}" if make_unique else f"row {i}" for i in range(len(text))], dtype=object)
    ids = trimmed.where(~empty, stand_in)
    repeated = ids.duplicated(keep=False)
    alike = _alike_as_numbers(trimmed[~empty])
    if make_unique:
        if empty.any():
            notes.repairs.append(remark("empty id replaced by the row's number", ids[empty]))
        if repeated.any():
            ids = _numbered(ids)
            notes.repairs.append(remark("repeated id numbered", ids[repeated]))
        if alike:
            notes.warnings.append(remark("ids that are one number written in several ways", alike))
        return ids
    remedy = "or set `unique_ids: true` (numbers them) or `id: row` in the recipe"
    if empty.any():
        rows = name_some(np.flatnonzero(empty))
        notes.problems.append(
            f"{column}: {int(empty.sum())} row(s) have no id: rows {rows}, counted from 0; give each one, {remedy}"
        )
    if repeated.any():
        counted = Counter(ids[repeated])
        times = name_some(f"{i} ({n} times)" for i, n in counted.items())
        notes.problems.append(f"{column}: ids must be unique; repeated: {times}; give each its own, {remedy}")
    if alike:
        notes.problems.append(
            f"{column}: ids of mixed types, the same number written in several ways: {name_some(map(repr, alike))}; "
            f"write them in one way, {remedy}"
        )
    return ids


def _alike_as_numbers(ids: pd.Series) -> list[str]:
    """Different texts that are the same number, such as ``01``, ``1`` and ``1.0``."""
    written = pd.Series(ids.unique(), dtype=object)
    plain = written[written.str.fullmatch(r"[+-]?[0-9]{1,15}(\.[0-9]*)?")]
    numbers = plain.astype(float)
    return plain[numbers.duplicated(keep=False)].tolist()


def _numbered(ids: pd.Series) -> pd.Series:
    """The first of equal ids stays; the others get the next free number."""
    taken = set(ids)
    seen: Counter[str] = Counter()
    unique = []
    for name in ids:
        seen[name] += 1
        new = name
        while seen[name] > 1 and (new := f"{name}-{seen[name]}") in taken:
            seen[name] += 1
        taken.add(new)
        unique.append(new)
    return pd.Series(unique, index=ids.index, dtype=object)
