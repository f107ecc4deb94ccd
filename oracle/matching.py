"""Which column of a polygon file means what, from its name: any case, accents, blanks, word order and unit.

A name is read in five ways, and the first that finds a column decides: as it is written; folded (case, accents, blanks
and separators apart); as a set of words without units (``yield_wheat (t/ha)`` is ``wheat_yield``); cut to the ten
bytes of a Shapefile's column (``ecological``); and, for what no recipe names, by its English and French words.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oracle.landscape import CONNECTIVITY, CURRENT, LOCKED, YIELD_SUFFIX
from oracle.recipe import BUSHELS_PER_ACRE, ROW, Recipe, YieldUnit

_SHAPEFILE_NAME = 10  # bytes of a column's name in a DBF file

_CROP_NAMES = {
    "wheat": "wheat ble bles froment",
    "oat": "oat oats avoine",
    "corn": "corn maize mais",
    "soy": "soy soya soybean soybeans soja",
    "barley": "barley orge",
    "canola": "canola rapeseed colza",
    "flax": "flax linseed lin",
    "rye": "rye seigle",
    "pea": "pea peas pois",
    "lentil": "lentil lentils lentille lentilles",
    "sunflower": "sunflower sunflowers tournesol",
}
CROP_OF = {word: crop for crop, words in _CROP_NAMES.items() for word in words.split()}
"""English and French crop names, folded -> the crop's name in a landscape."""

_YIELD = {"yield", "yields", "yld", "rendement", "rendements", "rdt"}
_CONNECTIVITY = {"connectivity", "connectivite"}
_ECOLOGICAL = {"ecological", "ecologique", "eco", "index", "indice"}
_ID = {"id", "identifier", "identifiant"}
_POLYGON = {"field", "parcel", "parcelle", "champ", "polygon", "polygone", "plot"}
_FILLERS = {"de", "du", "des", "la", "le", "les", "d", "l", "en", "of", "the", "in", "crop", "grain"}

_NO_CROP = {"total", "all", "sum", "crops", "mean", "average"}
_RECIPE_KEYS = {"id": "id", CONNECTIVITY: "connectivity", CURRENT: CURRENT, LOCKED: LOCKED}

_UNITS = {
    YieldUnit.T_HA: ("t ha", "tonne ha", "tonnes ha", "t ha 1", "tha"),
    YieldUnit.KG_HA: ("kg ha", "kg ha 1", "kgha"),
    YieldUnit.BU_AC: ("bu ac", "bu acre", "bushel acre", "bushels acre", "buac"),
}
_UNKNOWN_UNITS = ("q ha", "qx ha", "quintaux ha", "dt ha", "hg ha", "lb ac", "lbs ac", "lb acre", "ton ac", "t ac")
_UNIT_OF: dict[str, YieldUnit | None] = {words: unit for unit, spelt in _UNITS.items() for words in spelt}
_UNIT_OF |= dict.fromkeys(_UNKNOWN_UNITS)


@dataclass(frozen=True)
class MatchedColumns:
    """Contract column -> column of the file; crop -> unit of its column; what was guessed; what is in the way."""

    columns: dict[str, str]
    units: dict[str, YieldUnit]
    guesses: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def crops(self) -> tuple[str, ...]:
        """Crops whose yield column was found, in the order of the recipe or the file."""
        return tuple(self.units)


def fold(name: str) -> str:
    """A column name without case, accents and surrounding blanks; a blank, ``-``, ``.`` or ``:`` becomes ``_``."""
    plain = unicodedata.normalize("NFKD", str(name)).strip().casefold()
    return "".join("_" if c in " -.:" else c for c in plain if not unicodedata.combining(c))


def match(name: str, columns: Iterable[str]) -> list[str]:
    """The columns that ``name`` means, by the first of the ways of this module that finds any."""
    columns = list(columns)
    if name in columns:
        return [name]
    words = sorted(_words(name)[0])
    for means in (
        lambda c: fold(c) == fold(name),
        lambda c: bool(words) and sorted(_words(c)[0]) == words,
        lambda c: _is_cut(c, name),
    ):
        if found := [c for c in columns if means(c)]:
            return found
    return []


def match_columns(numeric: Mapping[str, bool], recipe: Recipe) -> MatchedColumns:
    """Find the contract's columns among a file's.

    Parameters
    ----------
    numeric : mapping
        The file's columns without its geometry, and whether each holds numbers: a crop's bare name (``Avoine``) is
        taken as its yield only where it does.
    recipe : Recipe
        Names that it gives must be found; without ``yields`` every column that reads as a crop's yield is one.
    """
    own = list(numeric)
    problems: list[str] = []
    guesses: list[str] = []
    columns: dict[str, str] = {}

    def settle(contract: str, name: str, found: Sequence[str]) -> None:
        if len(found) == 1:
            columns[contract] = found[0]
            return
        key = _RECIPE_KEYS.get(contract, "yields")
        if found:
            problems.append(f"{contract}: it could be any of {_quoted(found)}; name one in the recipe: `{key}`")
            return
        near = _alike(name, own)
        like = f"; {_quoted(near)} look{'s' * (len(near) == 1)} like it" if near else " and none that looks like it"
        row = ", or number the rows by `id: row`" if contract == "id" else ""
        problems.append(f"{contract}: no column {name!r}{like}. Name it in the recipe (`{key}`) or add it{row}")

    if recipe.id != ROW:
        settle("id", recipe.id, match(recipe.id, own) or (_by_words(own, _ID, _POLYGON) if recipe.id == "id" else []))
    if recipe.yields:
        for crop, column in recipe.yields.items():
            settle(f"{crop}{YIELD_SUFFIX}", column, match(column, own))
    else:
        yields = _yield_columns(numeric)
        for crop, found in yields.items():
            settle(f"{crop}{YIELD_SUFFIX}", f"{crop}{YIELD_SUFFIX}", found)
            if len(found) == 1 and not _says_yield(found[0]):
                guesses.append(f"{found[0]!r} taken as the yield of {crop}, though its name does not say yield")
        if not yields:
            near = [c for c in own if _says_yield(c) or set(_words(c)[0]) & set(CROP_OF)]
            like = f"{_quoted(near)} may be meant" if near else "none looks like it"
            problems.append(f"no <crop>_yield column; {like}. Name one or more in the recipe (`yields`) or add them")
    by_name = match(recipe.connectivity, own)
    if not by_name and recipe.connectivity == CONNECTIVITY:
        by_name = _by_words(own, _CONNECTIVITY, _ECOLOGICAL) or match("eco_con", own)
    settle(CONNECTIVITY, recipe.connectivity, by_name)
    for contract, named in ((CURRENT, recipe.current_land_use), (LOCKED, recipe.locked_land_use)):
        if (found := match(named or contract, own)) or named is not None:
            settle(contract, named or contract, found)

    if problems:
        problems.append(f"its columns are {_quoted(own, 40)}")
    problems += _shared_columns(columns)
    crops = [c.removesuffix(YIELD_SUFFIX) for c in columns if c.endswith(YIELD_SUFFIX)]
    units: dict[str, YieldUnit] = {}
    for crop in crops:
        units[crop] = _unit(crop, columns[f"{crop}{YIELD_SUFFIX}"], recipe, problems)
    given = recipe.yield_unit if isinstance(recipe.yield_unit, dict) and not recipe.yields else {}
    if unknown := sorted(set(given) - set(crops)):
        problems.append(f"yield_unit names {', '.join(unknown)}, but the file has {', '.join(crops) or 'no yield'}")
    return MatchedColumns(columns, units, tuple(guesses), tuple(problems))


def _words(name: str) -> tuple[tuple[str, ...], str | None]:
    """Words of a name without fillers and unit, and the unit's words (None: no unit in the name)."""
    words = re.findall(r"[^\W_]+", fold(name))
    for length in (3, 2, 1):
        tail = " ".join(words[-length:])
        if len(words) > length and tail in _UNIT_OF:
            return tuple(w for w in words[:-length] if w not in _FILLERS), tail
    return tuple(w for w in words if w not in _FILLERS), None


def _is_cut(column: str, name: str) -> bool:
    cut = str(name).encode()[:_SHAPEFILE_NAME].decode(errors="ignore")
    return len(str(name).encode()) > _SHAPEFILE_NAME and fold(column) == fold(cut)


def _by_words(columns: Sequence[str], any_of: set[str], besides: set[str]) -> list[str]:
    """Columns whose words are one of ``any_of`` and, besides it, only words of ``besides``."""
    found = []
    for column in columns:
        words = set(_words(column)[0])
        if words & any_of and words <= any_of | besides:
            found.append(column)
    return found


def _yield_columns(numeric: Mapping[str, bool]) -> dict[str, list[str]]:
    """Crop -> columns that read as its yield; a bare crop name counts where no column says yield."""
    said: dict[str, list[str]] = {}
    bare: dict[str, list[str]] = {}
    for column, is_number in numeric.items():
        words = _words(column)[0]
        rest = [w for w in words if w not in _YIELD]
        crop = CROP_OF.get("_".join(rest)) or _cut_crop(column)
        folded = fold(column)
        if crop and _says_yield(column):
            said.setdefault(crop, []).append(column)
        elif crop and is_number:
            bare.setdefault(crop, []).append(column)
        elif folded.endswith(YIELD_SUFFIX) and not set(rest) <= _NO_CROP:
            said.setdefault(folded.removesuffix(YIELD_SUFFIX), []).append(column)
    # `wheat_yield` written so is never in doubt, whatever else reads alike.
    exact = {crop: [f"{crop}{YIELD_SUFFIX}"] for crop, found in said.items() if f"{crop}{YIELD_SUFFIX}" in found}
    found = bare | said | exact
    order = list(numeric)
    return dict(sorted(found.items(), key=lambda each: order.index(each[1][0])))


def _says_yield(column: str) -> bool:
    return bool(_YIELD & set(_words(column)[0])) or _cut_crop(column) is not None


def _cut_crop(column: str) -> str | None:
    crops = (crop for crop in _CROP_NAMES if _is_cut(column, f"{crop}{YIELD_SUFFIX}"))
    return next(crops, None)


def _shared_columns(columns: Mapping[str, str]) -> list[str]:
    users: dict[str, list[str]] = {}
    for contract, column in columns.items():
        users.setdefault(column, []).append(contract)
    return [f"column {c!r} cannot be all of {', '.join(by)}" for c, by in users.items() if len(by) > 1]


def _unit(crop: str, column: str, recipe: Recipe, problems: list[str]) -> YieldUnit:
    """The recipe's unit, else the one in the column's name, else t/ha."""
    stated = recipe.unit_of(crop)
    words = _words(column)[1]
    unit = stated or (_UNIT_OF[words] if words else YieldUnit.T_HA)
    if unit is None:
        problems.append(
            f"{column}: its name states a unit that is not known here; known are {', '.join(YieldUnit)}. "
            "Convert it and set `yield_unit` in the recipe"
        )
        return YieldUnit.T_HA
    if unit == YieldUnit.BU_AC and crop not in BUSHELS_PER_ACRE:
        problems.append(
            f"{column}: bu/ac is known for {', '.join(BUSHELS_PER_ACRE)} only; convert {crop} to t/ha or kg/ha"
        )
        return YieldUnit.T_HA
    return unit


def _alike(name: str, columns: Sequence[str]) -> list[str]:
    """Columns whose names look like ``name``."""
    words = set(_words(name)[0])
    meanings = {CROP_OF.get(w, w) for w in words} - _YIELD
    near = set(difflib.get_close_matches(fold(name), [fold(c) for c in columns], n=3, cutoff=0.5))
    found = [
        c
        for c in columns
        if fold(c) in near or fold(c).endswith(fold(name)) or meanings & {CROP_OF.get(w, w) for w in _words(c)[0]}
    ]
    return found


def _quoted(columns: Sequence[str], at_most: int = 12) -> str:
    shown = ", ".join(map(repr, columns[:at_most])) or "no column"
    return shown if len(columns) <= at_most else f"{shown} and {len(columns) - at_most} more"
