"""The ablation: which runs it needs, that none is repeated, and its figures by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oracle.errors import ConfigurationError, TrainingError
from training.ablate import ARMS, EVALUATED, Ablation, Run, ablate, overrides_of, runs_of
from training.ablation_results import difference, results
from training.config import load_profile


def test_starts_come_before_what_starts_from_them_and_sft_always() -> None:
    runs = runs_of(["format_only_grpo", "beta_zero"], seeds=2)
    names = ["sft", "format_only", "format_only_grpo", "beta_zero"]
    assert [run.name for run in runs] == [f"{name}-{seed}" for seed in (0, 1) for name in names]


@pytest.mark.parametrize(("arms", "seeds"), [(["sft", "grp"], 1), ([], 1), (["sft"], 0)])
def test_what_cannot_be_run_is_refused(arms: list[str], seeds: int) -> None:
    with pytest.raises(ConfigurationError, match="arms are sft, sft_grpo"):
        runs_of(arms, seeds)


def test_every_arm_is_a_usable_profile() -> None:
    for name, arm in ARMS.items():
        config = load_profile("pocket", overrides_of(Run(name, 4), []))
        assert config.seed == 4
        assert arm.start is None or ARMS[arm.start].stage == "sft"


def test_a_change_goes_to_every_arm_or_to_the_one_named() -> None:
    changes = ["grpo.max_steps=9", "sft_grpo:grpo.max_steps=3", "rewards.training.x:reward=1"]
    assert overrides_of(Run("sft_grpo", 0), changes) == [
        *("grpo.max_steps=9", "rewards.training.x:reward=1", "grpo.max_steps=3", "seed=0")
    ]
    assert "grpo.max_steps=3" not in overrides_of(Run("beta_zero", 0), changes)


def test_a_change_for_every_arm_leaves_an_arm_what_it_is() -> None:
    changes = ["grpo.beta=0.1", "sft.max_steps=600", "format_only:sft.max_steps=60"]
    assert load_profile("pocket", overrides_of(Run("sft_grpo", 0), changes)).grpo["beta"] == 0.1
    assert load_profile("pocket", overrides_of(Run("beta_zero", 0), changes)).grpo["beta"] == 0
    assert load_profile("pocket", overrides_of(Run("sft", 0), changes)).sft["max_steps"] == 600
    assert load_profile("pocket", overrides_of(Run("format_only", 0), changes)).sft["max_steps"] == 60


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what would have been trained or evaluated; each leaves the record that a run leaves."""
    from training.run import weights_sha256

    names: list[str] = []

    def pretend(command: Sequence[str]) -> None:
        option = dict(itertools.pairwise(command))
        out = Path(option["--out"])
        names.append(out.name)
        settings = [b for a, b in itertools.pairwise(command) if a == "--set"]
        config = load_profile(option["--config"], settings)
        dataset = json.loads((Path(option["--dataset"]) / "manifest.json").read_text())["files"]["prompts.parquet"]
        out.mkdir(parents=True, exist_ok=True)
        record = {"config_sha256": config.sha256, "dataset_sha256": dataset}
        if "evaluate" in command:
            models = [b.partition("=") for a, b in itertools.pairwise(command) if a == "--model"]
            record |= {"weights_sha256": {name: weights_sha256(Path(folder)) for name, _, folder in models}}  # type: ignore[dict-item]
            (out / "evaluation.json").write_text(json.dumps(record))
            return
        (out / "model.safetensors").write_text(f"{out.name} {config.sha256}")
        record["start"] = weights_sha256(Path(option["--start"])) if "--start" in option else "as configured"
        (out / "run.json").write_text(json.dumps(record))

    monkeypatch.setattr("training.ablate.run_command", pretend)
    return names


def test_what_is_finished_is_not_run_again(
    launched: list[str], make_frame: Callable[..., pd.DataFrame], save_frame: Callable[..., object], tmp_path: Path
) -> None:
    save_frame(make_frame(landscapes=2, rows=5), tmp_path / "data")

    finished: list[Run] = []

    def again(*changes: str, arms: Sequence[str] = ("sft_grpo", "answer_only")) -> list[str]:
        launched.clear()
        finished[:] = ablate(Ablation(tmp_path / "data", tmp_path / "out", "pocket", changes), arms, 1, lambda _: None)
        return list(launched)

    assert again() == ["sft-0", "sft_grpo-0", "answer_only-0", "evaluation"]
    assert again() == []
    assert again("sft_grpo:grpo.max_steps=3") == ["sft_grpo-0", "evaluation"]
    assert again("sft_grpo:grpo.max_steps=3", "sft:sft.max_steps=7") == ["sft-0", "sft_grpo-0", "evaluation"]
    (tmp_path / "out" / "sft_grpo-0" / "run.json").unlink()
    assert again("sft_grpo:grpo.max_steps=3", "sft:sft.max_steps=7") == ["sft_grpo-0"]
    assert again("sft_grpo:grpo.max_steps=3", "sft:sft.max_steps=7", arms=["beta_zero"]) == [
        "beta_zero-0",
        "evaluation",
    ]
    assert [run.name for run in finished] == ["sft-0", "sft_grpo-0", "beta_zero-0", "answer_only-0"]
    again("completions_every=7", arms=["sft"])  # other settings: what was finished under the old ones does not count
    assert [run.name for run in finished] == ["sft-0"]


def _decided(correct: Sequence[int]) -> pd.DataFrame:
    rows = len(correct)
    return pd.DataFrame(
        {
            "correct": np.array(correct, dtype=bool),
            "landscape": [f"l{i * 2 // rows}" for i in range(rows)],
            "block": [f"b{i}" for i in range(rows)],
        },
        index=pd.Index([f"p{i}" for i in range(rows)], name="prompt_id"),
    )


def test_a_difference_by_hand() -> None:
    """Four rows of two landscapes, two seeds: +1 of 4 and +2 of 4, so 3/8; in l0 it is 1/4, in l1 it is 1/2."""
    decided = {
        "sft-0": _decided([1, 0, 0, 0]),
        "sft_grpo-0": _decided([1, 1, 0, 0]),
        "sft-1": _decided([1, 1, 0, 0]),
        "sft_grpo-1": _decided([1, 1, 1, 1]).iloc[::-1],  # the order of rows does not matter
    }
    found = difference("sft_grpo", "sft", [0, 1], decided)
    assert (found.mean, found.by_seed) == (0.375, (0.25, 0.5))
    assert found.by_landscape is found.by_block is None  # of two landscapes, of four blocks
    assert found.mcnemar_p == (1.0, 0.5)


def test_an_interval_over_landscapes_by_hand() -> None:
    """Five landscapes, one of which gains: of five drawn k are that one, binomially, which makes a gain of k/5."""
    tables = [_decided([0] * 10), _decided([0] * 8 + [1, 1])]
    decided = {
        name: table.assign(landscape=[f"l{i // 2}" for i in range(10)])
        for name, table in zip(("sft-0", "sft_grpo-0"), tables, strict=True)
    }
    found = difference("sft_grpo", "sft", [0], decided)
    (interval,) = found.by_seed_and_landscape
    assert interval is not None
    assert found.by_landscape == interval
    # P(k = 0) = 0.33, P(k <= 2) = 0.942, P(k <= 3) = 0.993
    assert (found.mean, interval.low, interval.high) == (pytest.approx(0.2), 0.0, pytest.approx(0.6))


def test_samples_count_by_their_share_of_right_decisions(tmp_path: Path) -> None:
    """The greedy decision of p0 stays wrong while one, then three of its four samples are right; p1 is not sampled."""
    tables = []
    for name, right in {"sft-0": 1, "sft_grpo-0": 3}.items():
        rows = _decided([0, 1]).reset_index().assign(model=name, well_formed=True)
        votes = [["oat"] * right + ["soy", None, "soy"][: 4 - right], None]
        tables.append(rows.assign(votes=votes, accepted=[["oat", "corn"], ["soy"]], split="held_out_landscape"))
    (tmp_path / EVALUATED).mkdir()
    pd.concat(tables).to_parquet(tmp_path / EVALUATED / "predictions.parquet")
    runs = runs_of(["sft_grpo"], seeds=1)
    for run in runs:
        (tmp_path / run.name).mkdir()
        record = {"wall_time_s": 1.0, "profile": "pocket", "dataset_sha256": "d"}
        (tmp_path / run.name / "run.json").write_text(json.dumps(record))
        pd.DataFrame({"step": [1]}).to_parquet(tmp_path / run.name / "metrics.parquet")
    found = {(arm.arm, arm.way): arm for arm in results(tmp_path, runs).arms}
    assert {key: (arm.rows, arm.mean) for key, arm in found.items()} == {
        ("sft", "greedy"): (2, 0.5),
        ("sft_grpo", "greedy"): (2, 0.5),
        ("sft", "sampled"): (1, 0.25),
        ("sft_grpo", "sampled"): (1, 0.75),
    }
    assert found["sft_grpo", "sampled"].differences[0].mean == 0.5
    assert found["sft_grpo", "sampled"].differences[0].mcnemar_p == ()
    assert found["sft_grpo", "sampled"].differences[0].by_landscape is None  # of a single one nothing can be said
    assert "+50.0 [too few landscapes]; seeds +50.0 |" in (tmp_path / "results.md").read_text()


def test_results_name_intervals_baselines_and_stopped_runs(tmp_path: Path) -> None:
    runs = runs_of(["sft_grpo"], seeds=2)
    correct = {"sft-0": [1, 0, 0, 0], "sft-1": [1, 1, 0, 0], "sft_grpo-0": [1, 1, 0, 0], "sft_grpo-1": [1, 1, 1, 1]}
    tables = [_decided(values).reset_index().assign(model=name, well_formed=True) for name, values in correct.items()]
    tables.append(_decided([1, 1, 1, 0]).reset_index().assign(model="gradient_boosting", well_formed=None))
    (tmp_path / EVALUATED).mkdir()
    folder = tmp_path / EVALUATED
    pd.concat(tables).assign(split="held_out_landscape").to_parquet(folder / "predictions.parquet")
    for run in runs:
        (tmp_path / run.name).mkdir()
        why = "stopped by the guard after step 5: kl 1.01 is above guard.max_kl 1. Went back" if run.seed else None
        record = {"stopped": why, "wall_time_s": 1.0, "profile": "pocket", "dataset_sha256": "d"}
        (tmp_path / run.name / "run.json").write_text(json.dumps(record))
        signal = {"step": [10, 11, 12], "signal/drawn": [0.0, 0.9, 0.7], "signal/uniform": [0.0, None, 0.25]}
        pd.DataFrame(signal).to_parquet(tmp_path / run.name / "metrics.parquet")
    found = results(tmp_path, runs)
    sft, grpo = found.arms
    assert (sft.accuracy, grpo.accuracy) == ((0.25, 0.5), (0.5, 1.0))
    assert grpo.signal == {"drawn": pytest.approx(0.8), "uniform": 0.25}
    assert found.baselines == {"held_out_landscape": {"gradient_boosting": 0.75}}
    page = (tmp_path / "results.md").read_text()
    assert "held out landscape, greedy: 4 rows of 2 landscapes" in page
    assert (
        "| `sft_grpo` | then GRPO | 2 | 75.0% (50.0% to 100.0%) | +37.5 [too few landscapes]; seeds +25.0, +50.0"
        in page
    )
    assert "seed 1 stopped by the guard after step 5: kl 1.01 is above guard.max_kl 1" in page
    assert json.loads((tmp_path / "results.json").read_text())["arms"][1]["stopped"][0] is None
    results(tmp_path, [run for run in runs if run.seed == 1])  # of the first seed nothing is left
    assert "seed 1 stopped by the guard" in (tmp_path / "results.md").read_text()
    with pytest.raises(TrainingError, match="no decisions of sft-2, sft_grpo-2"):
        results(tmp_path, runs_of(["sft_grpo"], seeds=3))
