"""The completion that SFT imitates: a rationale that is true by construction, then the oracle's label.

The rationale is computed from the numbers that the prompt prints: what each class is worth at the printed prices (or,
where the prompt has none, how the crops rank by yield), how habitat compares with the best crop, and what the shown
neighbours add. It never says that the largest value wins: the label comes from the whole landscape, and where the
numbers speak for another class, the rationale says by how much, and that the plan has decided otherwise.

Layout ``full`` words it in one of several ways, chosen by the prompt's id (:mod:`prompts.wording`); layout ``compact``
states numbers alone.
"""

from __future__ import annotations

import numpy as np

from oracle.landscape import HABITAT
from prompts.config import Layout, PromptConfig, Style
from prompts.neighbourhood import Neighbourhoods
from prompts.prices import Prices
from prompts.wording import worded


def local_values(shown: Neighbourhoods, prices: Prices) -> np.ndarray:
    """(n, K + 1) worth of each class at the printed prices, currency/ha.

    y_k times the effective price for crop k, e times the habitat price for habitat: the central polygon by itself,
    without what adjacent habitat adds.
    """
    crops = shown.yields.value * prices.effective.value
    return np.column_stack([crops, shown.connectivity.value * prices.habitat.value])


def targets(
    shown: Neighbourhoods, answers: np.ndarray, config: PromptConfig, rows: np.ndarray | None = None
) -> list[str]:
    """The SFT completion of each prompt: ``<think>rationale</think><answer>label</answer>``.

    Layout ``compact`` states hundreds of currency/ha with one decimal (``wheat 9.4 habitat 5.0``), or without prices
    the crops from the highest yield down, then connectivity. Layout ``full`` writes sentences (:mod:`prompts.wording`).

    Parameters
    ----------
    shown : Neighbourhoods
        Of n polygons.
    answers : ndarray of str
        (n,) the oracle's labels.
    config : PromptConfig
        Style and layout; ``answer_only`` leaves out the think block.
    rows : ndarray, optional
        Row positions of the polygons wanted; all n by default.
    """
    wanted = list(range(len(shown))) if rows is None else rows.tolist()
    labels = [f"<answer>{answers[i]}</answer>" for i in wanted]
    if config.style is Style.ANSWER_ONLY:
        return labels
    if config.layout is Layout.FULL:
        values = None if shown.prices is None else local_values(shown, shown.prices)
        rationales = [worded(shown, values, i, str(answers[i])) for i in wanted]
    elif shown.prices is None:
        rationales = _compact_ranking(shown, wanted)
    else:
        rationales = _compact_values(shown, shown.prices, wanted)
    return [f"<think>{rationale}</think>{label}" for rationale, label in zip(rationales, labels, strict=True)]


def _compact_values(shown: Neighbourhoods, prices: Prices, wanted: list[int]) -> list[str]:
    line = " ".join(f"{name.replace('%', '%%')} %.1f" for name in (*shown.crops, HABITAT))
    hundreds = (local_values(shown, prices) / 100.0).tolist()
    return [line % tuple(hundreds[i]) for i in wanted]


def _compact_ranking(shown: Neighbourhoods, wanted: list[int]) -> list[str]:
    order = np.argsort(-shown.yields.value, axis=1, kind="stable").tolist()
    yields, connectivity = shown.yields.text.tolist(), shown.connectivity.text.tolist()
    ranked = [" ".join(f"{shown.crops[k]} {yields[i][k]}" for k in order[i]) for i in wanted]
    return [f"{crops} {HABITAT} {connectivity[i]}" for i, crops in zip(wanted, ranked, strict=True)]
