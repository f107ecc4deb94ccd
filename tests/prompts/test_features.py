"""Baselines get the numbers that the prompt prints, no more and no sharper."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest

from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.features import feature_table


@pytest.mark.parametrize("order", [0, 1, 2])
def test_features_are_the_numbers_of_the_text(source: Callable[..., Source], order: int) -> None:
    frame = build_dataset([source(7, 7)], PromptConfig(order=order)).frame
    table = feature_table(frame)
    assert list(table.index) == list(frame.index)
    for row, (_, features) in zip(frame.itertuples(), table.iterrows(), strict=True):
        central, *neighbours = row.prompt[0]["content"].strip().split(" | ")
        wheat, wheat_price, oat, oat_price, e, habitat_price, *adjacency = map(float, re.findall(r"[\d.]+", central))
        expected = {
            "central.wheat_yield": wheat,
            "central.oat_yield": oat,
            "central.ecological_connectivity": e,
            "wheat_effective_price": wheat_price,
            "oat_effective_price": oat_price,
            "habitat_price": habitat_price,
            "wheat_value": wheat * wheat_price,
            "oat_value": oat * oat_price,
            "habitat_value": e * habitat_price,
        }
        if order:
            expected["adjacency_price"] = adjacency[0]
        for neighbour in neighbours:
            code, *numbers = neighbour.split()
            names = ("wheat_yield", "oat_yield", "ecological_connectivity")
            expected |= {f"{code}.{name}": float(number) for name, number in zip(names, numbers, strict=True)}
        assert features.dropna().to_dict() == pytest.approx(expected)


def test_nothing_that_the_prompt_hides(source: Callable[..., Source]) -> None:
    hidden = feature_table(build_dataset([source(3, 3)], PromptConfig(context="none")).frame)
    assert set(hidden) == {"central.wheat_yield", "central.oat_yield", "central.ecological_connectivity"}
    shown = feature_table(build_dataset([source(3, 3)], PromptConfig(layout="full")).frame)
    assert {"wheat_market_price", "wheat_supplement"} <= set(shown)
    assert "adjacency_price" not in shown


def test_landscapes_with_different_crops_share_one_table(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(2, 2, name="a", crops=("rye",)), source(2, 2, name="b", crops=("oat",))]).frame
    table = feature_table(frame.sample(frac=1.0, random_state=0))
    of_a = frame.loc[table.index, "landscape"].to_numpy() == "a"
    assert np.isnan(table.loc[of_a, "central.oat_yield"]).all()
    assert table.loc[of_a, "central.rye_yield"].notna().all()
    assert table.loc[~of_a, "central.oat_yield"].tolist() == [frame.at[i, "yields"][0][0] for i in table.index[~of_a]]


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("context", ["none", "supply", "prices"])
def test_features_of_the_full_layout_are_what_it_states_and_nothing_else(
    source: Callable[..., Source], order: int, context: str
) -> None:
    config = PromptConfig.model_validate({"order": order, "context": context, "layout": "full"})
    frame = build_dataset([source(5, 5)], config).frame
    for row, (_, features) in zip(frame.itertuples(), feature_table(frame).iterrows(), strict=True):
        told, _, listed = row.prompt[1]["content"].partition("Polygons, the central one first\n")
        polygons = [(polygon.pop("position"), polygon) for polygon in json.loads(listed)]
        stated = {f"{position}.{name}": value for position, polygon in polygons for name, value in polygon.items()}
        for crop, effective, market, supplement in re.findall(
            r"- (\w+): (\S+) per tonne \(market (\S+), plus (\S+) ", told
        ):
            names = (f"{crop}_effective_price", f"{crop}_market_price", f"{crop}_supplement")
            stated |= dict(zip(names, map(float, (effective, market, supplement)), strict=True))
        for crop, floor, reference in re.findall(r"- (\w+): at least (\d+) t \(reference (\d+) t\)", told):
            stated |= {f"{crop}_floor_t": float(floor), f"{crop}_reference_supply_t": float(reference)}
        for name, pattern in (
            ("habitat", r"- habitat: (\S+) per hectare"),
            ("adjacency", r"polygons: (\S+) per metre"),
        ):
            stated |= dict(zip([f"{name}_price"], map(float, re.findall(pattern, told)), strict=False))
        formed = {name for name in features.dropna().index if name.endswith(("_value", "_floor_share"))}
        assert features.dropna().drop(list(formed)).to_dict() == stated
        for name in formed - {"habitat_value"}:  # formed from stated numbers alone
            crop, _, kind = name.partition("_")
            if kind == "value":
                expected = stated[f"central.{crop}_yield"] * stated[f"{crop}_effective_price"]
            else:
                expected = stated[f"{crop}_floor_t"] / stated[f"{crop}_reference_supply_t"]
            assert features[name] == pytest.approx(expected)
