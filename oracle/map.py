"""The plan as a picture: a map beside its supply, and a thumbnail of a few hundred bytes."""

from __future__ import annotations

import colorsys
import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import shapely
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.path import Path as MplPath
from PIL import Image

from oracle.files import write_atomically
from oracle.landscape import HABITAT, OTHER, Landscape

# At least 33 apart (CIE colour difference) for normal, deutan, protan and tritan sight.
_KNOWN = {"wheat": "#e69f00", "oat": "#aa3377", "corn": "#ffff99", "soy": "#56b4e9", HABITAT: "#006600"}
_FURTHER = ("#0072b2", "#cc79a7", "#d55e00", "#999933", "#882255", "#44aa99", "#ddcc77", "#332288", "#bbbbbb")
_BLANK = "#ffffff"
_OTHER = "#777777"
_MISSED = "#d00000"
_AGREES = "#e4e4e4"
_EDGE = "#333333"
_MAP_POINTS = 400.0
"""About the longer side of a map on its page, points."""
_SMALL_POINTS = 3.0
_SCATTERED = 0.1  # of the rectangle around them


def class_colours(classes: Iterable[str]) -> dict[str, str]:
    """``#rrggbb`` of each class: fixed for the known ones, from a colour-blind-safe row for others, by name.

    The same classes get the same colours whatever their order; beyond the row's length the hue follows the name.
    """
    wanted = list(dict.fromkeys(classes))
    colours = {c: _KNOWN.get(c, _OTHER if c == OTHER else "") for c in wanted}
    for position, name in enumerate(sorted(c for c in wanted if not colours[c])):
        colours[name] = _FURTHER[position] if position < len(_FURTHER) else _hashed_colour(name)
    return colours


def draw_map(
    landscape: Landscape,
    land_use: np.ndarray,
    path: Path,
    title: str = "",
    *,
    supply_t: np.ndarray | None = None,
    floor_t: np.ndarray | None = None,
) -> None:
    """Write a PNG: polygons in their class colours, and each crop's supply against its floor.

    Parameters
    ----------
    landscape : Landscape
    land_use : (n,) array of str
    path : Path
    title : str, optional
    supply_t, floor_t : (K,) arrays, optional
        Tonnes; absent: no supply chart.
    """
    colours = class_colours([*landscape.classes, *np.unique(land_use.astype(str))])
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    if supply_t is None:
        axes = figure.subplots()
    else:
        axes, chart = figure.subplots(1, 2, width_ratios=[3, 1.25])
        _draw_supply(chart, landscape.crops, supply_t, np.zeros_like(supply_t) if floor_t is None else floor_t, colours)
    _draw_polygons(axes, landscape, [colours[u] for u in land_use])
    _legend(figure, landscape, land_use, colours)
    figure.suptitle(title or landscape.name, fontsize=12)
    write_atomically(Path(path), lambda p: figure.savefig(p, dpi=130, format="png"))


def draw_comparison(
    landscape: Landscape, oracle: np.ndarray, model: np.ndarray, regret: np.ndarray | None = None
) -> bytes:
    """A PNG of three maps side by side: the oracle's plan, a model's, and where the two differ.

    Parameters
    ----------
    landscape : Landscape
    oracle, model : (n,) arrays of str
        Null in ``model`` where nothing was decided: white, and neither right nor wrong.
    regret : (n,) array, optional
        What the model's class costs, objective units: the darker a difference, the more. Without it they are all red.
    """
    colours = class_colours(landscape.classes)
    known = np.array([m in colours for m in model])
    differs = known & (oracle != model)
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    marked = np.full(len(landscape), _MISSED, dtype=object)
    if regret is not None:
        shade = ScalarMappable(Normalize(0, max(float(regret[differs].max(initial=0.0)), 1e-12)), colormaps["YlOrRd"])
        marked[:] = [to_hex(c) for c in shade.to_rgba(regret)]
        figure.colorbar(shade, ax=panels[2], shrink=0.7, label="regret, objective units")
    faces = (
        [colours[u] for u in oracle],
        [colours.get(u, _BLANK) for u in model],
        np.where(known, np.where(differs, marked, _AGREES), _BLANK).tolist(),
    )
    titles = ("oracle", "model", f"differs: {int(differs.sum()):,} of {int(known.sum()):,}")
    for axes, face, title in zip(panels, faces, titles, strict=True):
        _draw_polygons(axes, landscape, face)
        axes.set_title(title, fontsize=10)
    handles = [Patch(facecolor=colour, edgecolor=_EDGE, label=name) for name, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 9), frameon=False, fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def thumbnail(landscape: Landscape, land_use: np.ndarray, longest_side: int = 24) -> bytes:
    """A palette PNG of the plan, ``longest_side`` pixels wide or high: each pixel has the class under its centre."""
    colours = class_colours([*landscape.classes, *np.unique(land_use.astype(str))])
    names = list(colours)
    geometry = landscape.polygons.geometry
    west, south, east, north = geometry.total_bounds
    cell = max(east - west, north - south) / longest_side
    cols, rows = max(1, round((east - west) / cell)), max(1, round((north - south) / cell))
    x = west + (np.arange(cols) + 0.5) * (east - west) / cols
    y = north - (np.arange(rows) + 0.5) * (north - south) / rows
    centres = shapely.points(*(a.ravel() for a in np.meshgrid(x, y)))
    point, polygon = shapely.STRtree(geometry.to_numpy()).query(centres, predicate="intersects")
    pixels = np.zeros(rows * cols, dtype=np.uint8)  # 0: no polygon
    pixels[point] = 1 + np.array([names.index(u) for u in land_use[polygon]], dtype=np.uint8)
    image = Image.fromarray(pixels.reshape(rows, cols), mode="P")
    palette = [_BLANK, *colours.values()]
    image.putpalette([int(colour[k : k + 2], 16) for colour in palette for k in (1, 3, 5)])
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True, bits=4 if len(palette) <= 16 else 8)
    return buffer.getvalue()


def _draw_polygons(axes: Axes, landscape: Landscape, faces: list[str]) -> None:
    """The (n,) polygons in (n,) colours, to scale."""
    geometry = landscape.polygons.geometry
    polygons, owner = shapely.get_parts(geometry.to_numpy(), return_index=True)
    area = shapely.area(polygons)
    order = np.argsort(-area, kind="stable")  # large ones first
    west, south, east, north = geometry.total_bounds
    extent = max(east - west, north - south)
    colours = [faces[owner[i]] for i in order]
    # A dark edge would be all that is seen of a small parcel far from others: it gets a wide one in its own colour.
    scattered = area.sum() < _SCATTERED * (east - west) * (north - south)
    small = scattered & (np.sqrt(area[order]) * _MAP_POINTS / extent < _SMALL_POINTS)
    edge = float(np.clip(12.0 / np.sqrt(len(landscape)), 0.15, 0.8))
    axes.add_collection(
        PathCollection(
            [_outline(polygons[i]) for i in order],
            facecolors=colours,
            edgecolors=[colour if tiny else _EDGE for colour, tiny in zip(colours, small, strict=True)],
            linewidths=np.where(small, max(edge, 1.5), edge),
        )
    )
    margin = 0.02 * extent
    axes.set_xlim(west - margin, east + margin)
    axes.set_ylim(south - margin, north + margin)
    geographic = landscape.polygons.crs.is_geographic
    axes.set_aspect(1.0 / np.cos(np.radians((south + north) / 2.0)) if geographic else 1.0)
    axes.set_axis_off()


def _legend(figure: Figure, landscape: Landscape, land_use: np.ndarray, colours: dict[str, str]) -> None:
    total = landscape.areas_ha.sum()
    handles = []
    for name, colour in colours.items():
        has = land_use == name
        label = f"{name}: {int(has.sum()):,}, {landscape.areas_ha[has].sum() / total:.0%}"
        handles.append(Patch(facecolor=colour, edgecolor=_EDGE, label=label))
    title = "polygons, share of area"
    figure.legend(handles=handles, title=title, loc="outside lower center", ncols=min(len(handles), 6), frameon=False)


def _outline(polygon: shapely.Polygon) -> MplPath:
    """Exterior and holes; holes turn the other way, so they stay open."""
    rings = shapely.get_rings(shapely.orient_polygons(polygon))
    return MplPath.make_compound_path(*(MplPath(shapely.get_coordinates(ring), closed=True) for ring in rings))


def _draw_supply(
    axes: Axes, crops: tuple[str, ...], supply_t: np.ndarray, floor_t: np.ndarray, colours: dict[str, str]
) -> None:
    y = np.arange(len(crops))
    unit, divisor = ("kt", 1_000.0) if max(supply_t.max(), floor_t.max()) >= 10_000 else ("t", 1.0)
    supply, floor = supply_t / divisor, floor_t / divisor
    axes.barh(y, supply, color=[colours[c] for c in crops], edgecolor=_EDGE, linewidth=0.6)
    floored = floor > 0
    axes.vlines(floor[floored], y[floored] - 0.45, y[floored] + 0.45, color="black", linewidth=2.5)
    reach = max(supply.max(), floor.max(), 1e-9)
    for k in range(len(crops)):
        missed = supply_t[k] < floor_t[k] * (1 - 1e-6)
        text = f"{supply[k]:,.1f}" + (f" of {floor[k]:,.1f}" if floored[k] else "")
        axes.text(
            max(supply[k], floor[k]) + 0.03 * reach, y[k], text, va="center", color=_MISSED if missed else "black"
        )
    axes.set_yticks(y, crops)
    axes.invert_yaxis()
    axes.set_xlim(0, 2.1 * reach)
    axes.set_xlabel(f"supply, {unit}; line: floor")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.spines[["top", "right"]].set_visible(False)


def _hashed_colour(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()
    rgb = colorsys.hls_to_rgb(digest[0] / 256, 0.35 + 0.4 * digest[1] / 256, 0.6)
    return "#" + "".join(f"{round(255 * v):02x}" for v in rgb)
