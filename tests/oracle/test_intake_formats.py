"""Every format that intake promises, the names that formats force on columns, and places where maps are cut."""

from __future__ import annotations

import zipfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyogrio
import pytest
import shapely

from oracle.errors import LandscapeError
from oracle.intake import read_landscape
from oracle.recipe import Recipe


def squares(n: int = 3, side: float = 800.0) -> gpd.GeoDataFrame:
    """``n`` squares in a row, with the contract's columns."""
    boxes = [shapely.box(500_000 + side * k, 5_700_000, 500_000 + side * (k + 1), 5_700_000 + side) for k in range(n)]
    columns = {
        "id": [f"p{k}" for k in range(n)],
        "wheat_yield": np.linspace(3.0, 4.0, n),
        "ecological_connectivity": np.linspace(0.2, 0.6, n),
    }
    return gpd.GeoDataFrame(columns, geometry=boxes, crs=32613)


def zipped(archive: Path, members: dict[str, Path]) -> Path:
    with zipfile.ZipFile(archive, "w") as content:
        for name, path in members.items():
            inner = [p for p in sorted(path.rglob("*")) if p.is_file()] if path.is_dir() else [path]
            for file in inner:
                content.write(file, f"{name}/{file.relative_to(path)}" if path.is_dir() else name)
    return archive


def shapefile(folder: Path, name: str, frame: gpd.GeoDataFrame) -> dict[str, Path]:
    with pytest.warns(UserWarning, match="truncated"):
        frame.to_file(folder / f"{name}.shp")
    return {p.name: p for p in folder.glob(f"{name}.*")}


def sound(file: Path, recipe: Recipe | None = None) -> None:
    landscape, report = read_landscape(file, recipe)
    assert landscape.ids.tolist() == ["p0", "p1", "p2"]
    assert landscape.yields[:, 0].tolist() == [3.0, 3.5, 4.0]
    assert landscape.connectivity.tolist() == [0.2, 0.4, 0.6]
    assert landscape.areas_ha == pytest.approx(np.full(3, 64.0), rel=2e-3)
    assert report.crs == "EPSG:32613"


@pytest.mark.filterwarnings("ignore:Normalized")
def test_shapefiles_keep_their_ten_letters_and_are_found_in_any_folder_of_a_zip(tmp_path: Path) -> None:
    parts = shapefile(tmp_path, "fields", squares())
    sound(tmp_path / "fields.shp")  # wheat_yiel, ecological
    sound(zipped(tmp_path / "flat.zip", parts))
    nested = {f"2024/export/{name}": path for name, path in parts.items()}
    # A Mac adds a folder of its own with files of the same names.
    sound(zipped(tmp_path / "nested.zip", nested | {"__MACOSX/2024/export/._fields.shp": parts["fields.shp"]}))
    sound(zipped(tmp_path / "outer.zip", {"a/b/nested.zip": tmp_path / "nested.zip"}))


def test_file_geodatabases_are_read_from_a_folder_of_a_zip(tmp_path: Path) -> None:
    frame = squares()
    pyogrio.write_dataframe(frame, tmp_path / "farm.gdb", layer="fields", driver="OpenFileGDB")
    sound(tmp_path / "farm.gdb")
    sound(zipped(tmp_path / "farm.gdb.zip", {"farm.gdb": tmp_path / "farm.gdb"}))
    sound(zipped(tmp_path / "delivery.zip", {"delivery/v2/farm.gdb": tmp_path / "farm.gdb"}))


def test_the_only_layer_with_polygons_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "farm.gpkg"
    wells = squares().set_geometry(squares().centroid)
    wells.to_file(file, layer="wells")
    with pytest.raises(LandscapeError, match=r"3 row\(s\) are no polygons: p0 \(Point\)"):
        read_landscape(file)
    squares().to_file(file, layer="fields")
    sound(file)
    wells.to_file(file, layer="gates")
    sound(file)
    with pytest.raises(LandscapeError, match=r"no layer 'field' .* it has wells \(Point\), fields \(Polygon\)"):
        read_landscape(file, Recipe(layer="field"))


@pytest.mark.filterwarnings("ignore:Normalized")
def test_a_zip_with_two_datasets_needs_the_layer_s_name(tmp_path: Path) -> None:
    parts = shapefile(tmp_path, "fields", squares()) | shapefile(tmp_path, "old", squares(2))
    archive = zipped(tmp_path / "both.zip", parts)
    with pytest.raises(LandscapeError, match=r"2 layers with polygons \(fields, old\); name one in the recipe"):
        read_landscape(archive)
    sound(archive, Recipe(layer="fields"))
    note = tmp_path / "note.txt"
    note.write_text("no map")
    with pytest.raises(LandscapeError, match=r"no dataset of polygons in it, only readme\.txt"):
        read_landscape(zipped(tmp_path / "note.zip", {"readme.txt": note}))


def test_geoparquet_may_call_its_geometry_anything(tmp_path: Path) -> None:
    frame = squares().rename_geometry("GEOM")
    frame["centre"] = frame.centroid
    frame["geometry"] = "from the survey"
    frame.to_parquet(tmp_path / "fields.parquet", schema_version="1.1.0", write_covering_bbox=True)
    sound(tmp_path / "fields.parquet")
    sound(zipped(tmp_path / "fields.zip", {"out/fields.parquet": tmp_path / "fields.parquet"}))
    landscape, _ = read_landscape(tmp_path / "fields.parquet")
    assert landscape.polygons["geometry_original"].tolist() == ["from the survey"] * 3
    assert landscape.polygons["centre"].iloc[0] == "POINT (500400 5700400)"
    landscape.polygons.to_file(tmp_path / "again.gpkg")
    sound(tmp_path / "again.gpkg")


@pytest.mark.parametrize("code", ["crop:code", "crop_code"])  # fiboa from 0.2 on, and as a GeoPackage of it spells it
@pytest.mark.parametrize("when", ["determination_datetime", "determination:datetime"])  # 0.2 and 0.3
def test_fiboa_names_mean_the_same_in_every_version(tmp_path: Path, code: str, when: str) -> None:
    frame = squares()
    frame[code] = ["146", "146", "110"]
    frame[when] = "2024-06-01"
    frame.to_parquet(tmp_path / "fiboa.parquet")
    recipe = Recipe.model_validate({"current_land_use": "crop:code", "land_uses": {146: "wheat", 110: "habitat"}})
    sound(tmp_path / "fiboa.parquet", recipe)
    landscape, _ = read_landscape(tmp_path / "fiboa.parquet", recipe)
    assert landscape.current is not None
    assert landscape.current.tolist() == ["wheat", "wheat", "habitat"]
    assert {code, when} <= set(landscape.polygons.columns)


def test_arcs_become_straight_edges_and_that_is_said(tmp_path: Path) -> None:
    """A centre pivot of 400 m radius, drawn as one circle, beside a square."""
    circle = "CURVEPOLYGON(CIRCULARSTRING(500400 5700400, 501200 5700400, 500400 5700400))"
    square = "POLYGON((501200 5700000, 502000 5700000, 502000 5700800, 501200 5700800, 501200 5700000))"
    rows = [f'pivot,3.1,0.4,"{circle}"', f'square,3.2,0.5,"{square}"']
    file = tmp_path / "pivot.csv"
    file.write_text("\n".join(["id,wheat_yield,ecological_connectivity,WKT", *rows]))
    landscape, report = read_landscape(file, Recipe(crs="EPSG:32613"))
    assert landscape.areas_ha == pytest.approx([np.pi * 16, 64.0], rel=2e-3)
    assert [(r.what, r.ids) for r in report.repairs] == [("arcs replaced by straight edges", ("pivot",))]


def test_own_columns_that_a_geopackage_cannot_tell_apart_travel_under_another_name(tmp_path: Path) -> None:
    frame = squares().rename(columns={"id": "ID"})
    frame["fid"] = [7, 7, 8]
    frame["id_original"] = "older"
    frame.to_parquet(tmp_path / "case.parquet")
    landscape, _ = read_landscape(tmp_path / "case.parquet")
    assert landscape.polygons["ID_original_2"].tolist() == ["p0", "p1", "p2"]
    assert landscape.polygons["fid_original"].tolist() == [7, 7, 8]
    landscape.polygons.to_file(tmp_path / "case.gpkg")
    sound(tmp_path / "case.gpkg")


def placed(folder: Path, polygons: list[shapely.Geometry], crs: int) -> Path:
    frame = squares(len(polygons)).set_geometry(polygons, crs=crs)
    frame.to_parquet(folder / "placed.parquet")
    return folder / "placed.parquet"


def test_a_landscape_across_utm_zones_is_measured_on_the_ground(tmp_path: Path) -> None:
    """Cells of 0.01 degrees on both sides of 108 W, where zones 12 and 13 meet: all of one row are equal."""
    cells = [shapely.box(-108.03 + 0.01 * k, 52.0, -108.02 + 0.01 * k, 52.01) for k in range(6)]
    landscape, report = read_landscape(placed(tmp_path, cells, 4326))
    # on the ellipsoid at 52.005 N: 111.2774 km a degree of latitude, 68.6683 km a degree of longitude
    assert landscape.areas_ha == pytest.approx(np.full(6, 1.112774 * 0.686683 * 100), rel=1e-4)
    assert np.ptp(landscape.areas_ha) < 1e-6
    assert report.warnings == ()


def test_a_landscape_at_180_degrees_is_measured_on_the_ground(tmp_path: Path) -> None:
    """The same row of cells at 0 and at 180 degrees, one of them a multipart with a part on either side."""
    west = [shapely.box(179.97 + 0.01 * k, 65.0, 179.98 + 0.01 * k, 65.01) for k in range(2)]
    both = shapely.MultiPolygon([shapely.box(179.99, 65.0, 180, 65.01), shapely.box(-180, 65.0, -179.99, 65.01)])
    east = [shapely.box(-179.99, 65.0, -179.98, 65.01)]
    landscape, report = read_landscape(placed(tmp_path, [*west, both, *east], 4326))
    (tmp_path / "zero").mkdir()
    here, _ = read_landscape(placed(tmp_path / "zero", [shapely.box(0, 65.0, 0.01, 65.01)], 4326))
    assert landscape.areas_ha == pytest.approx(here.areas_ha * [1, 1, 2, 1], rel=1e-9)
    assert report.warnings == ()

    # A ring of UTM zone 1 that crosses the line, with a hole that does too
    across = shapely.box(358_000, 7_210_000, 359_600, 7_211_600).difference(
        shapely.box(358_400, 7_210_400, 359_200, 7_211_200)
    )
    (west_end, _, east_end, _) = gpd.GeoSeries([across], crs=32601).to_crs(4326).total_bounds
    assert (round(west_end), round(east_end)) == (-180, 180)
    landscape, _ = read_landscape(placed(tmp_path, [across], 32601))
    assert landscape.areas_ha == pytest.approx([256.0 - 64.0], rel=2e-3)
