"""Completions in batches, greedy or sampled, with a key-value cache."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from training.encode import prompt_ids
from training.progress import Progress
from training.shared_prefix import LEAST_SAVED, can_share, read_once, saved_share

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


class Writer:
    """A model that writes completions of one batch of prompts at a time.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, PreTrainedTokenizerBase
        As of :mod:`training.models`.
    max_new_tokens : int
        Where a completion is cut.
    temperature : float
        0 = greedy; else sampled from the whole distribution (no top-p, no top-k).
    least_saved : float
        What a batch's prompts have in common is read once where that saves this share of their tokens
        (:mod:`training.shared_prefix`).
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        least_saved: float = LEAST_SAVED,
    ) -> None:
        import torch
        from transformers import GenerationConfig

        self._model, self._tokenizer = model, tokenizer
        self._least_saved = least_saved if can_share(model) else math.inf
        self._ends = torch.tensor(_end_tokens(model, tokenizer))
        self._settings = GenerationConfig(
            max_new_tokens=max_new_tokens,
            do_sample=temperature > 0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=self._ends.tolist(),
            **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
        )

    def write(self, ids: Sequence[Sequence[int]]) -> list[Generated]:
        """One completion of each of the tokenized prompts, in their order; samples follow torch's seed."""
        import torch

        self._model.eval()
        with torch.inference_mode():
            if saved_share(ids) >= self._least_saved:
                begun = read_once(self._model, ids, self._tokenizer.pad_token_id)
            else:
                begun = self._tokenizer.pad({"input_ids": list(ids)}, padding_side="left", return_tensors="pt")
                begun = begun.to(self._model.device)
            written = self._model.generate(**begun, generation_config=self._settings)
        written = written[:, begun["input_ids"].shape[1] :].cpu()
        ended = torch.isin(written, self._ends)
        finished = ended.any(dim=1)
        lengths = torch.where(finished, ended.int().argmax(dim=1) + 1, written.shape[1]).tolist()
        texts = self._tokenizer.batch_decode(
            [row[:n] for row, n in zip(written, lengths, strict=True)], skip_special_tokens=True
        )
        return [Generated(*one) for one in zip(texts, lengths, finished.tolist(), strict=True)]


def by_length(ids: Sequence[Sequence[int]], batch: int) -> list[np.ndarray]:
    """Positions of the prompts in batches of like length, the shortest first."""
    order = np.argsort([len(i) for i in ids], kind="stable")
    return [order[first : first + batch] for first in range(0, len(order), batch)]


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
    model, tokenizer, max_new_tokens, temperature
        Of the :class:`Writer`.
    prompts : sequence of chat messages
        n conversations up to the model's turn.
    batch : int
        Completions at a time; prompts of like length go together.
    seed : int
        Of the sampling.
    label : str
        Of the progress line.
    """
    import torch

    writer = Writer(model, tokenizer, max_new_tokens=max_new_tokens, temperature=temperature)
    ids = prompt_ids(tokenizer, prompts)
    torch.manual_seed(seed)
    progress = Progress(label, len(ids))
    done: dict[int, Generated] = {}
    for chosen in by_length(ids, batch):
        done.update(zip(chosen.tolist(), writer.write([ids[i] for i in chosen]), strict=True))
        progress.update(len(done))
    return [done[i] for i in range(len(ids))]


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    own = model.generation_config.eos_token_id if model.generation_config is not None else None
    ends = {tokenizer.eos_token_id, *([own] if isinstance(own, int) else own or [])}
    return sorted(e for e in ends if e is not None)
