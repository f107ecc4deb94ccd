"""Pictures show the plan: colours are looked up pixel by pixel."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from shapely import affinity

from oracle.landscape import Landscape
from oracle.map import class_colours, draw_map, thumbnail

from .conftest import FOUR_CROPS, build_grid_landscape


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def test_colours_are_distinct_and_do_not_depend_on_the_order():
    classes = ["wheat", "canola", "barley", "flax", "habitat", "other"]
    colours = class_colours(classes)
    assert len(set(colours.values())) == len(classes)
    assert colours == class_colours(reversed(classes))
    assert (colours["wheat"], colours["habitat"]) == ("#e69f00", "#006600")


def test_many_unknown_crops_still_get_their_own_colours():
    colours = class_colours([f"crop{k}" for k in range(20)])
    assert len(set(colours.values())) == 20


def test_each_pixel_of_the_thumbnail_is_its_polygons_class():
    rng = np.random.default_rng(0)
    landscape = build_grid_landscape(24, 24)
    land_use = rng.choice(np.array(landscape.classes, dtype=object), 576)
    png = thumbnail(landscape, land_use)
    assert len(png) < 700
    image = np.array(Image.open(io.BytesIO(png)).convert("RGB"))
    colours = class_colours(landscape.classes)
    expected = np.array([rgb(colours[u]) for u in land_use]).reshape(24, 24, 3)[::-1]  # north is up
    np.testing.assert_array_equal(image, expected)


def test_a_wide_landscape_keeps_its_shape():
    landscape = build_grid_landscape(2, 10)
    image = Image.open(io.BytesIO(thumbnail(landscape, np.full(20, "wheat", dtype=object), longest_side=20)))
    assert image.size == (20, 4)


def test_small_parcels_far_apart_are_seen_in_their_colour(tmp_path: Path):
    """Each is two points wide on the page: nothing but a dark edge, drawn as large fields are."""
    landscape = build_grid_landscape(3, 3, crops=FOUR_CROPS)
    apart = [affinity.scale(g, 0.01, 0.01) for g in landscape.polygons.geometry]
    landscape = Landscape("apart", landscape.polygons.set_geometry(apart, crs=32613), FOUR_CROPS)
    draw_map(landscape, np.full(9, "wheat", dtype=object), tmp_path / "map.png")
    pixels = np.array(Image.open(tmp_path / "map.png").convert("RGB"))[40:-60].reshape(-1, 3)  # no title, no legend
    assert (pixels == rgb("#e69f00")).all(axis=1).sum() > 9 * 4
    assert not (pixels == rgb("#333333")).all(axis=1).any()


def test_the_map_shows_every_class_in_its_colour(tmp_path: Path):
    landscape = build_grid_landscape(2, 5, crops=FOUR_CROPS)
    land_use = np.array([*landscape.classes, *landscape.classes], dtype=object)
    draw_map(
        landscape,
        land_use,
        tmp_path / "map.png",
        "ten fields",
        supply_t=np.array([900.0, 800.0, 700.0, 0.0]),
        floor_t=np.array([850.0, 900.0, 0.0, 0.0]),
    )
    pixels = np.array(Image.open(tmp_path / "map.png").convert("RGB")).reshape(-1, 3)
    found, counts = np.unique(pixels, axis=0, return_counts=True)
    areas = {tuple(c.tolist()): int(n) for c, n in zip(found, counts, strict=True)}
    for name, colour in class_colours(landscape.classes).items():
        assert areas[rgb(colour)] > 5_000, name
    assert (208, 0, 0) in areas  # the missed floor is written in red
