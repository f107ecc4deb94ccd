"""Figures of an ablation: each arm over its seeds, and paired with SFT alone and with its own start.

A paired difference is taken row by row and averaged over the seeds that both arms have; its interval comes from
drawing whole landscapes with replacement, and beside it whole spatial blocks. It says how sure the difference is for
these seeds on other landscapes; how much seeds matter stands beside it, as the range over them.

Decisions are compared in two ways: the most likely completion (greedy), and the mean over sampled completions, which
tells how often the policy itself is right. Reinforcement raises the second as it makes a policy surer, even where the
first stays what it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oracle.errors import TrainingError
from oracle.files import write_json, write_text
from prompts.split import Split
from training.ablate import ARMS, EVALUATED, REFERENCE, Run
from training.evaluate import PREDICTIONS
from training.figures import Interval, block_bootstrap
from training.paired import mcnemar
from training.run import METRICS, RUN

RESULTS, PAGE = "results.json", "results.md"
GREEDY, SAMPLED = "greedy", "sampled"
BASELINES = ("gradient_boosting", "largest_value", "majority")
SETTLED = 10
"""GRPO steps before the share of groups with a signal is averaged: until then prompts are still being voted on."""


@dataclass(frozen=True)
class Difference:
    """An arm's accuracy less another's on the same rows, over the seeds that both have."""

    against: str
    mean: float
    by_seed: tuple[float, ...]
    by_landscape: Interval | None
    """Bootstrap of whole landscapes; None of too few."""
    by_block: Interval | None
    """Bootstrap of spatial blocks; None of too few."""
    by_seed_and_landscape: tuple[Interval | None, ...]
    """Each seed's own difference, bootstrap of whole landscapes."""
    mcnemar_p: tuple[float, ...]
    """By seed; none for samples."""


@dataclass(frozen=True)
class ArmResult:
    """An arm on one split."""

    arm: str
    way: str
    """Greedy decisions, or sampled ones."""
    what: str
    split: str
    rows: int
    landscapes: int
    seeds: tuple[int, ...]
    accuracy: tuple[float, ...]
    """By seed."""
    format_share: tuple[float, ...]
    stopped: tuple[str | None, ...]
    """By seed: why the guard stopped the run, where it did."""
    signal: dict[str, float]
    """GRPO: mean share of groups with a decision signal, drawn by votes and drawn uniformly."""
    differences: tuple[Difference, ...]

    @property
    def mean(self) -> float:
        """Accuracy, mean over seeds."""
        return float(np.mean(self.accuracy))


@dataclass(frozen=True)
class AblationResults:
    """Every arm, split and way to decide, with baselines on the same rows."""

    arms: tuple[ArmResult, ...]
    baselines: dict[str, dict[str, float]]
    """Accuracy by split and baseline."""
    wall_time_s: dict[str, float]
    """By run."""
    profile: str
    dataset_sha256: str

    def to_markdown(self) -> str:
        """The tables of ``results.md``, one per split and way to decide."""
        return "\n".join(
            _table(
                [a for a in self.arms if (a.split, a.way) == (split, way)],
                self.baselines.get(split, {}) if way == GREEDY else {},
            )
            for split, way in dict.fromkeys((a.split, a.way) for a in self.arms)
        )


def results(out: Path, runs: Sequence[Run]) -> AblationResults:
    """Read the runs and evaluations below ``out`` and write ``results.json`` and ``results.md`` there.

    Raises
    ------
    TrainingError
        Where a run or its decisions are missing.
    """
    table = out / EVALUATED / PREDICTIONS
    if not table.is_file():
        raise TrainingError(f"{out} holds no evaluation: run `landoracle ablate` to its end")
    predictions = pd.read_parquet(table)
    missing = sorted({run.name for run in runs} - set(predictions["model"]))
    if missing:
        raise TrainingError(f"{out} holds no decisions of {', '.join(missing)}: run `landoracle ablate` to its end")
    records = {run.name: json.loads((out / run.name / RUN).read_text(encoding="utf-8")) for run in runs}
    splits = sorted(predictions["split"].unique(), key=lambda split: (split != Split.HELD_OUT_LANDSCAPE, split))
    found = AblationResults(
        arms=tuple(
            _arm(arm, way, split, runs, rows[rows["split"] == split], records, out)
            for split in splits
            for way, rows in {GREEDY: predictions, SAMPLED: _sampled(predictions)}.items()
            if len(rows)
            for arm in dict.fromkeys(run.arm for run in runs)
        ),
        baselines={split: _baselines(predictions[predictions["split"] == split]) for split in splits},
        wall_time_s={name: float(record["wall_time_s"]) for name, record in records.items()},
        profile=records[runs[0].name]["profile"],
        dataset_sha256=records[runs[0].name]["dataset_sha256"],
    )
    write_json(out / RESULTS, asdict(found))
    write_text(out / PAGE, found.to_markdown())
    return found


def difference(arm: str, against: str, seeds: Iterable[int], decided: dict[str, pd.DataFrame]) -> Difference:
    """Compare two arms.

    Parameters
    ----------
    arm, against : str
        The first's accuracy less the second's.
    seeds : iterable of int
        Taken into the mean.
    decided : dict of str to DataFrame
        By :attr:`Run.name`: ``correct`` (bool, or the share of right samples), ``landscape`` and ``block`` of the
        same rows, indexed by ``prompt_id``.
    """
    pairs = [(decided[Run(against, seed).name], decided[Run(arm, seed).name]) for seed in seeds]
    rows = pairs[0][0].index
    moved = np.array(
        [b.loc[rows, "correct"].to_numpy(float) - a.loc[rows, "correct"].to_numpy(float) for a, b in pairs]
    )
    mean = moved.mean(axis=0)
    landscape, block = (pairs[0][0][name].to_numpy(dtype=str) for name in ("landscape", "block"))
    return Difference(
        against=against,
        mean=float(mean.mean()),
        by_seed=tuple(float(m) for m in moved.mean(axis=1)),
        by_landscape=block_bootstrap(mean, landscape),
        by_block=block_bootstrap(mean, block),
        by_seed_and_landscape=tuple(block_bootstrap(one, landscape) for one in moved),
        mcnemar_p=tuple(
            mcnemar(a.loc[rows, "correct"].to_numpy(), b.loc[rows, "correct"].to_numpy())
            for a, b in pairs
            if a["correct"].dtype == bool
        ),
    )


def _sampled(predictions: pd.DataFrame) -> pd.DataFrame:
    """The rows that were sampled, ``correct`` being the share of right samples; no row where none was."""
    if "votes" not in predictions:
        return predictions.iloc[:0]
    rows = predictions[predictions["votes"].notna()]
    right = [
        float(np.mean([vote in accepted for vote in votes]))
        for votes, accepted in zip(rows["votes"], rows["accepted"], strict=True)
    ]
    return rows.assign(correct=right)


def _arm(
    arm: str, way: str, split: str, runs: Sequence[Run], predictions: pd.DataFrame, records: dict[str, Any], out: Path
) -> ArmResult:
    decided = {str(name): table.set_index("prompt_id") for name, table in predictions.groupby("model")}
    mine = [run for run in runs if run.arm == arm]
    seeds = [run.seed for run in mine]
    start = ARMS[arm].start
    against = [other for other in dict.fromkeys([REFERENCE, start]) if other is not None and other != arm]
    first = decided[mine[0].name]
    return ArmResult(
        arm=arm,
        way=way,
        what=ARMS[arm].what,
        split=split,
        rows=len(first),
        landscapes=first["landscape"].nunique(),
        seeds=tuple(seeds),
        accuracy=tuple(float(decided[run.name]["correct"].mean()) for run in mine),
        format_share=tuple(float(decided[run.name]["well_formed"].mean()) for run in mine),
        stopped=tuple(records[run.name].get("stopped") for run in mine),
        signal=_signal([out / run.name for run in mine]),
        differences=tuple(difference(arm, other, seeds, decided) for other in against),
    )


def _signal(folders: Sequence[Path]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for folder in folders:
        table = pd.read_parquet(folder / f"{METRICS}.parquet")
        for name in ("signal/drawn", "signal/uniform"):
            settled = table.loc[table["step"] > SETTLED, name].dropna() if name in table else pd.Series(dtype=float)
            if len(settled):
                found.setdefault(name.removeprefix("signal/"), []).append(float(settled.mean()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _baselines(predictions: pd.DataFrame) -> dict[str, float]:
    named = predictions[predictions["model"].isin(BASELINES)].drop_duplicates(["model", "prompt_id"])
    return {str(name): float(share) for name, share in named.groupby("model")["correct"].mean().items()}


def _table(arms: Sequence[ArmResult], baselines: dict[str, float]) -> str:
    one = arms[0]
    lines = [
        f"### {one.split.replace('_', ' ')}, {one.way}: {one.rows:,} rows of {one.landscapes} landscapes",
        "",
        "| arm | what | seeds | accuracy, mean (range) | against SFT, points | against its start, points | notes |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        against = {d.against: d for d in arm.differences}
        start = ARMS[arm.arm].start
        cells = [
            f"`{arm.arm}`",
            arm.what,
            str(len(arm.accuracy)),
            f"{arm.mean:.1%} ({min(arm.accuracy):.1%} to {max(arm.accuracy):.1%})",
            _difference(against.get(REFERENCE)),
            _difference(against.get(start)) if start not in (None, REFERENCE) else "",
            _notes(arm),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {name.replace('_', ' ')} | baseline | | {share:.1%} | | | |" for name, share in baselines.items()]
    return "\n".join([*lines, ""])


def _difference(found: Difference | None) -> str:
    if found is None:
        return ""
    interval, over = found.by_landscape, "too few landscapes"
    seeds = ", ".join(f"{100 * d:+.1f}" for d in found.by_seed)
    p = ", ".join(f"{p:.1g}" if p > 0 else "< 1e-300" for p in found.mcnemar_p)
    if interval is not None:
        over = f"{100 * interval.low:+.1f}, {100 * interval.high:+.1f}"
    shown = f"{100 * found.mean:+.1f} [{over}]; seeds {seeds}"
    return f"{shown}; McNemar's p {p}" if p else shown


def _notes(arm: ArmResult) -> str:
    stopped = zip(arm.seeds, arm.stopped, strict=True)
    notes = [f"seed {seed} {reason.partition('. ')[0]}" for seed, reason in stopped if reason]
    if min(arm.format_share) < 0.995:
        notes.append(f"well-formed {np.mean(arm.format_share):.1%}")
    if arm.signal:
        notes.append("signal " + ", ".join(f"{name} {share:.0%}" for name, share in arm.signal.items()))
    return "; ".join(notes)
