"""Commands of the operator: the UI, once per storage."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.terminal import refusals

operations_app = typer.Typer()


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
