"""Ten completions that show a model at its best, at its worst, and where it cost the landscape most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from training.evaluate import PREDICTIONS

BEST, WORST, COSTLY = "best", "worst", "most costly"
SHOWN = {COSTLY: 4, WORST: 3, BEST: 3}


def ten_completions(evaluation: Path, model: str, split: str) -> list[dict[str, Any]]:
    """Rows of one model on one split, each shown once.

    Best: right where most was at stake. Most costly: of the greatest regret. Worst: no decision or another form than
    asked, the longest first; where every turn decides, the greatest regret that is left.

    Parameters
    ----------
    evaluation : Path
        Folder of ``predictions.parquet``.
    model, split : str
    """
    table = pd.read_parquet(evaluation / PREDICTIONS)
    rows = table[(table["model"] == model) & (table["split"] == split)].copy()
    rows["formless"] = rows["decision"].isna() | ~rows["well_formed"].astype(bool)
    right = rows["correct"].astype(bool)
    ranked = {
        COSTLY: rows[~right & rows["decision"].notna()].sort_values("regret", ascending=False, kind="stable"),
        WORST: rows[~right].sort_values(["formless", "tokens", "regret"], ascending=False, kind="stable"),
        BEST: rows[right & ~rows["formless"]].sort_values("worst_regret", ascending=False, kind="stable"),
    }
    shown: list[dict[str, Any]] = []
    for kind, candidates in ranked.items():
        seen = {one["prompt_id"] for one in shown}
        for row in candidates[~candidates["prompt_id"].isin(seen)].head(SHOWN[kind]).to_dict("records"):
            shown.append(
                {
                    "kind": kind,
                    "prompt_id": row["prompt_id"],
                    "answer": row["answer"],
                    "decision": row["decision"] if isinstance(row["decision"], str) else None,
                    "correct": bool(row["correct"]),
                    "well_formed": bool(row["well_formed"]),
                    "regret": float(row["regret"]),
                    "completion": row["completion"],
                }
            )
    return sorted(shown, key=lambda one: [BEST, COSTLY, WORST].index(one["kind"]))
