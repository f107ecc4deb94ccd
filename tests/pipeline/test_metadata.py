"""What the UI shows: pictures that fit into Dagster's storage and can still be read."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oracle.map import class_colours, draw_map
from oracle.synthesis import embedded_landscapes, synthesise
from pipeline.metadata import LARGEST, bounded_picture


def shown(markdown: str) -> Image.Image:
    content = markdown.removesuffix(")").partition("base64,")[2]
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_a_map_keeps_the_colour_of_a_class_that_few_polygons_have(tmp_path: Path) -> None:
    landscape = synthesise(embedded_landscapes()[0])
    land_use = np.full(len(landscape), "wheat", dtype=object)
    land_use[7] = "soy"
    draw_map(landscape, land_use, tmp_path / "map.png")
    value = bounded_picture((tmp_path / "map.png").read_bytes(), "plan").value
    image = shown(value)
    assert len(value) <= LARGEST
    assert image.size == (1430, 845)  # not made smaller
    seen = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for name in ("wheat", "soy", "habitat"):
        wanted = [int(class_colours([name])[name][k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(seen - wanted).max(axis=1).min() <= 8, name


def test_a_picture_with_too_much_detail_is_made_smaller() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, format="PNG")
    value = bounded_picture(buffer.getvalue(), "noise").value
    assert len(value) <= LARGEST
    assert shown(value).width / shown(value).height == pytest.approx(4 / 3, abs=0.02)
