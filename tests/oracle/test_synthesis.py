"""Synthetic landscapes: the same from the same seed, as varied as stated, and a problem worth solving."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from oracle.errors import ConfigurationError
from oracle.landscape import HABITAT, OTHER
from oracle.synthesis import (
    EMBEDDED,
    ConnectivityProfile,
    CropProfile,
    SynthesisConfig,
    embedded_landscapes,
    synthesise,
)

BARLEY, LENTIL = CropProfile(mean_t_ha=3.5, cv=0.2), CropProfile(mean_t_ha=1.6, cv=0.3, soil=0.5, cool_share=0.25)


def config(**settings: object) -> SynthesisConfig:
    base = {"name": "test", "seed": 1, "township": 20, "range": 5, "meridian": 3}
    return SynthesisConfig.model_validate({**base, "crops": {"barley": BARLEY, "lentil": LENTIL}, **settings})


def test_a_seed_gives_one_landscape_and_another_seed_another() -> None:
    assert synthesise(config()).sha256 == synthesise(config()).sha256
    assert synthesise(config()).sha256 != synthesise(config(seed=2)).sha256


def test_yields_have_the_stated_mean_spread_and_zeros() -> None:
    landscape = synthesise(config(townships_ns=4, townships_ew=4, rough_share=0.1))
    barley, lentil = landscape.yields.T
    rough = barley == 0
    assert rough.mean() == pytest.approx(0.1, abs=1 / len(landscape))
    assert (lentil[rough] == 0).all()
    assert ((lentil == 0).mean() - 0.1) == pytest.approx(0.25 * 0.9, abs=0.08)
    # Rough land is poorer than the rest, so what is left lies a little above the mean.
    assert barley[~rough].mean() == pytest.approx(3.5, rel=0.06)
    assert barley[~rough].std() / barley[~rough].mean() == pytest.approx(0.2, abs=0.04)


def test_crops_correlate_by_the_product_of_their_loadings() -> None:
    crops = {"wheat": CropProfile(mean_t_ha=3.4, soil=0.85), "oat": CropProfile(mean_t_ha=3.5, soil=0.85)}
    found = []
    for seed in range(8):
        yields = synthesise(config(seed=seed, crops=crops, rough_share=0.0, range_km=3)).yields
        found.append(np.corrcoef(yields.T)[0, 1])
    assert np.mean(found) == pytest.approx(0.73, abs=0.06)


def test_neighbours_are_alike_and_distant_quarters_are_not() -> None:
    landscape = synthesise(config(townships_ns=4, townships_ew=4, rough_share=0.0, nugget=0.0, range_km=6))
    z = landscape.yields[:, 0] - landscape.yields[:, 0].mean()
    centre = landscape.polygons.geometry.centroid
    xy = np.column_stack([centre.x, centre.y]) / 1000
    apart = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    product = np.outer(z, z) / z.var()
    # exp(-3 d / range): 0.67 at 0.8 km, 0.05 at 6 km, 0 beyond.
    assert product[(apart > 0.7) & (apart < 0.9)].mean() == pytest.approx(0.67, abs=0.12)
    assert abs(product[(apart > 12) & (apart < 18)].mean()) < 0.25


def test_connectivity_favours_poor_and_rough_land() -> None:
    spread = ConnectivityProfile(mean=0.4, sd=0.1, soil=-0.7, on_rough=0.3)
    landscape = synthesise(config(connectivity=spread, townships_ns=4, townships_ew=4))
    barley = landscape.yields[:, 0]
    rough = barley == 0
    assert np.corrcoef(barley[~rough], landscape.connectivity[~rough])[0, 1] < -0.4
    assert landscape.connectivity[rough].mean() > landscape.connectivity[~rough].mean() + 0.25
    assert landscape.connectivity[~rough].std() == pytest.approx(0.1, abs=0.02)


def test_current_land_use_has_the_stated_shares_and_grows_where_it_can() -> None:
    landscape = synthesise(config(habitat_share=0.2, pasture_share=0.1))
    current = landscape.current
    assert current is not None
    assert (current == HABITAT).mean() == pytest.approx(0.2, abs=0.01)
    assert (current == OTHER).mean() == pytest.approx(0.1, abs=0.01)
    for k, crop in enumerate(landscape.crops):
        assert (current == crop).any()
        assert (landscape.yields[current == crop, k] > 0).all()


def test_the_embedded_landscapes_are_56_and_4_apart_from_each_other() -> None:
    configs = embedded_landscapes()
    assert configs == embedded_landscapes()
    assert [sum(c.role == role for c in configs) for role in ("train", "held_out")] == [56, 4]
    assert len({c.name for c in configs}) == len({c.seed for c in configs}) == 60
    taken: dict[tuple[int, int, int], str] = {}
    for c in configs:
        for t in range(c.township, c.township + c.townships_ns):
            for r in range(c.range, c.range + c.townships_ew):
                # A township on every side belongs to nobody else.
                near = {taken.get((c.meridian, t + dt, r + dr)) for dt in (-1, 0, 1) for dr in (-1, 0, 1)}
                assert near <= {None, c.name}
                taken[c.meridian, t, r] = c.name


def test_every_embedded_landscape_is_a_problem_of_its_own() -> None:
    biggest, best_value = [], []
    for c in embedded_landscapes():
        landscape = synthesise(c)
        assert len(landscape) == 576
        grown = landscape.allowed[:, :-1].any(axis=1)
        prices = np.array(c.glm.price_of(landscape.crops))
        biggest.append(landscape.yields[grown].argmax(axis=1))
        best_value.append((landscape.yields * prices)[grown].argmax(axis=1))
        # Floors leave room: the land they need at average yields is less than all of it.
        needed = sum(c.glm.supply_floors.values()) / len(landscape.crops)
        assert needed < 1.0
    # The heaviest crop is the most valuable one on about half of the land, so tonnes alone predict little.
    agree = np.mean(np.concatenate(biggest) == np.concatenate(best_value))
    assert 0.3 < agree < 0.7
    shares = np.bincount(np.concatenate(best_value), minlength=4) / sum(map(len, best_value))
    assert shares.min() > 0.05
    assert shares.max() < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"landscapes": [{"region": "atlantis", "role": "train", "count": 1, "township": 1, "range": 1}]},
            "unknown region",
        ),
        ({"vary": {"rough_share": [2, 3]}}, "rough_share"),
        ({"colour": "green"}, "colour: unknown setting"),
    ],
)
def test_a_faulty_file_is_named_with_its_key(tmp_path: Path, change: dict[str, object], message: str) -> None:
    content = yaml.safe_load(EMBEDDED.read_text())
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**content, **change}))
    with pytest.raises(ConfigurationError, match=message):
        embedded_landscapes(path)


def test_one_more_landscape_changes_no_other(tmp_path: Path) -> None:
    content = yaml.safe_load(EMBEDDED.read_text())
    content["landscapes"][0]["count"] += 1
    path = tmp_path / "more.yaml"
    path.write_text(yaml.safe_dump(content))
    more = {c.name: c for c in embedded_landscapes(path)}
    assert all(more[c.name] == c for c in embedded_landscapes())
    assert len(more) == 61
