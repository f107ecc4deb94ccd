"""A real Slurm on loopback: two nodes, two tasks, a stage stopped at a limit and gone on with.

Needs root and Debian's ``slurmctld slurmd slurm-client munge``; skipped where they are not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.config import Stage
from training.slurm import SlurmConfig, slurm_script, submit

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch")
PORT = 27_000 + os.getpid() % 2000 * 3

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, DAEMONS)), reason="needs root and a Slurm installed here"
)

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
MpiDefault=none
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port1} CPUs=1 RealMemory=1000
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port2} CPUs=1 RealMemory=1000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=60 State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Daemons with a key, a socket and ports of their own."""
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "state").mkdir()
    folder.chmod(0o755)
    key, configuration = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(64))
    key.chmod(0o400)
    configuration.write_text(CONFIGURATION.format(folder=folder, port=PORT, port1=PORT + 1, port2=PORT + 2))
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    environment = os.environ | {"SLURM_CONF": str(configuration)}
    started = []
    try:
        for command in (
            ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files],
            ["slurmctld", "-D", "-c"],
            *(["slurmd", "-D", "-N", node] for node in ("node1", "node2")),
        ):
            with (folder / f"{command[0]}.out").open("a") as log:
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                _until(lambda: (folder / "munge.socket").exists(), 10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(configuration))
            _until(lambda: _out("sinfo", "--noheader", "--format=%D %t") == "2 idle", 30)
            yield folder
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=20)


def test_two_tasks_on_two_nodes_for_each_stage(slurm: Path, tmp_path: Path) -> None:
    """Each node's launcher gets its rank, the first node's name and the whole command; the folder's name is nasty."""
    python = _script(tmp_path / "py thon", f'echo "$SLURMD_NODENAME $HF_HUB_OFFLINE $*" >> "{tmp_path}/ran"')
    out = tmp_path / "o'ut; touch owned $(touch owned)"
    config = SlurmConfig(nodes=2, gpus_per_node=0, cpus_per_task=1, time="10", grace_s=60, python=str(python))
    script = slurm_script(config, tmp_path / "data", "pocket", out)
    job = submit(script, out)
    _until(lambda: _state(job) == "COMPLETED", 60)
    ran = sorted((tmp_path / "ran").read_text().splitlines())
    assert [line.split()[:5] for line in ran] == [
        [node, "1", "-m", "accelerate.commands.launch", "--machine_rank"]
        for node in ("node1", "node1", "node2", "node2")
    ]
    for line in ran:
        host = line.startswith("node1")
        assert f"--machine_rank {int(not host)} --rdzv_conf is_host={int(host)} --multi_gpu --num_machines 2" in line
        assert f"--main_process_ip node1 --main_process_port {20000 + int(job)}" in line
    assert sum(" training grpo " in line for line in ran) == 2
    assert f"job {job} on node[1-2], start 0" in (out / f"slurm-{job}.log").read_text()
    assert not list(tmp_path.rglob("owned"))


def test_a_job_warned_of_its_end_is_requeued_and_a_failing_one_is_not(slurm: Path, tmp_path: Path) -> None:
    """The warning is sent by hand; Slurm sends the same signal to the same process."""
    body = f"trap 'echo stopped >> {tmp_path}/ran; exit 75' TERM; echo started >> {tmp_path}/ran; sleep 60 & wait"
    settings = {"gpus_per_node": 0, "cpus_per_task": 1, "time": "10", "grace_s": 60}
    config = SlurmConfig.model_validate({**settings, "python": str(_script(tmp_path / "python", body))})
    job = submit(slurm_script(config, tmp_path, "pocket", tmp_path / "out", stages=[Stage.SFT]), tmp_path / "out")
    _until(lambda: (tmp_path / "ran").exists(), 60)
    _out("scancel", "--batch", "--signal=USR1", job)
    _until(lambda: _state(job) == "PENDING", 60)
    assert (tmp_path / "ran").read_text().split() == ["started", "stopped"]
    assert "Restarts=1" in _out("scontrol", "show", "job", "-o", job)
    _out("scancel", job)
    config = SlurmConfig.model_validate({**settings, "python": str(_script(tmp_path / "fails", "exit 3"))})
    job = submit(slurm_script(config, tmp_path, "pocket", tmp_path / "out"), tmp_path / "out")
    _until(lambda: _state(job) == "FAILED", 60)
    assert "ExitCode=3:0" in _out("scontrol", "show", "job", "-o", job)


def _script(file: Path, body: str) -> Path:
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)
    return file


def _out(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _state(job: str) -> str:
    fields = dict(field.partition("=")[::2] for field in _out("scontrol", "show", "job", "-o", job).split())
    return fields.get("JobState", "")


def _until(condition: object, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)
