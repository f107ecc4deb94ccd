"""Intake: what a file must be, what is mended, and that nothing is mended in silence."""

import json
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from oracle.errors import LandscapeError
from oracle.intake import inspect_file, read_landscape
from oracle.landscape import HABITAT
from oracle.recipe import Recipe

from .intake_cases import farm, refusal
from .polygons import CASES

FRENCH = Recipe.model_validate(
    {
        "id": "ID_PARCELLE",
        "yields": {"wheat": "RENDEMENT BLE\u0301 (t/ha)", "oat": "avoine", "corn": "mais", "soy": "soja"},
        "connectivity": "connectivite ecologique",
    }
)


def test_a_sound_file_needs_no_recipe() -> None:
    landscape, report = read_landscape(CASES / "road_allowance.geojson")
    assert landscape.name == "road_allowance"
    assert landscape.crops == ("wheat", "oat", "corn", "soy")
    assert (report.rows, report.polygons, report.crs, report.crs_from) == (16, 16, "EPSG:32613", "file")
    assert report.repairs == report.dropped == report.warnings == ()
    assert report.area_ha == pytest.approx(landscape.areas_ha.sum(), abs=1e-3)
    json.dumps(report.to_dict())


def test_columns_are_found_whatever_their_case_and_accents() -> None:
    landscape, report = read_landscape(CASES / "columns_french.geojson", FRENCH)
    assert landscape.crops == ("wheat", "oat", "corn", "soy")
    assert landscape.yields[0].tolist() == [3.1, 3.3, 5.5, 1.7]
    assert report.columns["soy_yield"] == "soja "
    assert "soja " in landscape.polygons  # original columns travel along


def test_french_names_and_bare_crop_names_are_understood_without_a_recipe() -> None:
    landscape, report = read_landscape(CASES / "columns_french.geojson")
    assert report.columns == {
        "id": "ID_PARCELLE",
        "wheat_yield": "Rendement blé (t/ha)",
        "oat_yield": "AVOINE",
        "corn_yield": "maïs",
        "soy_yield": "soja ",
        "ecological_connectivity": "Connectivité écologique",
    }
    assert landscape.yields[0].tolist() == [3.1, 3.3, 5.5, 1.7]
    assert landscape.connectivity.tolist() == [0.4] * 4
    assert set(report.columns.values()) <= set(landscape.polygons.columns)
    # what was guessed from a crop's name alone is said
    assert [r.what.split("'")[1] for r in report.warnings] == ["AVOINE", "maïs", "soja "]


def test_missing_columns_are_all_named_at_once_with_what_looks_alike(tmp_path: Path) -> None:
    frame = gpd.read_file(CASES / "columns_french.geojson")
    frame = frame.rename(columns={"ID_PARCELLE": "numero", "Connectivité écologique": "connectivité 2021"})
    frame = frame.drop(columns=["AVOINE", "maïs", "soja "]).rename(columns={"Rendement blé (t/ha)": "blé 2021"})
    frame.to_parquet(tmp_path / "farm.parquet")
    with pytest.raises(LandscapeError) as caught:
        read_landscape(tmp_path / "farm.parquet")
    said = str(caught.value)
    assert "id: no column 'id' and none that looks like it" in said
    assert "no <crop>_yield column; 'blé 2021' may be meant" in said
    assert "no column 'ecological_connectivity'; 'connectivité 2021' looks like it" in said
    assert "its columns are 'numero', 'blé 2021', 'connectivité 2021'" in said


def test_a_column_that_could_be_two_is_refused(tmp_path: Path) -> None:
    squares = farm(tmp_path)
    frame = gpd.read_file(squares).rename(columns={"ecological_connectivity": "Ecological Connectivity"})
    frame["ECOLOGICAL-CONNECTIVITY"] = 0.1
    frame.to_parquet(tmp_path / "two.parquet")
    with pytest.raises(LandscapeError, match="could be any of 'Ecological Connectivity', 'ECOLOGICAL-CONNECTIVITY'"):
        read_landscape(tmp_path / "two.parquet")


def test_kilograms_and_bushels_become_tonnes_and_the_file_s_numbers_stay(tmp_path: Path) -> None:
    recipe = Recipe.model_validate({"yields": {"wheat": "wheat_yield"}, "yield_unit": "kg/ha"})
    landscape, report = read_landscape(farm(tmp_path, wheat_yield=[3000.0, 4000.0, 0.0]), recipe)
    assert landscape.yields[:, 0].tolist() == [3.0, 4.0, 0.0]
    assert landscape.polygons["wheat_yield_original"].tolist() == [3000.0, 4000.0, 0.0]
    assert report.units == {"wheat": "kg/ha"}

    yields = {c: f"{c}_yield" for c in ("wheat", "oat", "corn", "soy")}
    bushels = Recipe.model_validate({"yields": yields, "yield_unit": "bu/ac"})
    landscape, _ = read_landscape(CASES / "units_bu_per_ac.geojson", bushels)
    assert landscape.yields[0] == pytest.approx([3.09, 3.28, 5.52, 1.68], abs=0.005)


def test_yields_that_no_field_has_are_refused_with_the_likely_unit(tmp_path: Path) -> None:
    said = refusal("units_bu_per_ac.geojson")
    assert "set `yield_unit` to bu/ac" in said
    for t_ha in ("3.09", "3.28", "5.52", "1.68"):  # every crop in one go, with what its yields would be
        assert f"they would be {t_ha} t/ha" in said
    with pytest.raises(LandscapeError, match=r"set `yield_unit` to kg/ha \(they would be 3 to 5 t/ha\)"):
        read_landscape(farm(tmp_path, wheat_yield=[3000.0, 4000.0, 5000.0]))
    kilos = Recipe.model_validate({"yields": {"wheat": "wheat_yield"}, "yield_unit": "kg/ha"})
    with pytest.raises(LandscapeError, match=r"below 0\.02 t/ha.* set `yield_unit` to t/ha"):
        read_landscape(farm(tmp_path), kilos)


def test_values_out_of_range_are_named_never_clipped() -> None:
    said = refusal("connectivity_out_of_range.geojson")
    assert "4 of 4 rows are not: 1 empty (Q11), 1 below 0 (Q00: -0.05), 2 above 1 (Q01: 1.2247, Q10: 87.0)" in said
    assert "`connectivity: rescale` or `rescale_connectivity: true` maps -0.05..87 to 0..1" in said
    assert "wheat_yield: a wheat yield is a number in t/ha, 0 or more; 1 of 4 rows are not: 1 negative" in refusal(
        "yields_negative.geojson"
    )


def test_every_kind_of_bad_value_is_counted_and_named(tmp_path: Path) -> None:
    frame = gpd.read_file(farm(tmp_path))
    frame["wheat_yield"] = [np.inf, np.nan, -2.0]
    frame["ecological_connectivity"] = [np.nan, -np.inf, 1.5]
    frame.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(LandscapeError) as caught:
        read_landscape(tmp_path / "bad.parquet")
    said = str(caught.value)
    assert "3 of 3 rows are not: 1 empty (b), 1 infinite (a: inf), 1 negative (c: -2.0)" in said
    assert "3 of 3 rows are not: 1 empty (a), 1 infinite (b: -inf), 1 above 1 (c: 1.5)" in said


def test_connectivity_is_rescaled_when_the_recipe_asks(tmp_path: Path) -> None:
    file = farm(tmp_path, ecological_connectivity=[-0.05, 1.2247, 87.0])
    landscape, report = read_landscape(file, Recipe.model_validate({"connectivity": "rescale"}))
    assert landscape.connectivity == pytest.approx([0.0, (1.2247 + 0.05) / 87.05, 1.0])
    assert [r.what for r in report.repairs] == ["connectivity rescaled from -0.05..87 to 0..1"]
    assert landscape.polygons["ecological_connectivity_original"].tolist() == [-0.05, 1.2247, 87.0]

    with pytest.raises(LandscapeError, match="every value is 3, so there is no range"):
        read_landscape(farm(tmp_path, ecological_connectivity=[3, 3, 3]), Recipe(rescale_connectivity=True))
    # An empty value is not invented.
    said = refusal("connectivity_out_of_range.geojson", Recipe(rescale_connectivity=True))
    assert "1 of 4 rows are not: 1 empty (Q11)" in said


def test_connectivity_in_percent_is_divided_by_100_when_the_recipe_asks(tmp_path: Path) -> None:
    file = farm(tmp_path, ecological_connectivity=[40.0, 50.0, 60.0])
    with pytest.raises(LandscapeError, match=r"`connectivity_unit: percent` divides by 100; `connectivity: rescale`"):
        read_landscape(file)
    landscape, report = read_landscape(file, Recipe.model_validate({"connectivity_unit": "percent"}))
    assert landscape.connectivity.tolist() == [0.4, 0.5, 0.6]
    assert [r.what for r in report.repairs] == ["connectivity in percent divided by 100"]
    assert landscape.polygons["ecological_connectivity_original"].tolist() == [40.0, 50.0, 60.0]
    # what is no percentage gets no such advice, nor does a stray value above 1
    for values in ([40.0, 50.0, 160.0], [0.4, 0.5, 1.2], [-3.0, 0.5, 60.0]):
        with pytest.raises(LandscapeError) as caught:
            read_landscape(farm(tmp_path, ecological_connectivity=values))
        assert "percent" not in str(caught.value)


def test_one_wild_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(LandscapeError, match=r"1 of 3 are above 20 t/ha, which no field yields \(b\)"):
        read_landscape(farm(tmp_path, wheat_yield=[3.0, 46.0, 5.0]))


def test_a_landscape_without_any_yield_is_a_landscape() -> None:
    landscape, _ = read_landscape(CASES / "yields_all_zero.geojson")
    assert landscape.allowed.tolist() == [[False] * 4 + [True]] * 4


@pytest.mark.parametrize(
    ("policy", "ids", "wheat"), [("zero", ["a", "b", "c"], [3.0, 0.0, 5.0]), ("drop", ["a", "c"], [3.0, 5.0])]
)
def test_empty_yields_are_zeros_or_dropped_as_told(
    tmp_path: Path, policy: str, ids: list[str], wheat: list[float]
) -> None:
    file = farm(tmp_path, wheat_yield=[3.0, np.nan, 5.0])
    with pytest.raises(LandscapeError, match=r"wheat_yield: .* 1 of 3 rows are not: 1 empty \(b\)"):
        read_landscape(file)
    landscape, report = read_landscape(file, Recipe.model_validate({"missing_yield": policy}))
    assert landscape.ids.tolist() == ids
    assert landscape.yields[:, 0].tolist() == wheat
    told = report.repairs if policy == "zero" else report.dropped
    assert [remark.ids for remark in told] == [("b",)]


def test_words_among_numbers_are_named(tmp_path: Path) -> None:
    with pytest.raises(LandscapeError, match=r"1 no number \(b: '4,0'\); decimals take a point"):
        read_landscape(farm(tmp_path, wheat_yield=["3.0", "4,0", "5.0"]))
    with pytest.raises(LandscapeError, match=r"1 no number \(b: 'four'\)$"):
        read_landscape(farm(tmp_path, wheat_yield=["3.0", "four", "5.0"]))


def test_unusable_ids_are_all_named_and_rows_can_be_numbered_instead() -> None:
    said = refusal("ids_mixed.geojson")
    assert "1 row(s) have no id: rows 3" in said
    assert "ids must be unique; repeated: 1" in said
    landscape, report = read_landscape(CASES / "ids_mixed.geojson", Recipe(id="row"))
    assert landscape.ids.tolist() == ["0", "1", "2", "3", "4", "5"]
    assert "row numbers" in report.repairs[0].what
    assert landscape.polygons["id_original"].iloc[0] == "01"


def test_ids_are_made_unique_when_the_recipe_asks() -> None:
    landscape, report = read_landscape(CASES / "ids_mixed.geojson", Recipe(unique_ids=True))
    assert landscape.ids.tolist() == ["01", "1", "1-2", "row-3", "1-3", "1.0"]
    assert [(r.what, r.ids) for r in report.repairs] == [
        ("blanks around the id trimmed", ("1",)),
        ("empty id replaced by the row's number", ("row-3",)),
        ("repeated id numbered", ("1", "1-2", "1-3")),
    ]
    assert ("01", "1", "1.0") in [r.ids for r in report.warnings]


def test_numbered_ids_never_meet_one_that_is_there(tmp_path: Path) -> None:
    landscape, _ = read_landscape(farm(tmp_path, id=["a", "a-2", "a"]), Recipe(unique_ids=True))
    assert landscape.ids.tolist() == ["a", "a-2", "a-3"]


def test_whole_numbers_are_ids_without_decimals(tmp_path: Path) -> None:
    landscape, _ = read_landscape(farm(tmp_path, id=[7.0, 8.0, 9.0]))
    assert landscape.ids.tolist() == ["7", "8", "9"]
    landscape, report = read_landscape(farm(tmp_path, id=["07", " 8", "9"]))
    assert landscape.ids.tolist() == ["07", "8", "9"]
    assert [(r.what, r.ids) for r in report.repairs] == [("blanks around the id trimmed", ("8",))]


def test_land_uses_are_translated_and_unknown_ones_named(tmp_path: Path) -> None:
    file = farm(tmp_path, code=[146, 110, 34], keep=[None, None, "habitat"])
    settings = {"current_land_use": "code", "locked_land_use": "keep", "land_uses": {146: "wheat", 110: HABITAT}}
    with pytest.raises(LandscapeError, match=r"current_land_use must be one of habitat, other, wheat.*\(c; found 34\)"):
        read_landscape(file, Recipe.model_validate(settings))
    settings["land_uses"] = {146: "wheat", 110: HABITAT, 34: "other"}
    landscape, _ = read_landscape(file, Recipe.model_validate(settings))
    assert landscape.current is not None
    assert landscape.current.tolist() == ["wheat", "habitat", "other"]
    assert landscape.allowed.tolist() == [[True, True], [True, True], [False, True]]


def test_blank_land_uses_are_empty_ones(tmp_path: Path) -> None:
    """CSV and GeoJSON write an empty cell as text without letters."""
    landscape, _ = read_landscape(farm(tmp_path, locked_land_use=["", " ", "habitat"]))
    assert landscape.allowed.tolist() == [[True, True], [True, True], [False, True]]
    file = farm(tmp_path, current_land_use=["wheat", "", "WHEAT "])
    with pytest.raises(LandscapeError, match=r"2 polygon\(s\) are not \(b, c; found nothing, WHEAT\); `land_uses` in"):
        read_landscape(file)
    landscape, _ = read_landscape(file, Recipe.model_validate({"land_uses": {"": "other", "WHEAT": "wheat"}}))
    assert landscape.current is not None
    assert landscape.current.tolist() == ["wheat", "other", "wheat"]


def test_layers_must_be_named_where_there_are_several(tmp_path: Path) -> None:
    file = farm(tmp_path)
    gpd.read_file(file).to_file(file, layer="copy")
    with pytest.raises(LandscapeError, match=r"2 layers with polygons \(farm, copy\)"):
        read_landscape(file)
    assert len(read_landscape(file, Recipe(layer="copy"))[0]) == 3
    with pytest.raises(LandscapeError, match="no layer 'other'"):
        read_landscape(file, Recipe(layer="other"))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LandscapeError, match="no such file"):
        read_landscape(tmp_path / "none.geojson")
    (tmp_path / "text.geojson").write_text("not json")
    with pytest.raises(LandscapeError, match=r"text\.geojson: empty, damaged or of a format .*; known are GeoPackage"):
        read_landscape(tmp_path / "text.geojson")
    (tmp_path / "table.csv").write_text("id,lon,lat\na,-105.0,51.4\n")
    with pytest.raises(LandscapeError, match=r"table\.csv has no geometry: .* as well-known text in a column WKT"):
        read_landscape(tmp_path / "table.csv")
    pd.DataFrame({"id": ["a"]}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(LandscapeError, match=r"table\.parquet: Parquet without geometry; write it as GeoParquet"):
        read_landscape(tmp_path / "table.parquet")
    gpd.read_file(farm(tmp_path))[["id", "geometry"]].to_file(tmp_path / "farm.shp")
    (tmp_path / "farm.shx").unlink()
    with pytest.raises(LandscapeError, match=r"farm\.shp: a Shapefile without its \.shx; put .* in a zip"):
        read_landscape(tmp_path / "farm.shp")


def test_a_table_with_polygons_as_text_is_a_landscape(tmp_path: Path) -> None:
    frame = gpd.read_file(farm(tmp_path)).to_crs(4326)
    table = pd.DataFrame(frame.drop(columns="geometry")).assign(WKT=frame.geometry.to_wkt())
    table.to_csv(tmp_path / "farm.csv", index=False)
    landscape, _ = read_landscape(tmp_path / "farm.csv", Recipe(crs="EPSG:4326"))
    assert landscape.yields[:, 0].tolist() == [3.0, 4.0, 5.0]
    assert landscape.areas_ha == pytest.approx(np.full(3, 64.0), rel=1e-3)
    (tmp_path / "empty.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    with pytest.raises(LandscapeError, match="no rows"):
        read_landscape(tmp_path / "empty.geojson")


def test_lists_in_a_column_become_text_that_every_format_holds(tmp_path: Path) -> None:
    frame = gpd.read_file(farm(tmp_path))
    frame["near"] = [[1, 2], [], [3]]
    frame.to_parquet(tmp_path / "lists.parquet")
    landscape, _ = read_landscape(tmp_path / "lists.parquet")
    assert landscape.polygons["near"].tolist() == ["[1, 2]", "[]", "[3]"]
    landscape.polygons.to_file(tmp_path / "again.gpkg")


def test_every_problem_is_found_in_one_pass(tmp_path: Path) -> None:
    """No CRS, ids, values, units, geometry, land use and a missing column, all in one file."""
    frame = gpd.read_file(farm(tmp_path, id=["a", "a", None], wheat_yield=[46.0, -1.0, None]))
    frame["corn_yield"] = "much"
    frame["current_land_use"] = ["wheat", "moon", "corn"]
    frame = frame.drop(columns="ecological_connectivity")
    shapes = [frame.geometry[0], shapely.Point(0, 0), None]
    frame.set_geometry(shapes, crs=None).set_crs(None, allow_override=True).to_parquet(tmp_path / "all.parquet")
    report = inspect_file(tmp_path / "all.parquet").report
    wanted = [
        "states no CRS",
        "no column 'ecological_connectivity'",
        "repeated: a (2 times)",
        "1 row(s) have no id: rows 2",
        "2 row(s) are no polygons: a (Point), row 2 (no geometry)",
        "set `yield_unit` to bu/ac",
        "1 no number (a: 'much')",
    ]
    assert [w for w in wanted if not any(w in problem for problem in report.problems)] == []
    assert (report.usable, report.rows, report.polygons, report.area_ha) == (False, 3, 1, None)
