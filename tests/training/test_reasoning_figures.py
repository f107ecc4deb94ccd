"""The reasoning of a model whose words are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from training.motifs import Motif
from training.reasoning_figures import reasoning_figures


def _turn(crop: str) -> str:
    return f"<think>{crop} has the highest yield, so {crop}.</think><answer>{crop}</answer>"


def test_motifs_conclusions_and_pairs_are_counted(make_frame: Callable[..., pd.DataFrame]) -> None:
    rows = make_frame(landscapes=1, rows=20, held_out=1)
    best = [max(range(4), key=lambda k, y=y: y[0][k]) for y in rows["yields"]]  # type: ignore[misc]
    said = [row[k] for row, k in zip(rows["classes"], best, strict=True)]
    table = pd.DataFrame({"completion": [_turn(c) for c in said], "decision": said})
    pairs = pd.DataFrame(
        {
            "split": ["held_out_block", "held_out_block", "held_out_landscape"],
            "prompt": ["corn"] * 3,
            "edited_prompt": ["oat", "corn", "corn"],
            "answer": ["corn"] * 3,
            "edited_answer": ["oat", "corn", "oat"],
            "classes": [["oat", "corn", "habitat"]] * 3,
        }
    )

    def obeys(prompts: Sequence[Any]) -> list[str]:
        return [_turn(prompt) for prompt in prompts]

    found = reasoning_figures(rows, table, obeys, "", prompts=None, cited_rows=5, pairs=pairs, thinks=True)
    (top,) = (m for m in found.motifs.motifs if m.motif is Motif.YIELD_MAX)
    assert (top.shown, top.supported, top.share) == (20, 20, pytest.approx(1.0))
    assert (found.conclusions.concluded, found.conclusions.agreed) == (20, 20)
    assert found.cited is None
    followed = {split: (of.follows, of.pairs) for split, of in found.pairs.items()}
    assert followed == {"held_out_block": (2, 2), "held_out_landscape": (0, 1)}
