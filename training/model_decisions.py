"""What one model decides and writes: greedily on every row asked, sampled on some, and on edited prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from training.asked import Asked
from training.completion_cache import CompletionCache
from training.config import TrainingConfig, profile_rewards
from training.encode import template_prefill
from training.models import load_model, load_tokenizer
from training.reasoning_figures import ReasoningFigures, reasoning_figures
from training.trainer import drawn
from training.turn import read_turn


@dataclass(frozen=True, eq=False)
class ModelDecisions:
    """One model's part of an evaluation."""

    decision: pd.Series
    """By prompt id, of every row asked; None where the turn decides nothing."""
    writing: pd.DataFrame
    """Of the evaluated rows, in their order: ``completion``, ``well_formed``, ``tokens``, ``finished``, a column per
    reward, ``votes`` (the samples' decisions, null on rows not sampled)."""
    reasoning: ReasoningFigures


def decide(name: str, path: Path, asked: Asked, cache: Path) -> ModelDecisions:
    """Load a model and let it decide.

    Parameters
    ----------
    name : str
        For the progress lines.
    path : Path
        Folder of the weights.
    asked : Asked
        In the model's style.
    cache : Path
        Folder of completions already written.

    Raises
    ------
    TrainingError
        Where the model cannot be read.
    """
    import torch

    rows, config = asked.rows, asked.config
    tokenizer = load_tokenizer(path)
    model = load_model(path, config.model)
    if torch.cuda.is_available():
        model = model.to("cuda")
    settings = config.evaluation
    kept = CompletionCache(
        cache, path, model, tokenizer, max_new_tokens=config.max_completion_length, batch=settings.batch
    )
    prefill = template_prefill(tokenizer)

    def read(texts: Sequence[str], classes: Sequence[Sequence[str]]) -> list[Any]:
        return [read_turn(t, c, prefill, thinks=config.thinks) for t, c in zip(texts, classes, strict=True)]

    written = [one for (one,) in kept.completions(list(asked.everything["prompt"]), label=f"evaluate {name}")]
    turns = read([one.text for one in written], list(asked.everything["classes"]))
    n = len(rows)
    texts = [one.text for one in written[:n]]
    columns = {str(c): list(rows[c]) for c in rows if c != "prompt"} | {"regret": list(rows["regret_low"])}
    rewards = profile_rewards(config, prefill)
    writing = pd.DataFrame(
        {
            "completion": texts,
            "well_formed": [t.well_formed for t in turns[:n]],
            "tokens": [one.tokens for one in written[:n]],
            "finished": [one.finished for one in written[:n]],
            **{r.__name__: r(list(rows["prompt"]), texts, **columns) for r in rewards},
        }
    )
    writing["votes"] = _votes(name, rows, config, kept, read)
    decision = pd.Series([t.decision for t in turns], index=asked.everything["prompt_id"], dtype=object)

    def generate(some: Sequence[Any]) -> list[str]:
        return [one.text for (one,) in kept.completions(some, label=f"edited prompts {name}")]

    reasoning = reasoning_figures(
        rows,
        writing.assign(decision=decision.to_numpy()[:n]),
        generate,
        prefill,
        prompts=asked.prompts,
        cited_rows=settings.cited_rows,
        pairs=asked.pairs,
        thinks=config.thinks,
        seed=config.seed,
    )
    return ModelDecisions(decision, writing, reasoning)


def _votes(name: str, rows: pd.DataFrame, config: TrainingConfig, kept: CompletionCache, read: Any) -> np.ndarray:
    """(n,) lists of decisions, None on rows that are not sampled."""
    settings = config.evaluation
    votes = np.full(len(rows), None, dtype=object)
    if not settings.samples:
        return votes
    parts = [drawn(part, settings.sampled_rows, config.seed) for _, part in rows.groupby("split", sort=True)]
    some = pd.concat(parts).index.to_numpy()
    sampled = kept.completions(
        list(rows["prompt"].loc[some]),
        temperature=settings.temperature,
        samples=settings.samples,
        seed=config.seed,
        label=f"sample {name}",
    )
    for row, completions in zip(some, sampled, strict=True):
        turns = read([one.text for one in completions], [rows["classes"].loc[row]] * len(completions))
        votes[row] = [turn.decision for turn in turns]
    return votes
