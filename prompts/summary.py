"""What a prompt dataset holds, in figures and sentences: sizes, shares, how sure a figure on it can be, notes."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pandas as pd

from oracle.errors import name_some
from prompts.config import Labels
from prompts.leaks import SEALED
from prompts.manifest import IntervalWidth, SourceRecord, SplitRecord, TokenRecord
from prompts.split import Role, Split
from prompts.tokens import TokenAudit

HELD_OUT = (*SEALED, Split.HELD_OUT_RANDOM.value)
FEW_ROWS = 400
"""A held-out split with fewer rows says how wide its interval will be."""


def split_records(frame: pd.DataFrame) -> dict[str, SplitRecord]:
    records = {}
    for split in Split:
        rows = frame[frame["split"] == split.value]
        records[split.value] = SplitRecord(
            prompts=len(rows),
            classes=_shares(rows["answer"]),
            status=_shares(rows["status"]),
            interval=_interval_width(len(rows)) if split.value in HELD_OUT and len(rows) else None,
        )
    return records


def _shares(values: pd.Series) -> dict[str, float]:
    counts = values.value_counts().sort_index()
    return {str(value): round(int(count) / len(values), 6) for value, count in counts.items()}


def _interval_width(rows: int) -> IntervalWidth:
    return IntervalWidth(at_65=_wilson_width(0.65, rows), at_50=_wilson_width(0.5, rows))


def _wilson_width(share: float, rows: int) -> float:
    """Width of the 95 % score interval (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212)."""
    z = NormalDist().inv_cdf(0.975)
    return round(2 * z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows)), 4)


def token_record(frame: pd.DataFrame, audit: TokenAudit | None) -> TokenRecord | None:
    if audit is None or frame.empty:
        return None
    tokens = frame["prompt_tokens"].to_numpy(dtype=int)
    least, median, high, greatest = np.quantile(tokens, [0, 0.5, 0.95, 1], method="higher").tolist()
    return TokenRecord(
        tokenizer=audit.tokenizer,
        limit=audit.limit,
        least=least,
        median=median,
        percentile_95=high,
        greatest=greatest,
    )


def notes_on(frame: pd.DataFrame, records: list[SourceRecord]) -> tuple[str, ...]:
    notes = []
    splits = frame["split"].value_counts().to_dict()
    without = [r.landscape for r in records if r.role is Role.TRAIN and not r.held_out_blocks]
    if without:
        notes.append(f"no block is held out in {name_some(without)}: too few polygons for a block and its buffer")
    if not splits.keys() & set(SEALED):
        notes.append("nothing is held out, so nothing can be evaluated: add a landscape, or lower buffer or block_side")
    if Split.TRAIN.value not in splits:
        notes.append("nothing is left to train on: every landscape is held out")
    for split in HELD_OUT:
        rows = splits.get(split, 0)
        if 0 < rows < FEW_ROWS:
            width = _interval_width(rows)
            notes.append(
                f"{split} has only {rows:,} rows: the 95 % Wilson interval of an accuracy of 0.65 will be "
                f"{100 * width.at_65:.1f} points wide, that of 0.5 {100 * width.at_50:.1f}"
            )
    locked, tied = sum(r.locked for r in records), sum(r.tied_dropped for r in records)
    if locked:
        notes.append(f"{locked:,} polygons with a locked land use became no prompt")
    if tied:
        notes.append(f"{tied:,} polygons with a tied label became no prompt (labels: {Labels.DROP_TIED})")
    if frame["prompt_tokens"].isna().any():
        notes.append("tokens were not counted: no training profile was named, or its tokenizer was not at hand")
    return tuple(notes)
