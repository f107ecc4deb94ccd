"""How much memory a run will need, before anything is loaded: an estimate to refuse what cannot fit, not a promise.

With N parameters, T of them trained, b bytes a number, B rows in a forward pass, L tokens in each, width h, width m of
the feed-forward part, n layers and a vocabulary of V:

===============  =============================================================================
weights          N b, once more for the reference of GRPO where beta > 0 and no adapters are used
training state   T (b + 8): a gradient and the two moments of Adam
logits           a tile of min(B L, 4096) min(V, 32768) numbers, on a CPU eight at a time: TRL's head never holds more
activations      B L (n + 1) (11 h + 4 m) b, or B L (n h + 2 (11 h + 4 m)) b where they are recomputed
cache            2 n B_gen L h b: keys and values of a generation, all heads
===============  =============================================================================

11 h + 4 m numbers a token are what autograd keeps of a Llama or Qwen2 layer: of each norm its input, what it normalises
to and its output (3 h each), of attention queries, keys, values, output and its merged heads (5 h), of the gated
feed-forward part gate, up, their activation and product (4 m). One layer more stands for the gradients of the layer
at work. Packed rows are as long as the model's window. ``benchmarks/memory.py`` holds this against runs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from math import prod
from pathlib import Path

from training.config import Stage, TrainingConfig

SIZES = ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size")
TILE = (4096, 32768)
"""Tokens and words whose logits TRL 1.16 holds at once."""
USABLE_SHARE = 0.9
"""Of a device's memory, what a run may be expected to need."""


@dataclass(frozen=True)
class ModelSize:
    """Sizes of a language model."""

    parameters: int
    width: int
    layers: int
    vocabulary: int
    feed_forward: int


def model_size(folder: Path) -> ModelSize | None:
    """Sizes of the model in a local folder, from its safetensors' headers and configuration; None where it has none."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights or not (folder / "config.json").is_file():
        return None
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if not set(SIZES) <= settings.keys():
        return None
    return ModelSize(sum(_parameters(path) for path in weights), *(settings[name] for name in SIZES))


def needed_bytes(
    size: ModelSize, config: TrainingConfig, stage: Stage, prompt_tokens: int, completion_tokens: int
) -> dict[str, int]:
    """Bytes on one device by what they hold, as in this module's docstring.

    Parameters
    ----------
    size : ModelSize
        Of the start weights.
    config, stage
        What is to run.
    prompt_tokens, completion_tokens : int
        Of the longest prompt, and of the longest completion (SFT: target).
    """
    settings = config.section(stage)
    each = 2 if config.model.dtype == "bfloat16" else 4
    rows = settings.get("per_device_train_batch_size", 8)
    tokens = config.model.max_length if settings.get("packing") else prompt_tokens + completion_tokens
    trained = size.parameters
    if config.model.lora is not None:  # two matrices beside each of about seven square ones a layer
        trained = min(trained, 14 * size.layers * size.width * config.model.lora.rank)
    copies = 2 if stage is Stage.GRPO and settings.get("beta", 0) > 0 and config.model.lora is None else 1
    recomputed = settings.get("gradient_checkpointing", settings.get("activation_checkpointing", True))
    layer = 11 * size.width + 4 * size.feed_forward
    kept = size.layers * size.width + 2 * layer if recomputed else (size.layers + 1) * layer
    tiles = 8 if settings.get("use_cpu") else 1  # a GPU's kernel works within the tile
    found = {
        "weights": copies * size.parameters * each,
        "training state": trained * (each + 8),
        "logits": min(rows * tokens, TILE[0]) * min(size.vocabulary, TILE[1]) * tiles * each,
        "activations": rows * tokens * kept * each,
    }
    if stage is Stage.GRPO and not settings.get("use_vllm"):
        generated = rows * settings.get("steps_per_generation", settings.get("gradient_accumulation_steps", 1))
        found["cache"] = 2 * size.layers * generated * tokens * size.width * each
    return found


def device_bytes(*, cpu: bool) -> int:
    """Memory of the first GPU, or of this machine where there is none or the run is on the CPU."""
    import torch

    if not cpu and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_problem(needed: dict[str, int], available: int, vllm_share: float = 0.0) -> str | None:
    """A sentence where the need is beyond the device's memory, less what vLLM keeps; else None."""
    total, room = sum(needed.values()), int(available * (USABLE_SHARE - vllm_share))
    if total <= room:
        return None
    parts = ", ".join(f"{name} {size / 2**30:.1f}" for name, size in sorted(needed.items(), key=lambda i: -i[1]))
    return (
        f"about {total / 2**30:.1f} GiB are needed on one device ({parts}), but {room / 2**30:.1f} are free: a smaller "
        "per_device_train_batch_size with more gradient_accumulation_steps, model.lora or gradient_checkpointing"
    )


def _parameters(path: Path) -> int:
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
