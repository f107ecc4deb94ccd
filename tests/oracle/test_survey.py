"""Quarter sections where the Dominion Land Survey put them."""

import numpy as np
import pytest
import shapely

from oracle.errors import ConfigurationError
from oracle.landscape import GEOD, geodesic_areas_ha
from oracle.projection import to_local
from oracle.survey import CHAIN_M, QUARTER_M, quarter_sections, section_number


def test_sections_are_numbered_back_and_forth_from_the_south_east() -> None:
    # Rows from the north, columns from the west, as on a township plan.
    plan = [[section_number(np.array(c), np.array(r)).item() for c in range(5, -1, -1)] for r in range(5, -1, -1)]
    assert plan == [
        [31, 32, 33, 34, 35, 36],
        [30, 29, 28, 27, 26, 25],
        [19, 20, 21, 22, 23, 24],
        [18, 17, 16, 15, 14, 13],
        [7, 8, 9, 10, 11, 12],
        [6, 5, 4, 3, 2, 1],
    ]


def test_a_township_has_144_quarters_of_a_quarter_square_mile() -> None:
    quarters = quarter_sections(42, 7, 3)
    assert len(quarters) == 144
    assert quarters["id"].is_unique
    assert geodesic_areas_ha(quarters.geometry) == pytest.approx(np.full(144, 64.7497), rel=5e-3)
    assert quarters.crs.to_epsg() == 32613


def test_legal_descriptions_lie_where_they_say() -> None:
    quarters = quarter_sections(42, 7, 3).set_index("id")
    lonlat = quarters.centroid.to_crs(4326)
    place = {i: lonlat[f"{i}-42-7-W3"] for i in ("SE-1", "NE-36", "SW-6", "NW-31", "SE-36", "NW-36")}
    assert place["NW-31"].x < place["NE-36"].x
    assert place["NW-31"].y > place["SW-6"].y
    assert place["SE-1"].x > place["SW-6"].x
    assert place["SE-1"].y < place["NE-36"].y
    assert place["NW-36"].x < place["SE-36"].x
    assert place["NW-36"].y > place["SE-36"].y


def test_the_first_base_line_is_49_north_and_the_second_24_miles_and_12_chains_on() -> None:
    first = quarter_sections(1, 1, 2).to_crs(4326)
    assert first.total_bounds[1] == pytest.approx(49.0, abs=1e-9)
    assert first.total_bounds[2] == pytest.approx(-102.0, abs=1e-9)
    fifth = quarter_sections(5, 1, 2).to_crs(4326)
    assert GEOD.inv(-102, 49, -102, fifth.total_bounds[1])[2] == pytest.approx(24 * 1609.344 + 12 * CHAIN_M, abs=0.01)


def test_road_allowances_lie_between_all_columns_and_every_second_row() -> None:
    quarters = quarter_sections(42, 7, 3).set_index("id")
    shapes = dict(zip(quarters.index, to_local(quarters.geometry), strict=True))

    def gap(one: str, other: str) -> float:
        return shapely.distance(shapes[f"{one}-42-7-W3"], shapes[f"{other}-42-7-W3"])

    assert gap("SE-1", "SW-1") == pytest.approx(0, abs=1e-3)
    assert gap("SW-1", "SE-2") == pytest.approx(CHAIN_M, rel=5e-3)
    assert gap("NE-1", "SE-12") == pytest.approx(0, abs=1e-3)  # no allowance north of sections 1-6
    assert gap("NE-12", "SE-13") == pytest.approx(CHAIN_M, rel=1e-3)
    assert gap("NE-24", "SE-25") == pytest.approx(CHAIN_M, rel=1e-3)


def test_rows_jog_at_a_correction_line_and_nowhere_else() -> None:
    # Townships 42 and 43: the correction line half way between base lines is 2|3, 6|7, ..., 42|43.
    def step(township: int, range_: int) -> float:
        low = quarter_sections(township, range_, 3).to_crs(4326).total_bounds
        high = quarter_sections(township + 1, range_, 3).to_crs(4326).total_bounds
        return GEOD.inv(low[2], low[3], high[2], low[3])[2]

    assert step(41, 7) == pytest.approx(0, abs=1e-6)
    assert step(43, 7) == pytest.approx(0, abs=1e-6)
    # Six ranges of convergence over four townships, about 0.79 % of the distance from the meridian at 52.6 N.
    assert step(42, 7) == pytest.approx(6 * 9776.8 * 38_866 / 6.378e6 * np.tan(np.radians(52.6)), rel=0.02)
    assert step(42, 13) == pytest.approx(2 * step(42, 7), rel=1e-3)


def test_quarters_do_not_overlap_across_a_correction_line() -> None:
    quarters = quarter_sections(42, 7, 3, townships_ns=2, townships_ew=2)
    assert len(quarters) == 576
    assert quarters["id"].is_unique
    shapes = to_local(quarters.geometry).to_numpy()
    assert shapely.area(shapely.union_all(shapes)) == pytest.approx(shapely.area(shapes).sum(), rel=1e-9)


def test_sides_are_half_a_mile() -> None:
    shapes = to_local(quarter_sections(10, 3, 2).geometry).to_numpy()
    assert shapely.length(shapes) == pytest.approx(np.full(144, 4 * QUARTER_M), rel=3e-3)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 1, 3), "count from 1"),
        ((1, 1, 8), "meridians are 1..7"),
        ((126, 1, 3), "township 127 lies north of the survey"),
        ((10, 30, 3), "range 3[01] west of meridian 3 reaches meridian 4"),
    ],
)
def test_places_outside_the_survey_are_refused(place: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        quarter_sections(*place, townships_ns=2, townships_ew=2)
