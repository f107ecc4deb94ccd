"""The landscape: farm polygons with yields and connectivity, checked once at the door and then trusted.

Columns of ``Landscape.polygons`` (any others travel along untouched):

========================  =======================================================
``id``                    string, unique
``geometry``              Polygon or MultiPolygon, valid, with a CRS
``<crop>_yield``          float, t/ha, >= 0; 0 = cannot be grown here
``ecological_connectivity``  float in [0, 1]
``current_land_use``      optional: a crop, ``habitat`` or ``other``
``locked_land_use``       optional: this class and no other (null = free)
========================  =======================================================
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import shapely
from pyproj import Geod

from oracle.errors import LandscapeError, name_some
from oracle.files import write_atomically

HABITAT = "habitat"
OTHER = "other"
YIELD_SUFFIX = "_yield"
CONNECTIVITY = "ecological_connectivity"
CURRENT = "current_land_use"
LOCKED = "locked_land_use"

SCHEMA_KEY = b"landoracle"

GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, eq=False)
class Landscape:
    """A validated landscape of n polygons and K crops.

    Parameters
    ----------
    name : str
        A file name's stem or a partition key; letters, digits, ``-`` and ``_``.
    polygons : GeoDataFrame
        n rows with the columns of this module's docstring.
    crops : tuple of str
        The K crops, in the order of every array below.

    Raises
    ------
    LandscapeError
        Where a column is missing or a value is outside its range; every problem found is named.
    """

    name: str
    polygons: gpd.GeoDataFrame
    crops: tuple[str, ...]

    def __post_init__(self) -> None:
        problems = contract_problems(self.polygons, self.crops)
        if problems:
            raise LandscapeError(f"landscape {self.name!r} is not usable:\n" + "\n".join(f"  - {p}" for p in problems))

    def __len__(self) -> int:
        return len(self.polygons)

    @property
    def classes(self) -> tuple[str, ...]:
        """The K crops and ``habitat``, in the order of the columns of every (n, K + 1) array."""
        return (*self.crops, HABITAT)

    @cached_property
    def ids(self) -> np.ndarray:
        """(n,) polygon ids, str."""
        return self.polygons["id"].to_numpy(dtype=object)

    @cached_property
    def yields(self) -> np.ndarray:
        """(n, K) yields, t/ha."""
        return self.polygons[[f"{c}{YIELD_SUFFIX}" for c in self.crops]].to_numpy(dtype=float)

    @cached_property
    def connectivity(self) -> np.ndarray:
        """(n,) ecological connectivity, 0..1."""
        return self.polygons[CONNECTIVITY].to_numpy(dtype=float)

    @cached_property
    def areas_ha(self) -> np.ndarray:
        """(n,) geodesic areas on the WGS 84 ellipsoid, ha (Karney 2013, through pyproj)."""
        return geodesic_areas_ha(self.polygons.geometry)

    @cached_property
    def current(self) -> np.ndarray | None:
        """(n,) current land use, str, or None where the landscape does not state it."""
        return self.polygons[CURRENT].to_numpy(dtype=object) if CURRENT in self.polygons else None

    @cached_property
    def allowed(self) -> np.ndarray:
        """(n, K + 1) bool: a class may be chosen. Crops need a yield above 0; a lock leaves its class only."""
        allowed = np.column_stack([self.yields > 0, np.ones(len(self), dtype=bool)])
        if LOCKED in self.polygons:
            locked = self.polygons[LOCKED].to_numpy(dtype=object)
            for k, c in enumerate(self.classes):
                allowed[locked == c] = np.arange(len(self.classes)) == k
        return allowed

    @cached_property
    def sha256(self) -> str:
        """Hash of everything the oracle reads: ids, geometries (as given, with CRS), yields, connectivity, uses."""
        digest = hashlib.sha256()
        crs = self.polygons.crs
        head = {"crops": self.crops, "crs": crs.to_wkt() if crs is not None else None, "n": len(self)}
        digest.update(json.dumps(head, sort_keys=True).encode())
        digest.update("\0".join(self.ids).encode())
        for wkb in shapely.to_wkb(self.polygons.geometry.to_numpy(), byte_order=1):
            digest.update(wkb)
        digest.update(np.ascontiguousarray(self.yields, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(self.connectivity, dtype="<f8").tobytes())
        for column in (CURRENT, LOCKED):
            if column in self.polygons:
                values = self.polygons[column]
                digest.update("\0".join("" if v is None or v != v else str(v) for v in values).encode())
        return digest.hexdigest()


def save_landscape(landscape: Landscape, path: Path) -> None:
    """Write a landscape as GeoParquet (zstd), its name and the order of its crops in the schema's metadata."""

    def write(temporary: Path) -> None:
        landscape.polygons.to_parquet(temporary, index=False)
        table = pq.read_table(temporary)
        head = json.dumps({"name": landscape.name, "crops": landscape.crops})
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), SCHEMA_KEY: head.encode()})
        pq.write_table(table, temporary, compression="zstd")

    write_atomically(path, write)


def load_landscape(path: Path) -> Landscape:
    """Read what :func:`save_landscape` wrote, through the same checks as any other landscape.

    Raises
    ------
    LandscapeError
        Where the file is missing, is no landscape of ours or breaks the contract.
    """
    try:
        head = json.loads((pq.read_schema(path).metadata or {})[SCHEMA_KEY])
        polygons = gpd.read_parquet(path)
    except (OSError, KeyError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise LandscapeError(f"{path} is not a landscape written by Landoracle: {error}") from error
    return Landscape(head["name"], polygons, tuple(head["crops"]))


def geodesic_areas_ha(geometry: gpd.GeoSeries) -> np.ndarray:
    """(n,) areas in hectares on the WGS 84 ellipsoid, whatever the CRS of ``geometry``."""
    lonlat = shapely.orient_polygons(geometry.to_crs(4326).to_numpy())  # else holes would be added
    return np.array([abs(GEOD.geometry_area_perimeter(g)[0]) for g in lonlat]) / 10_000.0


def contract_problems(polygons: gpd.GeoDataFrame, crops: tuple[str, ...]) -> list[str]:
    """Every way in which a table breaks the contract of this module, a sentence each; empty = usable."""
    problems: list[str] = []
    if not isinstance(polygons, gpd.GeoDataFrame) or polygons.active_geometry_name != "geometry":
        return ["expected a GeoDataFrame with its geometry in the column 'geometry'"]
    if len(polygons) == 0:
        return ["it has no polygon"]
    if not crops:
        problems.append("it names no crop: at least one <crop>_yield column is needed")
    if HABITAT in crops or OTHER in crops:
        problems.append(f"{HABITAT!r} and {OTHER!r} are classes of their own and cannot be crops")
    if len(set(crops)) != len(crops):
        problems.append(f"a crop is named twice: {', '.join(crops)}")
    needed = ["id", *(f"{c}{YIELD_SUFFIX}" for c in crops), CONNECTIVITY]
    missing = [c for c in needed if c not in polygons.columns]
    if missing:
        problems.append(f"missing column(s) {', '.join(missing)}; it has {', '.join(map(str, polygons.columns))}")
        return problems
    ids = polygons["id"]
    if not ids.map(lambda v: isinstance(v, str) and v.strip() != "").all():
        bad = polygons.index[~ids.map(lambda v: isinstance(v, str) and v.strip() != "")]
        problems.append(f"ids must be non-empty strings; rows {name_some(bad)} are not")
    elif ids.duplicated().any():
        problems.append(f"ids must be unique; repeated: {name_some(ids[ids.duplicated()].unique())}")
    problems += _value_problems(polygons, needed[1:-1], 0.0, np.inf, "t/ha, 0 or more")
    problems += _value_problems(polygons, [CONNECTIVITY], 0.0, 1.0, "in 0..1")
    if CURRENT in polygons:
        problems += _class_problems(polygons, CURRENT, {*crops, HABITAT, OTHER}, nullable=False)
    if LOCKED in polygons:
        problems += _class_problems(polygons, LOCKED, {*crops, HABITAT}, nullable=True)
        for crop in crops:
            zero = (polygons[LOCKED] == crop) & ~(polygons[f"{crop}{YIELD_SUFFIX}"] > 0)
            if zero.any():
                problems.append(f"locked to {crop} where its yield is 0: {name_some(ids[zero])}")
    geometry = polygons.geometry
    if polygons.crs is None:
        problems.append("its geometry has no CRS (coordinate reference system)")
    kinds = geometry.geom_type.isin(["Polygon", "MultiPolygon"]) & ~geometry.is_empty
    if not kinds.all():
        problems.append(f"not a polygon, or an empty one: {name_some(ids[~kinds])}")
    elif not geometry.is_valid.all():
        problems.append(f"invalid geometry: {name_some(ids[~geometry.is_valid])}")
    return problems


def _value_problems(
    polygons: gpd.GeoDataFrame, columns: list[str], low: float, high: float, expected: str
) -> list[str]:
    problems = []
    for column in columns:
        values = pd.to_numeric(polygons[column], errors="coerce").to_numpy(dtype=float)
        bad = ~np.isfinite(values) | (values < low) | (values > high)
        if bad.any():
            found = polygons.loc[bad, column].head(3).tolist()
            problems.append(
                f"{column} must be a number, {expected}; {int(bad.sum())} polygon(s) are not "
                f"({name_some(polygons.loc[bad, 'id'])}; found {found})"
            )
    return problems


def _class_problems(polygons: gpd.GeoDataFrame, column: str, known: set[str], *, nullable: bool) -> list[str]:
    values = polygons[column]
    bad = ~values.isin(known) & ~(values.isna() if nullable else False)
    if not bad.any():
        return []
    found = values[bad].map(lambda v: "nothing" if pd.isna(v) or not str(v).strip() else str(v))
    return [
        f"{column} must be one of {', '.join(sorted(known))}; {int(bad.sum())} polygon(s) are not "
        f"({name_some(polygons.loc[bad, 'id'])}; found {name_some(found.unique(), 3)}); "
        "`land_uses` in the recipe says which value means which of them"
    ]
