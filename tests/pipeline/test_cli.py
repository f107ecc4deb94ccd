"""The command line: exit codes, JSON for machines, one sentence for people."""

from __future__ import annotations

import json
from pathlib import Path

import geopandas as gpd
import pytest
from typer.testing import CliRunner, Result

from oracle.connectivity import DISPERSAL_M
from pipeline.cli import app
from pipeline.terminal import show
from tests.pipeline.conftest import write_landscape


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run_json(*arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def farms(tmp_path: Path) -> Path:
    return write_landscape(tmp_path, "farms", 3, "train")


def test_from_a_file_to_prompts(farms: Path, tmp_path: Path) -> None:
    checked = run_json("landscape", "check", farms)
    assert checked["polygons"] == 144
    assert checked["crops"] == ["wheat", "oat", "corn", "soy"]

    graph = run_json("graph", farms, "--out", tmp_path / "graph.parquet")
    # 12 x 12 quarters: 2 * 12 * 11 that share an edge or face over a road, 2 * 11 * 11 diagonal ones
    assert sum(graph["first_order_pairs"].values()) == 2 * 12 * 11 + 2 * 11 * 11
    assert graph["first_order_pairs"]["corner"] == 2 * 11 * 11

    plan = tmp_path / "plan"
    solved = run_json("solve", farms, "--out", plan)
    assert sum(solved["polygons_per_class"].values()) == 144
    assert 0 <= solved["gap"] < 1e-2
    stated = json.loads((plan / "solution.json").read_text())
    assert solved["supply"]["wheat"] == {key: stated[key]["wheat"] for key in ("supply_t", "floor_t", "shadow_price")}
    for name in ("labels.parquet", "labels.gpkg", "solution.json", "certificate.json", "map.png"):
        assert (plan / name).stat().st_size > 0
    assert run_json("verify", plan)["objective"] == solved["objective"]

    built = run_json("prompts", plan, "--out", tmp_path / "dataset", "--order", 1, "--context", "none")
    assert sum(built["prompts_per_split"].values()) == 144


def test_what_a_planner_sees(farms: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    solved = run_json("solve", farms, "--out", plan)
    planned, now = solved["connectivity_of_plan"], solved["connectivity_now"]
    assert planned["habitat_ha"] >= planned["largest_component_ha"] >= planned["largest_patch_ha"] > 0
    assert planned["eca_ha"] <= planned["habitat_ha"]
    assert now["dispersal_m"] == planned["dispersal_m"] == DISPERSAL_M
    near = run_json("connectivity", plan, "--dispersal-m", 200)
    assert near["connectivity_of_plan"]["eca_ha"] < planned["eca_ha"]
    assert near["connectivity_of_plan"]["edge_m"] == planned["edge_m"]
    assert json.loads((plan / "connectivity.json").read_text()) == near
    again = run_json("solve", farms, "--out", tmp_path / "near", "--dispersal-m", 200)
    assert {key: again[key] for key in near} == near
    assert json.loads((tmp_path / "near" / "connectivity.json").read_text()) == near

    labels = gpd.read_parquet(plan / "labels.parquet")
    polygon = labels.loc[70, "id"]
    explained = run_json("explain", plan, polygon)
    assert explained["land_use"] == labels.loc[70, "land_use"]
    assert len(explained["alternatives"]) == 4
    screen = run("explain", plan, polygon).stdout
    assert len(screen.splitlines()) < 45
    assert explained["neighbours"][0]["id"] in screen
    unknown = run("explain", plan, polygon[:-1] + "X")
    assert unknown.exit_code == 1
    assert f"similar: {polygon}" in unknown.stderr

    options = ("--out", tmp_path / "curve", "--points", 3, "--set", "gap=0.01")
    curve = run_json("tradeoff", farms, *options)
    assert [p["connectivity_weight"] for p in curve["points"]] == [0, 0.475, 0.95]
    assert curve["points"][0]["crop_value_currency"] > curve["points"][2]["crop_value_currency"]
    assert (tmp_path / "curve" / "tradeoff.png").stat().st_size > 0
    assert "0.475" in run("tradeoff", farms, *options).stdout


def test_what_intake_mends_is_said_by_every_command_that_reads(tmp_path: Path) -> None:
    case = Path(__file__).parents[1] / "cases" / "geometry" / "z_coordinates.geojson"
    for words in (["solve"], ["tradeoff", "--points", "3"], ["graph"]):
        result = run(words[0], case, "--out", tmp_path / words[0], *words[1:])
        assert result.exit_code == 0, result.output
        assert "heights (z) dropped: 2 (A, B)" in result.stderr


def test_a_folder_that_cannot_take_the_plan_is_refused_before_the_work(
    farms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_work = "oracle.solve.solve", "oracle.tradeoff.solve"
    for name in no_work:
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("solved first"))
    file = tmp_path / "a file"
    file.touch()
    labels = tmp_path / "plan" / "labels.gpkg"  # an earlier plan, edited in a GIS
    labels.parent.mkdir()
    gpd.read_file(farms).to_file(labels)
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != "read-only")
    (tmp_path / "read-only").mkdir()
    for source, folder, said in (
        (farms, file, f"{file} is a file; name a folder"),
        (farms, file / "plan", f"{file} is a file; name a folder"),
        (farms, tmp_path / "read-only" / "plan", "cannot be written to"),
        (labels, labels.parent, f"would overwrite {labels}"),
    ):
        for command in ("solve", "tradeoff"):
            result = run(command, source, "--out", folder)
            assert result.exit_code == 1
            assert said in result.stderr
    assert len(gpd.read_file(labels)) == 144


def test_a_tampered_label_is_found(farms: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    assert run("solve", farms, "--out", plan).exit_code == 0
    labels = gpd.read_parquet(plan / "labels.parquet")
    labels.loc[0, "land_use"] = "habitat" if labels.loc[0, "land_use"] != "habitat" else "wheat"
    labels.to_parquet(plan / "labels.parquet", index=False)
    result = run("verify", plan)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")


def test_settings_change_the_plan_and_are_checked(farms: Path, tmp_path: Path) -> None:
    quick = ("--set", "proof_nodes=0")
    crops_only = run_json("solve", farms, "--out", tmp_path / "a", "--set", "connectivity_weight=0", *quick)
    nature = run_json("solve", farms, "--out", tmp_path / "b", "--set", "connectivity_weight=0.9", *quick)
    assert crops_only["polygons_per_class"].get("habitat", 0) < nature["polygons_per_class"]["habitat"]
    for change, said in {
        "connectivity_weight=1.5": "connectivity_weight: Input should be less than 1 (found 1.5)",
        "colour=red": "colour: unknown setting (found 'red'); known are connectivity_weight, adjacency_gain",
        "habitat_share.least=0.1": "habitat_share.least: unknown setting (found 0.1); known are min, max\n",
        "supply_floors.wheat=-1": "supply_floors.wheat: Input should be greater than or equal to 0 (found -1)",
        "costs.habitat=-2": "costs.habitat: Input should be greater than or equal to 0 (found -2)",
        "costs.lentil=3": "costs names lentil, which is no class of the landscape",
        "gap": "write key=value",
        "gap=[1": "'[1' is no value in YAML",
    }.items():
        result = run("solve", farms, "--out", tmp_path / "c", "--set", change)
        assert result.exit_code == 1
        assert said in result.stderr
    assert not (tmp_path / "c").exists()


def test_a_folder_in_brackets_is_named_as_it_is(farms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # short enough for a table's title
    curve = run("tradeoff", farms, "--out", "[old]", "--points", 3, "--set", "gap=0.01")
    assert "-> [old]" in curve.stdout
    made = run("landscape", "synth", "--townships", 1, 1, "--out", "[old]/a.gpkg")
    assert "144 polygons -> [old]/a.gpkg" in made.stdout


def test_an_impossible_floor_is_named(farms: Path, tmp_path: Path) -> None:
    result = run("solve", farms, "--out", tmp_path / "plan", "--set", "supply_floors.wheat=50")
    assert result.exit_code == 1
    assert "wheat: asked" in result.stderr
    assert not (tmp_path / "plan").exists()


def test_what_is_no_landscape_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.geojson"
    broken.write_text("[not a map]", encoding="utf-8")
    for file in (broken, tmp_path / "absent.gpkg"):
        result = run("landscape", "check", file)
        assert result.exit_code == 1
        assert file.name in result.stdout
        assert "Traceback" not in result.output


def test_a_refused_file_is_told_to_machines_too(tmp_path: Path) -> None:
    case = Path(__file__).parents[1] / "cases" / "geometry" / "units_bu_per_ac.geojson"
    result = run("landscape", "check", case, "--json")
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["usable"] is False
    assert [problem.split(":")[0] for problem in said["problems"]] == [
        "wheat_yield",
        "oat_yield",
        "corn_yield",
        "soy_yield",
    ]
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("yield_unit: bu/ac", encoding="utf-8")
    assert run_json("landscape", "check", case, "--recipe", recipe)["usable"] is True
    recipe.write_text("yield_unit: stone", encoding="utf-8")
    broken = run("landscape", "check", case, "--recipe", recipe, "--json")
    assert broken.exit_code == 1
    assert "recipe.yaml" in json.loads(broken.stdout)["problems"][0]


def test_wrong_usage_is_exit_code_2(farms: Path) -> None:
    assert run("solve", farms).exit_code == 2  # no --out
    assert run("fly").exit_code == 2
    assert run("train", "nowhere", "--out", "x", "--stage", "third").exit_code == 2


def test_every_command_explains_itself_with_an_example() -> None:
    commands = [
        "demo",
        "graph",
        "solve",
        "connectivity",
        "explain",
        "tradeoff",
        "verify",
        "prompts",
        "train",
        "evaluate",
        "compare",
    ]
    for words in [[c] for c in commands] + [["landscape", c] for c in ("synth", "check")]:
        result = run(*words, "--help")
        assert result.exit_code == 0
        assert f"landoracle {' '.join(words)}" in result.stdout
    assert "Shapefile" in run("solve", "--help").stdout, "an argument is explained too"


def test_names_from_files_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show({"polygon [x]": "see [/] and [red]"}, False, "farm [a]")
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("farm [a]", "[/] and [red]"))
