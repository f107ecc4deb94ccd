"""Yields, connectivity and land uses of a polygon file, in the contract's units; what cannot be right is named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from oracle.errors import name_some
from oracle.identifiers import as_text
from oracle.landscape import CONNECTIVITY, CURRENT, LOCKED, YIELD_SUFFIX
from oracle.matching import MatchedColumns
from oracle.plausible import implausible_yield
from oracle.recipe import ConnectivityUnit, MissingYield, Recipe, to_t_ha
from oracle.remarks import Notes, remark


@dataclass(frozen=True)
class Values:
    """Contract columns by name (n rows) and, (n,) bool, rows that the recipe leaves out."""

    table: pd.DataFrame
    drop: np.ndarray


def contract_values(
    raw: pd.DataFrame, ids: pd.Series, matched: MatchedColumns, recipe: Recipe, usable: np.ndarray, notes: Notes
) -> Values:
    """Values under their contract names, yields in t/ha.

    A value that is refused is replaced by one within the range, so that later checks see only their own faults; its
    problem is in ``notes``.

    Parameters
    ----------
    usable : (n,) bool
        Rows with a polygon; the others' values are not looked at.
    """
    table: dict[str, np.ndarray | pd.Series] = {}
    drop = np.zeros(len(raw), dtype=bool)
    for crop, unit in matched.units.items():
        column = matched.columns[f"{crop}{YIELD_SUFFIX}"]
        numbers, words = _numbers(raw[column])
        t_ha = numbers * to_t_ha(crop, unit)
        empty = raw[column].isna().to_numpy() & usable
        if empty.any() and recipe.missing_yield == MissingYield.ZERO:
            t_ha[empty] = 0.0
            notes.repairs.append(remark(f"empty {crop} yield set to 0", ids[empty]))
        elif empty.any() and recipe.missing_yield == MissingYield.DROP:
            drop |= empty
            notes.dropped.append(remark(f"no {crop} yield", ids[empty]))
        faults = {
            "empty": empty & np.isnan(t_ha) & ~drop,
            "no number": words & usable,
            "infinite": np.isinf(t_ha) & usable,
            "negative": np.isfinite(t_ha) & (t_ha < 0) & usable,
        }
        advice = "; `missing_yield: zero` or `drop` in the recipe takes empty ones" if faults["empty"].any() else ""
        bad = _report(column, f"a {crop} yield is a number in {unit}, 0 or more", faults, raw, ids, notes, advice)
        if sentence := implausible_yield(crop, unit, np.where(usable & ~bad, t_ha, np.nan), ids.to_numpy()):
            notes.problems.append(f"{column}: {sentence}")
        table[f"{crop}{YIELD_SUFFIX}"] = np.where(bad | ~usable, 1.0, t_ha)
    if CONNECTIVITY in matched.columns:
        table[CONNECTIVITY] = _connectivity(raw, matched.columns[CONNECTIVITY], ids, recipe, usable & ~drop, notes)
    for contract in (CURRENT, LOCKED):
        if contract in matched.columns:
            given = as_text(raw[matched.columns[contract]]).map(lambda use: (use or "").strip())
            table[contract] = given.map(lambda use: recipe.land_uses.get(use, use or None))
    return Values(pd.DataFrame(table, index=raw.index), drop)


def _connectivity(
    raw: pd.DataFrame, column: str, ids: pd.Series, recipe: Recipe, usable: np.ndarray, notes: Notes
) -> np.ndarray:
    values, words = _numbers(raw[column])
    if recipe.connectivity_unit == ConnectivityUnit.PERCENT:
        values = values / 100.0
        notes.repairs.append(remark("connectivity in percent divided by 100", ids[usable]))
    finite = values[usable & np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    advice = ""
    if recipe.rescale_connectivity and low < high < np.inf and np.isfinite(high - low):
        values = (values - low) / (high - low)
        notes.repairs.append(remark(f"connectivity rescaled from {low:g}..{high:g} to 0..1", ids[usable]))
    elif recipe.rescale_connectivity:
        notes.problems.append(f"{column}: every value is {low:g}, so there is no range to rescale to 0..1")
    elif low < 0 or high > 1:
        percent = "`connectivity_unit: percent` divides by 100; " if low >= 0 and 2 < high <= 100 else ""
        stretch = f"`connectivity: rescale` or `rescale_connectivity: true` maps {low:g}..{high:g} to 0..1"
        advice = f"; in the recipe {percent}{stretch}"
    finite_in_use = np.isfinite(values) & usable
    faults = {
        "empty": raw[column].isna().to_numpy() & usable,
        "no number": words & usable,
        "infinite": np.isinf(values) & usable,
        "below 0": finite_in_use & (values < 0),
        "above 1": finite_in_use & (values > 1),
    }
    if faults["empty"].any():
        advice += "; fill in the empty ones, or remove their rows"
    bad = _report(column, "connectivity is a number in 0..1", faults, raw, ids, notes, advice)
    return np.where(bad | ~usable, 0.0, values)


def _report(
    column: str,
    expected: str,
    faults: dict[str, np.ndarray],
    raw: pd.DataFrame,
    ids: pd.Series,
    notes: Notes,
    advice: str,
) -> np.ndarray:
    """One problem for all faults of a column: how many of each kind, on which polygons, with which values."""
    bad = np.zeros(len(raw), dtype=bool)
    parts = []
    for what, rows in faults.items():
        if not rows.any():
            continue
        bad |= rows
        named = [str(i) for i in ids[rows]]
        if what != "empty":
            named = [f"{i}: {_short(v)}" for i, v in zip(ids[rows], raw.loc[rows, column], strict=True)]
        parts.append(f"{int(rows.sum()):,} {what} ({name_some(named)})")
    if parts:
        commas = any("," in str(value) for value in raw.loc[faults["no number"], column])
        decimal = "; decimals take a point" if commas else ""
        found = f"{int(bad.sum()):,} of {len(raw):,} rows are not: {', '.join(parts)}"
        notes.problems.append(f"{column}: {expected}; {found}{decimal}{advice}")
    return bad


def _short(value: object) -> str:
    said = repr(value) if isinstance(value, str) else str(value)
    return said if len(said) <= 40 else f"{said[:37]}..."


def _numbers(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """(n,) float, NaN where there is none; (n,) bool: something else than a number stands there."""
    filled = values.notna().to_numpy()
    if pd.api.types.is_bool_dtype(values) or not (
        pd.api.types.is_numeric_dtype(values) or values.dtype == object or pd.api.types.is_string_dtype(values)
    ):
        return np.full(len(values), np.nan), filled  # dates would be read as nanoseconds
    if not pd.api.types.is_numeric_dtype(values):
        values = values.map(_scalar)
    try:
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan).copy()
    except OverflowError:
        numbers = np.full(len(values), np.inf)
    return numbers, np.isnan(numbers) & filled


def _scalar(value: object) -> object:
    """What may be a number; lists, dates and truth values are none, an integer beyond float is infinite."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, int) and abs(value) > 1e300:
        return np.inf if value > 0 else -np.inf
    return value if isinstance(value, (str, int, float, np.number)) else _decimal(value)


def _decimal(value: object) -> float | None:
    return float(value) if type(value).__name__ == "Decimal" else None  # type: ignore[arg-type]
