"""Neighbourhoods -> chat messages.

Layout ``full``: a system message (role, format, allowed answers) and a user message (task, variables with units and
rounding, neighbour codes, prices or supply, goal, then one dictionary per polygon), from the templates beside this
file.

Layout ``compact``: one user message of one line. Each crop's yield in t/ha times its price in currency/t, then
connectivity after ``habitat`` times the habitat price in currency/ha; with neighbours ``+`` the adjacency price in
currency/m, and for each neighbour its position, yields in the same order, connectivity::

    wheat 3.12*0301 oat 2.87*0266 habitat 0.62*0812+04.1 | N 3.10 2.80 0.40 | NE 2.95 2.71 0.71

Without prices the ``*`` and ``+`` parts are left out. With supply each yield is followed by floor and reference supply
in tonnes (``wheat 3.12>012345/023456``). What a landscape's prompts have in common is rendered once, and
names from files are only ever values of a template.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oracle.landscape import CONNECTIVITY, HABITAT, YIELD_SUFFIX
from prompts.config import Layout, PromptConfig, Style
from prompts.neighbourhood import CENTRAL, Neighbourhoods

TEMPLATE_VERSION = "2"
"""Raised with every change of wording or layout; stands in the manifest of every dataset."""

TEMPLATES = Path(__file__).parent / "templates"

Message = dict[str, str]


def render(shown: Neighbourhoods, config: PromptConfig, rows: np.ndarray | None = None) -> list[list[Message]]:
    """The chat messages of each polygon's prompt.

    Parameters
    ----------
    shown : Neighbourhoods
        Of n polygons, collected with the same ``config``.
    config : PromptConfig
        Style and layout.
    rows : ndarray, optional
        Row positions of the polygons wanted; all n by default.

    Returns
    -------
    list of list of ``{"role": ..., "content": ...}``, one per row wanted
    """
    wanted = range(len(shown)) if rows is None else rows.tolist()
    if config.layout is Layout.COMPACT:
        return [[{"role": "user", "content": text}] for text in _compact(shown, config, wanted)]
    system = {"role": "system", "content": system_message((*shown.crops, HABITAT), config)}
    return [[system, {"role": "user", "content": text}] for text in _full(shown, config, wanted)]


def system_message(classes: tuple[str, ...], config: PromptConfig) -> str:
    """The system part of layout ``full``: role, rules of format, allowed answers."""
    template = _environment().get_template("system.j2")
    return template.render(think=config.style is Style.THINK, classes=classes).strip()


def templates_sha256() -> str:
    """Hash of the template files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(TEMPLATES.glob("*.j2")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _environment() -> Environment:
    return Environment(  # plain text for a model, not HTML: nothing to escape
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def _compact(shown: Neighbourhoods, config: PromptConfig, wanted: range | list[int]) -> list[str]:
    prices, supply = shown.prices, shown.supply
    stated = [f"*{p}" for p in prices.effective.text] if prices else [""] * len(shown.crops)
    if supply:
        stated = [f">{f}/{r}" for f, r in zip(supply.floor.text, supply.reference.text, strict=True)]
    habitat_price = f"*{prices.habitat.text}" if prices else ""
    if prices and config.order >= 1:
        habitat_price += f"+{prices.adjacency.text}"
    line = " ".join(f"{name} %s{more}" for name, more in zip(_escaped(shown.crops), stated, strict=True))
    line += f" {HABITAT} %s{habitat_price}"
    values = [(*y, e) for y, e in zip(shown.yields.text.tolist(), shown.connectivity.text.tolist(), strict=True)]
    if config.order == 0:
        return [f"{line % values[i]}\n" for i in wanted]
    bare = [" ".join(v) for v in values]
    start, member, position = shown.start.tolist(), shown.member.tolist(), shown.position.tolist()
    return [
        line % values[i]
        + "".join([f" | {position[m]} {bare[member[m]]}" for m in range(start[i], start[i + 1])])
        + "\n"
        for i in wanted
    ]


def _full(shown: Neighbourhoods, config: PromptConfig, wanted: range | list[int]) -> list[str]:
    head = {isolated: _head(shown, config, isolated) for isolated in (False, True)}
    keys = [json.dumps(f"{crop}{YIELD_SUFFIX}", ensure_ascii=False) for crop in shown.crops]
    body = ", ".join(f"{key}: %s" for key in _escaped(keys)) + f', "{CONNECTIVITY}": %s}}'
    records = [
        body % (*y, e) for y, e in zip(shown.yields.text.tolist(), shown.connectivity.text.tolist(), strict=True)
    ]
    start, member, position = shown.start.tolist(), shown.member.tolist(), shown.position.tolist()
    texts = []
    for i in wanted:
        neighbours = [f'  {{"position": "{position[m]}", {records[member[m]]}' for m in range(start[i], start[i + 1])]
        listed = ",\n".join([f'  {{"position": "{CENTRAL}", {records[i]}', *neighbours])
        texts.append(f"{head[not neighbours]}[\n{listed}\n]")
    return texts


def _head(shown: Neighbourhoods, config: PromptConfig, isolated: bool) -> str:
    template = _environment().get_template("user.j2")
    rounding = {
        "yield_low": f"{10.0**-config.yield_digits:g}",
        "yield_high": f"{10.0 ** (1 - config.yield_digits):g}",
        "connectivity": f"{10.0**-config.connectivity_digits:g}",
    }
    text = template.render(
        order=config.order, isolated=isolated, rounding=rounding, prices=_prices(shown), supply=_supply(shown)
    )
    return text.rstrip("\n") + "\n"


def _prices(shown: Neighbourhoods) -> dict[str, object] | None:
    prices = shown.prices
    if prices is None:
        return None
    columns = (shown.crops, prices.market.text, prices.supplement.text, prices.effective.text)
    crops = [
        {"name": name, "market": market, "supplement": supplement, "effective": effective}
        for name, market, supplement, effective in zip(*columns, strict=True)
    ]
    return {"crops": crops, "habitat": prices.habitat.text, "adjacency": prices.adjacency.text}


def _supply(shown: Neighbourhoods) -> dict[str, object] | None:
    supply = shown.supply
    if supply is None:
        return None
    columns = (shown.crops, supply.floor.text, supply.reference.text)
    crops = [{"name": n, "floor": f, "reference": r} for n, f, r in zip(*columns, strict=True)]
    return {"crops": crops, "of_current": supply.of_current}


def _escaped(names: list[str] | tuple[str, ...]) -> list[str]:
    return [name.replace("%", "%%") for name in names]
