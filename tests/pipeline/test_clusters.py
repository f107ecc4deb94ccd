"""The configurations for Kubernetes and Ray load in the installed integrations; no cluster is asked."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest
import yaml

from oracle.errors import ConfigurationError
from pipeline.executors import load_executor
from pipeline.sources import PROJECT
from tests.pipeline.operations import storage

DOCS = PROJECT / "docs"
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {"token": "none"}}],
    "contexts": [{"name": "here", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "current-context": "here",
}


def instance_with(home: Path, launcher: str, **outside_the_cluster: object) -> dg.DagsterInstance:
    """The project's ``dagster.yaml`` with the run launcher of a file in docs."""
    file = storage(home) / "dagster.yaml"
    settings = yaml.safe_load(file.read_text()) | yaml.safe_load((DOCS / launcher).read_text())
    settings["run_launcher"]["config"] |= outside_the_cluster
    file.write_text(yaml.safe_dump(settings))
    return dg.DagsterInstance.from_config(str(home))


def stated_tag(file: str) -> dict[str, str]:
    """The tag that the file's comment offers for a GPU."""
    tags = re.findall(r"^#   (dagster-\w+/config): (.*)$", (DOCS / file).read_text(), re.MULTILINE)
    assert len(tags) == 1
    return dict(tags)


def test_kubernetes_runs_get_image_store_and_volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dagster_k8s", reason="needs the extra kubernetes")
    from dagster_k8s.job import construct_dagster_k8s_job

    monkeypatch.setenv("LANDORACLE_IMAGE", "registry/landoracle:1")
    monkeypatch.setenv("LANDORACLE_STORE", "s3://bucket/landoracle")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(NOWHERE))
    outside = {"load_incluster_config": False, "kubeconfig_file": str(kubeconfig)}
    with instance_with(tmp_path / "dagster", "dagster_kubernetes.yaml", **outside) as instance:
        launcher = instance.run_launcher
        run = dg.DagsterRun("retrain", tags=stated_tag("dagster_kubernetes.yaml"))
        context = launcher.get_container_context_for_run(run)
        job = construct_dagster_k8s_job(
            context.get_k8s_job_config(job_image=None, run_launcher=launcher),
            args=["dagster"],
            job_name="run",
            user_defined_k8s_config=context.run_k8s_config,
        ).to_dict()
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "registry/landoracle:1"
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables["LANDORACLE_STORE"] == "s3://bucket/landoracle"
    assert variables["LANDORACLE_LANDSCAPES"] == "/landscapes"
    assert {"/landscapes", "/workspace"} <= {mount["mount_path"] for mount in container["volume_mounts"]}
    assert {"landscapes", "workspace"} <= {volume["name"] for volume in pod["volumes"]}
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert [source["secret_ref"]["name"] for source in container["env_from"]] == ["landoracle"]


def test_ray_runs_get_address_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dagster_ray", reason="needs the extra ray")
    from dagster_ray.configs import RayExecutionConfig

    monkeypatch.setenv("RAY_ADDRESS", "http://head:8265")
    with instance_with(tmp_path / "dagster", "dagster_ray.yaml") as instance:
        launcher = instance.run_launcher
        assert type(launcher).__name__ == "RayRunLauncher"
        assert (launcher.address, launcher.num_cpus) == ("http://head:8265", 1)
        assert "LANDORACLE_STORE" in launcher.env_vars
    assert RayExecutionConfig.from_tags(stated_tag("dagster_ray.yaml")).num_gpus == 1


@pytest.mark.parametrize(
    ("file", "package", "extra"),
    [
        ("executor_kubernetes.yaml", "dagster_k8s", "kubernetes"),
        ("executor_ray.yaml", "dagster_ray", "ray"),
        ("executor_celery.yaml", "dagster_celery", "celery"),
    ],
)
def test_executors_take_their_settings(
    file: str, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=f"needs the extra {extra}")
    for name in ("RAY_ADDRESS", "LANDORACLE_BROKER", "LANDORACLE_BROKER_RESULTS"):
        monkeypatch.setenv(name, "http://head:8265")
    assert isinstance(load_executor(DOCS / file), dg.ExecutorDefinition)
    broken = yaml.safe_load((DOCS / file).read_text())
    broken["execution"]["config"]["brokr"] = "x"
    copy = tmp_path / file
    copy.write_text(yaml.safe_dump(broken))
    with pytest.raises(ConfigurationError, match="brokr"):
        load_executor(copy)
