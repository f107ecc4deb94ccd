"""Token audit: how long each prompt is for the model that will read it, counted when the dataset is built.

Nothing here knows a tokenizer: whoever builds the dataset brings a function that counts. A prompt beyond the limit is
refused now, since it would end a training run in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oracle.errors import DatasetError, name_some
from prompts.config import Layout, PromptConfig


@dataclass(frozen=True)
class TokenAudit:
    """How prompts are counted, and how long they may be.

    Parameters
    ----------
    tokenizer : str
        What to call the tokenizer in manifest and card.
    limit : int
        Most tokens that a prompt may have.
    count : callable
        Rows of a prompt dataset -> tokens of each row's ``prompt``, the chat template included. It gets all rows at
        once, because the vocabulary of a model that is trained from scratch is made from the training rows.
    """

    tokenizer: str
    limit: int
    count: Callable[[pd.DataFrame], Sequence[int]]


def count_tokens(frame: pd.DataFrame, audit: TokenAudit, config: PromptConfig) -> np.ndarray:
    """(n,) int: tokens of each row's prompt.

    Raises
    ------
    DatasetError
        Where prompts exceed the limit: names them, the longest first, and what would make them shorter.
    """
    tokens = np.asarray(audit.count(frame), dtype=int)
    over = np.flatnonzero(tokens > audit.limit)
    if len(over):
        longest_first = over[np.argsort(-tokens[over], kind="stable")]
        named = name_some([f"{frame['prompt_id'].iloc[i]} with {tokens[i]:,}" for i in longest_first])
        raise DatasetError(
            f"{len(over):,} of {len(frame):,} prompts have more tokens than the {audit.limit:,} that the profile "
            f"leaves for a prompt, counted by {audit.tokenizer} ({named}): {_shorter(config)}, or raise "
            "`model.max_length` in the profile"
        )
    return tokens


def _shorter(config: PromptConfig) -> str:
    ways = []
    if config.order > 0:
        ways.append(f"lower `order` (it is {config.order})")
    if config.layout is Layout.FULL:
        ways.append("take `layout: compact`")
    digits = [name for name in ("yield_digits", "connectivity_digits") if getattr(config, name) > 1]
    ways += [f"lower `{name}` (it is {getattr(config, name)})" for name in digits]
    return ", ".join(ways) or "take `context: none`"
