"""What the tests of intake read: the shared cases, and a small farm whose columns a test replaces."""

from pathlib import Path

import geopandas as gpd
import pytest
import shapely

from oracle.errors import LandscapeError
from oracle.intake import read_landscape
from oracle.recipe import Recipe

from .polygons import CASES


def refusal(name: str, recipe: Recipe | None = None) -> str:
    with pytest.raises(LandscapeError) as caught:
        read_landscape(CASES / name, recipe)
    return str(caught.value)


def farm(folder: Path, **columns: object) -> Path:
    """Three squares in a row with the contract's columns, some of them replaced or added."""
    squares = [shapely.box(500_000 + 800 * k, 5_700_000, 500_800 + 800 * k, 5_700_800) for k in range(3)]
    table = {
        "id": ["a", "b", "c"],
        "wheat_yield": [3.0, 4.0, 5.0],
        "ecological_connectivity": [0.2, 0.4, 0.6],
        **columns,
    }
    path = folder / "farm.gpkg"
    gpd.GeoDataFrame(table, geometry=squares, crs=32613).to_file(path)
    return path
