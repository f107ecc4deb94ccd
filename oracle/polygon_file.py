"""A polygon file as a table with one geometry column and a CRS that its coordinates fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import pyarrow as pa
import pyogrio
import pyproj

from oracle.errors import ConfigurationError, LandscapeError
from oracle.recipe import Recipe


@dataclass(frozen=True, eq=False)
class PolygonFile:
    """Rows of a file as they are, its layer (None for Parquet), who states the CRS, and what the reader said."""

    frame: gpd.GeoDataFrame
    layer: str | None
    crs_from: str
    messages: tuple[str, ...]


def read_polygons(file: Path, recipe: Recipe) -> PolygonFile:
    """Read ``file`` with GDAL (GeoJSON, GeoPackage, Shapefile, also zipped, ...) or as GeoParquet.

    Raises
    ------
    LandscapeError
        Where the file, its layer, its rows or its CRS are missing, or the coordinates cannot be in that CRS.
    ConfigurationError
        Where the recipe's CRS is not one.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame, layer = _read(file, recipe.layer)
    if frame.empty:
        raise LandscapeError(f"{file.name}: it has no rows")
    frame, crs_from = _with_crs(file, frame, recipe)
    messages = dict.fromkeys(f"the reader said: {w.message}" for w in said)
    return PolygonFile(frame, layer, crs_from, tuple(messages))


def _read(file: Path, layer: str | None) -> tuple[gpd.GeoDataFrame, str | None]:
    if not file.is_file() and not file.is_dir():
        raise LandscapeError(f"{file}: no such file")
    try:
        if file.suffix.lower() in (".parquet", ".geoparquet"):
            frame = gpd.read_parquet(file)
        else:
            layer = _layer(file, layer)
            frame = pyogrio.read_dataframe(file, layer=layer, on_invalid="ignore")
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pa.ArrowInvalid, ValueError) as error:
        advice = "; a zip must hold the dataset at its top level" if file.suffix.lower() == ".zip" else ""
        raise LandscapeError(f"{file.name}: cannot be read as polygons ({error}){advice}") from error
    if not isinstance(frame, gpd.GeoDataFrame):
        raise LandscapeError(f"{file.name}: it has no geometry, only columns {', '.join(map(str, frame.columns))}")
    if frame.active_geometry_name != "geometry":
        frame = frame.rename_geometry("geometry")
    return frame.reset_index(drop=True), layer


def _layer(file: Path, layer: str | None) -> str:
    found = [str(name) for name, kind in pyogrio.list_layers(file) if kind is not None]
    if layer is not None and layer not in found:
        raise LandscapeError(f"{file.name} has no layer {layer!r} with geometry; it has {', '.join(found) or 'none'}")
    if layer is None and len(found) != 1:
        raise LandscapeError(
            f"{file.name} has {len(found)} layers with geometry ({', '.join(found)}); name one in the recipe: `layer`"
        )
    return layer or found[0]


def _with_crs(file: Path, frame: gpd.GeoDataFrame, recipe: Recipe) -> tuple[gpd.GeoDataFrame, str]:
    west, south, east, north = frame.total_bounds
    bounds = f"x {west:g} to {east:g}, y {south:g} to {north:g}"
    crs_from = "file"
    if recipe.crs is not None:
        try:
            crs = pyproj.CRS.from_user_input(recipe.crs)
        except pyproj.exceptions.CRSError as error:
            raise ConfigurationError(f"recipe of {file.name}: crs {recipe.crs!r} is not a CRS") from error
        if not (crs.is_geographic or crs.is_projected):
            raise ConfigurationError(f"recipe of {file.name}: crs {recipe.crs!r} is neither geographic nor projected")
        frame, crs_from = frame.set_crs(crs, allow_override=True), "recipe"
    if frame.crs is None:
        looks = "these look like degrees (EPSG:4326)" if max(abs(west), abs(east)) <= 180 and north <= 90 else ""
        raise LandscapeError(
            f"{file.name} states no CRS; coordinates run {bounds}{f'; {looks}' if looks else ''}. "
            "Name it in the recipe: `crs: EPSG:...`"
        )
    if frame.crs.is_geographic and (max(abs(south), abs(north)) > 90 or max(abs(west), abs(east)) > 360):
        raise LandscapeError(
            f"{file.name}: {bounds} cannot be degrees, though its CRS is {frame.crs.to_string()}; these look like "
            "local, planar coordinates. Name their projected CRS in the recipe: `crs: EPSG:...`"
        )
    return frame, crs_from
