"""Generator and trainer must mean the same model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from oracle.errors import TrainingError
from training.agreement import VLLM_FIGURE, agreement_callback
from training.config import load_profile
from training.grpo import run_grpo
from training.models import save_pocket

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=256"),
    *("grpo.per_device_train_batch_size=8", "grpo.max_steps=1", "grpo.save_steps=1", "grpo.max_completion_length=16"),
    *("guard.on=false", "threads=1"),
]


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=2, rows=10)


@pytest.fixture(scope="module")
def start(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_pocket(load_profile("pocket", TINY).model, frame, folder, seed=0)
    return folder


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_they_agree_to_rounding_at_any_temperature(
    frame: pd.DataFrame, start: Path, tmp_path: Path, temperature: float
) -> None:
    config = load_profile("pocket", [*TINY, f"grpo.temperature={temperature}", "logp_tolerance=1e-4"])
    assert run_grpo(frame, config, tmp_path / "grpo", start).is_dir()


def test_a_generator_at_another_temperature_is_found(
    frame: pd.DataFrame, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl import GRPOTrainer

    init = GRPOTrainer.__init__

    def hotter(self: GRPOTrainer, *given: object, **named: object) -> None:
        init(self, *given, **named)
        self.generation_config.temperature = 0.2

    monkeypatch.setattr(GRPOTrainer, "__init__", hotter)
    with pytest.raises(TrainingError, match="log-probabilities of generator and trainer differ"):
        run_grpo(frame, load_profile("pocket", TINY), tmp_path / "grpo", start)


def test_vllm_s_own_figure_is_read_after_the_first_step() -> None:
    trainer = SimpleNamespace(use_vllm=True, _metrics={"train": {VLLM_FIGURE: [0.3]}})
    callback = agreement_callback(trainer, [], tolerance=0.05)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=r"differ by 0\.3 nats"):
        callback.on_step_end(None, SimpleNamespace(global_step=1), None)
    callback.on_step_end(None, SimpleNamespace(global_step=2), None)
