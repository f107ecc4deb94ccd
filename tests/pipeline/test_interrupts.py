"""Ctrl-C in the terminal, and a second start on the same storage, as a person does them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pipeline.sources import PROJECT
from tests.pipeline.operations import environment, processes, storage, until


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line in a process group of its own, as a shell starts it: it hears SIGINT."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        env=environment(storage(home), PYTHONUNBUFFERED="1"),
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_ctrl_c_in_the_demo_is_quiet_and_the_demo_goes_on(tmp_path: Path) -> None:
    plans = tmp_path / "runs" / "plans"
    for made in (1, 2):  # the second start keeps the first one's plan
        demo = start(tmp_path / "dagster", "demo", "--out", str(tmp_path / "runs"))
        until(lambda made=made: len(list(plans.glob("[!.]*/map.png"))) >= made, 120, f"plan {made}")
        first = sorted(plans.glob("[!.]*/map.png"))[0].stat().st_mtime_ns
        os.killpg(demo.pid, signal.SIGINT)
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode == 130 or demo.returncode == -signal.SIGINT, said
        assert "the same command goes on from here" in said
        assert "Traceback" not in said
        assert not processes("demo", str(tmp_path / "runs"))
        assert not list(plans.glob("[!.]*/*.partial"))
    assert sorted(plans.glob("[!.]*/map.png"))[0].stat().st_mtime_ns == first


def test_a_second_ui_on_the_same_storage_is_refused(tmp_path: Path) -> None:
    first = start(tmp_path, "ui", "--port", "38117")
    lock = tmp_path / ".dagster" / "ui.lock"
    until(lambda: lock.is_file() and lock.read_text().startswith("process"), 60, "the lock")
    second = start(tmp_path, "ui", "--port", "38118")
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"in use by process {first.pid}, http://127.0.0.1:38117" in " ".join(said.split())
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    until(lambda: not processes("38117"), 30, "an end")
