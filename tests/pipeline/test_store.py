"""The store by URL: a real S3-compatible server, two machines, killed uploads, and what is refused.

A machine is a workspace and a Dagster storage of its own.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import fsspec
import pytest
from typer.testing import CliRunner

from oracle.verify import Verification, verify
from pipeline import assets
from pipeline.assets import LANDSCAPES, prompt_dataset
from pipeline.automation import retrain, solve_landscape
from pipeline.cli import app
from pipeline.policy import Policies
from pipeline.sources import PROJECT
from pipeline.store import Store, StoreError
from pipeline.workspace import Workspace
from prompts.dataset import PromptDataset
from tests.pipeline.conftest import execute, write_landscape
from tests.pipeline.test_policy import evaluated, trained

moto_server = pytest.importorskip("moto.server", reason="needs moto, flask and flask-cors (the extra dev)")
pytest.importorskip("s3fs")
KEY = {"AWS_ACCESS_KEY_ID": "operator", "AWS_SECRET_ACCESS_KEY": "secret"}
KILLED_UPLOAD = """
import os, signal, sys
from pathlib import Path
from pipeline.store import Store
store, root = Store(sys.argv[1]), Path(sys.argv[2])
put = store._files.put
def first_file_alone(here, there):
    put(here[:1], there[:1])
    os.kill(os.getpid(), signal.SIGKILL)
store._files.put = first_file_alone
store.publish(root, [root / "plans" / "farm"])
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


def ask(server: str, what: str, data: bytes = b"") -> None:
    """Something that only a server for tests can do."""
    url, plain = f"{server}/moto-api/{what}", {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(url, data=data, headers=plain, method="POST")).close()


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a prefix in an empty bucket."""
    ask(server, "reset")
    for name, value in {"AWS_ENDPOINT_URL": server, "AWS_DEFAULT_REGION": "us-east-1", **KEY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
    return "s3://bucket/landoracle"


@pytest.fixture(params=["s3", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind."""
    if request.param == "s3":
        return str(request.getfixturevalue("s3"))
    (tmp_path / "mounted").mkdir()
    return f"file://{tmp_path}/mounted"


def machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """From here on the assets run on this machine."""
    monkeypatch.setenv("LANDORACLE_WORKSPACE", str(root))
    return Workspace(root=str(root))


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def versions(url: str, name: str) -> set[str]:
    files, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    return {path.removeprefix(f"{root}/{name}/").partition("/")[0] for path in files.find(f"{root}/{name}")} - {
        "manifest.json"
    }


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = result.filter_events(lambda event: event.is_step_failure)
    return str(event.step_failure_data.user_failure_data.description)


def test_what_one_machine_solved_another_builds_prompts_from(
    s3: str, drop_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one starts with nothing, solves nothing, and follows when the first one solves anew."""
    monkeypatch.setenv("LANDORACLE_STORE", s3)
    write_landscape(drop_folder, "farm", 1, "train")
    first, second = tmp_path / "first", tmp_path / "second"

    def solved() -> Verification:
        workspace = machine(first, monkeypatch)
        assert execute(solve_landscape.name, storages[0], partition_key="farm").success
        return verify(workspace.plan("farm"))

    def prompts(plan: Verification) -> PromptDataset:
        workspace = machine(second, monkeypatch)
        with monkeypatch.context() as no_solver:
            no_solver.setattr(assets, "solve", lambda *_, **__: pytest.fail("solved again"))
            result = execute(retrain.name, storages[1], asset_selection=[prompt_dataset.key])
        assert result.success, failure(result)
        assert verify(workspace.plan("farm")) == plan  # from the landscape up, on the second machine
        return PromptDataset.load(workspace.dataset)

    with dg.instance_for_test() as one, dg.instance_for_test() as other:
        storages = (one, other)
        for storage in storages:
            storage.add_dynamic_partitions(str(LANDSCAPES.name), ["farm"])
        before = prompts(solved())
        write_landscape(drop_folder, "farm", 2, "train")
        after = prompts(solved())
    first_rows, second_rows = (d.frame[~d.frame["prompt_id"].str.contains("~")] for d in (before, after))
    assert len(first_rows) == len(second_rows) == 144  # and copies of the training rows
    assert before.frame["answer"].tolist() != after.frame["answer"].tolist()
    assert read(first / ".store" / "plans") == read(second / ".store" / "plans")


def test_a_killed_upload_is_never_seen(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    plan = write(here / "plans" / "farm", labels="old", solution="old")
    Store(url).publish(here, [plan])
    write(plan, labels="new", solution="new")
    done = subprocess.run([sys.executable, "-c", KILLED_UPLOAD, url, str(here)], check=False, cwd=PROJECT)
    assert done.returncode == -signal.SIGKILL
    assert len(versions(url, "plans/farm")) == 2  # half of the new one lies there
    for _ in range(2):
        Store(url).fetch(there, [there / "plans" / "farm"])
        assert read(there / "plans" / "farm") == {"labels": "old", "solution": "old"}
    Store(url).fetch(here, [plan])
    assert read(plan) == {"labels": "new", "solution": "new"}  # made here, and not lost
    Store(url).publish(here, [plan])
    Store(url).fetch(there, [there / "plans" / "farm"])
    assert read(there / "plans" / "farm") == {"labels": "new", "solution": "new"}


def test_a_first_upload_that_is_killed_leaves_nothing_to_fetch(url: str, tmp_path: Path) -> None:
    write(tmp_path / "here" / "plans" / "farm", labels="new", solution="new")
    subprocess.run([sys.executable, "-c", KILLED_UPLOAD, url, str(tmp_path / "here")], check=False, cwd=PROJECT)
    assert len(versions(url, "plans/farm")) == 1
    Store(url).fetch(tmp_path, [tmp_path / "plans" / "farm"])
    assert not (tmp_path / "plans").exists()


def test_the_store_keeps_the_last_two_versions(url: str, tmp_path: Path) -> None:
    """There and back again included; a reader who has read the manifest still finds the version before."""
    store, said = Store(url), []
    folder = tmp_path / "farm [north]"  # a name that a file system's patterns would read otherwise
    for text in ("a", "a", "b", "a", "c", "d"):
        store.publish(tmp_path, [write(folder, labels=text)], said.append)
    assert len(said) == 5  # the same twice was sent once
    assert len(versions(url, folder.name)) == 2
    there = tmp_path / "there"
    store.fetch(there, [there / folder.name])
    assert read(there / folder.name) == {"labels": "d"}
    store.remove(folder.name)
    assert versions(url, folder.name) == set()


def test_what_was_never_published_is_not_replaced(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    Store(url).publish(here, [write(here / "dataset", prompts="theirs")])
    write(there / "dataset", prompts="mine")
    with pytest.raises(StoreError, match=r"there/dataset was never published to .*: move yours away"):
        Store(url).fetch(there, [there / "dataset"])
    assert read(there / "dataset") == {"prompts": "mine"}
    write(there / "dataset", prompts="theirs")  # the same, however it came here
    Store(url).fetch(there, [there / "dataset"])


def test_files_that_are_not_those_of_the_manifest_are_refused(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    Store(url).publish(here, [write(here / "dataset", prompts="whole")])
    files, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    (version,) = versions(url, "dataset")
    files.pipe_file(f"{root}/dataset/{version}/prompts", b"half")
    with pytest.raises(StoreError, match=r"dataset/\w+/prompts is not what its manifest says: publish again"):
        Store(url).fetch(there, [there / "dataset"])
    assert not (there / "dataset").exists()


def test_a_rollback_reaches_the_other_machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDORACLE_STORE", url)
    here, there = (machine(tmp_path / name, monkeypatch) for name in ("here", "there"))
    policies = Policies(here.path)
    policies.promote(trained(here.path, "a"), evaluated(here.path, "evaluation", 0.6), None)
    served = evaluated(here.path, "served_evaluation", 0.6)
    policies.promote(trained(here.path, "b"), evaluated(here.path, "evaluation", 0.7), served)
    here.publish(*policies.kept, policies.state)
    result = CliRunner().invoke(app, ["policy", "rollback", str(there.path), "--json"])
    assert result.exit_code == 0, result.output
    here.fetch(policies.state)
    assert policies.history[-1].why.startswith("rolled back from")
    assert policies.served.name == json.loads(result.output)["policy"]


def test_what_was_made_before_is_published_by_a_command(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", Workspace(str(tmp_path / "there"))
    write(here / "plans" / "farm", labels="a")
    write(here / "plans" / ".partial", labels="half")
    write(here / "models" / ".grpo.partial", checkpoint="half")
    write(here, **{"report.html": "page", "report.json": "{}"})
    for said in ("published plans/farm, 1 file(s)", ""):  # the second time there is nothing to do
        result = CliRunner().invoke(app, ["publish", str(here), "--to", url])
        assert result.exit_code == 0, result.output
        assert result.output.startswith(said)
    assert result.output == ""
    Store(url).fetch(there.path, [there.plan("farm"), there.report])
    assert read(there.plan("farm")) == {"labels": "a"}
    assert there.report.read_text() == "page"
    files, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    assert not [path for path in files.find(root) if "partial" in path]
    assert CliRunner().invoke(app, ["publish", str(tmp_path / "empty"), "--to", url]).exit_code == 1
    assert CliRunner().invoke(app, ["publish", str(here)], env={"LANDORACLE_STORE": ""}).exit_code == 1


def test_what_cannot_be_used_is_said_with_the_reason(
    s3: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write(tmp_path / "plans" / "farm", labels="a")
    absent = {
        "s3://other/landoracle": r"s3://other/landoracle: there is no other: make it",
        f"file://{tmp_path}/not/mounted": r"there is no .*/not/mounted: make it, or mount it",
        "nothing://bucket": r"nothing://bucket: cannot be opened: ValueError: Protocol not known",
    }
    for url, reason in absent.items():
        with pytest.raises(StoreError, match=reason):
            Store(url).fetch(tmp_path, [plan])
        with pytest.raises(StoreError, match=reason):
            Store(url).publish(tmp_path, [plan])
    ask(server, "reset-auth", b"0")  # from now on it looks at keys
    try:
        with pytest.raises(StoreError, match=r"PermissionError: .*; check the credentials"):
            Store(s3).fetch(tmp_path, [plan])
        with pytest.raises(StoreError, match=r"plans/farm was not published: PermissionError: .*check the credentials"):
            Store(s3).publish(tmp_path, [plan])
    finally:
        ask(server, "reset-auth", b"inf")


def test_a_store_that_is_gone_fails_the_stage_and_skips_nothing(
    drop_folder: Path,
    workspace: Workspace,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dataset without the landscapes that could not be fetched would look like a good one."""
    write_landscape(drop_folder, "farm", 1, "train")
    instance.add_dynamic_partitions(str(LANDSCAPES.name), ["farm"])
    assert execute(solve_landscape.name, instance, partition_key="farm").success
    monkeypatch.setenv("LANDORACLE_STORE", f"file://{tmp_path}/mounted")
    result = execute(retrain.name, instance, asset_selection=[prompt_dataset.key])
    assert not result.success
    assert "there is no" in failure(result)
    assert not workspace.dataset.exists()
