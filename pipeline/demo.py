"""``landoracle demo``: materialize every asset on the embedded landscapes, with progress, and print a short report.

An interrupted demo goes on where it was: what was made since its start is kept, and training resumes from its last
checkpoint. A finished demo starts afresh when it is called again.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dagster as dg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from oracle.errors import LandoracleError
from oracle.files import write_text
from pipeline.assets import FROM_ALL, LANDSCAPES
from pipeline.automation import retrain, solve_landscape
from pipeline.definitions import defs
from pipeline.launchpad import as_settings
from pipeline.sources import PROJECT, embedded_sources
from pipeline.trainer_settings import refuse_unknown_settings
from pipeline.workspace import Workspace
from training.config import load_profile
from training.launch import end_with_parent

_WORKERS = 2  # dagster.yaml: more runs at once end in "database is locked"


class DemoFailed(LandoracleError):
    """A stage of the demo refused; the message is the stage's own."""


def run_demo(root: str, profile: str, overrides: Sequence[str], console: Console) -> dict[str, Any]:
    """Materialize the whole graph into ``root`` (a folder below the project) and return the report's figures.

    Raises
    ------
    DemoFailed
        Where a stage refuses.
    """
    started = time.monotonic()
    refuse_unknown_settings(load_profile(profile, overrides))  # the landscapes are solved first, for minutes
    workspace = Workspace(root=root)
    os.environ["LANDORACLE_WORKSPACE"] = root  # where the assets find it
    marker = workspace.path / ".unfinished"
    asked = json.dumps({"profile": profile, "overrides": list(overrides)})
    if not (marker.is_file() and marker.read_text(encoding="utf-8") == asked):
        write_text(marker, asked)
    made = _Made(marker.stat().st_mtime)
    os.chdir(PROJECT)  # dagster.yaml keeps its storage beside itself
    with _instance() as instance:
        _solve_all(workspace, made, instance, console)
        outputs = {
            "prompt_dataset": workspace.dataset / "manifest.json",
            "sft_model": workspace.model("sft") / "run.json",
            "grpo_model": workspace.model("grpo") / "run.json",
        }
        kept = {name for name, path in outputs.items() if made.since_start(path)}
        to_do = [asset.key for asset in FROM_ALL if asset.key.to_user_string() not in kept]
        console.print("[bold]prompts, training, evaluation[/]")
        training = {"profile": profile, **as_settings(overrides)}
        _run(retrain.name, instance, {"training": {"config": training}}, selection=to_do)
    marker.unlink()
    figures = json.loads((workspace.path / "report.json").read_text(encoding="utf-8"))
    _say(figures, workspace.path, console, time.monotonic() - started)
    return figures


class _Made:
    """Tells files made since the demo began from older ones."""

    def __init__(self, started: float) -> None:
        self._started = started

    def since_start(self, path: Path) -> bool:
        return path.is_file() and path.stat().st_mtime >= self._started


def _instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.from_config(os.environ.get("DAGSTER_HOME", str(PROJECT)))


def _solve_all(workspace: Workspace, made: _Made, instance: dg.DagsterInstance, console: Console) -> None:
    keys = list(embedded_sources())
    instance.add_dynamic_partitions(str(LANDSCAPES.name), keys)
    to_do = [key for key in keys if not made.since_start(workspace.plan(key) / "map.png")]
    columns = (TextColumn("[bold]landscapes, neighbour graphs, plans[/]"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=len(keys), completed=len(keys) - len(to_do))

        def solved() -> None:
            progress.advance(task)
            done = int(progress.tasks[task].completed)
            if done % 10 == 0 and not console.is_terminal:  # where no bar can move
                console.print(f"  landscapes  {done}/{len(keys)}")

        _solve_in_processes(to_do, solved)


def _solve_in_processes(keys: Sequence[str], solved: Callable[[], None]) -> None:
    """Solve landscapes in as many processes as the storage bears, each on one core; call ``solved`` after each.

    They end with this process, and hear Ctrl-C only while they run a job, as a failed step of it.
    """
    count = min(_WORKERS, os.cpu_count() or 1)
    executor = ProcessPoolExecutor(count, get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),))
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the processes, started by the first jobs, inherit it
    try:
        jobs = [executor.submit(_solve_one, key, os.getpid()) for key in keys]
    finally:
        signal.signal(signal.SIGINT, heard)
    try:
        for job in as_completed(jobs):
            job.result()
            solved()
    except BrokenProcessPool as problem:
        raise DemoFailed(
            "a process that solved a landscape was killed (by the system, if memory ran out); the same command goes on"
        ) from problem
    finally:
        executor.shutdown(cancel_futures=True)


def _solve_one(key: str, parent: int) -> None:
    try:
        with _instance() as instance:
            _run(solve_landscape.name, instance, {}, partition_key=key)
    finally:
        end_with_parent(parent)  # a job takes its SIGTERM for its own


def _run(
    job: str,
    instance: dg.DagsterInstance,
    resources: dict[str, Any],
    *,
    partition_key: str | None = None,
    selection: Sequence[dg.AssetKey] | None = None,
) -> None:
    """Execute a job of the code location in this process, over the storage that the UI reads."""
    result = defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        partition_key=partition_key,
        asset_selection=selection,
        run_config={
            "resources": resources,
            "loggers": {"console": {"config": {}}},
        },
        tags={"dagster/max_retries": "0"},  # no daemon starts what this process did not finish
        raise_on_error=False,
    )
    if result.success:
        return
    failures = [event.step_failure_data for event in result.filter_events(lambda event: event.is_step_failure)]
    if any(f.error is not None and f.error.cls_name == "DagsterExecutionInterruptedError" for f in failures):
        raise KeyboardInterrupt  # Dagster has recorded it as a failed step
    reasons = [_reason(failure) for failure in failures]
    raise DemoFailed("\n".join(reasons) or f"{job} {partition_key or ''} did not succeed; `make ui` shows its run")


def _reason(failure: Any) -> str:
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    return str(failure.error.message if failure.error else "unknown failure").strip()


def _say(figures: dict[str, Any], folder: Path, console: Console, seconds: float) -> None:
    table = Table(title="Held-out accuracy: share of polygons decided as the oracle does", title_justify="left")
    splits = list(figures["accuracy"])
    table.add_column("decides")
    for split in splits:
        table.add_column(split.replace("_", " "), justify="right")
    for name in figures["accuracy"][splits[0]]:
        table.add_row(name.replace("_", " "), *(_interval(figures["accuracy"][split][name]) for split in splits))
    console.print(table)
    console.print(
        f"{figures['headline']}\n{int(seconds) // 60} min {int(seconds) % 60} s; everything lies in {folder}:"
    )
    for name, what in (
        ("report.html", "one page to look at; report.json holds the same"),
        ("plans/<landscape>/", "map.png, labels.gpkg, labels.parquet, solution.json, certificate.json"),
        ("dataset/", "prompts.parquet with its card"),
        ("models/sft, models/grpo", "weights (safetensors), figures of every step, completions"),
        ("evaluation/", "predictions and figures"),
    ):
        console.print(f"  [bold]{name:24}[/]{what}")
    console.print("Next: `make ui` shows the same assets in Dagster on http://127.0.0.1:3000")


def _interval(figure: dict[str, Any]) -> str:
    return f"{figure['accuracy']:.1%}  [{figure['low']:.1%}, {figure['high']:.1%}]"
