"""The bound holds whoever chose the multipliers, and a folder that was tampered with does not pass."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.certificate import Certificate, balanced, bound, regret_lows, values
from oracle.coefficients import Coefficients, coefficients
from oracle.errors import CertificateError
from oracle.glm_config import GLMConfig, HabitatShare
from oracle.landscape import load_landscape
from oracle.neighbours import NeighbourConfig, NeighbourGraph, neighbour_graph
from oracle.plan import TOLERANCE, terms, violations
from oracle.regret import regret
from oracle.solution import load_solution, save_solution
from oracle.solve import solve
from oracle.verify import verify

from .conftest import FOUR_CROPS, build_grid_graph, build_grid_landscape


def small_case():
    config = GLMConfig(
        supply_floors={"wheat": 0.7, "oat": 0.5}, habitat_share=HabitatShare(min=0.2, max=0.6), adjacency_gain=3.0
    )
    landscape = build_grid_landscape(2, 3, crops=("wheat", "oat"), seed=4)
    return coefficients(landscape, build_grid_graph(2, 3), config)


SMALL = small_case()
OPTIMUM = max(
    terms(SMALL, np.array(p)).objective
    for p in itertools.product(range(3), repeat=6)
    if not violations(SMALL, np.array(p))
)
multiplier = st.floats(0, 0.01)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.tuples(multiplier, multiplier), multiplier, multiplier, st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_any_multipliers_and_any_split_bound_the_best_of_all_plans(mu, least, greatest, shares):
    certificate = Certificate(np.array(mu), least, greatest, np.array(shares))
    assert bound(SMALL, certificate, margin=0.0) >= OPTIMUM - 1e-15  # which is itself a sum of floats


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.tuples(multiplier, multiplier), multiplier, multiplier, st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_balancing_the_splits_never_raises_the_bound(mu, least, greatest, shares):
    certificate = Certificate(np.array(mu), least, greatest, np.array(shares))
    assert bound(SMALL, balanced(SMALL, certificate)) <= bound(SMALL, certificate) + 1e-12


def test_balancing_decides_what_a_lopsided_split_leaves_open():
    """Two neighbours that both belong to habitat by their common gain only: each needs a part of it."""
    landscape = build_grid_landscape(
        1, 2, crops=("wheat",), yields=np.array([[3.0], [3.0]]), connectivity=np.array([0.5, 0.5])
    )
    config = GLMConfig(connectivity_weight=0.55, adjacency_gain=6.0)
    c = coefficients(landscape, build_grid_graph(1, 2), config)
    assert (c.habitat < c.crop[:, 0]).all()
    lopsided = Certificate(np.zeros(1), 0.0, 0.0, np.array([1.0]))
    plan = np.array([1, 1])
    assert regret(c, plan, lopsided).status.tolist() == ["unique", "undecided"]
    assert regret(c, plan, balanced(c, lopsided)).status.tolist() == ["unique", "unique"]


def test_the_bound_by_hand():
    """One field: 0.5 of crop value or 0.5 of connectivity; a floor of half the field at a price mu."""
    landscape = build_grid_landscape(1, 1, crops=("wheat",), yields=np.array([[4.0]]), connectivity=np.array([0.5]))
    c = coefficients(landscape, build_grid_graph(1, 1), GLMConfig(supply_floors={"wheat": 0.5}))
    tonnes = c.floor_t[0]  # what counts of the field's production: the floor, half of it
    certificate = Certificate(np.array([0.1 / tonnes]), 0.0, 0.0, np.array([]))
    np.testing.assert_allclose(values(c, certificate), [[0.6, 0.5]])
    assert bound(c, certificate, margin=0.0) == pytest.approx(0.6 - 0.1 * (1 - 1e-6), abs=1e-14)


def awkward_case(seed: int) -> tuple[Coefficients, Certificate]:
    """A small landscape and a certificate in numbers of very different sizes, so that sums do round."""
    rng = np.random.default_rng(seed)
    rows, cols = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    config = GLMConfig(
        connectivity_weight=float(rng.uniform(0, 0.9)),
        adjacency_gain=float(rng.choice([0.0, 1e-9, 3.0, 1e4])),
        costs={"wheat": float(rng.choice([0.0, 1e-7, 900.0])), "habitat": float(rng.choice([0.0, 33.3]))},
        supply_floors={"wheat": float(rng.uniform(0, 1)), "oat": float(rng.uniform(0, 1))},
        habitat_share=HabitatShare(min=float(rng.uniform(0, 0.3)), max=float(rng.uniform(0.4, 1))),
    )
    landscape = build_grid_landscape(rows, cols, crops=("wheat", "oat"), seed=seed)
    c = coefficients(landscape, build_grid_graph(rows, cols), config)
    mu, least, greatest = 10.0 ** rng.uniform(-12, 2, 2), *(10.0 ** rng.uniform(-12, 0, 2)).tolist()
    return c, Certificate(mu, least, greatest, rng.uniform(size=len(c.pair_i)))


def exact_values(c: Coefficients, certificate: Certificate) -> list[list[Fraction]]:
    """The equations of the certificate in fractions, polygon by polygon."""
    mu = [Fraction(m) for m in certificate.floor_multiplier]
    price = Fraction(certificate.habitat_least) - Fraction(certificate.habitat_greatest)
    habitat = [Fraction(h) + price * Fraction(a) for h, a in zip(c.habitat, c.area_ha, strict=True)]
    for i, j, gain, share in zip(c.pair_i, c.pair_j, c.pair_gain, certificate.pair_share, strict=True):
        habitat[i] += Fraction(share) * Fraction(gain)
        habitat[j] += (1 - Fraction(share)) * Fraction(gain)
    return [
        [*(Fraction(x) + m * Fraction(t) for x, m, t in zip(own, mu, credited, strict=True)), h]
        for own, credited, h in zip(c.crop, c.credited_t, habitat, strict=True)
    ]


def exact_bound(c: Coefficients, certificate: Certificate) -> Fraction:
    tolerance, area = Fraction(TOLERANCE), sum(map(Fraction, c.area_ha))
    floors = sum(Fraction(m) * Fraction(f) for m, f in zip(certificate.floor_multiplier, c.floor_t, strict=True))
    least, greatest = map(Fraction, c.habitat_share)
    return (
        sum(max(row) for row in exact_values(c, certificate))
        - floors * (1 - tolerance)
        - Fraction(certificate.habitat_least) * (least - tolerance) * area
        + Fraction(certificate.habitat_greatest) * (greatest + tolerance) * area
    )


def test_rounding_never_makes_the_bound_too_low():
    """Against fractions; the same sums in plain floats fall below the truth again and again."""
    too_low = 0
    for seed in range(150):
        c, certificate = awkward_case(seed)
        truth, found = exact_bound(c, certificate), bound(c, certificate, margin=0.0)
        size = float(sum(abs(max(row)) for row in exact_values(c, certificate))) + abs(float(truth))
        assert truth <= found <= truth + 1e-14 * size
        plain = math.fsum(
            [
                *values(c, certificate).max(axis=1),
                *(-certificate.floor_multiplier * c.floor_t * (1.0 - TOLERANCE)),
                -certificate.habitat_least * (c.habitat_share[0] - TOLERANCE) * math.fsum(c.area_ha),
                certificate.habitat_greatest * (c.habitat_share[1] + TOLERANCE) * math.fsum(c.area_ha),
            ]
        )
        too_low += plain < truth
    assert too_low > 30


def test_rounding_never_makes_a_regret_too_high():
    for seed in range(60):
        c, certificate = awkward_case(seed)
        choice = np.random.default_rng(seed).integers(0, 3, len(c))
        habitat = choice == 2
        both = habitat[c.pair_i] & habitat[c.pair_j]
        worth = sum(map(Fraction, [*c.own[np.arange(len(c)), choice], *c.pair_gain[both]]))
        forced = exact_bound(c, certificate) - worth
        found = regret_lows(c, certificate, choice)
        not_here = np.arange(3) == (choice[:, None] + 1) % 3
        locked = regret_lows(replace(c, allowed=~not_here), certificate, choice)
        np.testing.assert_array_equal(np.isinf(locked), not_here)
        for row, lows in zip(exact_values(c, certificate), found, strict=True):
            assert all(low <= max(row) - v - forced for low, v in zip(lows.tolist(), row, strict=True))


@pytest.mark.parametrize("prices", [(1e308, 0.0, 0.0), (0.0, 1e308, 1e308), (1e298, 0.0, 0.0), (0.0, 0.0, 1e306)])
def test_multipliers_too_large_for_floats_are_refused(prices):
    mu, least, greatest = prices
    with pytest.raises(CertificateError, match="too large"):
        bound(SMALL, Certificate(np.array([mu, 0.0]), least, greatest, np.full(7, 0.5)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"floor_multiplier": np.array([-1e-9, 0.0])}, "wheat is not"),
        ({"floor_multiplier": np.array([np.nan, 0.0])}, "wheat is not"),
        ({"floor_multiplier": np.zeros(3)}, "3 floor multiplier"),
        ({"habitat_greatest": -1.0}, "greatest habitat is not"),
        ({"pair_share": np.array([0, 0, 1.5, 0, 0, 0, 0])}, "pairs 2 do not"),
        ({"pair_share": np.array([0, 0, 0, np.nan, 0, 0, 0])}, "pairs 3 do not"),
        ({"pair_share": np.zeros(6)}, "6 pair share"),
    ],
)
def test_multipliers_that_prove_nothing_are_refused(change, reason):
    certificate = Certificate(np.zeros(2), 0.0, 0.0, np.full(7, 0.5))
    with pytest.raises(CertificateError, match=reason):
        bound(SMALL, replace(certificate, **change))


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
