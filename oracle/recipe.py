"""Recipes: which columns of a polygon file mean what, in which unit, and the Global Land Manager's settings for it.

A recipe is a short YAML file::

    id: FIELD_ID                      # or `row`: number the rows
    yields: {wheat: CROP_WHEAT_YLD, canola: CROP_CANOLA_YLD}
    yield_unit: kg/ha                 # t/ha, kg/ha, bu/ac; or one per crop: {wheat: bu/ac, corn: t/ha}
    connectivity: eco_con
    glm: {prices: {wheat: 280, canola: 620}, supply_floors: {wheat: 0.5}}

Without one, columns are found by their names (:mod:`oracle.matching`).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from oracle.errors import ConfigurationError
from oracle.glm_config import GLMConfig

ROW = "row"
"""``id: row`` numbers the rows from 0."""

RESCALE = "rescale"
"""``connectivity: rescale`` finds the column by its name and maps its range to 0..1."""

# Bushels an acre to t/ha: bushel weights 60 lb (wheat, soy), 56 lb (corn), 34 lb (oat, Canada).
BUSHELS_PER_ACRE: dict[str, float] = {"wheat": 0.0672511, "soy": 0.0672511, "corn": 0.0627677, "oat": 0.0381092}


class YieldUnit(StrEnum):
    """Unit of a yield column."""

    T_HA = "t/ha"
    KG_HA = "kg/ha"
    BU_AC = "bu/ac"


class ConnectivityUnit(StrEnum):
    """Unit of the connectivity column."""

    SHARE = "share"
    """0..1"""
    PERCENT = "percent"
    """0..100"""


class MissingYield(StrEnum):
    """What to do with a polygon whose yield of a crop is empty."""

    ERROR = "error"
    ZERO = "zero"
    DROP = "drop"


class Recipe(BaseModel):
    """How to read one polygon file as a landscape."""

    # Land use codes are often numbers in YAML, as in `146: wheat`.
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    name: str | None = Field(
        None, pattern=r"^[A-Za-z0-9_-]+$", description="name of the landscape; absent: the file's name"
    )
    role: Literal["train", "held_out"] = Field("train", description="what the landscape is for")
    layer: str | None = Field(None, description="layer of the file; needed where it has several")
    crs: str | None = Field(
        None, description="CRS of the coordinates, e.g. EPSG:32613, where the file states none or a wrong one"
    )
    id: str = Field("id", description="column with the polygon ids, or `row`")
    yields: dict[str, str] = Field(default_factory=dict, description="column of each crop; absent: every <crop>_yield")
    yield_unit: YieldUnit | dict[str, YieldUnit] | None = Field(
        None, description="unit of all yields, or per crop; absent: the one in the column's name, else t/ha"
    )
    connectivity: str = Field(
        "ecological_connectivity", description="column with ecological connectivity, 0..1; `rescale`: see below"
    )
    connectivity_unit: ConnectivityUnit = Field(ConnectivityUnit.SHARE, description="share (0..1) or percent (0..100)")
    rescale_connectivity: bool = Field(
        False, description="map the column's least..greatest value to 0..1; short: `connectivity: rescale`"
    )
    current_land_use: str | None = Field(None, description="column with the current land use; absent: by its own name")
    locked_land_use: str | None = Field(None, description="column with locked classes; absent: by its own name")
    land_uses: dict[str, str] = Field(
        default_factory=dict, description="value in the land use columns -> crop, habitat or other"
    )
    missing_yield: MissingYield = Field(MissingYield.ERROR, description="a yield is empty: error, zero or drop")
    unique_ids: bool = Field(False, description="number empty ids and repeated ids instead of refusing the file")
    drop_unusable: bool = Field(False, description="leave out rows that are no polygons instead of refusing the file")
    glm: GLMConfig = Field(default_factory=GLMConfig)

    @model_validator(mode="before")
    @classmethod
    def _short_rescale(cls, settings: Any) -> Any:
        if isinstance(settings, dict) and settings.get("connectivity") == RESCALE:
            rest = {key: value for key, value in settings.items() if key != "connectivity"}
            return {"rescale_connectivity": True, **rest}
        return settings

    @model_validator(mode="after")
    def _units_known(self) -> Recipe:
        if isinstance(self.yield_unit, dict) and self.yields:
            if unknown := sorted(set(self.yield_unit) - set(self.yields)):
                raise ValueError(f"yield_unit names {', '.join(unknown)}, which `yields` does not")
            if lacking := sorted(set(self.yields) - set(self.yield_unit)):
                raise ValueError(f"yield_unit names no unit for {', '.join(lacking)}")
        for crop in self.yields:
            if self.unit_of(crop) == YieldUnit.BU_AC and crop not in BUSHELS_PER_ACRE:
                raise ValueError(
                    f"bu/ac is known for {', '.join(BUSHELS_PER_ACRE)} only; convert {crop} to t/ha or kg/ha"
                )
        return self

    def unit_of(self, crop: str) -> YieldUnit | None:
        """Unit of ``crop``'s column, or None where the recipe leaves it to the column's name."""
        return self.yield_unit.get(crop) if isinstance(self.yield_unit, dict) else self.yield_unit


def to_t_ha(crop: str, unit: YieldUnit) -> float:
    """Factor that turns a yield of ``crop`` in ``unit`` into t/ha.

    Raises
    ------
    ConfigurationError
        For bushels of a crop whose bushel weight is not known here.
    """
    if unit == YieldUnit.BU_AC and crop not in BUSHELS_PER_ACRE:
        raise ConfigurationError(
            f"bu/ac is known for {', '.join(BUSHELS_PER_ACRE)} only; convert {crop} to t/ha or kg/ha"
        )
    return {YieldUnit.T_HA: 1.0, YieldUnit.KG_HA: 1e-3, YieldUnit.BU_AC: BUSHELS_PER_ACRE.get(crop, 0.0)}[unit]


def load_recipe(path: Path) -> Recipe:
    """Read a YAML recipe.

    Raises
    ------
    ConfigurationError
        Where the file cannot be read or a key is unknown or out of range; file and keys are named.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        recipe = Recipe.model_validate({} if content is None else content)
        recipe.model_dump_json()  # fails on half a character (a lone surrogate), which no file could take
        return recipe
    except OSError as error:
        raise ConfigurationError(f"{path}: the recipe cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: the recipe is not UTF-8 text") from error
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {explain(error, Recipe)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date such as 2024-13-45 is a ValueError
        raise ConfigurationError(f"{path}: not YAML ({error})") from error


def recipe_for(file: Path, recipe: Path | None = None) -> Recipe:
    """The recipe given, else the one beside the file, else one that leaves all to the columns' names.

    Raises
    ------
    ConfigurationError
        From :func:`load_recipe`.
    """
    path = recipe if recipe is not None else recipe_beside(file)
    return load_recipe(path) if path is not None else Recipe()


def recipe_beside(file: Path) -> Path | None:
    """``NAME.yaml`` or ``NAME.yml`` beside ``NAME.<ext>``; ``NAME.gdb.zip`` has it under both of its stems."""
    file = Path(file)
    stems = dict.fromkeys([file.stem, file.name.split(".")[0]])
    beside = (file.parent / f"{stem}{suffix}" for stem in stems if stem for suffix in (".yaml", ".yml"))
    return next((path for path in beside if path.is_file()), None)


def explain(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """A validation error as ``key: what is wrong (found ...)``, one after the other on a line each.

    With ``model``, whose error it is, an unknown setting is followed by the known ones.
    """
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"]) or "file"
        unknown = problem["type"] == "extra_forbidden"
        message = "unknown setting" if unknown else problem["msg"]
        found = f" (found {problem['input']!r})" if not isinstance(problem["input"], dict) else ""
        known = _settings_beside(problem["loc"], model) if unknown and model is not None else []
        lines.append(f"{key}: {message}{found}" + (f"; known are {', '.join(known)}" if known else ""))
    return "\n  ".join(lines)


def _settings_beside(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    for part in loc[:-1]:
        field = model.model_fields.get(str(part))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return []
        model = field.annotation
    return list(model.model_fields)
