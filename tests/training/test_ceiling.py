"""The ceiling tells what a prompt's numbers decide, for every variant that a dataset contains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oracle.errors import DatasetError
from oracle.landscape import HABITAT
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from oracle.synthesis import embedded_landscapes, synthesise
from prompts.config import Context, PromptConfig
from prompts.dataset import PromptDataset, Source, build_dataset
from prompts.features import feature_table
from prompts.split import Role
from training.ceiling import Ceiling, Learned, Variant, as_variant, ceiling, save_ceiling, variants_in
from training.summary_features import margin_table, neighbour_table


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    """Three training landscapes and one held out, a township each."""
    made = []
    for k, config in enumerate(embedded_landscapes()[:4]):
        config = config.model_copy(update={"townships_ns": 1, "townships_ew": 1})
        landscape = synthesise(config)
        graph = neighbour_graph(landscape)
        role = Role.HELD_OUT if k == 3 else Role.TRAIN
        made.append(Source(landscape, graph, solve(landscape, graph, config.glm), role))
    return made


@pytest.fixture(scope="module")
def dataset(sources: list[Source]) -> PromptDataset:
    return build_dataset(sources, PromptConfig(order=2, context="prices", layout="full"))


@pytest.fixture(scope="module")
def found(dataset: PromptDataset) -> Ceiling:
    return ceiling([dataset], order=1)


@pytest.mark.parametrize("context", ["none", "prices"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_dataset_contains_every_smaller_variant(
    sources: list[Source], dataset: PromptDataset, order: int, context: str
) -> None:
    smaller = build_dataset(sources, PromptConfig(order=order, context=context, layout="full")).frame
    same = dataset.frame.merge(smaller[["prompt_id"]])  # a narrower prompt may need a narrower buffer
    cut = as_variant(same, Variant(order, Context(context)))
    for column in ("positions", "yields", "connectivity", "shown"):
        assert cut[column].tolist() == smaller[column].tolist()
    pd.testing.assert_frame_equal(feature_table(cut), feature_table(smaller), check_dtype=False)


def test_prices_decide_most_and_the_table_says_so(found: Ceiling) -> None:
    accuracy = {(v.variant.order, v.variant.context.value): v.best.accuracy for v in found.variants}
    assert set(accuracy) == {(o, c) for o in (0, 1) for c in ("none", "prices")}
    assert all(accuracy[o, "prices"] > accuracy[o, "none"] + 0.05 for o in (0, 1))
    assert found.recommended.variant.context is Context.PRICES
    assert found.recommended_without_prices.variant.context is Context.NONE
    for one in found.learned:
        assert one.wilson.low <= one.accuracy <= one.wilson.high
        assert one.bootstrap.low <= one.accuracy <= one.bootstrap.high
        assert 0 <= one.regret < 1
    assert [v.numbers for v in found.variants] == sorted(v.numbers for v in found.variants)


def test_every_variant_is_read_by_each_kind_of_reader(found: Ceiling) -> None:
    trees = {"decision tree", "gradient boosting"}
    wanted = {
        (0, "none", "central"): trees | {"perceptron"},
        (0, "prices", "central"): trees | {"perceptron", "largest value"},
        **{(1, context, "slots"): trees for context in ("none", "prices")},
        **{(1, context, "together"): trees | {"graph network"} for context in ("none", "prices")},
    }
    read: dict[tuple[int, str, str], set[str]] = {}
    for one in found.learned:
        read.setdefault((one.variant.order, one.variant.context.value, one.fields), set()).add(one.learner)
    assert read == wanted


def test_what_a_neighbour_decides_only_a_reader_of_neighbours_can_know(dataset: PromptDataset) -> None:
    """Labels made up: habitat where the northern neighbour is better connected than the centre."""

    def label(row: pd.Series) -> str:
        north = row["positions"].index("N") if "N" in row["positions"] else 0
        return HABITAT if row["connectivity"][north] > row["connectivity"][0] else str(row["answer"])

    frame = dataset.frame.assign(answer=dataset.frame.apply(label, axis=1))
    frame["accepted"] = [[a] for a in frame["answer"]]
    top = {v.variant: v.best for v in ceiling([replace(dataset, frame=frame)], order=1).variants}
    alone, with_neighbours = top[Variant(0, Context.NONE)], top[Variant(1, Context.NONE)]
    assert with_neighbours.accuracy > alone.accuracy + 0.1
    assert with_neighbours.fields == "slots"


def test_the_smallest_variant_as_good_as_the_best_is_recommended(found: Ceiling) -> None:
    def with_accuracy(values: dict[Variant, tuple[float, float]]) -> Ceiling:
        variants = []
        for v in found.variants:
            accuracy, high = values.get(v.variant, (0.5, 0.55))
            best = replace(v.best, accuracy=accuracy, bootstrap=replace(v.best.bootstrap, high=high))
            variants.append(replace(v, best=best))
        return replace(found, variants=tuple(variants))

    bare, zero, one = Variant(0, Context.NONE), Variant(0, Context.PRICES), Variant(1, Context.PRICES)
    assert with_accuracy({bare: (0.90, 0.94), zero: (0.93, 0.95), one: (0.95, 0.97)}).recommended.variant == zero
    assert with_accuracy({bare: (0.93, 0.95), zero: (0.93, 0.95), one: (0.95, 0.97)}).recommended.variant == bare
    assert with_accuracy({one: (0.95, 0.97)}).recommended.variant == one


def test_a_crop_without_yield_is_never_decided(dataset: PromptDataset, found: Ceiling) -> None:
    # its regret is infinite, so one such decision would show
    assert any(0 in yields[0] for yields in dataset.frame["yields"])
    assert all(np.isfinite(one.regret) for one in found.learned)


def test_of_few_blocks_only_wilson_s_interval_is_given(dataset: PromptDataset) -> None:
    held_out = dataset.frame["split"] == "held_out_landscape"
    frame = dataset.frame.assign(block=dataset.frame["block"].mask(held_out, "alone"))
    one = ceiling([replace(dataset, frame=frame)], order=0, context=Context.NONE)
    assert one.bootstrapped_over == "rows, too few blocks"
    assert all(of.bootstrap == of.wilson and of.regret_bootstrap is None for of in one.learned)


def test_classes_that_tie_count_as_right(dataset: PromptDataset) -> None:
    frame = dataset.frame.assign(accepted=dataset.frame["classes"])
    assert all(one.accuracy == 1 for one in ceiling([replace(dataset, frame=frame)], order=0).learned)


def test_a_class_of_a_single_training_row_is_no_obstacle(dataset: PromptDataset) -> None:
    train = dataset.frame["split"] == "train"
    answers = np.where(train, HABITAT, dataset.frame["answer"])
    answers[np.flatnonzero(train)[3]] = "wheat"
    frame = dataset.frame.assign(answer=answers, accepted=[[a] for a in answers])
    habitat = float((frame.loc[frame["split"] == "held_out_landscape", "answer"] == HABITAT).mean())
    boosted = ceiling([replace(dataset, frame=frame)], order=0, context=Context.NONE).learned[1]
    assert boosted.accuracy == pytest.approx(habitat, abs=0.02)


def test_what_the_dataset_lacks_is_refused(sources: list[Source], dataset: PromptDataset) -> None:
    small = build_dataset(sources, PromptConfig(order=1, context="none"))
    assert variants_in(small.manifest.prompts) == [Variant(0, Context.NONE), Variant(1, Context.NONE)]
    with pytest.raises(DatasetError, match=r"no dataset given contains order 2 with context none.*order 0 none"):
        ceiling([small], order=2)
    with pytest.raises(DatasetError, match=r"context supply; it has .*--context supply"):
        ceiling([dataset], context=Context.SUPPLY)
    with pytest.raises(DatasetError, match="not of the same polygons"):
        ceiling([dataset, build_dataset(sources[1:], PromptConfig(order=1, context="supply"))])
    with pytest.raises(DatasetError, match="rows to learn from and held-out rows"):
        ceiling([build_dataset(sources[3:], PromptConfig(order=0))])


def test_files_hold_the_same_figures(found: Ceiling, tmp_path: Path) -> None:
    save_ceiling(tmp_path, found)
    stated = json.loads((tmp_path / "ceiling.json").read_text())
    assert stated["recommended"] == {"order": found.recommended.variant.order, "context": "prices"}
    assert [v["best"]["accuracy"] for v in stated["variants"]] == [v.best.accuracy for v in found.variants]
    assert len(stated["learned"]) == len(found.learned) == len({_key(one) for one in found.learned})
    assert (tmp_path / "ceiling.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "ceiling.png").stat().st_size < 100_000


def _key(one: Learned) -> tuple[object, ...]:
    return one.variant, one.fields, one.learner


def test_neighbours_taken_together_by_hand() -> None:
    frame = pd.DataFrame(
        {
            "classes": [["wheat", "habitat"]] * 2,
            "positions": [["central", "N", "E", "N-N"], ["central"]],
            "yields": [[[2.0], [3.0], [0.0], [1.0]], [[4.0]]],
            "connectivity": [[0.5, 0.2, 0.8, 0.4], [0.1]],
            "effective_price": [[100.0], [100.0]],
            "habitat_price": [500.0, 500.0],
            "adjacency_price": [2.0, 2.0],
        }
    )
    together = neighbour_table(frame)
    assert together.loc[0, ["neighbours_1", "connectivity_1_mean", "connectivity_1_above"]].tolist() == [2, 0.5, 0.5]
    assert together.loc[0, ["wheat_1_mean", "wheat_1_max", "barren_1"]].tolist() == [1.5, 3.0, 0.5]
    # N: 100 - 300, E: 400 - 0 currency/ha
    assert together.loc[0, ["habitat_1", "surplus_1_mean", "surplus_1_max"]].tolist() == [0.5, 100.0, 400.0]
    assert together.loc[0, "border_worth"] == pytest.approx(2.0 * (0.5 + 0.8) / 2)
    assert together.loc[0, ["neighbours_2", "wheat_2_max"]].tolist() == [1, 1.0]
    assert together.loc[1, "neighbours_1"] == 0
    assert np.isnan(together.loc[1, "connectivity_1_mean"])
    # wheat 200 against habitat 250; wheat 400 against habitat 50
    assert margin_table(frame)[["wheat_margin", "habitat_margin"]].to_numpy().tolist() == [[-50, 50], [350, -350]]
