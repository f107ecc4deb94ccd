"""The last good policy stays served until a better one has been evaluated, and can be gone back to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oracle.errors import TrainingError
from oracle.files import write_json, write_text
from pipeline.cli import app
from pipeline.policy import Policies


def trained(root: Path, weights: str) -> Path:
    """A finished run, which replaces the one before it, as training does."""
    run = root / "models" / "grpo"
    write_text(run / "model.safetensors", weights)
    write_json(run / "run.json", {"weights_sha256": weights * 12})
    return run


def evaluated(root: Path, name: str, accuracy: float, majority: float = 0.4) -> Path:
    """``accuracy`` on landscapes never seen; on blocks everything is right."""
    figures = {"held_out_block": {"accuracy": 1.0}, "held_out_landscape": {"accuracy": accuracy}}
    plain = {"held_out_block": {"accuracy": 0.0}, "held_out_landscape": {"accuracy": majority}}
    write_json(root / name / "evaluation.json", {"models": {"x": figures}, "baselines": {"majority": plain}})
    return root / name


def test_a_better_policy_takes_the_place_and_a_worse_one_does_not(tmp_path: Path) -> None:
    policies = Policies(tmp_path)

    def offer(weights: str, accuracy: float, served_now: float | None = None) -> bool:
        run = trained(tmp_path, weights)
        compared = None if served_now is None else evaluated(tmp_path, "served_evaluation", served_now)
        return policies.promote(run, evaluated(tmp_path, "evaluation", accuracy), compared).promoted

    def served() -> str:
        assert policies.served is not None
        return (policies.served / "model.safetensors").read_text()

    assert not offer("a", 0.40)  # no better than the commonest class
    assert policies.served is None
    assert offer("b", 0.60)
    assert served() == "b"
    assert not offer("c", 0.60, served_now=0.60)  # not better
    assert served() == "b"  # and kept whole, though training has replaced its run
    assert offer("d", 0.55, served_now=0.50)  # on today's rows the served one is worse than it was on its own
    assert served() == "d"
    with pytest.raises(TrainingError, match="has not been evaluated on the same rows"):
        offer("e", 0.9)

    assert policies.roll_back().policy == "b" * 12
    assert served() == "b"
    assert not offer("d", 0.99, served_now=0.1)  # withdrawn by hand
    with pytest.raises(TrainingError, match="no predecessor"):
        policies.roll_back()
    assert offer("f", 0.9, served_now=0.5)
    assert [change.policy[0] for change in policies.history] == ["b", "d", "b", "f"]
    assert policies.roll_back().policy == "b" * 12


def test_on_the_command_line(tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["policy", *words, str(tmp_path), "--json"])
        return result.exit_code, result.stdout, " ".join(result.stderr.split())

    code, _, said = run("show")
    assert code == 1
    assert "serves no policy yet" in said
    policies = Policies(tmp_path)
    policies.promote(trained(tmp_path, "a"), evaluated(tmp_path, "evaluation", 0.6), None)
    served = evaluated(tmp_path, "served_evaluation", 0.6)
    policies.promote(trained(tmp_path, "b"), evaluated(tmp_path, "evaluation", 0.7), served)
    assert json.loads(run("show")[1])["folder"] == str(tmp_path / "policies" / ("b" * 12))
    assert json.loads(run("rollback")[1]) == {"policy": "a" * 12, "why": f"rolled back from {'b' * 12}"}
    code, _, said = run("rollback")
    assert code == 1
    assert "no predecessor" in said
