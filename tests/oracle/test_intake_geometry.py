"""Intake of polygons: what is mended, left out or refused, and that all of it is told."""

from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely

from oracle.errors import LandscapeError
from oracle.intake import read_landscape
from oracle.recipe import Recipe

from .intake_cases import farm, refusal
from .polygons import CASES


def test_invalid_polygons_are_rebuilt_and_the_area_is_told() -> None:
    landscape, report = read_landscape(CASES / "bowtie_and_spike.geojson")
    (rebuilt,) = report.repairs
    assert (rebuilt.what, rebuilt.ids) == ("invalid polygon rebuilt", ("bow", "spike"))
    # two triangles of 16.19 ha on the map, whose ring encloses nothing; the grid is 0.06 % smaller than the ground
    assert rebuilt.details == ("bow: 0.0001 ha, +32.3928 ha", "spike: 64.7860 ha, +0.0000 ha")
    assert landscape.polygons.is_valid.all()
    assert set(landscape.polygons.geom_type) <= {"Polygon", "MultiPolygon"}


def test_rows_without_a_polygon_are_refused_or_left_out_by_name() -> None:
    said = refusal("mixed_geometries.geojson")
    assert "4 row(s) are no polygons: well (Point), fence (LineString), empty (empty), null (no geometry)" in said
    landscape, report = read_landscape(CASES / "mixed_geometries.geojson", Recipe(drop_unusable=True))
    assert landscape.ids.tolist() == ["poly", "multi1", "coll"]
    assert [(r.what, r.ids) for r in report.dropped] == [
        ("not a polygon: Point", ("well",)),
        ("not a polygon: LineString", ("fence",)),
        ("not a polygon: empty", ("empty",)),
        ("not a polygon: no geometry", ("null",)),
    ]
    assert [r.ids for r in report.repairs] == [("coll",)]


def test_heights_are_dropped_and_told() -> None:
    landscape, report = read_landscape(CASES / "z_coordinates.geojson")
    assert not landscape.polygons.has_z.any()
    assert [(r.what, r.ids) for r in report.repairs] == [("heights (z) dropped", ("A", "B"))]


def test_overlaps_and_duplicates_are_told(tmp_path: Path) -> None:
    _, report = read_landscape(CASES / "overlap_30pct.geojson")
    assert [r.ids for r in report.warnings] == [("A", "B")]
    assert report.warnings[0].details == ("A and B: 19.4358 ha, 30.0% of the smaller",)
    assert report.area_ha == pytest.approx(129.50, rel=1e-3)
    assert report.double_ha == pytest.approx(129.50 - 110.07, rel=1e-3)

    assert "repeated: A (2 times)" in refusal("duplicates.geojson")
    _, report = read_landscape(CASES / "duplicates.geojson", Recipe(id="row"))
    (duplicates,) = report.warnings
    assert duplicates.ids == ("1", "3")  # A2 and B2, which starts at another vertex
    assert report.area_ha == pytest.approx(323.75, rel=1e-3)
    assert report.area_ha - report.double_ha == pytest.approx(194.25, rel=1e-3)


def test_coordinates_need_a_reference_system_that_fits(tmp_path: Path) -> None:
    said = refusal("no_crs_lonlat.gpkg")
    assert "states no CRS" in said
    assert "EPSG:4326" in said
    landscape, report = read_landscape(CASES / "no_crs_lonlat.gpkg", Recipe(crs="EPSG:4326"))
    assert landscape.areas_ha == pytest.approx(np.full(4, 64.75), rel=0.01)
    assert report.crs_from == "recipe"

    assert "cannot be degrees" in refusal("local_xy_as_crs84.geojson")
    file = farm(tmp_path)
    frame = gpd.read_file(file).to_crs(4326)
    exchanged = shapely.transform(frame.geometry.to_numpy(), lambda xy: xy[:, ::-1])
    frame.set_geometry(exchanged, crs=4326).to_file(file, driver="GPKG")
    with pytest.raises(LandscapeError, match="latitude and longitude are exchanged: x is the longitude"):
        read_landscape(file)
    with pytest.raises(LandscapeError, match="'EPSG:0' is not a CRS"):
        read_landscape(CASES / "no_crs_lonlat.gpkg", Recipe(crs="EPSG:0"))


def test_slivers_are_told() -> None:
    landscape, report = read_landscape(CASES / "sliver_between.geojson")
    assert len(landscape) == 3
    assert [(r.ids, r.details) for r in report.warnings] == [(("S",), ("S: 0.30 m wide, 0.0242 ha",))]


def test_degrees_under_a_projected_crs_are_refused(tmp_path: Path) -> None:
    degrees = [shapely.box(-106.5 + 0.01 * k, 52.0, -106.49 + 0.01 * k, 52.01) for k in range(3)]
    frame = gpd.read_file(farm(tmp_path)).set_geometry(degrees, crs=None).set_crs(32613, allow_override=True)
    frame.to_parquet(tmp_path / "degrees.parquet")
    with pytest.raises(LandscapeError, match="look like degrees, though its CRS is EPSG:32613"):
        read_landscape(tmp_path / "degrees.parquet")
    landscape, _ = read_landscape(tmp_path / "degrees.parquet", Recipe(crs="EPSG:4326"))
    assert landscape.areas_ha == pytest.approx(np.full(3, 76.3), rel=2e-3)


def test_polygons_beyond_the_earth_are_named(tmp_path: Path) -> None:
    frame = gpd.read_file(farm(tmp_path))
    far = [
        frame.geometry[0],
        shapely.box(5e8, 0, 5e8 + 800, 800),
        shapely.Polygon([(0, 0), (1, np.nan), (1, 1), (0, 0)]),
    ]
    frame.set_geometry(far, crs=32613).to_parquet(tmp_path / "far.parquet")
    with pytest.raises(
        LandscapeError, match=r"b \(outside the range of WGS 84 / UTM zone 13N\), c \(a coordinate that is"
    ):
        read_landscape(tmp_path / "far.parquet")
    landscape, report = read_landscape(tmp_path / "far.parquet", Recipe(drop_unusable=True))
    assert landscape.ids.tolist() == ["a"]
    assert sum(r.count for r in report.dropped) == 2


def test_invalid_rings_of_a_file_without_crs_are_still_told() -> None:
    recipe = Recipe(crs="nowhere")
    with pytest.raises(LandscapeError, match="crs 'nowhere' is not a CRS"):
        read_landscape(CASES / "bowtie_and_spike.geojson", recipe)
