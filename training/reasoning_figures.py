"""What a model's reasoning is worth: motifs and claims, conclusion beside answer, whether answers follow numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from prompts.claims import facts_of
from prompts.config import PromptConfig
from training.cited_numbers import CitedFigures, cited_edits, cited_figures
from training.counterfactual_pairs import PairFigures, pair_figures
from training.motifs import MotifTable, motif_table
from training.reasoning import ConclusionFigures, conclusion_figures
from training.turn import read_turn

Generate = Callable[[Sequence[Sequence[dict[str, str]]]], Sequence[str]]
"""Greedy completions of prompts, in their order."""


@dataclass(frozen=True)
class ReasoningFigures:
    """The reasoning of one model on all rows of an evaluation."""

    motifs: MotifTable
    conclusions: ConclusionFigures
    cited: CitedFigures | None
    """None where nobody asked."""
    pairs: dict[str, PairFigures]
    """By split; empty where no counterfactual pairs were given."""


def reasoning_figures(
    rows: pd.DataFrame,
    table: pd.DataFrame,
    generate: Generate,
    prefill: str,
    *,
    prompts: PromptConfig | None,
    cited_rows: int,
    pairs: pd.DataFrame | None,
    thinks: bool,
    seed: int = 0,
) -> ReasoningFigures:
    """Read the completions of one model, and ask it about edited prompts.

    Parameters
    ----------
    rows : DataFrame
        n rows of the prompt dataset.
    table : DataFrame
        The model's n predictions on them: ``completion`` and ``decision``.
    generate : callable
        Lets the model answer; decoded as the completions were.
    prefill : str
        What the chat template already opened.
    prompts : PromptConfig, optional
        With which the dataset was rendered; without it no cited number is changed.
    cited_rows : int
        On at most so many rows, drawn by ``seed``.
    pairs : DataFrame, optional
        Of ``landoracle counterfactuals``.
    thinks : bool
        The prompts ask for reasoning.
    seed : int
    """
    said = list(table["completion"])
    answers = [d if isinstance(d, str) else None for d in table["decision"]]
    facts = [facts_of({str(k): v for k, v in row.items()}) for row in rows.to_dict("records")]
    cited = None
    if prompts is not None and cited_rows and thinks:
        some = np.sort(np.random.default_rng(seed).permutation(len(rows))[:cited_rows])
        chosen = [answers[i] for i in some]
        edits = cited_edits(rows.iloc[some].reset_index(drop=True), [said[i] for i in some], chosen, prompts)
        cited = cited_figures(edits, chosen, generate, prefill)
    return ReasoningFigures(
        motifs=motif_table(said, facts, answers),
        conclusions=conclusion_figures(said, [f.classes for f in facts], answers),
        cited=cited,
        pairs={} if pairs is None else _on_pairs(pairs, generate, prefill, thinks),
    )


def _on_pairs(pairs: pd.DataFrame, generate: Generate, prefill: str, thinks: bool) -> dict[str, PairFigures]:
    found = {}
    for split, some in pairs.groupby("split", sort=True):
        decided = {}
        for column in ("prompt", "edited_prompt"):
            turns = generate(list(some[column]))
            decided[column] = [
                read_turn(turn, classes, prefill, thinks=thinks).decision
                for turn, classes in zip(turns, some["classes"], strict=True)
            ]
        found[str(split)] = pair_figures(
            list(some["answer"]), list(some["edited_answer"]), decided["prompt"], decided["edited_prompt"]
        )
    return found
