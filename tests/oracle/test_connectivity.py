"""Connectivity figures against a calculation by hand and against networkx's all-pairs paths."""

from __future__ import annotations

import itertools
import json

import networkx as nx
import numpy as np
import pytest

from oracle.connectivity import CONNECTIVITY_FILE, LEAST_STEP, NOW, OF_PLAN, connectivity, save_connectivity
from oracle.errors import ConfigurationError
from oracle.landscape import HABITAT
from oracle.projection import to_local

from .conftest import SIDE_M, build_grid_graph, build_grid_landscape


def test_three_patches_in_a_row_by_hand():
    """H H . H . . . . H: patches of 2, 1 and 1 squares, one side apart, then four sides apart (no step: p < 0.1)."""
    landscape = build_grid_landscape(1, 9)
    use = np.array([HABITAT if x == "H" else "wheat" for x in "HH.H....H"], dtype=object)
    found = connectivity(landscape, build_grid_graph(1, 9), use, dispersal_m=SIDE_M * 1.001)

    a = landscape.areas_ha[0]  # all squares alike
    p = 0.5 ** (1 / 1.001)
    assert found.habitat_ha == pytest.approx(4 * a, rel=1e-3)
    assert found.habitat_share == pytest.approx(4 / 9, rel=1e-3)
    assert (found.patches, found.components, found.sources) == (3, 2, 3)
    assert found.largest_patch_ha == pytest.approx(2 * a, rel=1e-3)
    assert found.largest_component_ha == pytest.approx(3 * a, rel=1e-3)
    pairs = 2 * 2 * 1  # both orders, 2 squares x 1 square
    assert found.iic == pytest.approx((4 + 1 + 1 + pairs / 2) / 81, rel=1e-3)
    assert found.pc == pytest.approx((4 + 1 + 1 + pairs * p) / 81, rel=1e-3)
    assert found.eca_ha == pytest.approx(a * (6 + pairs * p) ** 0.5, rel=1e-3)
    assert found.edge_m == pytest.approx((6 + 4 + 4) * SIDE_M, rel=2e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dispersal_m", [300.0, 900.0, 2_000.0])
def test_paths_agree_with_networkx(seed, dispersal_m):
    rng = np.random.default_rng(seed)
    landscape, graph = build_grid_landscape(7, 7, seed=seed), build_grid_graph(7, 7)
    use = np.where(rng.uniform(size=49) < 0.35, HABITAT, "wheat").astype(object)
    found = connectivity(landscape, graph, use, dispersal_m)

    touching = nx.Graph()
    touching.add_nodes_from(np.flatnonzero(use == HABITAT).tolist())
    touching.add_edges_from((i, j) for i, j in zip(*graph.shared[:2], strict=True) if {use[i], use[j]} == {HABITAT})
    patches = [sorted(p) for p in nx.connected_components(touching)]
    area = [landscape.areas_ha[p].sum() for p in patches]
    local = to_local(landscape.polygons.geometry)
    far, hops = nx.Graph(), nx.Graph()
    for g in (far, hops):
        g.add_nodes_from(range(len(patches)))
    for a, b in itertools.combinations(range(len(patches)), 2):
        d = min(local.iloc[i].distance(local.iloc[j]) for i in patches[a] for j in patches[b])
        if 0.5 ** (d / dispersal_m) >= LEAST_STEP:
            far.add_edge(a, b, weight=d)
        if d <= dispersal_m:
            hops.add_edge(a, b)
    length = dict(nx.all_pairs_dijkstra_path_length(far))
    count = dict(nx.all_pairs_shortest_path_length(hops))
    pc = sum(area[a] * area[b] * 0.5 ** (d / dispersal_m) for a in length for b, d in length[a].items())
    iic = sum(area[a] * area[b] / (1 + k) for a in count for b, k in count[a].items())
    total = landscape.areas_ha.sum()
    assert found.patches == len(patches)
    assert found.components == nx.number_connected_components(hops)
    assert found.pc == pytest.approx(pc / total**2, rel=2e-3)  # paths of p < 0.001 are left out
    assert found.iic == pytest.approx(iic / total**2, rel=1e-9)


def test_a_corridor_raises_connectivity_more_than_the_same_area_elsewhere():
    landscape, graph = build_grid_landscape(1, 9), build_grid_graph(1, 9)
    apart, corridor, elsewhere = (
        connectivity(landscape, graph, np.array([HABITAT if x == "H" else "wheat" for x in row], dtype=object))
        for row in ("HHH.HHH..", "HHHHHHH..", "HHH.HHH.H")
    )
    assert apart.eca_ha < elsewhere.eca_ha < corridor.eca_ha
    assert (apart.patches, corridor.patches, elsewhere.patches) == (2, 1, 3)
    assert corridor.eca_ha == pytest.approx(corridor.habitat_ha)  # one patch is all connected


def test_sampled_sources_come_close_to_all_of_them(monkeypatch):
    rng = np.random.default_rng(1)
    landscape, graph = build_grid_landscape(40, 40), build_grid_graph(40, 40)
    use = np.where(rng.uniform(size=1600) < 0.25, HABITAT, "wheat").astype(object)
    exact = connectivity(landscape, graph, use)
    monkeypatch.setattr("oracle.connectivity.MOST_SOURCES", 60)
    sampled = connectivity(landscape, graph, use)
    assert (exact.sources, sampled.sources) == (exact.patches, 60)
    assert exact.patches > 150
    assert sampled.pc == pytest.approx(exact.pc, rel=0.05)
    assert sampled.iic == pytest.approx(exact.iic, rel=0.05)


def test_the_file_has_the_plan_beside_the_current_land_use_where_that_is_known(tmp_path):
    plan, now = ["habitat", "habitat", "wheat"], ["wheat", "other", "habitat"]
    known = build_grid_landscape(1, 3, current=now)
    figures = save_connectivity(tmp_path, known, build_grid_graph(1, 3), np.array(plan, dtype=object), 500.0)
    assert json.loads((tmp_path / CONNECTIVITY_FILE).read_text()) == figures
    assert [figures[which]["dispersal_m"] for which in (OF_PLAN, NOW)] == [500.0, 500.0]
    assert figures[OF_PLAN]["habitat_ha"] == pytest.approx(2 * figures[NOW]["habitat_ha"], rel=1e-3)
    unknown = save_connectivity(tmp_path, build_grid_landscape(1, 3), build_grid_graph(1, 3), np.array(plan))
    assert list(unknown) == [OF_PLAN]


def test_no_habitat_is_no_connectivity():
    found = connectivity(build_grid_landscape(2, 2), build_grid_graph(2, 2), np.full(4, "wheat", dtype=object))
    assert (found.habitat_ha, found.patches, found.components, found.eca_ha, found.iic, found.edge_m) == (0,) * 6


def test_a_dispersal_distance_must_be_positive():
    with pytest.raises(ConfigurationError, match="dispersal distance is 0"):
        connectivity(build_grid_landscape(1, 1), build_grid_graph(1, 1), np.array([HABITAT], dtype=object), 0)
