"""How much of the oracle a reader of a prompt could know: the best learners that see the prompt's own numbers.

A prompt of order 2 with prices contains every smaller variant: the first-order rows of its list, and the list without
the prices. For every variant the learners are trained on the training rows and decide the held-out rows, from

===========  ==========================================================================================
central      the central polygon alone: graph-free
slots        the numbers as listed, each neighbour under its position code
together     the neighbours of each order taken together (:mod:`training.summary_features`)
===========  ==========================================================================================

A decision tree, boosted trees, a perceptron (on the central polygon) or a graph network (on the neighbours together)
and, with prices, the class of the largest value: :mod:`training.readers`. A learner may ignore neighbours and prices,
so a larger variant's ceiling is chosen among the smaller ones' learners too. The choice is made on a fifth of the
training rows, never on the held-out ones: on whole landscapes for the ceiling in landscapes never seen, on whole blocks
for the ceiling in held-out blocks. The two differ: within a landscape that it has seen, a learner recognises the
landscape by its prices or supply and knows what is done there.

Intervals are bootstrapped over landscapes where at least ten are held out, else over blocks: what a landscape's prompts
have in common makes them right or wrong together. Of too few blocks only Wilson's is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oracle.errors import DatasetError
from prompts.config import Context, PromptConfig
from prompts.dataset import PromptDataset
from prompts.leaks import SEALED
from prompts.split import Split
from training.baselines import largest_value
from training.figures import FEWEST_BLOCKS, Interval, block_bootstrap, wilson
from training.readers import boosted_trees, decide_from_graph, decide_from_numbers, tree
from training.summary_features import listed_numbers, numbers_together

TOLD = (
    *("market_price", "supplement", "effective_price", "habitat_price", "adjacency_price"),
    *("floor_t", "reference_supply_t"),
)
"""Columns that state something about the whole landscape."""
GRADIENT_BOOSTING, DECISION_TREE, LARGEST_VALUE = "gradient boosting", "decision tree", "largest value"
PERCEPTRON, GRAPH_NETWORK = "perceptron", "graph network"
_KEPT_TO_CHOOSE = 5  # every fifth
_MANY_LANDSCAPES = 10
_CONTEXTS = list(Context)

Progress = Callable[[str, int, int], None]
"""(what is learned, how many are done, how many there are)."""


@dataclass(frozen=True)
class Variant:
    """What a prompt shows: order of neighbours, and what it states about the landscape."""

    order: int
    context: Context

    def within(self, other: Variant) -> bool:
        """Everything that this variant shows, ``other`` shows too."""
        return self.order <= other.order and self.context in (Context.NONE, other.context)


@dataclass(frozen=True)
class Learned:
    """One learner on one variant's numbers."""

    variant: Variant
    fields: str
    """central, slots or together."""
    learner: str
    choosing_accuracy: float
    """On the training rows kept to choose by."""
    accuracy: float
    wilson: Interval
    bootstrap: Interval
    """Of the accuracy, over landscapes or blocks; Wilson's, over rows, where there are too few."""
    regret: float
    """Were every polygon of a landscape decided like this and each by itself: the least loss, objective units."""
    regret_bootstrap: Interval | None


@dataclass(frozen=True)
class VariantCeiling:
    """The best learner of a variant, and how long its prompts are."""

    variant: Variant
    numbers: float
    """Numbers in a prompt, on average."""
    best: Learned


@dataclass(frozen=True)
class Ceiling:
    """The ceilings of a dataset's variants, the smallest variant first."""

    datasets: tuple[str, ...]
    """Hashes of the datasets that it was measured on."""
    training_rows: int
    landscapes: int
    rows: int
    """Held-out rows decided."""
    split: str
    bootstrapped_over: str
    """landscapes, blocks, or rows (Wilson's interval) where there are too few blocks."""
    variants: tuple[VariantCeiling, ...]
    learned: tuple[Learned, ...]

    @property
    def best(self) -> VariantCeiling:
        return max(self.variants, key=lambda v: v.best.accuracy)

    @property
    def recommended(self) -> VariantCeiling:
        """The variant of fewest numbers whose bootstrap interval reaches the best variant's accuracy."""
        return _smallest_within(self.variants)

    @property
    def recommended_without_prices(self) -> VariantCeiling:
        """The same among the variants that a landscape can have which nobody solved."""
        return _smallest_within([v for v in self.variants if v.variant.context is not Context.PRICES])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {
            "recommended": asdict(self.recommended.variant),
            "recommended_without_prices": asdict(self.recommended_without_prices.variant),
        }


def ceiling(
    datasets: list[PromptDataset],
    *,
    order: int | None = None,
    context: Context | None = None,
    split: Split | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ceiling:
    """The ceiling of every variant that the datasets contain.

    Parameters
    ----------
    datasets : list of PromptDataset
        One, best of order 2 with prices; several of the same polygons where their contexts differ.
    order, context : optional
        The largest order and the context asked for; all that there are by default.
    split : Split, optional
        The held-out rows to decide; by default landscapes never seen, where the dataset holds some out, else blocks.
    seed : int
        Of the learners and of the bootstrap.
    progress : callable, optional

    Raises
    ------
    DatasetError
        Where a variant asked for is in none of them, they are not of the same polygons, or there is nothing to learn
        from or to decide.
    """
    frames = _frames(datasets, order, context)
    some = next(iter(frames.values()))
    asked = _split_to_decide(some, split)
    here = some["split"] == asked.value
    enough = some.loc[here, "block"].nunique() >= FEWEST_BLOCKS
    over = "landscape" if some.loc[here, "landscape"].nunique() >= _MANY_LANDSCAPES else "block"
    polygons = {s.landscape: s.polygons for d in datasets for s in d.manifest.sources}
    learned: list[Learned] = []
    numbers: dict[Variant, float] = {}
    total = sum(len(_learners(variant, fields)) for variant in frames for fields in _fields(variant))
    for variant, frame in frames.items():
        rows = as_variant(frame[frame["split"].isin([Split.TRAIN.value, asked.value])], variant)
        numbers[variant] = _numbers(rows)
        for fields in _fields(variant):
            features = _features(rows, fields)
            for name in _learners(variant, fields):
                if progress is not None:
                    progress(f"order {variant.order}, {variant.context}: {name}, {fields}", len(learned), total)
                learned.append(_learn(rows, features, polygons, variant, fields, name, over, seed))
    tops = [_ceiling_of(variant, numbers[variant], learned) for variant in frames]
    return Ceiling(
        datasets=tuple(dataset.sha256 for dataset in datasets),
        training_rows=int((some["split"] == Split.TRAIN.value).sum()),
        landscapes=int(some.loc[some["split"] == Split.TRAIN.value, "landscape"].nunique()),
        rows=int(here.sum()),
        split=asked.value,
        bootstrapped_over=f"{over}s" if enough else "rows, too few blocks",
        variants=tuple(sorted(tops, key=lambda v: v.numbers)),
        learned=tuple(learned),
    )


def variants_in(config: PromptConfig) -> list[Variant]:
    """The variants that prompts of one configuration contain."""
    contexts = dict.fromkeys([Context.NONE, config.context])
    return [Variant(order, context) for context in contexts for order in range(config.order + 1)]


def as_variant(frame: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """The numbers that a smaller variant of the same prompts would show; texts and targets are left out.

    Parameters
    ----------
    frame : DataFrame
        Rows of a dataset whose prompts contain the variant.
    variant : Variant
    """
    rows = frame.drop(columns=["prompt", "target"], errors="ignore").copy()
    count = [sum(code.count("-") < variant.order for code in codes[1:]) + 1 for codes in rows["positions"]]
    if variant.order == 0:
        count = [1] * len(rows)
    for name in ("shown", "positions", "yields", "connectivity"):  # the first order is listed before the second
        rows[name] = pd.Series([v[:c] for v, c in zip(rows[name], count, strict=True)], index=rows.index, dtype=object)
    for name in TOLD:
        if variant.context is Context.NONE or (name == "adjacency_price" and variant.order == 0):
            rows[name] = pd.Series([None] * len(rows), index=rows.index, dtype=object)
    return rows.assign(order=variant.order, context=variant.context.value)


def save_ceiling(folder: Path, found: Ceiling) -> None:
    """Write ``ceiling.json`` and the plot ``ceiling.png`` into ``folder``."""
    from oracle.files import write_atomically, write_json
    from training.ceiling_plot import draw

    write_json(folder / "ceiling.json", found.to_dict())
    write_atomically(folder / "ceiling.png", lambda p: draw(found).savefig(p, dpi=110, format="png"))


def _frames(datasets: list[PromptDataset], order: int | None, context: Context | None) -> dict[Variant, pd.DataFrame]:
    """The rows from which each variant is taken, those of fewest numbers first."""
    frames: dict[Variant, pd.DataFrame] = {}
    for dataset in datasets:
        for variant in variants_in(dataset.manifest.prompts):
            frames.setdefault(variant, dataset.frame)
    first = datasets[0].frame
    for dataset in datasets[1:]:
        same = dataset.frame[["prompt_id", "split", "answer"]].equals(first[["prompt_id", "split", "answer"]])
        if not same:
            raise DatasetError(
                "the datasets are not of the same polygons, splits and labels: build both from the same plans, "
                "with the same split settings"
            )
    if not (first["split"] == Split.TRAIN.value).any() or not first["split"].isin(SEALED).any():
        raise DatasetError(
            "a ceiling needs rows to learn from and held-out rows to decide; this dataset has "
            f"{', '.join(f'{count:,} {name}' for name, count in first['split'].value_counts().items())}: "
            "build it with a training landscape and with `--held-out PLAN` or held-out blocks"
        )
    asked = [Variant(order, c) for c in {v.context for v in frames}] if order is not None else []
    asked += [Variant(0 if order is None else order, context)] if context is not None else []
    lacking = [v for v in asked if v not in frames]
    if lacking:
        held = ", ".join(f"order {v.order} {v.context}" for v in frames)
        wanted = lacking[0]
        raise DatasetError(
            f"no dataset given contains order {wanted.order} with context {wanted.context}; it has {held}: build it "
            f"with `landoracle prompts ... --order {wanted.order} --context {wanted.context}`"
        )
    most = max(v.order for v in frames) if order is None else order
    wanted_contexts = _CONTEXTS if context is None else [Context.NONE, context]
    return {v: f for v, f in frames.items() if v.order <= most and v.context in wanted_contexts}


def _split_to_decide(frame: pd.DataFrame, split: Split | None) -> Split:
    there = [Split(name) for name in reversed(SEALED) if (frame["split"] == name).any()]
    if split is not None and split not in there:
        raise DatasetError(
            f"the dataset has no rows to decide in split {split}; it has {', '.join(there)}: give --split one of these"
        )
    return split or there[0]


def _fields(variant: Variant) -> tuple[str, ...]:
    return ("central",) if variant.order == 0 else ("slots", "together")


def _learners(variant: Variant, fields: str) -> tuple[str, ...]:
    rule = (LARGEST_VALUE,) if fields == "central" and variant.context is Context.PRICES else ()
    network = {"central": (PERCEPTRON,), "together": (GRAPH_NETWORK,)}.get(fields, ())
    return (DECISION_TREE, GRADIENT_BOOSTING, *network, *rule)


def _learn(
    rows: pd.DataFrame,
    features: np.ndarray,
    polygons: dict[str, int],
    variant: Variant,
    fields: str,
    name: str,
    over: str,
    seed: int,
) -> Learned:
    trained = (rows["split"] == Split.TRAIN.value).to_numpy()
    train, asked = rows[trained], rows[~trained]
    of_train, of_asked = features[trained], features[~trained]
    seen = asked["split"].iloc[0] == Split.HELD_OUT_BLOCK.value
    kept = _kept_to_choose(train, seen_landscapes=seen)
    chosen_on = _decide(train[~kept], of_train[~kept], train[kept], of_train[kept], name, seed)
    decision = _decide(train, of_train, asked, of_asked, name, seed)
    block = asked[over].to_numpy(dtype=object)
    right = _right(decision, asked)
    over_rows = wilson(int(right.sum()), len(right))
    regret = np.array(
        [
            low[classes.index(d)] * polygons[landscape]
            for low, classes, d, landscape in zip(
                asked["regret_low"], asked["classes"], decision, asked["landscape"], strict=True
            )
        ]
    )
    return Learned(
        variant=variant,
        fields=fields,
        learner=name,
        choosing_accuracy=float(_right(chosen_on, train[kept]).mean()),
        accuracy=float(right.mean()),
        wilson=over_rows,
        bootstrap=block_bootstrap(right, block, seed=seed) or over_rows,
        regret=float(regret.mean()),
        regret_bootstrap=block_bootstrap(regret, block, seed=seed),
    )


def _right(decision: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """(n,) bool: one of the classes that count as right."""
    return np.array([d in right for d, right in zip(decision, rows["accepted"], strict=True)])


def _kept_to_choose(train: pd.DataFrame, *, seen_landscapes: bool) -> np.ndarray:
    """(n,) bool: the rows of a fifth of the blocks, or of the landscapes where there are five."""
    whole = not seen_landscapes and train["landscape"].nunique() >= _KEPT_TO_CHOOSE
    group = train["landscape" if whole else "block"]
    names = sorted(group.unique(), key=lambda name: hashlib.sha256(name.encode()).digest())
    return group.isin(names[::_KEPT_TO_CHOOSE]).to_numpy()


def _features(rows: pd.DataFrame, fields: str) -> np.ndarray:
    numbers = numbers_together(rows) if fields == "together" else listed_numbers(rows)
    return numbers.to_numpy(dtype=np.float32)


def _decide(
    train: pd.DataFrame, known: np.ndarray, rows: pd.DataFrame, asked: np.ndarray, name: str, seed: int
) -> np.ndarray:
    """(n,) the class that a learner decides for each of ``rows``."""
    if name == LARGEST_VALUE:
        decided = largest_value(train, rows)
        assert decided is not None  # offered with prices only
        return decided
    if name in (PERCEPTRON, GRAPH_NETWORK):
        return decide_from_graph(train, rows, seed, progress=False)
    learner = tree if name == DECISION_TREE else boosted_trees
    return decide_from_numbers(learner, known, train["answer"].to_numpy(dtype=str), asked, rows, seed)


def _numbers(rows: pd.DataFrame) -> float:
    listed = np.mean(
        [len(codes) * len(classes) for codes, classes in zip(rows["positions"], rows["classes"], strict=True)]
    )
    told = sum(np.size(rows[name].iloc[0]) for name in TOLD if rows[name].notna().all())
    return float(listed + told)


def _ceiling_of(variant: Variant, numbers: float, learned: list[Learned]) -> VariantCeiling:
    usable = [one for one in learned if one.variant.within(variant)]
    return VariantCeiling(variant, numbers, max(usable, key=lambda one: one.choosing_accuracy))


def _smallest_within(variants: list[VariantCeiling] | tuple[VariantCeiling, ...]) -> VariantCeiling:
    best = max(v.best.accuracy for v in variants)
    reaching = [v for v in variants if v.best.bootstrap.high >= best]
    return min(reaching, key=lambda v: v.numbers)
