"""What the benchmarks share: a block of quarter sections of any size, and this process's memory."""

from __future__ import annotations

import math
import resource
import sys

import geopandas as gpd
import pandas as pd

from oracle.survey import quarter_sections

LARGEST = 1_000_000
_PER_TOWNSHIP = 144
_RANGES = 25  # that fit between two meridians as far north as the largest block reaches
_MERIDIANS = (2, 3, 4, 5)


def quarter_block(polygons: int) -> gpd.GeoDataFrame:
    """The first ``polygons`` quarter sections of a block of townships about as long as wide, in EPSG:3347."""
    townships = math.ceil(polygons / _PER_TOWNSHIP)
    wide = min(math.ceil(math.sqrt(townships)), _RANGES * len(_MERIDIANS))
    high = math.ceil(townships / wide)
    blocks = [
        quarter_sections(1, 1, meridian, townships_ns=high, townships_ew=min(_RANGES, wide - _RANGES * k)).to_crs(3347)
        for k, meridian in enumerate(_MERIDIANS[: math.ceil(wide / _RANGES)])
    ]
    return gpd.GeoDataFrame(pd.concat(blocks, ignore_index=True), crs=3347).iloc[:polygons]


def memory_mb() -> float:
    """Greatest resident memory of this process so far, MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
