"""``landoracle bench``: measures what it says it measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.graph import quarter_section_landscape
from benchmarks.oracle import growth
from benchmarks.peers import Peer, time_peer
from benchmarks.quarters import quarter_block
from oracle.coefficients import coefficients
from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from oracle.synthesis import grow
from pipeline.cli import app


def test_both_builders_are_timed_on_the_polygons_asked_for() -> None:
    asked = ["bench", "graph", "--polygons", "400", "--polygons", "150", "--repeats", "1", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    small, large = measured["sizes"]
    assert (small["polygons"], large["polygons"]) == (150, 400)
    assert large["rows"] == len(neighbour_graph(quarter_section_landscape(400)).table)
    assert large["ratio"] == pytest.approx(large["graph_s"] / large["libpysal_s"], rel=0.1)
    assert large["memory_peak_mb"] >= large["memory_before_mb"] > 50
    assert measured["growth_exponent"] is not None


def test_a_size_outside_the_survey_is_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "graph", "--polygons", "2000000"])
    assert done.exit_code == 1
    assert "100..1,000,000" in done.output


def test_blocks_reach_over_meridians_without_a_repeated_quarter() -> None:
    landscape = quarter_section_landscape(150_000)
    assert len(landscape) == 150_000
    assert {i.rsplit("-", 1)[1] for i in landscape.ids} == {"W2", "W3"}


def test_the_oracle_is_timed_beside_peers_on_the_polygons_asked_for(tmp_path: Path) -> None:
    sizes = ["--polygons", "150", "--polygons", "300"]
    asked = ["bench", "oracle", *sizes, "--peer", "cbc", "--peer", "highs", "--plot", str(tmp_path / "growth.png")]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    small, large = measured["sizes"]
    assert (small["asked"]["polygons"], large["asked"]["polygons"]) == (150, 300)
    for m in (small, large):
        assert m["unique"] + m["tied"] + m["undecided"] == m["asked"]["polygons"]
        assert 0 < m["plan_s"] <= m["solve_s"]
        assert [p["peer"] for p in m["peers"]] == ["cbc", "highs"]
        for peer, gap in zip(m["peers"], m["peer_gaps"], strict=True):
            assert gap >= -1e-9  # no peer's plan lies above the certified bound
            assert m["faster_than"][peer["peer"]] == pytest.approx(peer["seconds"] / m["plan_s"])
    assert measured["growth_exponent"] is not None
    assert (tmp_path / "growth.png").stat().st_size > 5_000


def test_an_unknown_peer_is_refused_by_name() -> None:
    done = CliRunner().invoke(app, ["bench", "oracle", "--polygons", "150", "--peer", "gurobi"])
    assert done.exit_code == 1
    assert "unknown peer gurobi" in done.output


@pytest.mark.parametrize("peer", list(Peer))
def test_every_peer_is_given_the_same_programme_of_a_small_landscape(peer: Peer) -> None:
    if peer in (Peer.SCIP, Peer.CP_SAT):
        pytest.importorskip("ortools")
    landscape = grow(growth(100), quarter_block(100))
    config = GLMConfig(supply_floors={"wheat": 0.5})
    c = coefficients(landscape, neighbour_graph(landscape), config)
    found = time_peer(peer, c, 1e-5, 5.0)
    best = solve(landscape, neighbour_graph(landscape), config).objective
    if peer is Peer.CP_SAT:  # on its way to the same optimum, slowly
        assert 0.95 * best < found.objective < best + 1e-6
    else:
        assert found.finished
        assert found.objective == pytest.approx(best, rel=1e-4)
