"""The range of fields whose range is known."""

import numpy as np
import pytest

from prompts.autocorrelation import MOST_POLYGONS, yield_range_m

SIDE_M = 800.0


def grid(rows: int, cols: int) -> np.ndarray:
    return SIDE_M * np.array([(c, r) for r in range(rows) for c in range(cols)], dtype=float)


def waves(xy: np.ndarray, length_m: float, seed: int = 0) -> np.ndarray:
    """Sum of 500 cosines of one wavelength in all directions: its correlation is J0(2 pi h / length)."""
    random = np.random.default_rng(seed)
    angle, phase = random.uniform(0, 2 * np.pi, 500), random.uniform(0, 2 * np.pi, 500)
    direction = np.column_stack([np.cos(angle), np.sin(angle)]) * 2 * np.pi / length_m
    return np.cos(xy @ direction.T + phase).sum(axis=1)


def names(xy: np.ndarray) -> np.ndarray:
    return np.array([f"{x:.0f}-{y:.0f}" for x, y in xy], dtype=object)


@pytest.mark.parametrize("length_m", [8_000.0, 12_000.0, 16_000.0])
def test_range_of_waves_is_the_first_zero_of_their_correlation(length_m: float) -> None:
    xy = grid(44, 44)
    found = [yield_range_m(xy, waves(xy, length_m, seed)[:, None], names(xy), SIDE_M) for seed in range(4)]
    assert np.mean(found) == pytest.approx(2.4048 / (2 * np.pi) * length_m, rel=0.12)


def test_the_longest_of_several_crops_counts() -> None:
    xy = grid(40, 40)
    short, long = waves(xy, 6_000.0), waves(xy, 15_000.0, seed=1)
    both = yield_range_m(xy, np.column_stack([short, long]), names(xy), SIDE_M)
    assert both == yield_range_m(xy, long[:, None], names(xy), SIDE_M)
    assert both > yield_range_m(xy, short[:, None], names(xy), SIDE_M)


def test_noise_has_no_range_to_speak_of() -> None:
    xy = grid(40, 40)
    noise = np.random.default_rng(0).normal(size=(len(xy), 1))
    assert yield_range_m(xy, noise, names(xy), SIDE_M) < 4 * SIDE_M


def test_yields_that_say_nothing_have_none() -> None:
    xy = grid(10, 10)
    assert yield_range_m(xy, np.full((100, 2), 3.1), names(xy), SIDE_M) is None
    assert yield_range_m(xy[:29], waves(xy[:29], 5_000.0)[:, None], names(xy[:29]), SIDE_M) is None


def test_a_large_landscape_is_sampled_by_its_ids_whatever_the_order_of_the_rows() -> None:
    xy = grid(60, 60)
    assert len(xy) > MOST_POLYGONS
    yields = waves(xy, 14_000.0)[:, None]
    found = yield_range_m(xy, yields, names(xy), SIDE_M)
    assert found == pytest.approx(2.4048 / (2 * np.pi) * 14_000.0, rel=0.2)
    shuffled = np.random.default_rng(1).permutation(len(xy))
    assert yield_range_m(xy[shuffled], yields[shuffled], names(xy)[shuffled], SIDE_M) == pytest.approx(found, rel=1e-9)
