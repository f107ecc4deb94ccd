"""Checkpoints that can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.errors import TrainingError
from training.checkpoint import newest_complete, seal
from training.config import Stage, load_profile
from training.run import METRICS, open_run


def _checkpoint(folder: Path, step: int, *, sealed: bool = True) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    (checkpoint / "optimizer.pt").write_bytes(b"moments")
    if sealed:
        seal(checkpoint)
    return checkpoint


def test_the_newest_is_by_step_and_not_by_name_or_time(tmp_path: Path) -> None:
    ten = _checkpoint(tmp_path, 10)
    _checkpoint(tmp_path, 9)
    assert newest_complete(tmp_path) == ten


@pytest.mark.parametrize("damage", ["never sealed", "cut off", "file missing", "inventory cut off"])
def test_a_half_written_checkpoint_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    before = _checkpoint(tmp_path, 10)
    last = _checkpoint(tmp_path, 20, sealed=damage != "never sealed")
    match damage:
        case "cut off":
            (last / "optimizer.pt").write_bytes(b"mom")
        case "file missing":
            (last / "model.safetensors").unlink()
        case "inventory cut off":
            (last / "inventory.json").write_text('{"model.saf')
    assert newest_complete(tmp_path) == before
    assert not last.exists()


def test_without_a_complete_checkpoint_a_run_starts_anew(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 10, sealed=False)
    assert newest_complete(tmp_path) is None


def test_figures_after_the_checkpoint_and_cut_off_lines_are_forgotten(tmp_path: Path) -> None:
    config = load_profile("pocket")
    with open_run(tmp_path / "run", Stage.SFT, config, "", None) as run:
        _checkpoint(run.trainer_dir, 2)
        for step in (1, 2, 3):
            run.append(METRICS, {"step": step, "loss": 1.0 / step})
        with (run.partial / "metrics.jsonl").open("a") as file:
            file.write('{"step": 4, "lo')
    with open_run(tmp_path / "run", Stage.SFT, config, "", None) as run:
        run.checkpoint()
        assert (run.partial / "metrics.jsonl").read_text() == '{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.5}\n'


def test_a_partial_run_of_other_settings_is_discarded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_run(tmp_path / "run", Stage.SFT, load_profile("pocket"), "", None) as run:
        _checkpoint(run.trainer_dir, 2)
    with open_run(tmp_path / "run", Stage.SFT, load_profile("pocket", ["seed=1"]), "", None) as run:
        assert run.checkpoint() is None
    assert "other settings" in capsys.readouterr().err


def test_two_processes_never_write_one_run(tmp_path: Path) -> None:
    config = load_profile("pocket")
    with (
        open_run(tmp_path / "run", Stage.SFT, config, "", None),
        pytest.raises(TrainingError, match="another process"),
        open_run(tmp_path / "run", Stage.SFT, config, "", None),
    ):
        pass
