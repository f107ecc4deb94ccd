"""Evaluation: how much of the oracle a model learned, on prompts that it never saw, beside every baseline.

Every model and baseline decides the same rows: per split at most ``max_rows``, drawn by the seed, greedily decoded; and
every polygon of some held-out landscapes, for the worth of the whole plan. A model that was trained to answer without
thinking is asked for the answer alone, about the same rows. Decision accuracy is kept apart from reward: reward can
rise on format and repetition alone.

========================  ==================================================================================
``predictions.parquet``   a row per model and prompt: completion, decision, format, rewards, votes, regret
``plans.parquet``         a row per decider and polygon of the landscapes decided whole: its class, the same after
                          the plan's smallest repair, and the oracle's
``evaluation.json``       the figures, an :class:`Evaluation`
``completions/``          what was written already: the same evaluation goes on from it
========================  ==================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_atomically, write_text
from prompts.config import PromptConfig, Style
from prompts.source import Source
from training.asked import Asked
from training.baselines import decide_with_baselines
from training.config import TrainingConfig
from training.decision_figures import SplitFigures, split_figures
from training.decision_regret import regrets
from training.model_decisions import ModelDecisions, decide
from training.model_record import ModelRecord, model_record
from training.paired import Paired, paired
from training.plan_worth import DecidedPlan, PlanWorth, decided_plan, plan_rows
from training.progress import Progress
from training.reasoning_figures import ReasoningFigures
from training.run import installed_versions, locked, weights_sha256
from training.seeds import SeedGroup, SeedLine, seed_groups, seed_table
from training.trainer import drawn, use_threads
from training.votes import VoteFigures, vote_figures

PREDICTIONS, PLANS, EVALUATION, COMPLETIONS = "predictions.parquet", "plans.parquet", "evaluation.json", "completions"
KEYS = ["prompt_id", "landscape", "polygon_id", "split", "block", "answer", "accepted", "classes", "status"]


@dataclass(frozen=True)
class Comparison(Paired):
    """Two deciders on the same rows of one split."""

    split: str
    first: str
    second: str


@dataclass(frozen=True)
class Evaluation:
    """Figures of every model and baseline by split, and how they compare."""

    models: dict[str, dict[str, SplitFigures]]
    baselines: dict[str, dict[str, SplitFigures]]
    best: dict[str, str]
    """By split, who decides most rows rightly."""
    comparisons: tuple[Comparison, ...]
    """Every two models, and everybody with the best."""
    votes: dict[str, dict[str, VoteFigures]]
    """Of sampled completions; empty where none were asked for."""
    plans: tuple[PlanWorth, ...]
    reasoning: dict[str, ReasoningFigures]
    seeds: tuple[SeedGroup, ...]
    over_seeds: dict[str, tuple[SeedLine, ...]]
    """By split, everybody's mean over seeds beside the best; empty where no run has a second seed."""
    records: dict[str, ModelRecord]
    """Of each model, from its run."""
    weights_sha256: dict[str, str]
    plan_landscapes: dict[str, str]
    """SHA-256 of the landscapes decided whole."""
    dataset_sha256: str
    config_sha256: str
    versions: dict[str, str]

    def to_json(self) -> str:
        """The content of ``evaluation.json``."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"


def evaluate(
    frame: pd.DataFrame,
    models: Mapping[str, Path],
    config: TrainingConfig,
    out: Path,
    *,
    dataset_sha256: str = "",
    prompts: PromptConfig | None = None,
    plans: Sequence[Source] = (),
    optimum: Mapping[str, tuple[float, int]] | None = None,
    pairs: pd.DataFrame | None = None,
) -> Evaluation:
    """Let models and baselines decide the held-out rows, and write predictions and figures into ``out``.

    Parameters
    ----------
    frame : DataFrame
        A prompt dataset's rows.
    models : mapping of str to Path
        Finished runs, or weights, by the name they are reported under, e.g. ``{"sft": ..., "grpo": ...}``; may be
        empty.
    config : TrainingConfig
        Its ``evaluation``, ``rewards``, ``model`` and ``seed``. The style of the turns is that of each model's own run,
        and the dataset's for weights that were not trained here.
    out : Path
        Folder of the files.
    dataset_sha256 : str
        Hash of the dataset, kept in ``evaluation.json``.
    prompts : PromptConfig, optional
        Of the dataset; needed to change numbers that the reasoning cites.
    plans : sequence of Source
        Held-out landscapes with their optimum (:func:`training.held_out_plans.held_out_plans`); of at most
        ``evaluation.plan_landscapes`` of them every polygon is decided.
    optimum : mapping of landscape to (objective, polygons), optional
        For the share of the optimum; that of ``plans`` is known.
    pairs : DataFrame, optional
        Counterfactual pairs, for the reasoning.

    Raises
    ------
    TrainingError
        Where no row is held out, or a model cannot be read.
    DatasetError
        Where the prompts are of another version and cannot be asked in a model's style.
    """
    out = Path(out).absolute()
    rows = evaluation_rows(frame, config)
    plans = list(plans)[: config.evaluation.plan_landscapes]
    whole = {plan.landscape.name: plan_rows(frame, plan) for plan in plans}
    asked = pd.concat([rows, *whole.values()]).drop_duplicates("prompt_id", ignore_index=True)
    questions = Asked(rows, asked, config, prompts, pairs)
    known = dict(optimum or {}) | {p.landscape.name: (p.solution.objective, len(p.landscape)) for p in plans}
    with locked(out):
        use_threads(config.threads)
        records = {name: model_record(path, Style(frame["style"].iloc[0])) for name, path in models.items()}
        in_style = {style: questions.in_style(Style(style)) for style in {record.style for record in records.values()}}
        written = {
            name: decide(name, path, in_style[records[name].style], out / COMPLETIONS) for name, path in models.items()
        }
        decided = {name: one.decision for name, one in written.items()}
        train = frame[frame["split"] == "train"]
        if len(train):
            by_baseline = decide_with_baselines(train, asked, config.seed)
            decided |= {n: pd.Series(d, index=asked["prompt_id"]) for n, d in by_baseline.items()}
        tables = {name: _table(name, rows, decision, written.get(name)) for name, decision in decided.items()}
        figures = {
            name: {
                str(split): split_figures(part, config.rewards, known, seed=config.seed)
                for split, part in table.groupby("split", sort=True)
            }
            for name, table in tables.items()
        }
        groups = seed_groups(models, figures)
        priced = _priced(plans, whole, decided, config.evaluation.repair_s)
        best = _best(figures, list(map(str, sorted(rows["split"].unique()))))
        evaluation = Evaluation(
            models={name: figures[name] for name in written},
            baselines={name: by_split for name, by_split in figures.items() if name not in written},
            best=best,
            comparisons=tuple(_comparisons(tables, best, set(written), config.seed)),
            votes={name: _votes(tables[name], config.seed) for name in written if config.evaluation.samples},
            plans=tuple(one.worth for one in priced),
            reasoning={name: one.reasoning for name, one in written.items()},
            seeds=groups,
            over_seeds=seed_table(groups, tables, seed=config.seed) if groups else {},
            records=records,
            weights_sha256={name: weights_sha256(Path(path)) for name, path in models.items()},
            plan_landscapes={plan.landscape.name: plan.landscape.sha256 for plan in plans},
            dataset_sha256=dataset_sha256,
            config_sha256=config.sha256,
            versions=installed_versions(),
        )
        table = pd.concat(tables.values(), ignore_index=True)
        write_atomically(out / PREDICTIONS, partial(table.to_parquet, index=False))
        (out / PLANS).unlink(missing_ok=True)
        if priced:
            of_plans = pd.concat([_plan_table(one, plans) for one in priced], ignore_index=True)
            write_atomically(out / PLANS, partial(of_plans.to_parquet, index=False))
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


def _table(name: str, rows: pd.DataFrame, decision: pd.Series, written: ModelDecisions | None) -> pd.DataFrame:
    said = decision.loc[rows["prompt_id"]].to_numpy(dtype=object)
    regret, worst = regrets(rows, said)
    table = rows[KEYS].reset_index(drop=True)
    table = table.assign(
        model=name,
        decision=said,
        correct=[d in right for d, right in zip(said, rows["accepted"], strict=True)],
        regret=regret,
        worst_regret=worst,
    )
    return table if written is None else pd.concat([table, written.writing], axis=1)


def _votes(table: pd.DataFrame, seed: int) -> dict[str, VoteFigures]:
    by_split = {str(split): vote_figures(part, seed=seed) for split, part in table.groupby("split", sort=True)}
    return {split: found for split, found in by_split.items() if found is not None}


def _best(figures: Mapping[str, dict[str, SplitFigures]], splits: Sequence[str]) -> dict[str, str]:
    if not figures:
        return {}
    return {split: max(figures, key=lambda name: figures[name][split].accuracy) for split in splits}


def _comparisons(
    tables: Mapping[str, pd.DataFrame], best: Mapping[str, str], models: set[str], seed: int
) -> list[Comparison]:
    found = []
    for (first, a), (second, b) in combinations(tables.items(), 2):
        for split in sorted(best):
            if not {first, second} <= models and best[split] not in (first, second):
                continue
            here = (a["split"] == split).to_numpy()
            mine, theirs = (t.loc[here, "correct"].to_numpy(dtype=bool) for t in (a, b))
            test = paired(mine, theirs, a.loc[here, "block"].to_numpy(dtype=str), seed=seed)
            found.append(Comparison(**vars(test), split=split, first=first, second=second))
    return found


def _priced(
    plans: Sequence[Source], whole: Mapping[str, pd.DataFrame], decided: Mapping[str, pd.Series], repair_s: float
) -> list[DecidedPlan]:
    progress = Progress("plans", len(plans) * len(decided))
    found: list[DecidedPlan] = []
    for plan in plans:
        rows = whole[plan.landscape.name]
        for name, decision in decided.items():
            said = dict(zip(rows["polygon_id"], decision.loc[rows["prompt_id"]], strict=True))
            found.append(decided_plan(plan, said, name, repair_s))
            progress.update(len(found))
    return found


def _plan_table(one: DecidedPlan, plans: Sequence[Source]) -> pd.DataFrame:
    plan = next(p for p in plans if p.landscape.name == one.worth.landscape)
    classes = np.array(plan.landscape.classes, dtype=object)
    return pd.DataFrame(
        {
            "landscape": one.worth.landscape,
            "polygon_id": plan.landscape.ids.astype(str),
            "model": one.worth.decider,
            "land_use": classes[one.choice],
            "repaired": None if one.repaired is None else classes[one.repaired],
            "oracle": plan.solution.land_use,
        }
    )
