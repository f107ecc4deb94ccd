"""Broken files: whatever is in one, intake ends in a landscape or in one of the product's own errors."""

# ruff: noqa: E501 - lists of odd things read best in long lines
from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely

from oracle.intake import inspect_file

INPUTS = {"values": 700, "geometries": 600, "structures": 300, "texts": 250, "recipes": 250, "binaries": 100}
assert sum(INPUTS.values()) >= 2000

ODD_VALUES: list[Any] = [
    None, "", " ", "4,0", "n/a", "NaN", "Infinity", "-inf", "1e400", "0x10", "１２", "1_000", -1.5, -0.0, 0, 1, 2, 46,
    3200, 87, 1e308, -1e308, 1e-320, 10**400, 2**63, True, False, [], [1, 2], {}, {"a": None}, "01", 1.0, "1 ", "\u0000",
    "é", "e\u0301", "2024-01-01", "2024-13-45T99:00:00Z", "x" * 5000, "wheat", "habitat", "nul", "row 0", "row-0",
]  # fmt: skip
ODD_NUMBERS = [
    0,
    -0.0,
    90,
    -90,
    180,
    -180,
    181,
    360,
    1e7,
    1e16,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    10**400,
    None,
    "5",
    True,
]
NAMES = [
    "id", "ID", "Id ", "wheat_yield", "Wheat Yield", "yield_wheat", "rendement blé (t/ha)", "avoine", "wheat_yield (q/ha)",
    "ecological_connectivity", "CONNECTIVITÉ", "eco_con", "current_land_use", "locked_land_use", "geometry", "fid", "",
    "_yield", "habitat_yield", "other_yield", "id_original", "wheat_yiel", "ecological", "\u0000", "total_yield",
]  # fmt: skip
CRS = [
    "urn:ogc:def:crs:EPSG::32613", "EPSG:4326", "EPSG:3857", "EPSG:4978", "EPSG:5703", "EPSG:0", "", "urn:x", "EPSG:3031",
    "EPSG:4979", "EPSG:2193", 7, None, [],
]  # fmt: skip
RECIPES = [
    "", "[]", "1", "null", "id: row", "unique_ids: true", "drop_unusable: yes", "connectivity: rescale", "crs: EPSG:4326",
    "crs: nonsense", "crs: 'LOCAL_CS[\"x\"]'", "crs: EPSG:4978", "layer: x", "missing_yield: drop", "missing_yield: zero",
    "yields: {wheat: wheat_yield}", "yields: {habitat: wheat_yield}", "yields: {'': ''}", "yields: {1: 2}", "name: ../x",
    "yields: {a: wheat_yield, b: wheat_yield}", "yield_unit: kg/ha", "yield_unit: bu/ac", "yield_unit: {oat: bu/ac}",
    "connectivity: wheat_yield", "id: wheat_yield", "id: geometry", "land_uses: {wheat: habitat}", "a: &a [*a]", "? []",
    "glm: {prices: 2024-13-45}", "2024-13-45: 1", "crs: 2024-02-30", "\t", "{", "!!python/object:os.x {}", "id: !!binary x",
    "glm: {gap: .nan}", "role: x", "current_land_use: id", "locked_land_use: wheat_yield", "[" * 3000, "id: \"\\uD800\"",
]  # fmt: skip


def farm(rng: random.Random, side: float = 800.0) -> dict[str, Any]:
    """Two to four squares in a row with the contract's columns."""
    features = []
    for k in range(rng.randint(1, 4)):
        x = 500_000.0 + side * k
        square = [
            [x, 5_700_000.0],
            [x + side, 5_700_000.0],
            [x + side, 5_700_800.0],
            [x, 5_700_800.0],
            [x, 5_700_000.0],
        ]
        columns = {"id": f"p{k}", "wheat_yield": 3.0, "oat_yield": 2.5, "ecological_connectivity": 0.4}
        features.append(
            {"type": "Feature", "properties": columns, "geometry": {"type": "Polygon", "coordinates": [square]}}
        )
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32613"}}
    return {"type": "FeatureCollection", "crs": crs, "features": features}


def odd_values(rng: random.Random) -> str:
    collection = farm(rng)
    for feature in collection["features"]:
        for _ in range(rng.randint(0, 3)):
            feature["properties"][rng.choice([*feature["properties"], *NAMES])] = rng.choice(ODD_VALUES)
        if rng.random() < 0.2:
            feature["properties"].pop(rng.choice(list(feature["properties"])))
    return json.dumps(collection)


def odd_geometry(rng: random.Random, depth: int = 0) -> Any:
    x, y = 500_000.0, 5_700_000.0

    def point() -> list[Any]:
        where = [x + rng.randint(-3, 3) * 400.0, y + rng.randint(-3, 3) * 400.0]
        if rng.random() < 0.1:
            where[rng.randrange(2)] = rng.choice(ODD_NUMBERS)
        return where + [rng.choice([5.0, "z", None])] * (rng.random() < 0.1)

    def ring() -> list[Any]:
        points = [point() for _ in range(rng.choice([0, 1, 2, 3, 4, 6, 9]))]
        return points + points[:1] * (rng.random() < 0.8)

    kinds: dict[str, Callable[[], Any]] = {
        "Polygon": lambda: [ring() for _ in range(rng.choice([0, 1, 1, 2, 3]))],
        "MultiPolygon": lambda: [[ring() for _ in range(rng.randint(0, 2))] for _ in range(rng.randint(0, 3))],
        "Point": point,
        "LineString": ring,
        "MultiPoint": ring,
        "Circle": ring,
    }
    kind = rng.choice([*kinds, "Polygon", "Polygon", "MultiPolygon", "GeometryCollection", "null"])
    if kind == "null":
        return rng.choice([None, {}, [], "POLYGON EMPTY", {"type": None}])
    if kind == "GeometryCollection":
        parts = [odd_geometry(rng, depth + 1) for _ in range(rng.randint(0, 3))] if depth < 3 else []
        return {"type": kind, "geometries": parts}
    return {"type": kind, "coordinates": kinds[kind]()}


def odd_geometries(rng: random.Random) -> str:
    collection = farm(rng)
    for feature in collection["features"]:
        if rng.random() < 0.7:
            feature["geometry"] = odd_geometry(rng)
    if rng.random() < 0.3:
        collection["crs"] = {"type": "name", "properties": {"name": rng.choice(CRS)}}
    return json.dumps(collection)


def odd_structure(rng: random.Random) -> str:
    """A sound collection with some of its nodes replaced, removed or repeated."""
    collection = farm(rng)
    for _ in range(rng.randint(1, 4)):
        node: Any = collection
        while isinstance(node, (dict, list)) and node:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            if not isinstance(node[key], (dict, list)) or rng.random() < 0.25:
                change = rng.random()
                if change < 0.6:
                    node[key] = rng.choice([*ODD_VALUES, farm(rng)])
                elif change < 0.8:
                    del node[key]
                elif isinstance(node, list):
                    node.append(node[key])
                break
            node = node[key]
    return json.dumps(collection)


def odd_text(rng: random.Random) -> bytes:
    """A sound file with bytes cut off, flipped, swapped for others or doubled."""
    text = bytearray(json.dumps(farm(rng)), "utf-8")
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        if not text:
            break
        at = rng.randrange(len(text))
        change = rng.randrange(5)
        if change == 0:
            del text[at : at + rng.randint(1, 400)]
        elif change == 1:
            text[at] = rng.randrange(256)
        elif change == 2:
            text[at:at] = text[at : at + rng.randint(1, 200)]
        elif change == 3:
            digits = [k for k, byte in enumerate(text) if byte in b"0123456789"]
            text[rng.choice(digits or [at])] = rng.choice(b"0123456789")
        else:
            text[at:at] = rng.choice([b"NaN", b"Infinity", b"\xff\xfe", b"{", b"]", b'"', b"\x00", b"-"])
    return bytes(text)


def settled(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def outcome(file: Path, recipe: Path | None = None) -> str:
    """How intake ends: usable, or refused with sentences that a reader can use."""
    try:
        inspection = inspect_file(file, recipe)
    except Exception as error:
        raise AssertionError(f"{file.read_bytes()[:3000]!r} with {recipe and recipe.read_text()!r}") from error
    report = inspection.report
    assert report.usable == (inspection.landscape is not None)
    json.dumps(report.to_dict(), allow_nan=False)
    assert all(len(problem) > 15 for problem in report.problems), report.problems
    if inspection.landscape is not None:
        assert len(inspection.landscape) == report.polygons <= report.rows
        assert np.isfinite(inspection.landscape.areas_ha).all()
    return "usable" if report.usable else "refused"


@pytest.mark.parametrize(
    ("kind", "make"),
    [("values", odd_values), ("geometries", odd_geometries), ("structures", odd_structure), ("texts", odd_text)],
)
def test_broken_geojson_is_read_or_refused(
    tmp_path: Path, kind: str, make: Callable[[random.Random], str | bytes]
) -> None:
    ends = Counter(
        outcome(settled(tmp_path / f"{seed}.geojson", make(random.Random(seed)))) for seed in range(INPUTS[kind])
    )
    assert ends.total() == INPUTS[kind]
    # Were all refused or all usable, the generator would test one branch only.
    assert min(ends["usable"], ends["refused"]) >= INPUTS[kind] // 50, ends


def test_broken_recipes_are_read_or_refused(tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    for seed in range(INPUTS["recipes"]):
        rng = random.Random(seed)
        file = settled(tmp_path / f"{seed}.geojson", odd_values(rng) if rng.random() < 0.5 else json.dumps(farm(rng)))
        lines = rng.sample(RECIPES, rng.choice([1, 1, 2, 3])) if seed >= len(RECIPES) else [RECIPES[seed]]
        text = "\n".join(lines).encode("utf-8", "surrogatepass")
        ends[outcome(file, settled(tmp_path / f"{seed}.yaml", text + b"\xff" * (rng.random() < 0.03)))] += 1
    assert ends.total() == INPUTS["recipes"]
    assert min(ends.values()) >= 10, ends


def test_broken_binaries_are_read_or_refused(tmp_path: Path) -> None:
    """GeoPackage, GeoParquet, FlatGeobuf and zip files with a few bytes changed, or under another's name."""
    squares = [shapely.box(500_000 + 800 * k, 5_700_000, 500_800 + 800 * k, 5_700_800) for k in range(3)]
    columns = {"id": list("abc"), "wheat_yield": [3.0, 4.0, 5.0], "ecological_connectivity": [0.2, 0.4, 0.6]}
    frame = gpd.GeoDataFrame(columns, geometry=squares, crs=32613)
    frame.to_file(tmp_path / "sound.gpkg")
    frame.to_file(tmp_path / "sound.fgb")
    frame.to_file(tmp_path / "sound.shz", driver="ESRI Shapefile")
    frame.to_parquet(tmp_path / "sound.parquet")
    sound = {"gpkg": "sound.gpkg", "fgb": "sound.fgb", "parquet": "sound.parquet", "zip": "sound.shz"}
    for seed in range(INPUTS["binaries"]):
        rng = random.Random(seed)
        suffix = rng.choice(list(sound))
        source = sound[suffix] if rng.random() < 0.9 else rng.choice(list(sound.values()))
        content = bytearray((tmp_path / source).read_bytes())
        for _ in range(rng.randint(0, 6)):
            at = rng.randrange(len(content))
            content[at : at + 8] = rng.choice([struct.pack("<d", float("nan")), b"\xff" * 8, rng.randbytes(8), b"\x00"])
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        outcome(settled(tmp_path / f"{seed}.{suffix}", bytes(content)))
