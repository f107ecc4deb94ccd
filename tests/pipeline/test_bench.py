"""``landoracle bench graph``: measures what it says it measures."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks.graph import quarter_section_landscape
from oracle.neighbours import neighbour_graph
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
