"""Evaluation: how much of the oracle a model learned, on prompts that it never saw, beside every baseline.

Every model and baseline decides the same rows: per split at most ``max_rows``, drawn by the seed. Decoding is greedy.
Decision accuracy is kept apart from reward: reward can rise on format and repetition alone.

``predictions.parquet`` has one row per model and prompt; ``evaluation.json`` the figures, an
:class:`Evaluation` as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_atomically, write_text
from training.baselines import decide_with_baselines
from training.config import TrainingConfig
from training.encode import template_prefill
from training.figures import (
    UNDECIDED,
    ClassFigures,
    Interval,
    block_bootstrap,
    class_figures,
    confusion,
    mcnemar,
    wilson,
)
from training.generate import generate
from training.models import load_model, load_tokenizer
from training.rewards import build_rewards
from training.run import installed_versions, locked, weights_sha256
from training.trainer import drawn, use_threads
from training.turn import read_turn

PREDICTIONS, EVALUATION = "predictions.parquet", "evaluation.json"
KEYS = ["prompt_id", "landscape", "polygon_id", "split", "block", "answer"]


@dataclass(frozen=True)
class TextFigures:
    """What only a model that writes has."""

    format_share: float
    mean_rewards: dict[str, float]
    """By name, unweighted."""
    mean_reward: float
    """Weighted sum, as GRPO sees it."""
    mean_tokens: float
    finished_share: float


@dataclass(frozen=True)
class SplitFigures:
    """Decisions of one model or baseline on one split."""

    rows: int
    accuracy: float
    wilson: Interval
    block_bootstrap: Interval
    balanced_accuracy: float
    macro_f1: float
    undecided_share: float
    classes: dict[str, ClassFigures]
    confusion: dict[str, dict[str, int]]
    text: TextFigures | None


@dataclass(frozen=True)
class Comparison:
    """Two deciders on the same rows of one split."""

    split: str
    first: str
    second: str
    difference: float
    """Accuracy of ``second`` minus that of ``first``."""
    mcnemar_p: float


@dataclass(frozen=True)
class Evaluation:
    """Figures of every model and baseline by split, and how the models compare."""

    models: dict[str, dict[str, SplitFigures]]
    baselines: dict[str, dict[str, SplitFigures]]
    comparisons: tuple[Comparison, ...]
    weights_sha256: dict[str, str]
    dataset_sha256: str
    config_sha256: str
    versions: dict[str, str]

    def to_json(self) -> str:
        """The content of ``evaluation.json``."""
        return json.dumps(asdict(self), indent=2) + "\n"


def evaluate(
    frame: pd.DataFrame,
    models: Mapping[str, Path],
    config: TrainingConfig,
    out: Path,
    *,
    dataset_sha256: str = "",
) -> Evaluation:
    """Let models and baselines decide the held-out rows, and write predictions and figures into ``out``.

    Parameters
    ----------
    frame : DataFrame
        A prompt dataset's rows.
    models : mapping of str to Path
        Finished runs by the name they are reported under, e.g. ``{"sft": ..., "grpo": ...}``; may be empty.
    config : TrainingConfig
        Its ``evaluation``, ``rewards``, ``model`` and ``seed``.
    out : Path
        Folder of the two files.
    dataset_sha256 : str
        Hash of the dataset, kept in ``evaluation.json``.

    Raises
    ------
    TrainingError
        Where no row is held out, or a model cannot be read.
    """
    out = Path(out).absolute()
    rows = evaluation_rows(frame, config)
    with locked(out):
        decided = {name: _decide(name, path, rows, config) for name, path in models.items()}
        train = frame[frame["split"] == "train"]
        by_baseline = decide_with_baselines(train, rows, config.seed) if len(train) else {}
        baselines = {name: _decisions(name, rows, decisions) for name, decisions in by_baseline.items()}
        evaluation = Evaluation(
            models={name: _by_split(table, config) for name, table in decided.items()},
            baselines={name: _by_split(table, config) for name, table in baselines.items()},
            comparisons=tuple(_comparisons(decided | baselines)),
            weights_sha256={name: weights_sha256(Path(path)) for name, path in models.items()},
            dataset_sha256=dataset_sha256,
            config_sha256=config.sha256,
            versions=installed_versions(),
        )
        table = pd.concat([*decided.values(), *baselines.values()], ignore_index=True)
        write_atomically(out / PREDICTIONS, partial(table.to_parquet, index=False))
        write_text(out / EVALUATION, evaluation.to_json())
    return evaluation


def evaluation_rows(frame: pd.DataFrame, config: TrainingConfig) -> pd.DataFrame:
    """The rows that everybody decides: at most ``max_rows`` of each of the configured splits, drawn by the seed.

    Raises
    ------
    TrainingError
        Where none of the splits has a row.
    """
    parts = [frame[frame["split"] == split] for split in config.evaluation.splits]
    rows = pd.concat([drawn(p, config.evaluation.max_rows, config.seed) for p in parts], ignore_index=True)
    if rows.empty:
        found = ", ".join(sorted(map(str, frame["split"].unique()))) or "none"
        raise TrainingError(
            f"nothing to evaluate: the dataset has no row in {', '.join(config.evaluation.splits)} "
            f"(its splits: {found}); hold out blocks or a landscape"
        )
    return rows


def _decide(name: str, path: Path, rows: pd.DataFrame, config: TrainingConfig) -> pd.DataFrame:
    """Predictions of one model."""
    use_threads(config.threads)
    import torch

    tokenizer = load_tokenizer(path)
    model = load_model(path, config.model)
    if torch.cuda.is_available():
        model = model.to("cuda")
    written = generate(
        model,
        tokenizer,
        list(rows["prompt"]),
        max_new_tokens=config.max_completion_length,
        batch=config.evaluation.batch,
        label=f"evaluate {name}",
    )
    prefill = template_prefill(tokenizer)
    texts = [g.text for g in written]
    turns = [
        read_turn(text, classes, prefill, thinks=config.thinks)
        for text, classes in zip(texts, rows["classes"], strict=True)
    ]
    rewards = build_rewards(
        list(config.rewards),
        prefill=prefill,
        thinks=config.thinks,
        ngram=config.repetition.ngram,
        max_penalty=config.repetition.max_penalty,
    )
    columns = {"answer": list(rows["answer"]), "classes": list(rows["classes"])}
    return _decisions(name, rows, np.array([t.decision for t in turns], dtype=object)).assign(
        completion=texts,
        well_formed=[t.well_formed for t in turns],
        tokens=[g.tokens for g in written],
        finished=[g.finished for g in written],
        **{r.__name__: r(list(rows["prompt"]), texts, **columns) for r in rewards},
    )


def _decisions(name: str, rows: pd.DataFrame, decisions: np.ndarray) -> pd.DataFrame:
    table = rows[KEYS].reset_index(drop=True)
    return table.assign(model=name, decision=decisions, correct=decisions == table["answer"].to_numpy(dtype=object))


def _by_split(table: pd.DataFrame, config: TrainingConfig) -> dict[str, SplitFigures]:
    return {str(split): _figures(rows, config) for split, rows in table.groupby("split", sort=True)}


def _figures(rows: pd.DataFrame, config: TrainingConfig) -> SplitFigures:
    answer = rows["answer"].to_numpy(dtype=str)
    decision = rows["decision"].fillna(UNDECIDED).to_numpy(dtype=str)
    correct = rows["correct"].to_numpy(dtype=bool)
    classes = class_figures(answer, decision)
    return SplitFigures(
        rows=len(rows),
        accuracy=float(correct.mean()),
        wilson=wilson(int(correct.sum()), len(rows)),
        block_bootstrap=block_bootstrap(correct, rows["block"].to_numpy(dtype=str), seed=config.seed),
        balanced_accuracy=float(np.mean([c.recall for c in classes.values()])),
        macro_f1=float(np.mean([c.f1 for c in classes.values()])),
        undecided_share=float(np.mean(decision == UNDECIDED)),
        classes=classes,
        confusion=confusion(answer, decision),
        text=_text_figures(rows, config) if "completion" in rows else None,
    )


def _text_figures(rows: pd.DataFrame, config: TrainingConfig) -> TextFigures:
    means = {name: float(rows[name].mean()) for name in config.rewards}
    return TextFigures(
        format_share=float(rows["well_formed"].mean()),
        mean_rewards=means,
        mean_reward=sum(weight * means[name] for name, weight in config.rewards.items()),
        mean_tokens=float(rows["tokens"].mean()),
        finished_share=float(rows["finished"].mean()),
    )


def _comparisons(tables: Mapping[str, pd.DataFrame]) -> list[Comparison]:
    found = []
    for (first, a), (second, b) in combinations(tables.items(), 2):
        for split in sorted(a["split"].unique()):
            mine = a.loc[a["split"] == split, "correct"].to_numpy(dtype=bool)
            theirs = b.loc[b["split"] == split, "correct"].to_numpy(dtype=bool)
            found.append(
                Comparison(str(split), first, second, float(theirs.mean() - mine.mean()), mcnemar(mine, theirs))
            )
    return found
