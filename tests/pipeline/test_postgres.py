"""Dagster's storage in a real Postgres, as docs/dagster_postgres.yaml sets it up; skipped without one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pipeline.assets import LANDSCAPES
from pipeline.automation import solve_landscape
from pipeline.sources import PROJECT
from pipeline.workspace import Workspace
from tests.pipeline.conftest import execute, write_landscape
from tests.pipeline.operations import storage, until

pytest.importorskip("dagster_postgres")
SERVER = shutil.which("postgres") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), None)
pytestmark = pytest.mark.skipif(SERVER is None, reason="needs Debian's postgresql")


@pytest.fixture
def database() -> Iterator[str]:
    """Address of a fresh server; it runs as the user postgres where we are root, who may not run one."""
    tools = Path(str(SERVER)).resolve().parent
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="landoracle-postgres-"))
    as_user = {"user": user.pw_uid, "group": user.pw_gid} if user else {}
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    initialise = [tools / "initdb", "--pgdata", folder / "data", "--username=dagster", "--auth=trust", "--no-sync"]
    subprocess.run(initialise, check=True, capture_output=True, cwd=folder, **as_user)
    options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [tools / "postgres", "-D", folder / "data", *options], stdout=log, stderr=log, cwd=folder, **as_user
        )
    ready = [tools / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
    until(lambda: subprocess.run(ready, capture_output=True, check=False).returncode == 0, 30, "the database")
    yield f"postgresql+psycopg2://dagster@127.0.0.1:{port}/postgres"
    server.terminate()
    server.wait(timeout=30)
    shutil.rmtree(folder)


def test_a_landscape_is_solved_over_postgres(
    database: str, drop_folder: Path, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", database)
    home = storage(tmp_path / "dagster")
    settings = yaml.safe_load((home / "dagster.yaml").read_text())
    settings |= yaml.safe_load((PROJECT / "docs" / "dagster_postgres.yaml").read_text())
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    write_landscape(drop_folder, "farm", 1, "train")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.add_dynamic_partitions(str(LANDSCAPES.name), ["farm"])
        assert execute(solve_landscape.name, instance, partition_key="farm").success
    with dg.DagsterInstance.from_config(str(home)) as again:  # another process finds it all
        assert again.get_materialized_partitions(dg.AssetKey("oracle_plan")) == {"farm"}
        assert "PostgresRunStorage" in type(again.run_storage).__name__
