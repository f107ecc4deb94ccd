"""How much memory a run will need, before anything is loaded: an estimate to refuse what cannot fit, not a promise.

With N parameters, T of them trained, b bytes a number, B rows in a forward pass, L tokens in each of which C are a
completion's, width h, n layers and a vocabulary of V:

===============  =============================================================================
weights          N b, once more for the reference of GRPO where beta > 0 and no adapters are used
training state   T (b + 8): a gradient and the two moments of Adam
logits           2 B C V 4: of one pass and their gradient; less with the fused head of TRL, which works in chunks
activations      17 B L h n b, or B L h n b where they are recomputed (Korthikanti et al. 2022, table 2, less attention)
cache            2 n B_gen L h b: keys and values of a generation, all heads
===============  =============================================================================
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from math import prod
from pathlib import Path

from training.config import Stage, TrainingConfig

USABLE_SHARE = 0.9
"""Of a device's memory, what a run may be expected to need."""


@dataclass(frozen=True)
class ModelSize:
    """Sizes of a language model."""

    parameters: int
    width: int
    layers: int
    vocabulary: int


def model_size(folder: Path) -> ModelSize | None:
    """Sizes of the model in a local folder, from its safetensors' headers and configuration; None where it has none."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights or not (folder / "config.json").is_file():
        return None
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if not {"hidden_size", "num_hidden_layers", "vocab_size"} <= settings.keys():
        return None
    parameters = sum(_parameters(path) for path in weights)
    return ModelSize(parameters, settings["hidden_size"], settings["num_hidden_layers"], settings["vocab_size"])


def needed_bytes(size: ModelSize, config: TrainingConfig, stage: Stage, prompt_tokens: int) -> dict[str, int]:
    """Bytes on one device by what they hold, as in this module's docstring.

    Parameters
    ----------
    size : ModelSize
        Of the start weights.
    config, stage
        What is to run.
    prompt_tokens : int
        Of the longest prompt.
    """
    settings = config.section(stage)
    each = 2 if config.model.dtype == "bfloat16" else 4
    rows = settings.get("per_device_train_batch_size", 8)
    completion = config.max_completion_length
    tokens = prompt_tokens + completion
    trained = size.parameters
    if config.model.lora is not None:  # two matrices beside each of about seven square ones a layer
        trained = min(trained, 14 * size.layers * size.width * config.model.lora.rank)
    copies = 2 if stage is Stage.GRPO and settings.get("beta", 0) > 0 and config.model.lora is None else 1
    recomputed = settings.get("gradient_checkpointing", settings.get("activation_checkpointing", True))
    per_token = size.width * size.layers * each * (1 if recomputed else 17)
    found = {
        "weights": copies * size.parameters * each,
        "training state": trained * (each + 8),
        "logits": 2 * rows * completion * size.vocabulary * 4,
        "activations": rows * tokens * per_token,
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
