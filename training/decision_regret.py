"""What wrong decisions cost: the regret of each, from the lower ends that the oracle's certificate proves.

A decision's regret is what the landscape loses at least when this polygon is put to that class and everything else is
planned anew: two polygons that are both wrong may lose less, or more, than the sum of their regrets. What whole plans
lose is another figure (:mod:`training.plan_worth`).

No decision, and a class that the polygon may not have or where nothing of it grows, count as the polygon's worst class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from training.figures import Interval, block_bootstrap


@dataclass(frozen=True)
class RegretFigures:
    """Regret of n decisions, objective units."""

    mean: float
    mean_bootstrap: Interval | None
    """Over blocks; None of too few, or where all have the same mean."""
    kept_share: float
    """1 where every decision costs nothing, 0 where each is its polygon's worst class."""
    share_of_optimum: float | None
    """1 - (mean regret times polygons) / objective, averaged over the rows' landscapes: were all of a landscape decided
    like this and each by itself. None where no plan of the landscapes was given."""


def regrets(rows: pd.DataFrame, decision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regret of each decision, and that of each row's worst class.

    Parameters
    ----------
    rows : DataFrame
        n rows of a prompt dataset, with ``classes`` and ``regret_low``.
    decision : ndarray
        (n,) class names; anything else is no decision.

    Returns
    -------
    regret, worst : ndarray
        (n,) objective units.
    """
    lost, most = [], []
    for classes, low, said in zip(rows["classes"], rows["regret_low"], decision, strict=True):
        of = dict(zip(classes, low, strict=True))
        worst = max((v for v in of.values() if np.isfinite(v)), default=0.0)
        own = of.get(said, np.inf)
        lost.append(own if np.isfinite(own) else worst)
        most.append(worst)
    return np.array(lost, dtype=float), np.array(most, dtype=float)


def regret_figures(table: pd.DataFrame, optimum: dict[str, tuple[float, int]], *, seed: int = 0) -> RegretFigures:
    """Figures of one decider's rows.

    Parameters
    ----------
    table : DataFrame
        Columns ``landscape``, ``block``, ``regret`` and ``worst_regret``.
    optimum : dict of landscape to (objective, polygons)
        Of the landscapes whose plans are known.
    seed : int
        Of the bootstrap.
    """
    regret, worst = table["regret"].to_numpy(dtype=float), float(table["worst_regret"].sum())
    shares = []
    for name, of in table.groupby("landscape"):
        objective, polygons = optimum.get(str(name), (0.0, 0))
        if objective > 0:
            shares.append(np.full(len(of), 1 - of["regret"].mean() * polygons / objective))
    known = sum(map(len, shares)) == len(table)
    return RegretFigures(
        mean=float(regret.mean()),
        mean_bootstrap=block_bootstrap(regret, table["block"].to_numpy(dtype=str), seed=seed),
        kept_share=1 - float(regret.sum()) / worst if worst > 0 else 1.0,
        share_of_optimum=float(np.concatenate(shares).mean()) if shares and known else None,
    )
