"""Intake: a polygon file and its recipe become a landscape, or a report of everything that is in the way.

Nothing is mended in silence. What intake does to a file stands in its report, with counts and ids: invalid rings
rebuilt (and the area that cost), heights dropped, arcs made straight, polygon parts taken out of collections, rows
left out, empty yields set to 0, connectivity rescaled, ids trimmed or numbered. Overlaps, duplicates and slivers are
reported and left as they are. Every check runs, whatever the ones before it found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyproj

from oracle.errors import LandoracleError, LandscapeError
from oracle.identifiers import identifiers, row_numbers
from oracle.landscape import CONNECTIVITY, CURRENT, LOCKED, Landscape, contract_problems, geodesic_areas_ha
from oracle.matching import match_columns
from oracle.overlaps import Doubts, doubtful_polygons
from oracle.polygon_file import read_polygons, unused
from oracle.recipe import ROW, Recipe, recipe_for
from oracle.reference_system import reference_system
from oracle.remarks import Notes, Remark
from oracle.repair import sound_polygons
from oracle.values import contract_values


@dataclass(frozen=True)
class IntakeReport:
    """What was read, how it was understood, what was done to it and what is in the way.

    Parameters
    ----------
    file, layer, name : str
        Where it came from; the landscape's name.
    rows, polygons : int
        Rows of the file; those that are usable polygons.
    area_ha, double_ha : float or None
        Geodesic area of all polygons, overlaps counted twice; and how much that is too much, measured in an equal-area
        projection. None where there is no CRS to measure in.
    crs, crs_from : str
        The CRS used (None: none that fits), and whether the file, the recipe or nobody states it.
    columns : dict
        Contract column -> column of the file.
    units : dict
        Crop -> unit that its column was read in.
    repairs, dropped, warnings : tuple of Remark
        What was changed, which rows were left out, and what looks wrong but was left.
    problems : tuple of str
        Why this is no landscape, a sentence each; empty: it is one.
    """

    file: str
    layer: str | None = None
    name: str | None = None
    rows: int = 0
    polygons: int = 0
    area_ha: float | None = None
    double_ha: float | None = None
    crs: str | None = None
    crs_from: str | None = None
    columns: dict[str, str] | None = None
    units: dict[str, str] | None = None
    repairs: tuple[Remark, ...] = ()
    dropped: tuple[Remark, ...] = ()
    warnings: tuple[Remark, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """The file is a landscape."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        return {"usable": self.usable, **asdict(self)}


@dataclass(frozen=True, eq=False)
class Inspection:
    """What intake makes of a file: a report, and the landscape where the report has no problem."""

    report: IntakeReport
    landscape: Landscape | None = None


def read_landscape(file: Path, recipe: Recipe | None = None) -> tuple[Landscape, IntakeReport]:
    """Read ``file`` by ``recipe`` (absent: by the names of its columns).

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
    """
    file = Path(file)
    inspection = _inspect(file, recipe or Recipe())
    if inspection.landscape is None:
        raise LandscapeError(_listed(file, inspection.report.problems))
    return inspection.landscape, inspection.report


def inspect_file(file: Path, recipe: Path | None = None) -> Inspection:
    """Read ``file`` by the recipe at a path, else the one beside it, and report instead of raising.

    Recipes that cannot be used and files that cannot be read are problems in the report like any other.
    """
    file = Path(file)
    try:
        return _inspect(file, recipe_for(file, recipe))
    except LandoracleError as error:
        return Inspection(IntakeReport(file=file.name, problems=(str(error),)))


def _inspect(file: Path, recipe: Recipe) -> Inspection:
    read = read_polygons(file, recipe.layer)
    notes = Notes(warnings=[Remark(said, 0, ()) for said in read.messages])
    raw = read.frame.rename(columns=str)

    system = reference_system(raw.geometry, recipe.crs)
    notes.problems += [system.problem] if system.problem else []
    geometry = raw.geometry.set_crs(system.crs, allow_override=True)

    numeric = {c: pd.api.types.is_numeric_dtype(raw[c]) for c in raw.columns if c != "geometry"}
    matched = match_columns(numeric, recipe)
    notes.problems += matched.problems
    notes.warnings += [Remark(guess, 0, ()) for guess in matched.guesses]

    if "id" in matched.columns:
        ids = identifiers(raw[matched.columns["id"]], matched.columns["id"], notes, make_unique=recipe.unique_ids)
    else:
        # Without an id column rows are named by number, which only `id: row` makes an answer.
        ids = row_numbers(len(raw), notes if recipe.id == ROW else Notes())
    sound, usable = sound_polygons(geometry, read.curved, ids, notes, drop=recipe.drop_unusable)
    values = contract_values(raw, ids, matched, recipe, usable, notes)
    usable &= ~values.drop

    frame = _assembled(raw, ids, sound, values.table)[usable].reset_index(drop=True)
    area, doubts = _areas(frame, system.crs, notes)
    if not len(frame):
        notes.problems.append("no usable polygon is left")
    notes.problems += _rest_of_contract(frame, matched.crops, system.crs)
    landscape = None
    name = recipe.name or re.sub(r"[^A-Za-z0-9_-]+", "_", file.name.split(".")[0]) or "landscape"
    if not notes.problems:
        landscape = Landscape(name, frame, matched.crops)
    report = IntakeReport(
        file=file.name,
        layer=read.layer,
        name=name,
        rows=len(raw),
        polygons=len(frame),
        area_ha=area,
        double_ha=round(doubts.double_ha, 4) if doubts else None,
        crs=system.name,
        crs_from=system.stated_by,
        columns=matched.columns,
        units={crop: str(unit) for crop, unit in matched.units.items()},
        repairs=tuple(notes.repairs),
        dropped=tuple(notes.dropped),
        warnings=(*notes.warnings, *(doubts.remarks if doubts else ())),
        problems=tuple(notes.problems),
    )
    return Inspection(report, landscape)


def _areas(frame: gpd.GeoDataFrame, crs: pyproj.CRS | None, notes: Notes) -> tuple[float | None, Doubts | None]:
    """Area in ha and what is doubtful, where there is anything to measure."""
    if crs is None or not len(frame):
        return None, None
    area = round(float(geodesic_areas_ha(frame.geometry).sum()), 4)
    return area, doubtful_polygons(frame.geometry, frame["id"])


def _rest_of_contract(frame: gpd.GeoDataFrame, crops: tuple[str, ...], crs: pyproj.CRS | None) -> list[str]:
    """What the contract of a landscape asks besides the ids, values, geometry and CRS that were checked already."""
    needed = [f"{crop}_yield" for crop in crops]
    if not len(frame) or not crops:
        return []
    stand_in = gpd.GeoDataFrame(frame[["id", *needed]].copy(), geometry=frame.geometry)
    for column in (CURRENT, LOCKED):
        if column in frame:
            stand_in[column] = frame[column]
    stand_in["id"] = [str(k) for k in range(len(frame))] if frame["id"].duplicated().any() else frame["id"]
    stand_in[CONNECTIVITY] = frame.get(CONNECTIVITY, 0.0)
    if crs is None:
        stand_in = stand_in.set_crs(4326)
    return contract_problems(stand_in, crops)


def _listed(file: Path, problems: Sequence[str]) -> str:
    return f"{file.name} is not a usable landscape:\n" + "\n".join(f"  - {p}" for p in problems)


def _assembled(raw: gpd.GeoDataFrame, ids: pd.Series, geometry: gpd.GeoSeries, table: pd.DataFrame) -> gpd.GeoDataFrame:
    """Contract columns, then the file's own; names differ by more than case, since a GeoPackage cannot tell it."""
    contract = pd.concat([ids.rename("id"), table], axis=1)
    own = pd.DataFrame(raw.drop(columns="geometry"))
    taken = {"geometry", "fid", *(str(c).casefold() for c in contract)}  # fid: a GeoPackage's own row number
    kept: dict[str, pd.Series] = {}
    for name in map(str, own):
        values = own[name]
        if values.dtype == object:
            values = values.map(_as_json)  # so that every format can hold it
        if name in contract and values.equals(contract[name]):
            continue
        if name.casefold() in taken:
            name = unused(f"{name}_original", [*taken, *own])
        taken.add(name.casefold())
        kept[name] = values
    return gpd.GeoDataFrame(pd.concat([contract, pd.DataFrame(kept, index=raw.index)], axis=1), geometry=geometry)


def _as_json(value: object) -> object:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return json.dumps(value, default=str) if isinstance(value, (list, dict, tuple)) else value
