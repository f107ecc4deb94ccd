"""Launching: commands without a shell, children that end with their parents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oracle.errors import ConfigurationError, TrainingError
from training.config import Stage
from training.launch import environment, evaluation_command, run_command, training_command


def test_one_process_runs_the_module(tmp_path: Path) -> None:
    command = training_command(Stage.SFT, tmp_path / "a b; rm", "pocket", tmp_path / "out", overrides=["seed=3"])
    assert command == [
        *(sys.executable, "-m", "training", "sft", "--dataset", str(tmp_path / "a b; rm")),
        *("--config", "pocket", "--out", str(tmp_path / "out"), "--set", "seed=3"),
    ]


def test_four_gpus_run_under_accelerate(tmp_path: Path) -> None:
    command = training_command(Stage.GRPO, tmp_path, "gpu", tmp_path / "out", start=tmp_path / "sft")
    module = command.index("--module")
    assert command[:3] == [sys.executable, "-m", "accelerate.commands.launch"]
    assert command[command.index("--num_processes") + 1] == "4"
    assert command[command.index("--mixed_precision") + 1] == "bf16"
    assert command[module + 1 : module + 3] == ["training", "grpo"]
    assert command[-2:] == ["--start", str(tmp_path / "sft")]


def test_accelerate_knows_every_option_of_the_command(tmp_path: Path) -> None:
    from accelerate.commands.launch import launch_command_parser

    command = training_command(Stage.GRPO, tmp_path, "gpu", tmp_path / "out", start="x", overrides=["grpo.beta=0.01"])
    parsed = launch_command_parser().parse_args(command[3:])
    assert (parsed.module, parsed.multi_gpu, parsed.num_processes) == (True, True, 4)
    assert parsed.training_script == "training"
    assert parsed.training_script_args == command[command.index("training") + 1 :]


def test_a_wrong_override_is_refused_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="warmup_steps"):
        training_command(Stage.SFT, tmp_path, "pocket", tmp_path, overrides=["sft.warmup_ratio=0.1"])


def test_offline_settings_of_the_parent_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    child = environment()
    assert (child["HF_HUB_OFFLINE"], child["TOKENIZERS_PARALLELISM"]) == ("1", "true")
    assert child["HF_HUB_DISABLE_TELEMETRY"] == "1"


def test_a_refusal_of_the_child_comes_back_as_its_own_words(tmp_path: Path) -> None:
    lines: list[str] = []
    command = evaluation_command(tmp_path / "none", "pocket", tmp_path / "out", {"sft": tmp_path})
    with pytest.raises(TrainingError, match="is not a prompt dataset"):
        run_command(command, on_line=lines.append)
    assert lines[-1].startswith("error: ")


@pytest.mark.skipif(sys.platform != "linux", reason="the parent's end is told by a Linux call")
def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    child = (
        "import os, pathlib, sys, time; from training.launch import end_with_parent; end_with_parent();"
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)"
    )
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    process = subprocess.Popen([sys.executable, "-c", parent, child, str(pid_file)], env=environment())
    deadline = time.monotonic() + 60
    while not (pid_file.is_file() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(pid_file.read_text())
    process.kill()
    process.wait()
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if _alive(pid):
        os.kill(pid, signal.SIGKILL)
        pytest.fail("the child outlived its parent")


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_interrupt_ends_the_child_and_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool
) -> None:
    """Both when the child stops on being asked, and when it ignores every signal that can be ignored."""
    monkeypatch.setattr("training.launch.PATIENCE_S", {signal.SIGINT: 1.0, signal.SIGTERM: 1.0, signal.SIGKILL: 10.0})
    deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    grandchild = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
    start = f"subprocess.run([sys.executable, '-c', {grandchild!r}])"
    child = f"import signal, subprocess, sys; {deaf if stubborn else ''} {start}"
    started: list[int] = []

    def interrupt(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command([sys.executable, "-c", child], on_line=interrupt)
    deadline = time.monotonic() + 10
    while _alive(started[0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(started[0])


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
