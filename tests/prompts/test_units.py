"""Prompts in other units say the same: the oracle itself decides the same, and every class is worth what it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oracle.errors import DatasetError
from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.neighbourhood import Neighbourhoods, neighbourhoods
from prompts.rationale import local_values
from prompts.transforms import AugmentConfig
from prompts.units import CURRENCY, MASS, in_other_units
from tests.prompts.conftest import grid_landscape

CONFIG = PromptConfig(order=1, context="prices")


def _shown(source: Source) -> Neighbourhoods:
    return neighbourhoods(source.landscape, source.graph, source.solution, CONFIG)


def _values(shown: Neighbourhoods) -> np.ndarray:
    assert shown.prices is not None
    return local_values(shown, shown.prices)


def test_the_oracle_knows_no_units() -> None:
    """Solved again with wheat in bushels, oat in quintals and prices in another currency: the same plan, proven."""
    yields = np.random.default_rng(4).uniform(0.5, 6.0, size=(30, 2))
    plain = grid_landscape(5, 6, seed=4, yields=yields)
    bushel, quintal, currency = 36.7437, 10.0, 0.73
    other = grid_landscape(5, 6, seed=4, yields=yields * [bushel, quintal])
    prices = {"wheat": 280.0, "oat": 240.0}
    dear = {"wheat": 280.0 / bushel * currency, "oat": 240.0 / quintal * currency}
    floors = {"wheat": 0.6, "oat": 0.7}
    one, two = (
        solve(land, neighbour_graph(land), GLMConfig(prices=price, supply_floors=floors, gap=0))
        for land, price in ((plain, prices), (other, dear))
    )
    assert {"wheat", "oat", "habitat"} == set(one.land_use)  # the floors bind, and connectivity counts
    assert two.land_use.tolist() == one.land_use.tolist()
    assert two.habitat_price == pytest.approx(one.habitat_price * currency, rel=1e-6)
    assert two.shadow_price["oat"] == pytest.approx(one.shadow_price["oat"] / quintal * currency, rel=1e-6)


def test_every_class_keeps_its_worth_up_to_the_currency(source: Callable[..., Source]) -> None:
    shown = _shown(source(6, 6))
    other = in_other_units(shown, CONFIG, "u1.0")
    before, after = _values(shown), _values(other)
    assert shown.prices is not None
    assert other.prices is not None
    ratio = after[before > 300] / before[before > 300]  # there a printed number's last digit is a percent at most
    assert ratio.std() < 0.01
    assert 1 / CURRENCY <= np.median(ratio) <= CURRENCY
    mass = other.prices.effective.value / shown.prices.effective.value / np.median(ratio)
    assert ((mass > 0.99 / MASS) & (mass < 1.01 * MASS)).all()
    assert other.connectivity is shown.connectivity
    assert ((other.yields.value == 0) == (shown.yields.value == 0)).all()  # what cannot grow, and nothing else
    assert other.prices.adjacency.value == pytest.approx(shown.prices.adjacency.value * np.median(ratio), rel=0.02)


def test_the_same_name_means_the_same_units(source: Callable[..., Source]) -> None:
    shown = _shown(source(4, 4))
    one, again, two = (in_other_units(shown, CONFIG, name).yields.text.tolist() for name in ("u1.0", "u1.0", "u1.1"))
    assert one == again != two


def test_copies_state_the_same_label_and_a_true_rationale(source: Callable[..., Source]) -> None:
    plain = build_dataset([source(8, 8)], CONFIG).frame
    frame = build_dataset([source(8, 8)], CONFIG, augment=AugmentConfig(units=2)).frame
    training = plain[plain["split"] == "train"]
    copies = frame[frame["prompt_id"].str.contains("~u")]
    assert len(copies) == 2 * len(training)
    assert frame["prompt_id"].is_unique
    assert set(copies["split"]) == {"train"}
    original = plain.set_index("prompt_id").loc[[i.partition("~")[0] for i in copies["prompt_id"]]]
    assert copies["answer"].tolist() == original["answer"].tolist()
    assert not (copies["prompt"].to_numpy() == original["prompt"].to_numpy()).any()
    assert len({tuple(p) for p in copies["effective_price"]}) > 30  # many sets of prices from one landscape
    for yields, price, target in zip(copies["yields"], copies["effective_price"], copies["target"], strict=True):
        assert f"<think>wheat {yields[0][0] * price[0] / 100:.1f} oat {yields[0][1] * price[1] / 100:.1f} " in target


@pytest.mark.parametrize("form", [{"context": "none"}, {"context": "supply"}, {"layout": "full"}])
def test_prompts_without_prices_or_with_named_units_are_refused(
    source: Callable[..., Source], form: dict[str, str]
) -> None:
    with pytest.raises(DatasetError, match="only prompts that state prices and name no unit"):
        build_dataset(
            [source(4, 4)], PromptConfig.model_validate(CONFIG.model_dump() | form), augment=AugmentConfig(units=1)
        )
