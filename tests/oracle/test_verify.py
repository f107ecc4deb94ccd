"""A folder that was tampered with does not pass, wherever it was tampered with."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import pyarrow.parquet as pq
import pytest

from oracle.certificate import bound
from oracle.coefficients import coefficients
from oracle.errors import CertificateError
from oracle.glm_config import GLMConfig, HabitatShare
from oracle.landscape import load_landscape
from oracle.neighbours import NeighbourConfig, NeighbourGraph, neighbour_graph
from oracle.solution import load_solution, save_solution
from oracle.solve import solve
from oracle.verify import verify

from .conftest import FOUR_CROPS, build_grid_landscape


@pytest.fixture(scope="module")
def solved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("solved")
    landscape = build_grid_landscape(5, 6, seed=7, locked=[*[None] * 29, "habitat"])
    graph = neighbour_graph(landscape)
    config = GLMConfig(
        supply_floors=dict.fromkeys(FOUR_CROPS, 0.5),
        costs={"corn": 120.0, "habitat": 20.0},
        habitat_share=HabitatShare(min=0.1),
        gap=1e-4,
    )
    save_solution(folder, landscape, graph, solve(landscape, graph, config))
    return folder


@pytest.fixture
def folder(solved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(solved, tmp_path / "copy"))


def edit_json(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def edit_table(path: Path, change) -> None:
    metadata = pq.read_schema(path).metadata
    table = gpd.read_parquet(path)
    change(table)
    table.to_parquet(path, index=False)
    edited = pq.read_table(path)
    pq.write_table(edited.replace_schema_metadata(metadata | edited.schema.metadata), path)  # our own keys stay


def test_an_honest_folder_passes_and_says_what_was_proven(folder: Path):
    found = verify(folder)
    assert found.polygons == 30 == found.unique + found.tied + found.undecided
    assert 0 <= found.gap < 0.05
    assert "30 polygons, feasible" in str(found)


def all_to_habitat(certificate) -> None:
    """Another plan that supplies nothing."""
    certificate["search"]["other_plans"].append({f"r{i}c{j}": "habitat" for i in range(5) for j in range(6)})


def other_label(table) -> None:
    table.loc[0, "land_use"] = "habitat" if table.loc[0, "land_use"] != "habitat" else "wheat"


def narrower_regret(table) -> None:
    position = table.index[table["land_use"] != "habitat"][0]
    table.loc[position, "regret_habitat_low"] += 1e-6


def another_status(table) -> None:
    table.loc[0, "status"] = "tied" if table.loc[0, "status"] == "unique" else "unique"


def unlabelled(table) -> None:
    table.loc[3, "land_use"] = "lavender"


def richer(table) -> None:
    table.loc[0, "wheat_yield"] *= 1.01


def moved(table) -> None:
    table["geometry"] = table.geometry.translate(1.0, 0.0)


def renamed(table) -> None:
    table.loc[[0, 1], "id"] = table.loc[[1, 0], "id"].to_numpy()


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("labels.parquet", other_label, "floor|crop_value|connectivity"),
        ("labels.parquet", narrower_regret, "regret_habitat_low of r"),
        ("labels.parquet", another_status, "status of"),
        ("labels.parquet", unlabelled, "lavender|land_use of r0c3 is none of|KeyError"),
        ("labels.parquet", richer, "column 'wheat_yield' differs"),
        ("labels.parquet", renamed, "does not have the ids"),
        ("landscape.parquet", richer, "landscape in landscape.parquet is not the one solved"),
        ("landscape.parquet", moved, "landscape in landscape.parquet is not the one solved"),
    ],
)
def test_a_tampered_table_is_found_out(folder: Path, file: str, change, reason: str):
    edit_table(folder / file, change)
    with pytest.raises(CertificateError, match=reason):
        verify(folder)


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("certificate.json", lambda c: c["floor_multiplier"].__setitem__(0, -1.0), "wheat is not"),
        ("certificate.json", lambda c: c["floor_multiplier"].__setitem__(0, 1.0), "shadow_price|upper_bound"),
        ("certificate.json", lambda c: c["pair_share"].__setitem__(0, 2.0), "pairs 0 do not"),
        ("certificate.json", lambda c: c.pop("pair_share"), "malformed"),
        ("certificate.json", lambda c: c["search"]["other_plans"].append({"r9c9": "wheat"}), "an id or a class"),
        ("certificate.json", all_to_habitat, "another plan of the certificate is not feasible"),
        ("certificate.json", lambda c: c["search"].__setitem__("bound", 0.1), "regret_"),
        ("solution.json", lambda s: s.update(upper_bound=s["upper_bound"] - 1e-7), "upper_bound"),
        ("solution.json", lambda s: s["terms"].update(crop_value=0.9), "crop_value"),
        ("solution.json", lambda s: s["supply_t"].update(wheat=1e9), "supply_t"),
        ("solution.json", lambda s: s["shadow_price"].update(wheat=-5.0), "shadow_price"),
        ("solution.json", lambda s: s["config"].update(connectivity_weight=0.4), "config in solution.json"),
        ("solution.json", lambda s: s["config"].update(connectivity_weight=4), "connectivity_weight"),
        ("solution.json", lambda s: s["hashes"].update(graph="0" * 64), "graph in graph.parquet"),
    ],
)
def test_tampered_figures_are_found_out(folder: Path, file: str, change, reason: str):
    edit_json(folder / file, change)
    with pytest.raises(CertificateError, match=reason):
        verify(folder)


def test_a_bound_too_low_by_the_last_bit_is_refused(folder: Path):
    """What the certificate proves passes; the next float below it does not."""
    solution = load_solution(folder)
    landscape, graph = load_landscape(folder / "landscape.parquet"), NeighbourGraph.load(folder / "graph.parquet")
    proven = bound(coefficients(landscape, graph, solution.config), solution.certificate, margin=0.0)
    edit_json(folder / "solution.json", lambda s: s.update(upper_bound=proven))
    verify(folder)
    edit_json(folder / "solution.json", lambda s: s.update(upper_bound=math.nextafter(proven, 0.0)))
    with pytest.raises(
        CertificateError, match=r"upper_bound is stated as 0\.\d+, but the certificate proves no less than"
    ):
        verify(folder)


def test_a_regret_too_high_by_less_than_what_is_agreed_on_is_refused(folder: Path):
    """Every low may be off by 1e-9 to the recomputed one, but not above what is proven."""

    def raised(table) -> None:
        low = table["regret_habitat_low"]
        table.loc[low > 0, "regret_habitat_low"] = low[low > 0] + 1e-10

    edit_table(folder / "labels.parquet", raised)
    with pytest.raises(CertificateError, match=r"regret_habitat_low of r\dc\d is 0\.\d+, but only 0\.\d+ is proven"):
        verify(folder)


def edit_graph(folder: Path, change) -> None:
    """Change the neighbour graph's table and, as a careful forger would, its hash in the solution."""
    graph = NeighbourGraph.load(folder / "graph.parquet")
    forged = change(graph)
    forged.save(folder / "graph.parquet")
    edit_json(folder / "solution.json", lambda s: s["hashes"].update(graph=forged.sha256))


def longer(graph: NeighbourGraph) -> NeighbourGraph:
    return replace(graph, table=graph.table.assign(facing_m=graph.table["facing_m"] * 1.5))


def severed(graph: NeighbourGraph) -> NeighbourGraph:
    ends = graph.table[["source", "target"]].isin(["r0c0", "r0c1"]).all(axis=1)
    return replace(graph, table=graph.table[~ends])


def turned(graph: NeighbourGraph) -> NeighbourGraph:
    return replace(graph, table=graph.table.assign(code=graph.table["code"].replace({"N": "E"})))


def as_gaps(graph: NeighbourGraph) -> NeighbourGraph:
    return replace(graph, table=graph.table.assign(kind=graph.table["kind"].replace({"border": "gap"})))


def without_rule(graph: NeighbourGraph) -> NeighbourGraph:
    return replace(graph, config=None)


def other_rule(graph: NeighbourGraph) -> NeighbourGraph:
    return replace(graph, config=NeighbourConfig(min_facing_m=5_000, max_gap_m=900))


def test_a_tampered_graph_is_found_out_by_its_hash(folder: Path):
    longer(NeighbourGraph.load(folder / "graph.parquet")).save(folder / "graph.parquet")
    with pytest.raises(CertificateError, match=r"graph in graph\.parquet is not the one solved"):
        verify(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (longer, r"facing_m of r0c0 -> \S+ is 120\d\.\d+ in one and 80\d\.\d+ in the other"),
        (severed, r"r0c0 -> r0c1 is in one of them only \(2 such pairs\)"),
        (turned, r"code of \S+ -> \S+ is E in one and N in the other"),
        (as_gaps, r"kind of \S+ -> \S+ is gap in one and border in the other"),
        (other_rule, "is in one of them only"),
        (without_rule, "does not state the rule"),
    ],
)
def test_a_tampered_graph_is_found_out_although_its_hash_agrees(folder: Path, change, reason: str):
    edit_graph(folder, change)
    with pytest.raises(CertificateError, match=reason):
        verify(folder)


@pytest.mark.parametrize(
    "file", ["labels.parquet", "landscape.parquet", "graph.parquet", "solution.json", "certificate.json"]
)
def test_a_missing_or_broken_file_is_named(folder: Path, file: str):
    (folder / file).write_bytes(b"not what it was")
    with pytest.raises(CertificateError, match=file):
        verify(folder)
    (folder / file).unlink()
    with pytest.raises(CertificateError, match=file):
        verify(folder)


def test_checking_loads_no_solver():
    code = "import sys, oracle.verify; print(sorted({'pulp', 'highspy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
