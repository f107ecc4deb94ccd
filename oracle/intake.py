"""Intake: a polygon file and its recipe become a landscape, or one error that names everything in the way.

Nothing is mended in silence. What intake does to a file stands in its report, with counts and ids: invalid rings
rebuilt (and the area that cost), heights dropped, polygon parts taken out of collections, rows left out, empty yields
set to 0, blanks trimmed from ids. Overlaps and duplicates are reported and left as they are.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyproj
import shapely

from oracle.errors import LandscapeError, name_some
from oracle.landscape import (
    CONNECTIVITY,
    CURRENT,
    LOCKED,
    YIELD_SUFFIX,
    Landscape,
    contract_problems,
    geodesic_areas_ha,
)
from oracle.plausible import implausible_yield
from oracle.polygon_file import read_polygons
from oracle.projection import to_local
from oracle.recipe import ROW, MissingYield, Recipe, fold, match, to_t_ha

_LEAST_OVERLAP = 0.001  # of the smaller polygon's area; below it is digitising noise


@dataclass(frozen=True)
class Remark:
    """Something that intake did or saw: what, and on which polygons."""

    what: str
    count: int
    ids: tuple[str, ...]


@dataclass(frozen=True)
class IntakeReport:
    """What was read, how it was understood and what was done to it.

    Parameters
    ----------
    file, layer, name : str
        Where it came from; the landscape's name.
    rows, polygons : int
        Rows of the file; polygons of the landscape.
    area_ha : float
        Geodesic area of all polygons; overlaps count twice.
    crs, crs_from : str
        The CRS used, and whether the file or the recipe states it.
    columns : dict
        Contract column -> column of the file.
    units : dict
        Crop -> unit that its column was read in.
    repairs, dropped, warnings : tuple of Remark
        What was changed, which rows were left out, and what looks wrong but was left.
    """

    file: str
    layer: str | None
    name: str
    rows: int
    polygons: int
    area_ha: float
    crs: str
    crs_from: str
    columns: dict[str, str]
    units: dict[str, str]
    repairs: tuple[Remark, ...]
    dropped: tuple[Remark, ...]
    warnings: tuple[Remark, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        return asdict(self)


def read_landscape(file: Path, recipe: Recipe | None = None) -> tuple[Landscape, IntakeReport]:
    """Read ``file`` by ``recipe`` (absent: by the contract's column names).

    Returns
    -------
    Landscape
        Contract columns first; the file's own columns follow unchanged (``<column>_original`` where a contract
        column needs the name).
    IntakeReport

    Raises
    ------
    LandscapeError
        Where the file cannot be read or does not make a landscape; every problem found is named.
    ConfigurationError
        Where the recipe's CRS is not one.
    """
    file, recipe = Path(file), recipe or Recipe()
    read = read_polygons(file, recipe)
    raw = read.frame
    columns, problems = _columns(raw, recipe)
    if problems:
        raise LandscapeError(_listed(file, problems))

    notes = _Notes()
    ids = _ids(raw, recipe, notes)
    geometry, usable = _polygons(raw.geometry, ids, notes, drop=recipe.drop_unusable)
    values = _values(raw, ids, columns, recipe, notes)
    usable &= ~values.drop
    frame = _assembled(raw, ids, geometry, values.table)[usable].reset_index(drop=True)

    problems = [*notes.problems]
    if len(frame):
        # Rows refused for their geometry are named once, by intake.
        sound = frame[frame.geom_type.isin(["Polygon", "MultiPolygon"]) & ~frame.is_empty]
        problems += contract_problems(sound, values.crops) if len(sound) else []
    else:
        problems.append("no usable polygon is left")
    if problems:
        raise LandscapeError(_listed(file, problems))

    name = recipe.name or re.sub(r"[^A-Za-z0-9_-]+", "_", file.name.split(".")[0]) or "landscape"
    landscape = Landscape(name, frame, values.crops)
    report = IntakeReport(
        file=file.name,
        layer=read.layer,
        name=name,
        rows=len(raw),
        polygons=len(frame),
        area_ha=round(float(landscape.areas_ha.sum()), 4),
        crs=frame.crs.to_string(),
        crs_from=read.crs_from,
        columns=columns,
        units={crop: str(recipe.unit_of(crop)) for crop in values.crops},
        repairs=tuple(notes.repairs),
        dropped=tuple(notes.dropped),
        warnings=(*(Remark(said, 0, ()) for said in read.messages), *_overlaps(frame)),
    )
    return landscape, report


class _Notes:
    """Collects what intake does and what stands in its way."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.repairs: list[Remark] = []
        self.dropped: list[Remark] = []


@dataclass(frozen=True)
class _Values:
    table: pd.DataFrame
    crops: tuple[str, ...]
    drop: np.ndarray


def _remark(what: str, ids: Iterable[str]) -> Remark:
    listed = tuple(ids)
    return Remark(what, len(listed), listed)


def _listed(file: Path, problems: Sequence[str]) -> str:
    return f"{file.name} is not a usable landscape:\n" + "\n".join(f"  - {p}" for p in problems)


def _columns(frame: gpd.GeoDataFrame, recipe: Recipe) -> tuple[dict[str, str], list[str]]:
    """Contract column -> column of the file, and what could not be matched."""
    own = [str(c) for c in frame.columns if c != "geometry"]
    yields = recipe.yields or {
        fold(c).removesuffix(YIELD_SUFFIX): c for c in own if fold(c).endswith(YIELD_SUFFIX) and fold(c) != YIELD_SUFFIX
    }
    wanted: dict[str, tuple[str, bool]] = {} if recipe.id == ROW else {"id": (recipe.id, True)}
    wanted |= {f"{crop}{YIELD_SUFFIX}": (column, True) for crop, column in yields.items()}
    wanted[CONNECTIVITY] = (recipe.connectivity, True)
    for column, named in ((CURRENT, recipe.current_land_use), (LOCKED, recipe.locked_land_use)):
        wanted[column] = (named or column, named is not None)

    columns, problems = {}, []
    if not yields:
        problems.append(f"no <crop>_yield column; it has {', '.join(own)}. Name them in the recipe: `yields`")
    for contract, (name, needed) in wanted.items():
        found = match(name, own)
        if len(found) == 1:
            columns[contract] = found[0]
        elif len(found) > 1:
            problems.append(
                f"{contract}: {name!r} could be any of {', '.join(map(repr, found))}; name one in the recipe"
            )
        elif needed:
            alike = difflib.get_close_matches(fold(name), [fold(c) for c in own], n=3, cutoff=0.5)
            hint = ", ".join(repr(c) for c in own if fold(c) in alike) or ", ".join(map(repr, own))
            row = "; `id: row` numbers the rows" if contract == "id" else ""
            problems.append(f"{contract}: no column {name!r}; there is {hint}. Name the column in the recipe{row}")
    return columns, problems


def _text(values: pd.Series) -> pd.Series:
    """Values as text: whole numbers without ``.0``, missing ones as None."""

    def one(value: object) -> str | None:
        if value is None or value is pd.NA or value != value:
            return None
        return str(int(value)) if isinstance(value, (float, np.floating)) and value == int(value) else str(value)

    return pd.Series([one(v) for v in values], index=values.index, dtype=object)


def _ids(frame: gpd.GeoDataFrame, recipe: Recipe, notes: _Notes) -> pd.Series:
    if recipe.id == ROW:
        notes.repairs.append(Remark("ids are row numbers, counted from 0", len(frame), ()))
        return pd.Series([str(i) for i in range(len(frame))], dtype=object)
    ids = _text(frame[match(recipe.id, [str(c) for c in frame.columns])[0]])
    trimmed = ids.map(lambda v: None if v is None else v.strip())
    if (changed := ids.notna() & (trimmed != ids)).any():
        notes.repairs.append(_remark("blanks around the id trimmed", trimmed[changed]))
    if (empty := trimmed.isna() | (trimmed == "")).any():
        notes.problems.append(
            f"{int(empty.sum())} row(s) have no id: rows {name_some(frame.index[empty])}; "
            "give each one, or set `id: row` in the recipe"
        )
    # A stand-in lets the other checks name the row.
    return trimmed.where(~empty, pd.Series([f"row {i}" for i in frame.index], dtype=object))


def _polygons(
    geometry: gpd.GeoSeries, ids: pd.Series, notes: _Notes, *, drop: bool
) -> tuple[gpd.GeoSeries, np.ndarray]:
    """2D, valid polygons, and which rows have one."""
    shapes = geometry.to_numpy().copy()
    if (high := shapely.has_z(shapes)).any():
        notes.repairs.append(_remark("heights (z) dropped", ids[high]))
    shapes = shapely.force_2d(shapes)
    kind = geometry.geom_type.to_numpy()

    collections = kind == "GeometryCollection"
    shapes[collections] = _polygonal(shapes[collections])
    if (kept := collections & ~shapely.is_empty(shapes)).any():
        notes.repairs.append(_remark("polygon parts taken out of a geometry collection", ids[kept]))

    polygon = np.isin(kind, ["Polygon", "MultiPolygon", "GeometryCollection"])
    broken = polygon & ~shapely.is_empty(shapes) & ~shapely.is_valid(shapes)
    if broken.any():
        before = _areas(shapes[broken], geometry.crs)
        shapes[broken] = _polygonal(shapely.make_valid(shapes[broken], method="structure", keep_collapsed=False))
        change = _areas(shapes[broken], geometry.crs) - before
        for i, hectares, was in zip(ids[broken], change, before, strict=True):
            notes.repairs.append(_remark(f"invalid polygon rebuilt: {was:.4f} ha, {hectares:+.4f} ha", [i]))

    missing = shapely.is_missing(shapes)
    usable = polygon & ~missing & ~shapely.is_empty(shapes)
    reason = np.where(missing, "no geometry", np.where(polygon, "empty", kind.astype(object)))
    refused = [f"{i} ({why})" for i, why in zip(ids[~usable], reason[~usable], strict=True)]
    if refused and drop:
        for why in dict.fromkeys(reason[~usable]):
            notes.dropped.append(_remark(f"not a polygon: {why}", ids[~usable & (reason == why)]))
    elif refused:
        notes.problems.append(
            f"{len(refused)} row(s) are no polygons: {name_some(refused)}; "
            "remove them, or set `drop_unusable: true` in the recipe"
        )
    mended = gpd.GeoSeries(shapes, index=geometry.index, crs=geometry.crs)
    return mended, usable if drop else np.ones(len(ids), dtype=bool)


def _polygonal(shapes: np.ndarray) -> np.ndarray:
    """Only the polygon parts of each geometry, as a Polygon or MultiPolygon (perhaps empty)."""
    kept = np.empty(len(shapes), dtype=object)
    for k, shape in enumerate(shapes):
        parts = [p for p in shapely.get_parts(shapely.get_parts(shape)) if p.geom_type == "Polygon" and not p.is_empty]
        kept[k] = parts[0] if len(parts) == 1 else shapely.union_all(parts) if parts else shapely.Polygon()
    return kept


def _areas(shapes: np.ndarray, crs: pyproj.CRS) -> np.ndarray:
    return geodesic_areas_ha(gpd.GeoSeries(shapes, crs=crs))


def _values(frame: gpd.GeoDataFrame, ids: pd.Series, columns: dict[str, str], recipe: Recipe, notes: _Notes) -> _Values:
    """Yields in t/ha, connectivity and land uses under their contract names."""
    table: dict[str, np.ndarray | pd.Series] = {}
    crops = []
    drop = np.zeros(len(frame), dtype=bool)
    for contract, column in columns.items():
        if not contract.endswith(YIELD_SUFFIX):
            continue
        crop = contract.removesuffix(YIELD_SUFFIX)
        crops.append(crop)
        t_ha = _numbers(frame[column], column, ids, notes) * to_t_ha(crop, recipe.unit_of(crop))
        empty = frame[column].isna().to_numpy()
        if empty.any() and recipe.missing_yield == MissingYield.ZERO:
            t_ha[empty] = 0.0
            notes.repairs.append(_remark(f"empty {crop} yield set to 0", ids[empty]))
        elif empty.any() and recipe.missing_yield == MissingYield.DROP:
            drop |= empty
            notes.dropped.append(_remark(f"no {crop} yield", ids[empty]))
        if sentence := implausible_yield(crop, recipe.unit_of(crop), t_ha):
            notes.problems.append(f"{column}: {sentence}")
        table[contract] = t_ha
    table[CONNECTIVITY] = _numbers(frame[columns[CONNECTIVITY]], columns[CONNECTIVITY], ids, notes)
    for contract in (CURRENT, LOCKED):
        if contract in columns:
            given = _text(frame[columns[contract]])
            table[contract] = given.map(lambda v: recipe.land_uses.get(v, v) if v is not None else None)
    return _Values(pd.DataFrame(table, index=frame.index), tuple(crops), drop)


def _numbers(values: pd.Series, column: str, ids: pd.Series, notes: _Notes) -> np.ndarray:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float).copy()
    if (words := np.isnan(numbers) & values.notna().to_numpy()).any():
        found = name_some([repr(v) for v in values[words].unique()], 3)
        notes.problems.append(
            f"{column}: {int(words.sum())} value(s) are no numbers ({found}; polygons {name_some(ids[words])}); "
            "decimals take a point"
        )
    return numbers


def _assembled(raw: gpd.GeoDataFrame, ids: pd.Series, geometry: gpd.GeoSeries, table: pd.DataFrame) -> gpd.GeoDataFrame:
    contract = pd.concat([ids.rename("id"), table], axis=1)
    own = pd.DataFrame(raw.drop(columns="geometry"))
    kept = {}
    for column in own:
        values = own[column]
        if values.map(lambda v: isinstance(v, (list, dict, tuple, np.ndarray))).any():
            values = values.map(_as_json)  # so that every format can hold it
        name = str(column)
        if name in contract:
            if values.equals(contract[name]):
                continue
            name = f"{name}_original"
        kept[name] = values
    return gpd.GeoDataFrame(pd.concat([contract, pd.DataFrame(kept, index=raw.index)], axis=1), geometry=geometry)


def _as_json(value: object) -> object:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return json.dumps(value) if isinstance(value, (list, dict, tuple)) else value


def _overlaps(frame: gpd.GeoDataFrame) -> list[Remark]:
    """Pairs of polygons that share more than a thousandth of the smaller one's area."""
    shapes = to_local(frame.geometry).to_numpy()
    i, j = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    i, j = i[i < j], j[i < j]
    # Touching neighbours are most of these pairs; only interiors that meet can overlap.
    meet = shapely.relate_pattern(shapes[i], shapes[j], "T********")
    i, j = i[meet], j[meet]
    area = shapely.area(shapely.intersection(shapes[i], shapes[j]))
    share = area / np.minimum(shapely.area(shapes[i]), shapely.area(shapes[j]))
    ids = frame["id"].to_numpy()
    remarks = []
    for a, b, metres, part in zip(i, j, area, share, strict=True):
        if part > _LEAST_OVERLAP:
            what = "duplicates" if part > 1 - _LEAST_OVERLAP else f"overlap, {part:.1%} of the smaller"
            remarks.append(_remark(f"{what}: {metres / 1e4:.4f} ha counted twice", [ids[a], ids[b]]))
    return remarks
