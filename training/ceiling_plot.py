"""The plot of a ceiling: accuracy by order of neighbours, one colour per context."""

from __future__ import annotations

from matplotlib.figure import Figure

from prompts.config import Context
from training.ceiling import DECISION_TREE, Ceiling, Learned

_LOOK = {  # colours of Okabe and Ito (2008); markers tell them apart without colour
    "prices": ("#0072b2", "o", 0.0),
    "supply": ("#009e73", "s", 0.06),
    "none": ("#d55e00", "^", -0.06),
}


def draw(found: Ceiling) -> Figure:
    """Every variant's ceiling with its interval, the best tree beside it, the recommended one ringed."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for context in dict.fromkeys(v.variant.context for v in found.variants):
        colour, marker, shift = _LOOK[context.value]
        of = sorted((v for v in found.variants if v.variant.context is context), key=lambda v: v.variant.order)
        x = [v.variant.order + shift for v in of]
        y = [v.best.accuracy for v in of]
        low = [v.best.accuracy - v.best.bootstrap.low for v in of]
        high = [v.best.bootstrap.high - v.best.accuracy for v in of]
        name = "prices stated" if context is Context.PRICES else f"context {context.value}"
        axes.errorbar(x, y, [low, high], color=colour, marker=marker, markersize=7, capsize=4, label=name)
        tree = [max(_trees(found, context, v.variant.order), key=lambda t: t.choosing_accuracy).accuracy for v in of]
        axes.plot(x, tree, color=colour, marker=marker, markerfacecolor="white", linestyle=":", linewidth=1)
    axes.plot([], [], color="#000000", marker="o", markerfacecolor="white", linestyle=":", label="a tree of 64 leaves")
    chosen = found.recommended
    at = chosen.variant.order + _LOOK[chosen.variant.context.value][2]
    axes.plot([at], [chosen.best.accuracy], "o", markersize=18, color="#000000", fillstyle="none")
    axes.annotate(
        "recommended", (at, chosen.best.accuracy), textcoords="offset points", xytext=(0, 14), size=9, ha="center"
    )
    axes.margins(y=0.12)
    axes.set_xticks([0, 1, 2], ["0: central alone", "1: neighbours", "2: their neighbours too"])
    axes.set_xlim(-0.3, max(v.variant.order for v in found.variants) + 0.3)
    axes.set_xlabel("order of neighbours shown")
    axes.set_ylabel("held-out polygons decided as the oracle does")
    axes.yaxis.set_major_formatter("{x:.2f}")
    axes.set_title(
        f"What a reader of the prompt could know ({found.rows:,} rows of {found.split}, 95 % over "
        f"{found.bootstrapped_over})",
        fontsize=10,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.6))
    return figure


def _trees(found: Ceiling, context: Context, order: int) -> list[Learned]:
    return [
        t
        for t in found.learned
        if t.learner == DECISION_TREE and t.variant.context is context and t.variant.order <= order
    ]
