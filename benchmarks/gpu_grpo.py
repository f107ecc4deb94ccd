"""What a GRPO step costs: seconds by part, tokens per second of the rollout, peak memory, and how long the GPU waits.

``python -m benchmarks.gpu_grpo --out grpo.json`` needs one GPU for about five minutes and nothing from the internet:
where no weights are given with ``--model``, it makes a model of the architecture and size of
DeepSeek-R1-Distill-Qwen-1.5B with random weights. Such a model hardly ever ends its turn, so every completion runs to
the limit: the longest case. Prompts are real ones (order 2, with prices) of a small solved landscape. The settings are
the ``gpu`` profile's, except for those given here and the completions' length.

Rollouts are written by vLLM where it is installed and by transformers otherwise; with vLLM the same prompts are also
given to vLLM alone, before training. ``--tiny`` checks the script itself on a CPU, with a model of 0.1 million
parameters.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from oracle.files import write_json
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from oracle.synthesis import embedded_landscapes, synthesise
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.split import Role
from training.config import Stage, TrainingConfig, load_profile, profile_rewards, trainer_arguments
from training.step_time import GENERATION, PARTS, PREFIX, device_stopwatch, step_time_callback, timed

# DeepSeek-R1-Distill-Qwen-1.5B's own config.json.
ARCHITECTURE = {
    "vocab_size": 151936,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 131072,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
TINY = {
    "vocab_size": 1024,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 16384,
    "tie_word_embeddings": False,
}
SAMPLED_EVERY_S = 0.1


@dataclass(frozen=True)
class GrpoBenchmark:
    """What was measured, per optimizer step unless said otherwise."""

    device: str
    model: str
    parameters: int
    attention: str
    rollout_by: str
    steps: int
    completions_per_step: int
    prompt_tokens: int
    """Longest prompt."""
    completion_tokens: float
    """Mean."""
    step_s: float
    seconds: dict[str, float]
    rollout_tokens_per_s: float
    vllm_alone_tokens_per_s: float | None
    peak_memory_gib: float
    waiting_share: float | None
    """1 - mean utilisation of the GPU as its driver counts it; None without nvidia-ml-py."""
    versions: dict[str, str]

    def to_table(self) -> str:
        """For a terminal, or docs/benchmarks.md."""
        rows = [(name, f"{s:.2f} s", f"{s / self.step_s:.0%}") for name, s in self.seconds.items()]
        rows += [
            ("a step", f"{self.step_s:.2f} s", ""),
            ("rollout", f"{self.rollout_tokens_per_s:,.0f} tokens/s", self.rollout_by),
            ("vLLM alone", _known(self.vllm_alone_tokens_per_s, "{:,.0f} tokens/s"), ""),
            ("peak memory", f"{self.peak_memory_gib:.1f} GiB", ""),
            ("GPU waits", _known(self.waiting_share, "{:.0%}"), ""),
        ]
        head = f"{self.device}, {self.model} ({self.parameters / 1e9:.3g} G parameters), {self.attention}"
        return "\n".join([head, *(f"| {a} | {b} | {c} |" for a, b, c in [("part", "time", "share"), *rows])])


def _known(value: float | None, form: str) -> str:
    return "not measured" if value is None else form.format(value)


def settings(*, tiny: bool, completion: int, completions: int, model: str | None) -> TrainingConfig:
    """The ``gpu`` profile with what this benchmark changes."""
    changes = [
        f"model.name={model or 'made-here'}",
        "model.attn_implementation=auto",
        f"grpo.max_completion_length={completion}",
        "grpo.gradient_accumulation_steps=1",
        "grpo.num_generations=4",
        f"grpo.per_device_train_batch_size={completions}",
        "grpo.save_strategy='no'",
        "grpo.report_to=none",
        "grpo.temperature=1.0",
        "guard.on=false",
        "processes=1",
        f"grpo.use_vllm={str(find_spec('vllm') is not None and not tiny).lower()}",
        "evaluation.max_completion_length=null",
    ]
    if tiny:
        changes += ["model.dtype=float32", "grpo.bf16=false", "grpo.use_cpu=true", "threads=1"]
        changes += ["prompts.order=0", "prompts.layout=compact"]
    return load_profile("gpu", changes)


def prompt_frame(config: PromptConfig, rows: int) -> pd.DataFrame:
    """``rows`` real prompts of one embedded landscape."""
    recipe = embedded_landscapes()[0]
    landscape = synthesise(recipe)
    graph = neighbour_graph(landscape)
    dataset = build_dataset([Source(landscape, graph, solve(landscape, graph, recipe.glm), Role.TRAIN)], config)
    return dataset.frame[dataset.frame["split"] == "train"].head(rows).reset_index(drop=True)


def save_random_model(frame: pd.DataFrame, architecture: dict[str, Any], folder: Path, dtype: str) -> None:
    """A Qwen2 model with random weights, and a tokenizer of the prompts' words and characters."""
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM, set_seed

    from training.models import pocket_tokenizer

    tokenizer = pocket_tokenizer(frame, architecture["max_position_embeddings"])
    set_seed(0)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen2ForCausalLM(Qwen2Config(**architecture, **ends)).to(getattr(torch, dtype))
    model.generation_config = GenerationConfig(**ends)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measure(config: TrainingConfig, start: Path, frame: pd.DataFrame, *, steps: int, name: str) -> GrpoBenchmark:
    """Train ``steps`` steps after one to warm up, and time them."""
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback

    from training.encode import prompt_ids, template_prefill
    from training.grpo import COLUMNS, landoracle_trainer
    from training.models import load_tokenizer
    from training.run import StopRequest, installed_versions, open_run
    from training.trainer import run_callback, use_threads

    use_threads(config.threads)
    gpu = torch.cuda.is_available() and not config.grpo.get("use_cpu")
    watch = device_stopwatch(use_cpu=not gpu)
    tokenizer = load_tokenizer(start)
    prefill = template_prefill(tokenizer)
    alone = _vllm_alone(start, frame, config) if config.grpo["use_vllm"] else None
    with tempfile.TemporaryDirectory() as folder, open_run(Path(folder) / "run", Stage.GRPO, config, "", start) as run:
        trainer = timed(landoracle_trainer(run, prefill, None, None), watch)(
            model=str(start),
            reward_funcs=profile_rewards(config, prefill),
            args=trainer_arguments(config, Stage.GRPO, run.trainer_dir, max_steps=steps + 1),
            train_dataset=Dataset.from_dict({c: frame[c].tolist() for c in COLUMNS if c in frame}),
            processing_class=tokenizer,
            callbacks=[run_callback(run, StopRequest())],
        )
        trainer.add_callback(step_time_callback(trainer, watch))
        trainer.remove_callback(PrinterCallback)
        with _utilisation(gpu) as busy:
            trainer.train()
    logged = pd.DataFrame([row for row in trainer.state.log_history if f"{PREFIX}{GENERATION}" in row]).iloc[1:]
    seconds = {part: float(logged[f"{PREFIX}{part}"].mean()) for part in PARTS}
    completions = int(config.grpo["per_device_train_batch_size"])
    written = float(logged["completions/mean_length"].mean())
    peak = torch.cuda.max_memory_allocated() if gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return GrpoBenchmark(
        device=torch.cuda.get_device_name() if gpu else "CPU",
        model=name,
        parameters=sum(p.numel() for p in trainer.model.parameters()),
        attention=str(trainer.model.config._attn_implementation),
        rollout_by="vLLM, colocated" if config.grpo["use_vllm"] else "transformers",
        steps=steps,
        completions_per_step=completions,
        prompt_tokens=max(map(len, prompt_ids(tokenizer, list(frame["prompt"])))),
        completion_tokens=written,
        step_s=sum(seconds.values()),
        seconds=seconds,
        rollout_tokens_per_s=completions * written / max(seconds[GENERATION], 1e-9),
        vllm_alone_tokens_per_s=alone,
        peak_memory_gib=peak / 2**30,
        waiting_share=None if not busy else 1 - sum(busy) / len(busy) / 100,
        versions=installed_versions(),
    )


@contextmanager
def _utilisation(gpu: bool) -> Iterator[list[int]]:
    """Samples of the GPU's utilisation in percent while the block runs; none without a GPU or nvidia-ml-py."""
    import torch

    samples: list[int] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLED_EVERY_S):
            samples.append(torch.cuda.utilization())

    if not (gpu and find_spec("pynvml")):
        yield samples
        return
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def _vllm_alone(start: Path, frame: pd.DataFrame, config: TrainingConfig) -> float:
    """Tokens per second of vLLM on one step's prompts, in a process of its own, which gives its memory back."""
    rows = config.grpo["per_device_train_batch_size"] // config.grpo["num_generations"]
    asked = {
        "model": str(start),
        "prompts": [list(map(dict, p)) for p in frame["prompt"].head(rows)],
        "n": config.grpo["num_generations"],
        "tokens": config.max_completion_length,
        "max_model_len": config.grpo["vllm_max_model_length"],
    }
    command = [sys.executable, "-m", "benchmarks.gpu_grpo", "--vllm-alone", json.dumps(asked)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def _vllm_here(asked: dict[str, Any]) -> float:
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found,unused-ignore]

    engine = LLM(asked["model"], max_model_len=asked["max_model_len"], gpu_memory_utilization=0.6)
    sampling = SamplingParams(n=asked["n"], max_tokens=asked["tokens"], temperature=1.0)
    engine.chat(asked["prompts"][:1], sampling)
    began = time.perf_counter()
    outputs = engine.chat(asked["prompts"], sampling)
    written = sum(len(o.token_ids) for answer in outputs for o in answer.outputs)
    return written / (time.perf_counter() - began)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_grpo", description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="folder or hub name; random weights by default")
    parser.add_argument("--steps", type=int, default=4, help="measured, after one to warm up")
    parser.add_argument("--completions", type=int, default=16, help="per step, four per prompt")
    parser.add_argument("--tokens", type=int, default=1024, help="limit of a completion")
    parser.add_argument("--out", type=Path, help="JSON")
    parser.add_argument("--tiny", action="store_true", help="check the script on a CPU")
    parser.add_argument("--vllm-alone", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.vllm_alone:
        print(_vllm_here(json.loads(asked.vllm_alone)))
        return
    tokens = 16 if asked.tiny else asked.tokens
    config = settings(tiny=asked.tiny, completion=tokens, completions=asked.completions, model=asked.model)
    frame = prompt_frame(config.prompts, 64)
    with tempfile.TemporaryDirectory() as folder:
        start = Path(asked.model or folder)
        name = asked.model or ("tiny, random weights" if asked.tiny else "1.5B architecture, random weights")
        if asked.model is None:
            save_random_model(frame, TINY if asked.tiny else ARCHITECTURE, start, config.model.dtype)
        found = measure(config, start, frame, steps=asked.steps, name=name)
    print(found.to_table())
    if asked.out is not None:
        write_json(asked.out, asdict(found))


if __name__ == "__main__":
    main()
