"""Commands of the operator: the UI, once per storage; the served policy; what is published."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.terminal import JsonOption, refusals, show

operations_app = typer.Typer()
policy_app = typer.Typer(no_args_is_help=True, help="The policy that is served.")
operations_app.add_typer(policy_app, name="policy")
Folder = Annotated[Path, typer.Argument(help="The pipeline's folder.")]


@policy_app.command("show")
def show_policy(workspace: Folder = Path("runs/demo"), as_json: JsonOption = False) -> None:
    """The served policy, its folder and how it came to be served.

    Example: `landoracle policy show runs/demo`
    """
    from oracle.errors import TrainingError
    from pipeline.policy import Policies

    with refusals():
        policies = Policies(workspace)
        if policies.served is None:
            raise TrainingError(f"{workspace} serves no policy yet: materialize served_policy")
    history = [f"{c.since}  {c.policy}  {c.why}" for c in reversed(policies.history)]
    show({"policy": policies.served.name, "folder": str(policies.served), "history": history}, as_json, "Served policy")


@policy_app.command()
def rollback(workspace: Folder = Path("runs/demo"), as_json: JsonOption = False) -> None:
    """Serve the policy before the present one again; the present one is not promoted again by itself.

    Example: `landoracle policy rollback runs/demo`
    """
    from pipeline.policy import Policies
    from pipeline.workspace import Workspace

    place, policies = Workspace(str(workspace.absolute())), Policies(workspace.absolute())
    with refusals():
        place.fetch(policies.state)
        place.fetch(*policies.kept)
        back = policies.roll_back()
        place.publish(policies.state)
    show({"policy": back.policy, "why": back.why}, as_json, "Served policy")


@operations_app.command()
def publish(
    workspace: Folder = Path("runs/demo"),
    to: Annotated[
        str | None, typer.Option(help="URL of the store, e.g. s3://bucket/prefix; LANDORACLE_STORE by default.")
    ] = None,
) -> None:
    """Copy all that is finished in the pipeline's folder into a store, where other machines find it.

    The assets do so by themselves where LANDORACLE_STORE is set; this is for what was made before.

    Example: `landoracle publish runs/demo --to s3://bucket/landoracle`
    """
    from pipeline.store import STORE, Store, StoreError
    from pipeline.workspace import Workspace

    place = Workspace(str(workspace.absolute()))
    with refusals():
        url = to or os.environ.get(STORE)
        if not url:
            raise StoreError(f"no store is named: give its URL with --to, or set {STORE}")
        if not place.finished():
            raise StoreError(f"{workspace} holds nothing that is finished")
        Store(url).publish(place.path, place.finished(), say=lambda line: typer.echo(line))


@operations_app.command()
def ui(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the UI.")] = 3000,
) -> None:
    """Dagster's UI and daemon over this project's storage; a second one on the same storage is refused.

    Example: `landoracle ui --port 3000` (Ctrl-C ends it with everything that it started)
    """
    from oracle.errors import LandoracleError
    from pipeline.sources import PROJECT

    home = Path(os.environ.get("DAGSTER_HOME", PROJECT)).absolute()
    address = f"http://{host}:{port}"
    with refusals():
        lock = home / ".dagster" / "ui.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LandoracleError(
                f"the storage in {home} is in use by {lock.read_text(encoding='utf-8').strip()}: open that address, or "
                "end that process first"
            ) from error
        os.truncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}, {address}\n".encode())
        os.set_inheritable(descriptor, True)  # the lock is held by the program that replaces this one
        os.environ["DAGSTER_HOME"] = str(home)
        os.chdir(PROJECT)
        dg = Path(sys.executable).with_name("dg")
        os.execv(dg, [str(dg), "dev", "--host", host, "--port", str(port)])
