"""The landscape's contract: what it promises, and every way of breaking it in one message."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from oracle.errors import LandscapeError, name_some
from oracle.landscape import CURRENT, LOCKED, Landscape, geodesic_areas_ha


def squares(**columns: object) -> gpd.GeoDataFrame:
    table = {
        "id": ["a", "b"],
        "barley_yield": [3.0, 0.0],
        "flax_yield": [1.0, 2.0],
        "ecological_connectivity": [0.0, 1.0],
        **columns,
    }
    shapes = [shapely.box(500_000 + 1000 * k, 5_700_000, 501_000 + 1000 * k, 5_701_000) for k in range(2)]
    return gpd.GeoDataFrame(table, geometry=shapes, crs=32613)


CROPS = ("barley", "flax")


def test_arrays_follow_the_order_of_the_crops() -> None:
    landscape = Landscape("test", squares(), ("flax", "barley"))
    assert landscape.classes == ("flax", "barley", "habitat")
    assert landscape.yields.tolist() == [[1.0, 3.0], [2.0, 0.0]]
    assert landscape.current is None
    assert len(landscape) == 2


def test_a_zero_yield_and_a_lock_bar_classes() -> None:
    landscape = Landscape("test", squares(**{LOCKED: ["habitat", None]}), CROPS)
    assert landscape.allowed.tolist() == [[False, False, True], [False, True, True]]


def test_areas_are_those_of_the_ellipsoid() -> None:
    # 1 km of UTM on the central meridian is 1000 / 0.9996 m on the ground.
    assert geodesic_areas_ha(squares().geometry) == pytest.approx(np.full(2, 100 / 0.9996**2), rel=1e-5)
    hole = shapely.box(0, 0, 3000, 3000).difference(shapely.box(1000, 1000, 2000, 2000))
    placed = shapely.transform(hole, lambda xy: np.add(xy, [500_000, 5_700_000]))
    assert geodesic_areas_ha(gpd.GeoSeries([placed], crs=32613))[0] == pytest.approx(800 / 0.9996**2, rel=1e-4)


def test_every_breach_is_named_in_one_message() -> None:
    table = squares(id=["a", "a"], barley_yield=[-1.0, np.nan], ecological_connectivity=[1.2, 0.5])
    table[CURRENT] = ["barley", "rice"]
    with pytest.raises(LandscapeError) as caught:
        Landscape("test", table, CROPS)
    said = str(caught.value)
    assert "ids must be unique; repeated: a" in said
    assert "barley_yield must be a number, t/ha, 0 or more; 2 polygon(s)" in said
    assert "ecological_connectivity must be a number, in 0..1; 1 polygon(s)" in said
    assert "current_land_use must be one of barley, flax, habitat, other; 1 polygon(s) are not (a; found rice)" in said


@pytest.mark.parametrize(
    ("table", "crops", "message"),
    [
        (squares(), ("barley", "rye"), "missing column.*rye_yield"),
        (squares(), (), "names no crop"),
        (squares(), ("barley", "barley"), "named twice"),
        (squares(habitat_yield=1.0), ("barley", "habitat"), "classes of their own"),
        (squares(id=["a", ""]), CROPS, "non-empty strings"),
        (squares(**{LOCKED: [None, "barley"]}), CROPS, "locked to barley where its yield is 0: b"),
        (squares(**{LOCKED: [None, "lentil"]}), CROPS, r"locked_land_use must be one of .* \(b; found lentil\)"),
        (squares().set_crs(None, allow_override=True), CROPS, "no CRS"),
        (squares().iloc[:0], CROPS, "no polygon"),
        (squares().set_geometry([shapely.Point(0, 0)] * 2, crs=32613), CROPS, "not a polygon"),
    ],
)
def test_a_breach_is_named(table: gpd.GeoDataFrame, crops: tuple[str, ...], message: str) -> None:
    with pytest.raises(LandscapeError, match=message):
        Landscape("test", table, crops)


def test_the_hash_sees_values_geometry_and_crops_but_no_other_column() -> None:
    plain = Landscape("test", squares(), CROPS).sha256
    assert Landscape("other", squares(note="x"), CROPS).sha256 == plain
    moved = squares()
    moved["geometry"] = moved.translate(0.01)
    changed = [
        Landscape("test", moved, CROPS),
        Landscape("test", squares(), CROPS[::-1]),
        Landscape("test", squares(flax_yield=[1.0, 2.001]), CROPS),
        Landscape("test", squares(**{LOCKED: [None, "flax"]}), CROPS),
        Landscape("test", squares(**{CURRENT: ["barley", "flax"]}), CROPS),
    ]
    assert len({plain, *(landscape.sha256 for landscape in changed)}) == 6


def test_naming_some_of_many() -> None:
    assert name_some("abc") == "a, b, c"
    assert name_some(range(1_234)) == "0, 1, 2, 3, 4 and 1,229 more"
