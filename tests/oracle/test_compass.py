"""Compass sectors: half-open, snapped at their borders, and opposite whichever end one looks from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.compass import COMPASS, opposite, opposite_index, sector, sector_index


@pytest.mark.parametrize(("azimuth", "code"), [(0, "N"), (44, "NE"), (90, "E"), (180, "S"), (269, "W"), (337.4, "NW")])
def test_the_eight_directions(azimuth: float, code: str) -> None:
    assert sector(np.array([azimuth])).tolist() == [code]


def test_a_border_belongs_to_the_sector_clockwise_of_it() -> None:
    borders = 22.5 + 45.0 * np.arange(8)
    assert sector(borders).tolist() == ["NE", "E", "SE", "S", "SW", "W", "NW", "N"]


@pytest.mark.parametrize("nudge", [-0.049, -1e-12, 1e-12, 0.049])
def test_azimuths_beside_a_border_count_as_on_it(nudge: float) -> None:
    assert sector(22.5 + 45.0 * np.arange(8) + nudge).tolist() == ["NE", "E", "SE", "S", "SW", "W", "NW", "N"]


def test_beyond_the_snap_the_azimuth_decides() -> None:
    assert sector(np.array([22.44, 22.56])).tolist() == ["N", "NE"]


def test_without_a_direction_there_is_a_code_of_its_own() -> None:
    assert sector(np.array([np.nan])).tolist() == ["C"]
    assert opposite("C") == "C"


@given(st.floats(-720, 720, allow_nan=False))
def test_the_way_back_is_the_opposite_code(azimuth: float) -> None:
    there, back = sector_index(np.array([azimuth])), sector_index(np.array([azimuth + 180.0]))
    assert opposite_index(there) == back


@given(st.lists(st.sampled_from(COMPASS), min_size=1, max_size=2))
def test_a_path_walked_back_twice_is_the_path(steps: list[str]) -> None:
    path = "-".join(steps)
    assert opposite(opposite(path)) == path


def test_a_path_is_walked_back_from_its_end() -> None:
    assert opposite("N-NE") == "SW-S"
