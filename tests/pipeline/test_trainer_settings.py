"""Unknown names in `sft` and `grpo` are refused before anything runs, and TRL is not imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oracle.errors import ConfigurationError
from pipeline import trainer_settings
from pipeline.cli import app
from pipeline.trainer_settings import known_settings, refuse_unknown_settings
from training.config import PROFILES, load_profile

pytest.importorskip("trl")

ALONE = """
import sys, time
from pipeline.trainer_settings import known_settings
started = time.monotonic()
names = [len(known_settings(name)) for name in ("SFTConfig", "GRPOConfig")]
took = time.monotonic() - started
assert min(names) > 100, names
assert not {"torch", "transformers", "trl"} & set(sys.modules)
print(took)
"""


def test_the_names_are_those_of_the_installed_release() -> None:
    from trl import GRPOConfig, SFTConfig

    for kind in (SFTConfig, GRPOConfig):
        assert known_settings(kind.__name__) == set(kind.__dataclass_fields__)


def test_nothing_heavy_is_imported_and_it_takes_no_time() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 3


def test_every_unknown_name_is_refused_with_the_nearest() -> None:
    config = load_profile("pocket", ["sft.learning_rat=1e-4", "grpo.num_generation=4", "grpo.beta=0.1"])
    with pytest.raises(ConfigurationError) as refused:
        refuse_unknown_settings(config)
    assert "sft.learning_rat (did you mean learning_rate?); grpo.num_generation (did you mean" in str(refused.value)
    assert "beta" not in str(refused.value).replace("num_generation", "")


@pytest.mark.parametrize(
    "command",
    [
        "train {0} --out {0}/runs --set sft.learning_rat=1",
        "ablate {0} --out {0}/ablation --set sft.learning_rat=1",
        "launch slurm {0} --out {0}/runs --set sft.learning_rat=1 --dry-run",
        "demo --out {0}/demo --set sft.learning_rat=1",
    ],
)
def test_commands_refuse_them_before_anything_runs(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, command.format(tmp_path).split())
    assert result.exit_code == 1
    assert "sft.learning_rat (did you mean learning_rate?)" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.yaml")))
def test_the_profiles_and_both_names_of_a_setting_pass(profile: str) -> None:
    refuse_unknown_settings(load_profile(profile))
    for name in ("gradient_checkpointing", "activation_checkpointing"):  # one of them is the installed release's
        refuse_unknown_settings(load_profile(profile, [f"sft.{name}=true"]))


def test_another_layout_of_trl_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known_settings.cache_clear()
    monkeypatch.setattr(trainer_settings, "BASE", "transformers/elsewhere.py")
    refuse_unknown_settings(load_profile("pocket", ["sft.learning_rat=1e-4"]))
    known_settings.cache_clear()


def test_a_recipe_with_a_name_that_trl_does_not_know_makes_no_profile(tmp_path: Path) -> None:
    recipe = tmp_path / "old.yaml"
    recipe.write_text("reward_funcs: [lu_reward]\nlearning_rat: 1.0e-6\n")
    refused = CliRunner().invoke(app, ["migrate", str(recipe), "--out", str(tmp_path / "new.yaml")])
    assert refused.exit_code == 1
    assert "grpo.learning_rat (did you mean learning_rate?)" in " ".join(refused.stderr.split())
    assert not (tmp_path / "new.yaml").exists()


@pytest.mark.parametrize("command", ["train {0} --out {0}/runs", "launch slurm {0} --out {0}/runs --dry-run"])
def test_a_group_that_does_not_fit_is_refused_before_sft_is_trained(command: str, tmp_path: Path) -> None:
    words = [*command.format(tmp_path).split(), "--profile", "pocket", "--set", "grpo.num_generations=7"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "grpo.num_generations 7 must divide the completions of one generation" in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())
