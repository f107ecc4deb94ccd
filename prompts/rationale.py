"""The completion that SFT imitates: a rationale that is true by construction, then the oracle's label.

The rationale states what each class is worth at the printed prices (or, where the prompt has none, how the crops rank
by yield). It is computed from the numbers that the prompt prints and never says that the largest value wins: the
label comes from the whole landscape, so neighbours and floors may decide otherwise.
"""

from __future__ import annotations

import numpy as np

from oracle.landscape import HABITAT
from prompts.config import Layout, PromptConfig, Style
from prompts.neighbourhood import Neighbourhoods
from prompts.prices import Prices


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

    Layout ``compact`` states hundreds of currency/ha with one decimal (``wheat 9.4 habitat 5.0``), layout ``full`` the
    multiplications in currency/ha; without prices both state the crops from the highest yield down, then connectivity.

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
    compact = config.layout is Layout.COMPACT
    if shown.prices is None:
        rationales = _ranking(shown, wanted, compact)
    elif compact:
        rationales = _compact_values(shown, shown.prices, wanted)
    else:
        rationales = _worded_values(shown, shown.prices, wanted)
    return [f"<think>{rationale}</think>{label}" for rationale, label in zip(rationales, labels, strict=True)]


def _compact_values(shown: Neighbourhoods, prices: Prices, wanted: list[int]) -> list[str]:
    line = " ".join(f"{name.replace('%', '%%')} %.1f" for name in (*shown.crops, HABITAT))
    hundreds = (local_values(shown, prices) / 100.0).tolist()
    return [line % tuple(hundreds[i]) for i in wanted]


def _worded_values(shown: Neighbourhoods, prices: Prices, wanted: list[int]) -> list[str]:
    names = (*shown.crops, HABITAT)
    price = [*prices.effective.text.tolist(), str(prices.habitat.text)]
    amount = np.column_stack([shown.yields.text, shown.connectivity.text]).tolist()
    value = local_values(shown, prices).tolist()
    grown = np.column_stack([shown.yields.value > 0, np.ones(len(shown), dtype=bool)]).tolist()
    texts = []
    for i in wanted:
        worth = [
            f"{name} {amount[i][k]} * {price[k]} = {value[i][k]:.0f}" for k, name in enumerate(names) if grown[i][k]
        ]
        none = [name for k, name in enumerate(names) if not grown[i][k]]
        texts.append(f"Worth per hectare: {', '.join(worth)}." + (f" No yield: {', '.join(none)}." if none else ""))
    return texts


def _ranking(shown: Neighbourhoods, wanted: list[int], compact: bool) -> list[str]:
    order = np.argsort(-shown.yields.value, axis=1, kind="stable").tolist()
    yields, connectivity = shown.yields.text.tolist(), shown.connectivity.text.tolist()
    ranked = [[f"{shown.crops[k]} {yields[i][k]}" for k in order[i]] for i in wanted]
    if compact:
        return [f"{' '.join(crops)} {HABITAT} {connectivity[i]}" for i, crops in zip(wanted, ranked, strict=True)]
    return [
        f"Yields from high to low: {', '.join(crops)}. Ecological connectivity: {connectivity[i]}."
        for i, crops in zip(wanted, ranked, strict=True)
    ]
