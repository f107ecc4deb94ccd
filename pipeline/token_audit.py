"""Counts the tokens of a dataset's prompts in the tokenizer that training with a profile will use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from oracle.errors import TrainingError
from prompts.tokens import TokenAudit
from training.config import TrainingConfig

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CACHE = Path("runs/cache")
_AT_ONCE = 1_000


def token_audit(config: TrainingConfig, cache: Path = CACHE) -> TokenAudit:
    """The audit of a profile's prompts: its own tokenizer, against ``max_prompt_tokens``.

    A pocket model has no tokenizer before training: its vocabulary is made from the training rows. The same rows make
    the same vocabulary here, so the counts are those of the model that these rows will train.

    Raises
    ------
    TrainingError
        Where the tokenizer of a model that is not made here cannot be had (no network, package not installed).
    """
    section = config.model
    if section.kind == "pocket":
        name = f"the pocket tokenizer of profile {config.profile}, made from the training rows"
        return TokenAudit(name, config.max_prompt_tokens, lambda frame: _count(frame, _pocket(frame, config)))
    from training.models import load_tokenizer, start_weights

    tokenizer = load_tokenizer(start_weights(config, pd.DataFrame(), cache, cache))
    name = f"the tokenizer of {section.name or section.kind}"
    return TokenAudit(name, config.max_prompt_tokens, lambda frame: _count(frame, tokenizer))


def audit_if_possible(config: TrainingConfig, say: Callable[[str], None]) -> TokenAudit | None:
    """:func:`token_audit`, or None and a sentence where the tokenizer is not at hand: preflight counts again."""
    try:
        return token_audit(config)
    except TrainingError as error:
        say(f"tokens are not counted: {error}; `landoracle train` counts before it starts")
        return None


def _pocket(frame: pd.DataFrame, config: TrainingConfig) -> PreTrainedTokenizerBase:
    from training.models import pocket_tokenizer
    from training.trainer import training_rows

    rows = training_rows(frame, config) if (frame["split"] == "train").any() else frame
    return pocket_tokenizer(rows, config.model.max_length)


def _count(frame: pd.DataFrame, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    from training.encode import prompt_ids

    prompts = frame["prompt"].tolist()
    parts = [prompts[i : i + _AT_ONCE] for i in range(0, len(prompts), _AT_ONCE)]
    return [len(ids) for part in parts for ids in prompt_ids(tokenizer, part)]
