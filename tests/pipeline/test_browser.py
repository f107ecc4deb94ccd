"""The operator's three uses in a real browser: add a landscape, materialize all, switch the schedule on.

Needs the package ``playwright`` and a Chromium (Debian: ``apt install chromium``); skipped without. With
``LANDORACLE_SCREENSHOTS`` set to a folder, the pictures of ``docs/`` are taken anew.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.sources import PROJECT
from tests.pipeline.chromium import browser, needs_chromium
from tests.pipeline.conftest import write_landscape
from tests.pipeline.operations import environment, processes, storage, until

pytestmark = needs_chromium

TINY = """
profile: tiny
model: {kind: pocket, hidden: 32, layers: 1, intermediate: 64, max_length: 512}
prompts: {order: 0, context: prices, style: think, layout: compact}
sft: {per_device_train_batch_size: 16, max_steps: 4, learning_rate: 1.0e-3, bf16: false, use_cpu: true, save_steps: 2,
      logging_steps: 1}
grpo: {beta: 0.01, per_device_train_batch_size: 8, num_generations: 4, max_steps: 2, max_completion_length: 32,
       bf16: false, use_cpu: true, save_steps: 1, logging_steps: 1}
evaluation: {max_rows: 30}
threads: 1
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    storage(tmp_path)
    (tmp_path / "landscapes").mkdir()
    (tmp_path / "tiny.yaml").write_text(TINY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def address(place: Path) -> Iterator[str]:
    """The UI, started and ended as in a terminal."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = {
        "LANDORACLE_WORKSPACE": str(place / "runs"),
        "LANDORACLE_LANDSCAPES": str(place / "landscapes"),
        "LANDORACLE_PROFILE": str(place / "tiny.yaml"),
    }
    with (place / "ui.log").open("w") as log:
        ui = subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli", "ui", "--port", port],
            env=environment(place, **variables),
            cwd=PROJECT,
            stdout=log,
            stderr=log,
            process_group=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    url = f"http://127.0.0.1:{port}"
    until(lambda: _answers(f"{url}/server_info"), 120, "the UI")
    yield url
    os.killpg(ui.pid, signal.SIGINT)
    try:
        ui.wait(timeout=30)
    finally:
        if ui.poll() is None:
            os.killpg(ui.pid, signal.SIGKILL)
            ui.wait()
    assert not processes(port)


@pytest.fixture
def page() -> Iterator[Any]:
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(60_000)
        yield page


def test_the_three_uses(place: Path, address: str, page: Any) -> None:
    def photograph(name: str) -> None:
        if folder := os.environ.get("LANDORACLE_SCREENSHOTS"):
            page.wait_for_timeout(3000)
            page.screenshot(path=Path(folder) / f"{name}.png")

    def switch_on(kind: str, name: str) -> None:
        page.goto(f"{address}/locations/landoracle/{kind}/{name}")
        page.locator("label[class*=formatSwitch]").first.click()
        until(lambda: page.locator("label[class*=formatSwitch] input").first.is_checked(), 30, f"{name} on")

    # A landscape is put into the folder; its sensor is switched on; a partition appears and is solved.
    write_landscape(place / "landscapes", "farm", 1, "train")
    switch_on("sensors", "landscape_folder")
    until(lambda: _latest(address, "solve_landscape") == "SUCCESS", 180, "the landscape's run")
    page.goto(f"{address}/assets/oracle_plan?partition=farm&view=partitions")
    page.get_by_text("tied_label_share").first.wait_for()
    page.locator("img[alt=plan]").first.wait_for(state="visible")  # the map, in the page itself
    photograph("dagster_plan")

    # The job is materialized from its page, with what the launchpad has by itself.
    page.goto(f"{address}/locations/landoracle/jobs/retrain")
    page.get_by_role("button", name=re.compile("Materialize all")).first.click()
    until(lambda: _latest(address, "retrain") in ("SUCCESS", "FAILURE"), 240, "the training's run")
    assert _latest(address, "retrain") == "SUCCESS"
    assert (place / "runs" / "report.html").is_file()
    page.goto(f"{address}/asset-groups")
    page.get_by_text("served_policy").first.wait_for()
    photograph("dagster_lineage")

    # The schedule is switched on.
    switch_on("schedules", "weekly_retraining")
    page.goto(f"{address}/automation")
    page.get_by_text("weekly_retraining").wait_for()
    photograph("dagster_automation")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


def _latest(address: str, job: str) -> str | None:
    """Status of a job's last run."""
    query = (
        f'{{ runsOrError(filter: {{pipelineName: "{job}"}}, limit: 1) {{ ... on Runs {{ results {{ status }} }} }} }}'
    )
    request = urllib.request.Request(
        f"{address}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        runs = json.load(answer)["data"]["runsOrError"]["results"]
    return runs[0]["status"] if runs else None
