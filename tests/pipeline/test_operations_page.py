"""docs/operations.md: its commands run, its tests and variables exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.policy import Policies
from pipeline.sources import PROJECT
from tests.pipeline.test_policy import evaluated, trained

PAGE = (PROJECT / "docs" / "operations.md").read_text(encoding="utf-8")
STARTED_ELSEWHERE = {"landoracle ui", "landoracle demo"}  # test_interrupts


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("LANDORACLE_STORE", f"file://{tmp_path}/store")
    root = tmp_path / "runs" / "demo"
    policies = Policies(root)
    policies.promote(trained(root, "a"), evaluated(root, "evaluation", 0.6), None)
    served = evaluated(root, "served_evaluation", 0.6)
    policies.promote(trained(root, "b"), evaluated(root, "evaluation", 0.7), served)
    commands = [line.partition("#")[0].strip() for line in re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)]
    assert set(commands) >= STARTED_ELSEWHERE
    for command in commands:
        if command not in STARTED_ELSEWHERE:
            result = CliRunner().invoke(app, shlex.split(command)[1:])
            assert result.exit_code == 0, result.output


def test_every_test_and_variable_exists() -> None:
    for name in set(re.findall(r"`(test_\w+)`", PAGE)):
        assert list((PROJECT / "tests").rglob(f"{name}.py")), name
    code = "".join(path.read_text() for folder in ("pipeline", "training") for path in (PROJECT / folder).glob("*.py"))
    for name in set(re.findall(r"`(LANDORACLE_\w+)`", PAGE)):
        assert f'"{name}"' in code
