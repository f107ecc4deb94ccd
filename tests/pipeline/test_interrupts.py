"""Ctrl-C in the terminal, and a second start on the same storage, as a person does them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pipeline.sources import PROJECT
from tests.pipeline.operations import alive, environment, processes, storage, until


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


def maps(plans: Path) -> dict[Path, int]:
    """The map of each plan that is whole, with its time."""
    return {each: each.stat().st_mtime_ns for each in plans.glob("[!.]*/map.png")}


def test_ctrl_c_in_the_demo_is_quiet_and_the_demo_goes_on(tmp_path: Path) -> None:
    plans = tmp_path / "runs" / "plans"
    made: dict[Path, int] = {}
    for _ in range(2):  # the second start keeps what the first one made
        demo = start(tmp_path / "dagster", "demo", "--out", str(tmp_path / "runs"))
        until(lambda made=made: len(maps(plans)) > len(made), 120, "another plan")
        os.killpg(demo.pid, signal.SIGINT)
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode == 130 or demo.returncode == -signal.SIGINT, said
        assert "the same command goes on from here" in said
        assert "Traceback" not in said
        assert not processes("demo", str(tmp_path / "runs"))
        assert not list(plans.glob("[!.]*/*.partial"))
        assert made.items() <= maps(plans).items()
        made = maps(plans)


def test_a_killed_demo_leaves_no_solver_and_goes_on(tmp_path: Path) -> None:
    plans = tmp_path / "runs" / "plans"
    for _ in range(2):
        made = maps(plans)
        demo = start(tmp_path / "dagster", "demo", "--out", str(tmp_path / "runs"))
        until(lambda made=made: len(maps(plans)) > len(made), 120, "another plan")
        solvers = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        assert solvers
        demo.kill()
        demo.wait()
        until(lambda solvers=solvers: not any(alive(int(each)) for each in solvers), 30, "an end of the solvers")


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
