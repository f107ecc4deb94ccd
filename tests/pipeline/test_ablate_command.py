"""``landoracle ablate``: what it refuses before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arms", "sft,grpo"], "unknown arm grpo"),
        (["--arms", "sft", "--set", "grpo.beta=0"], "allow_zero_beta"),
        (["--arms", "sft_grpo", "--set", "sft_grpo:grpo.warmup_ratio=0.1"], "warmup_steps"),
        (["--arms", "sft"], "is not a prompt dataset"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(options: list[str], said: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["ablate", str(tmp_path / "none"), "--out", str(tmp_path / "out"), *options])
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
