"""What a solve leaves behind can be read again, by this package and by a GIS."""

from __future__ import annotations

import json
import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from oracle.errors import CertificateError
from oracle.glm_config import GLMConfig
from oracle.landscape import Landscape
from oracle.neighbours import neighbour_graph
from oracle.solution import LABELS_GPKG, load_solution, save_solution
from oracle.solve import solve
from oracle.verify import verify

from .conftest import build_grid_landscape


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solution")
    yields = np.array([[3.0, 2.0], [0.0, 2.5], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [1.0, 2.0]])
    landscape = build_grid_landscape(2, 3, crops=("wheat", "canola"), yields=yields, seed=1, name="six-fields")
    graph = neighbour_graph(landscape)
    config = GLMConfig(prices={"wheat": 294.0, "canola": 600.0}, supply_floors={"wheat": 0.6})
    solution = solve(landscape, graph, config)
    save_solution(folder, landscape, graph, solution)
    return folder, landscape, solution


def test_a_solution_comes_back_as_it_was(saved):
    folder, _, solution = saved
    again = load_solution(folder)
    for name in ("classes", "terms", "upper_bound", "gap", "shadow_price", "hashes", "config", "versions"):
        assert getattr(again, name) == getattr(solution, name), name
    for name in ("ids", "land_use", "status", "choice", "regret_low", "regret_high", "supply_t", "floor_t"):
        np.testing.assert_array_equal(getattr(again, name), getattr(solution, name), err_msg=name)
    np.testing.assert_array_equal(again.certificate.pair_share, solution.certificate.pair_share)


def test_labels_keep_the_landscapes_columns_and_write_null_for_no_number(saved):
    folder, landscape, solution = saved
    table = gpd.read_parquet(folder / "labels.parquet")
    assert list(table.columns[:4]) == ["id", "ecological_connectivity", "wheat_yield", "canola_yield"]
    assert table.crs == landscape.polygons.crs
    assert table.loc[1, ["regret_wheat_low", "regret_wheat_high"]].isna().all()  # wheat cannot grow there
    chosen = [table.loc[i, f"regret_{u}_low"] for i, u in enumerate(table["land_use"])]
    assert chosen == [0.0] * 6
    assert np.isfinite(solution.regret_low[solution.regret_high < np.inf]).all()


@pytest.mark.parametrize("layer", ["labels", pytest.param(None, marks=pytest.mark.filterwarnings("ignore:More than"))])
def test_the_geopackage_has_the_same_labels(saved, layer):
    folder, _, solution = saved
    table = gpd.read_file(folder / LABELS_GPKG, layer=layer)
    assert table["land_use"].tolist() == solution.land_use.tolist()
    assert table["regret_habitat_high"].notna().sum() == np.isfinite(solution.regret_high[:, 2]).sum()


def test_solution_json_states_the_figures_with_their_gap(saved):
    folder, _, _ = saved
    stated = json.loads((folder / "solution.json").read_text())
    assert stated["objective"] == pytest.approx(stated["terms"]["crop_value"] + stated["terms"]["connectivity"])
    assert stated["gap"] == pytest.approx(1 - stated["objective"] / stated["upper_bound"])
    assert stated["supply_t"]["wheat"] >= stated["floor_t"]["wheat"] * (1 - 1e-6) > 0
    assert sum(stated["status"].values()) == stated["polygons"] == 6
    assert "optimal" not in json.dumps(stated).lower()


def test_everything_is_written_and_nothing_is_left_over(saved):
    folder, _, _ = saved
    assert sorted(p.name for p in folder.iterdir()) == [
        "certificate.json",
        "connectivity.json",
        "graph.parquet",
        "labels.gpkg",
        "labels.parquet",
        "landscape.parquet",
        "map.png",
        "solution.json",
    ]


def test_a_folder_without_solution_says_so(tmp_path: Path):
    (tmp_path / "farms.gpkg").touch()
    for no_plan in (tmp_path, tmp_path / "farms.gpkg"):
        with pytest.raises(CertificateError, match=r"solution\.json is missing: solve again, or name the folder"):
            load_solution(no_plan)


def test_the_geopackage_opens_in_the_class_colours(saved):
    """What QGIS looks up: a default style for the layer and its geometry column, a category per class."""
    folder, _, solution = saved
    with closing(sqlite3.connect(folder / LABELS_GPKG)) as db:
        rows = db.execute(
            "SELECT f_table_name, f_geometry_column, useAsDefault, styleQML FROM layer_styles "
            "JOIN gpkg_geometry_columns ON f_table_name = table_name AND f_geometry_column = column_name"
        ).fetchall()
        kinds = dict(db.execute("SELECT table_name, data_type FROM gpkg_contents"))
    assert kinds == {"labels": "features", "layer_styles": "attributes"}
    ((layer, _, default, qml),) = rows
    assert (layer, default) == ("labels", 1)
    renderer = ET.fromstring(qml).find("renderer-v2")
    assert renderer.attrib["type"] == "categorizedSymbol"
    assert renderer.attrib["attr"] == "land_use"
    colour = {s.attrib["name"]: s.find("layer/Option/Option[@name='color']").attrib["value"] for s in renderer[1]}
    shown = {c.attrib["value"]: colour[c.attrib["symbol"]] for c in renderer[0]}
    assert shown["wheat"] == "230,159,0,255"  # #e69f00
    assert shown["habitat"] == "0,102,0,255"
    assert set(shown) == set(solution.classes)


def test_labels_carry_fiboas_crop_columns(saved):
    folder, _, solution = saved
    table = gpd.read_parquet(folder / "labels.parquet").set_index("land_use")
    assert table["crop:name"].tolist() == solution.land_use.tolist()
    known = {"wheat": "3301010102", "habitat": "3306000000"}
    for use, row in table.iterrows():
        if use in known:
            assert row["crop:code"] == known[use]
            assert row["crop:code_list"].endswith("HCAT3.csv")
        else:  # canola: no code is known here
            assert pd.isna(row["crop:code"])
            assert pd.isna(row["crop:code_list"])
    assert set(table.index) >= {"wheat", "canola"}


def test_columns_of_the_file_survive_beside_labels_of_the_same_name(tmp_path: Path):
    """``status`` is a common name in farm files, and ``labels.gpkg`` of an earlier plan is one too."""
    landscape = build_grid_landscape(2, 2, seed=3)
    own = {
        "Status": ["leased", "owned", "owned", "leased"],
        "land_use": ["a", "b", "c", "d"],
        "land_use_original": [1, 2, 3, 4],
        "regret_wheat_low": [0.1, 0.2, 0.3, 0.4],
        "crop:name": ["x", "y", "z", "x"],
    }
    landscape = Landscape("own", landscape.polygons.assign(**own), landscape.crops)
    graph = neighbour_graph(landscape)
    solution = solve(landscape, graph)
    save_solution(tmp_path, landscape, graph, solution)

    table = gpd.read_parquet(tmp_path / "labels.parquet")
    assert table["land_use"].tolist() == table["crop:name"].tolist() == solution.land_use.tolist()
    kept = {
        "Status": "Status_original",
        "land_use": "land_use_original_2",
        "land_use_original": "land_use_original",
        "regret_wheat_low": "regret_wheat_low_original",
        "crop:name": "crop:name_original",
    }
    for column, name in kept.items():
        assert table[name].tolist() == own[column]
    in_gis = gpd.read_file(tmp_path / LABELS_GPKG, layer="labels")
    assert in_gis["Status_original"].tolist() == own["Status"]
    assert in_gis["status"].tolist() == solution.status.tolist()
    verify(tmp_path)
