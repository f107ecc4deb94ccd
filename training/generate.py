"""Completions in batches, greedy or sampled, with a key-value cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from training.encode import prompt_ids
from training.progress import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Generated:
    """One completion.

    Parameters
    ----------
    text : str
        What the model wrote, without special tokens.
    tokens : int
        Its length, the end of turn included.
    finished : bool
        The model ended its turn itself; else it was cut at the limit.
    """

    text: str
    tokens: int
    finished: bool


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Sequence[Mapping[str, Any]]],
    *,
    max_new_tokens: int,
    batch: int = 256,
    temperature: float = 0.0,
    seed: int = 0,
    label: str = "generate",
) -> list[Generated]:
    """One completion per prompt, in the order of ``prompts``.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, PreTrainedTokenizerBase
        As of :mod:`training.models`.
    prompts : sequence of chat messages
        n conversations up to the model's turn.
    max_new_tokens : int
        Where a completion is cut.
    batch : int
        Completions at a time; prompts of like length go together.
    temperature : float
        0 = greedy; else sampled from the whole distribution (no top-p, no top-k).
    seed : int
        Of the sampling.
    label : str
        Of the progress line.
    """
    import torch
    from transformers import GenerationConfig

    ids = prompt_ids(tokenizer, prompts)
    order = np.argsort([len(i) for i in ids], kind="stable")
    ends = torch.tensor(_end_tokens(model, tokenizer))
    settings = GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=temperature > 0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=ends.tolist(),
        **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
    )
    torch.manual_seed(seed)
    progress = Progress(label, len(ids))
    done: dict[int, Generated] = {}
    model.eval()
    for first in range(0, len(order), batch):
        chosen = order[first : first + batch]
        padded = tokenizer.pad({"input_ids": [ids[i] for i in chosen]}, padding_side="left", return_tensors="pt")
        padded = padded.to(model.device)
        with torch.inference_mode():
            written = model.generate(**padded, generation_config=settings)[:, padded["input_ids"].shape[1] :].cpu()
        ended = torch.isin(written, ends)
        finished = ended.any(dim=1)
        lengths = torch.where(finished, ended.int().argmax(dim=1) + 1, written.shape[1])
        texts = tokenizer.batch_decode(
            [row[:n] for row, n in zip(written, lengths.tolist(), strict=True)], skip_special_tokens=True
        )
        for i, text, tokens, end in zip(chosen, texts, lengths.tolist(), finished.tolist(), strict=True):
            done[int(i)] = Generated(text, tokens, end)
        progress.update(len(done))
    return [done[i] for i in range(len(ids))]


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    own = model.generation_config.eos_token_id if model.generation_config is not None else None
    ends = {tokenizer.eos_token_id, *([own] if isinstance(own, int) else own or [])}
    return sorted(e for e in ends if e is not None)
