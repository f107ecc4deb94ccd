"""From chat messages to the tokens that a model sees, the same way in SFT, GRPO and evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from training.turn import THINK_OPEN

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

Messages = Sequence[Mapping[str, Any]]

IGNORED = -100  # torch's cross entropy leaves these labels out


def prompt_texts(tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Messages]) -> list[str]:
    """Each prompt through the chat template, up to where the model's turn begins."""
    conversations = [[dict(m) for m in messages] for messages in prompts]
    return tokenizer.apply_chat_template(conversations, tokenize=False, add_generation_prompt=True)


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Messages]) -> list[list[int]]:
    """Tokens of each prompt, as in :func:`prompt_texts`."""
    if not len(prompts):
        return []
    return tokenizer(prompt_texts(tokenizer, prompts), add_special_tokens=False)["input_ids"]


def template_prefill(tokenizer: PreTrainedTokenizerBase) -> str:
    """What the chat template opens of the model's own turn: ``"<think>\\n"`` for R1 distillates, mostly ``""``."""
    opened = re.search(rf"{THINK_OPEN}\s*$", prompt_texts(tokenizer, [[{"role": "user", "content": "x"}]])[0])
    return opened.group() if opened else ""


def sft_examples(tokenizer: PreTrainedTokenizerBase, frame: pd.DataFrame) -> dict[str, list[list[int]]]:
    """Tokens and labels of every row's prompt and ``target``; only the target and the end of turn are learned.

    The target is appended to the rendered prompt and never sent through the chat template, since templates of
    reasoning models cut the thinking out of assistant turns.
    """
    opened = template_prefill(tokenizer).strip()
    targets = [target.removeprefix(opened).lstrip() if opened else target for target in frame["target"].astype(str)]
    prompts = prompt_ids(tokenizer, list(frame["prompt"]))
    completions = tokenizer([t + tokenizer.eos_token for t in targets], add_special_tokens=False)["input_ids"]
    return {
        "input_ids": [p + c for p, c in zip(prompts, completions, strict=True)],
        "labels": [[IGNORED] * len(p) + c for p, c in zip(prompts, completions, strict=True)],
    }


def packed(examples: Dataset, length: int) -> Dataset:
    """Examples joined to sequences of up to ``length`` tokens, whole and in no order; ``seq_lengths`` tells them apart.

    The longest example must not be longer: TRL would cut it.
    """
    from trl import pack_dataset

    return pack_dataset(examples, length, "bfd")
