"""One training at a time on a device; a full disk; a killed launcher and its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

from oracle.errors import TrainingError
from training.config import Stage, load_profile
from training.devices import claimed, devices_of
from training.launch import environment, run_command, training_command

SaveFrame = Callable[[pd.DataFrame, Path], object]
SMALL = ["model.hidden=32", "model.layers=1", "model.intermediate=64", "sft.per_device_train_batch_size=8"]

HOLD = """
import sys, time
from pathlib import Path
from training.devices import claimed
with claimed(["gpu0"], Path(sys.argv[1])):
    print("has it", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDORACLE_LOCKS", str(tmp_path / "locks"))


def _holder(run: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(run), str(seconds)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "has it\n"
    return process


def test_the_second_run_on_a_device_is_told_who_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDORACLE_DEVICE_WAIT_S", "0")
    first = _holder(tmp_path / "first", 60)
    told = rf"gpu0 is taken by process {first.pid} \(run {tmp_path}/first, since "
    with pytest.raises(TrainingError, match=told), claimed(["gpu0", "gpu1"], tmp_path / "second"):
        pytest.fail("two runs on one device")
    with claimed(["gpu1"], tmp_path / "second"):  # another device is free, and nothing of the refused claim is left
        pass
    first.send_signal(signal.SIGKILL)
    first.wait()
    with claimed(["gpu0"], tmp_path / "second"):  # the dead hold nothing
        pass


def test_or_it_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = _holder(tmp_path / "first", 0.5)
    with claimed(["gpu0"], tmp_path / "second"):
        assert first.wait(timeout=5) == 0
    assert f"gpu0 is taken by process {first.pid}" in capsys.readouterr().err


def test_which_devices_a_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7,8")
    assert devices_of(load_profile("gpu"), Stage.GRPO) == ("gpu2", "gpu3", "gpu5", "gpu7")
    assert devices_of(load_profile("pocket"), Stage.SFT) == ("cpu",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert devices_of(load_profile("gpu"), Stage.GRPO) == ("cpu",)


def test_workers_of_a_killed_launcher_do_not_live_on() -> None:
    """As `accelerate launch` starts them; the launcher is killed from outside, as the kernel does short of memory."""
    worker = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
    launcher = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    workers: list[int] = []

    def kill_its_launcher(line: str) -> None:
        workers.append(int(line))
        os.kill(int(Path(f"/proc/{line}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)

    with pytest.raises(TrainingError, match="was killed by SIGKILL"):
        run_command([sys.executable, "-c", launcher], on_line=kill_its_launcher)
    deadline = time.monotonic() + 10
    while alive(workers[0]):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(
    small_disk: Path, tmp_path: Path, make_frame: Callable[..., pd.DataFrame], save_frame: SaveFrame
) -> None:
    """A checkpoint that does not fit ends the run with its reason; with room again, the run goes on and finishes."""
    save_frame(make_frame(), tmp_path / "dataset")
    out, settings = small_disk / "sft", ["threads=1", "sft.max_steps=60", "sft.save_steps=4", *SMALL]
    command = training_command(Stage.SFT, tmp_path / "dataset", "pocket", out, overrides=settings)
    filler, first = small_disk / "filler", small_disk / ".sft.partial/trainer/checkpoint-4/inventory.json"

    def fill() -> None:
        while not first.is_file():
            time.sleep(0.01)
        room = os.statvfs(small_disk)
        filler.write_bytes(b"0" * (room.f_bavail * room.f_frsize - 20_000))

    Thread(target=fill, daemon=True).start()
    with pytest.raises(
        TrainingError, match=r"(?i)no space left on device(.|\n)*goes on from the last complete checkpoint"
    ):
        run_command(command, on_line=lambda line: None)
    assert not out.exists()
    filler.unlink()
    run_command(command, on_line=lambda line: None)
    metrics = pd.read_parquet(out / "metrics.parquet")
    assert metrics["step"].tolist() == list(range(1, 61))
