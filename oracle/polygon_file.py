"""A polygon file as a table with one geometry column, as its author wrote it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyogrio
import pyproj
import shapely

from oracle.archive import datasets_in, read_member
from oracle.errors import LandscapeError

_PARQUET = (".parquet", ".geoparquet")
_STRAIGHT_ONLY = (".shp", ".geojson", ".json", ".fgb")  # formats that cannot hold curves
# What GDAL and the libraries above it raise over a file that is not what its name says.
_UNREADABLE = (
    pyogrio.errors.DataSourceError,
    pyogrio.errors.DataLayerError,
    pyogrio.errors.FeatureError,
    pyogrio.errors.FieldError,
    pyogrio.errors.GeometryError,
    pyogrio.errors.CRSError,
    pyproj.exceptions.ProjError,
    shapely.errors.ShapelyError,
    pa.ArrowException,
    OSError,
    ValueError,
    OverflowError,
)
# GeoParquet metadata is JSON that nobody has checked: any of its keys may be missing or of another type.
_UNREADABLE_PARQUET = (*_UNREADABLE, KeyError, TypeError, AttributeError, IndexError)


@dataclass(frozen=True, eq=False)
class PolygonFile:
    """Rows of a file as they are.

    Parameters
    ----------
    frame : GeoDataFrame
        Geometry in the column ``geometry``; the CRS that the file states, or none.
    layer : str or None
        Its layer; None for Parquet.
    curved : (n,) bool
        Polygons that the file draws with arcs; ``frame`` has them with straight edges.
    messages : tuple of str
        What the reader said.
    """

    frame: gpd.GeoDataFrame
    layer: str | None
    curved: np.ndarray
    messages: tuple[str, ...]


@dataclass(frozen=True)
class _Layer:
    dataset: str
    name: str | None  # None: a Parquet file
    kind: str

    @property
    def called(self) -> str:
        return self.name or PurePosixPath(self.dataset).stem


def read_polygons(file: Path, layer: str | None = None) -> PolygonFile:
    """Read ``file`` with GDAL (GeoPackage, GeoJSON, Shapefile, File Geodatabase, ...; also in a zip) or as GeoParquet.

    Raises
    ------
    LandscapeError
        Where the file, the layer, its geometry or its rows are missing, or none of them is clearly meant.
    """
    if not file.exists():
        raise LandscapeError(f"{file}: no such file")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        chosen = _choose(file, _layers(file), layer)
        try:
            frame = _read(chosen)
            curved = _curved(chosen, len(frame))
        except _UNREADABLE_PARQUET as error:
            raise _unreadable(file, error) from error
    if not isinstance(frame, gpd.GeoDataFrame):
        raise LandscapeError(f"{file.name}: it has no geometry, only columns {', '.join(map(str, frame.columns))}")
    if frame.empty:
        raise LandscapeError(f"{file.name}: it has no rows")
    messages = dict.fromkeys(f"the reader said: {' '.join(str(w.message).split())}" for w in said)
    return PolygonFile(_one_geometry(frame), chosen.name, curved, tuple(messages))


def _layers(file: Path) -> list[_Layer]:
    """Every layer with geometry, in every dataset of the file."""
    zipped = file.suffix.lower() == ".zip"
    found = []
    for dataset in datasets_in(file) if zipped else [str(file)]:
        if dataset.lower().endswith(_PARQUET):
            found.append(_Layer(dataset, None, "Polygon"))
            continue
        try:
            layers = pyogrio.list_layers(dataset)
        except _UNREADABLE as error:
            if zipped and dataset.lower().endswith(".json"):
                continue  # a zip may carry notes in JSON
            raise _unreadable(file, error) from error
        found += [_Layer(dataset, str(name), str(kind)) for name, kind in layers if kind is not None]
    return found


def _unreadable(file: Path, error: Exception) -> LandscapeError:
    said = " ".join(str(error).split())
    if "not recognized" in said:
        advice = "known are GeoPackage, GeoJSON, FlatGeobuf, GeoParquet, Shapefile and File Geodatabase (zipped), CSV"
        return LandscapeError(f"{file.name}: empty, damaged or of a format that cannot be read as polygons; {advice}")
    if "SHAPE_RESTORE_SHX" in said:
        return LandscapeError(f"{file.name}: a Shapefile without its .shx; put the .shp, .shx, .dbf and .prj in a zip")
    if "Missing geo metadata" in said:
        return LandscapeError(f"{file.name}: Parquet without geometry; write it as GeoParquet")
    return LandscapeError(f"{file.name}: cannot be read as polygons ({error})")


def _choose(file: Path, layers: list[_Layer], wanted: str | None) -> _Layer:
    """The layer named, else the only one, else the only one with polygons."""
    listed = ", ".join(f"{layer.called} ({layer.kind})" for layer in layers) or "none"
    if wanted is not None:
        chosen = [layer for layer in layers if layer.called == wanted]
        if not chosen:
            raise LandscapeError(f"{file.name} has no layer {wanted!r} with geometry; it has {listed}")
    else:
        polygonal = [layer for layer in layers if re.search("Polygon|Surface|Unknown|Collection", layer.kind)]
        chosen = layers if len(layers) == 1 else polygonal
    if len(chosen) == 1:
        return chosen[0]
    if not layers:
        raise LandscapeError(
            f"{file.name} has no geometry: join it to its polygons in a GIS, or give a table its polygons as "
            "well-known text in a column WKT"
        )
    if not chosen:
        raise LandscapeError(f"{file.name} has no layer with polygons; its layers with geometry: {listed}")
    names = ", ".join(layer.called for layer in chosen)
    raise LandscapeError(
        f"{file.name} has {len(chosen)} layers with polygons ({names}); name one in the recipe: `layer`"
    )


def _read(layer: _Layer) -> gpd.GeoDataFrame | pd.DataFrame:
    if layer.name is not None:
        return pyogrio.read_dataframe(layer.dataset, layer=layer.name, on_invalid="ignore")
    return gpd.read_parquet(read_member(layer.dataset) if layer.dataset.startswith("/vsizip/") else layer.dataset)


def _curved(layer: _Layer, rows: int) -> np.ndarray:
    """(n,) bool: rows whose geometry has arcs, which reading turned into straight edges."""
    if layer.name is None or layer.dataset.lower().endswith(_STRAIGHT_ONLY):
        return np.zeros(rows, dtype=bool)
    query = f"SELECT OGR_GEOMETRY AS kind FROM {_sql_name(layer.name)}"
    kinds = pyogrio.read_dataframe(layer.dataset, sql=query, sql_dialect="OGRSQL", read_geometry=False)["kind"]
    curved = kinds.astype(str).str.contains("CURVE|SURFACE|CIRCULAR").to_numpy(dtype=bool)
    return curved if len(curved) == rows else np.zeros(rows, dtype=bool)


def _sql_name(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _one_geometry(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Geometry in the column ``geometry``, text columns otherwise, rows numbered from 0."""
    frame = frame.loc[:, ~frame.columns.duplicated()].reset_index(drop=True)
    active = frame.active_geometry_name
    if active != "geometry":
        if "geometry" in frame.columns:
            frame = frame.rename(columns={"geometry": unused("geometry_original", frame.columns)})
        frame = frame.rename_geometry("geometry")
    for column in frame.columns[frame.dtypes == "geometry"].drop("geometry"):
        frame[column] = frame[column].to_wkt()  # a file holds one geometry column
    return frame


def unused(name: str, taken: Iterable[object]) -> str:
    """``name``, or ``name_2``, ``name_3``, ... where it is taken, whatever the case."""
    folded = {str(t).casefold() for t in taken}
    candidates = (name if k == 1 else f"{name}_{k}" for k in range(1, len(folded) + 2))
    return next(c for c in candidates if c.casefold() not in folded)
