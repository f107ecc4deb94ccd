"""Synthetic prairie landscapes: surveyed quarter sections with seeded yields, connectivity and current land use.

From figures: places and sizes of quarters (:mod:`oracle.survey`), mean yields, the correlation of wheat and oats, land
shares and prices (data/README.md says which come from where). Assumptions, since no figure was found: everything on
variation between quarters within one landscape, that is

- Gaussian fields with an exponential covariance whose correlation falls to 0.05 at ``range_km``, and a ``nugget``;
- one field of soil quality that every crop follows by its ``soil`` loading (the correlation of two crops is the
  product of their loadings) and one field of its own;
- a field of warmth: the coolest ``cool_share`` of the land cannot grow the crop (its yield is 0);
- wetland and rough land as the extreme of a field of its own, on which no crop grows;
- connectivity that falls with soil quality and is high on wetland and rough land;
- current land use by share, on better land the better crop.

Fields are sums of 300 random cosines (Rahimi and Recht 2007), so cost grows linearly with the number of quarters;
each is standardised within its landscape, so that the stated means and spreads hold there.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Annotated, Any, Literal

import geopandas as gpd
import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oracle.errors import ConfigurationError
from oracle.glm_config import GLMConfig
from oracle.landscape import CONNECTIVITY, CURRENT, HABITAT, OTHER, YIELD_SUFFIX, Landscape
from oracle.recipe import explain
from oracle.survey import quarter_sections

Share = Annotated[float, Field(ge=0, le=1)]
EMBEDDED = Path(__file__).resolve().parents[1] / "data" / "embedded.yaml"
_COSINES = 300
_CORRELATION_AT_RANGE = 0.05
_LEAST_OF_MEAN = 0.15


class CropProfile(BaseModel):
    """How one crop does in a landscape."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    mean_t_ha: float = Field(gt=0, description="mean yield where the crop can be grown, t/ha")
    cv: float = Field(0.2, ge=0, le=1, description="standard deviation between quarters / mean (assumption)")
    soil: float = Field(
        0.85, ge=-1, le=1, description="correlation with soil quality (assumption, but for 0.73 = 0.85^2)"
    )
    cool_share: Share = Field(0.0, description="share of the land that is too cool for the crop (assumption)")
    current_share: float = Field(1.0, ge=0, description="weight of the crop in the current land use")


class ConnectivityProfile(BaseModel):
    """How ecological connectivity is spread (all three are assumptions)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    mean: Share = Field(0.40, description="mean on farmable land")
    sd: float = Field(0.15, ge=0, le=0.5, description="standard deviation on farmable land")
    soil: float = Field(-0.5, ge=-1, le=1, description="correlation with soil quality")
    on_rough: float = Field(0.30, ge=0, le=1, description="added on wetland and rough land")


class SynthesisConfig(BaseModel):
    """One synthetic landscape: where, how it grows, and the Global Land Manager's settings for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    seed: int = Field(ge=0)
    role: Literal["train", "held_out"] = "train"
    region: str = Field("", description="name of the yield profile, for people")
    township: int = Field(ge=1, description="southernmost township")
    range: int = Field(ge=1, description="easternmost range")
    meridian: int = Field(ge=1, le=7, description="meridian that ranges are counted from")
    townships_ns: int = Field(2, ge=1, le=40)
    townships_ew: int = Field(2, ge=1, le=30)
    crops: dict[str, CropProfile] = Field(min_length=1)
    range_km: float = Field(8.0, gt=0, description="distance at which the fields' correlation is 0.05, km")
    nugget: Share = Field(0.28, description="share of a crop's own variation that neighbours do not have in common")
    rough_share: Share = Field(0.08, description="share of quarters that are wetland or rough: no crop grows")
    pasture_share: Share = Field(0.08, description="share of quarters in tame pasture or fallow (`other`) at present")
    habitat_share: Share = Field(0.15, description="share of quarters in habitat at present")
    connectivity: ConnectivityProfile = Field(default_factory=ConnectivityProfile)
    glm: GLMConfig = Field(default_factory=GLMConfig)


def synthesise(config: SynthesisConfig) -> Landscape:
    """The landscape of ``config``, the same for the same configuration.

    Returns
    -------
    Landscape
        Quarter sections with a yield column per crop (t/ha, to 0.001), ``ecological_connectivity`` (to 0.001),
        ``current_land_use``, and ``township`` and ``section`` beside them.

    Raises
    ------
    ConfigurationError
        Where the townships lie outside the survey.
    """
    quarters = quarter_sections(
        config.township,
        config.range,
        config.meridian,
        townships_ns=config.townships_ns,
        townships_ew=config.townships_ew,
    )
    return grow(config, quarters)


def grow(config: SynthesisConfig, quarters: gpd.GeoDataFrame) -> Landscape:
    """The yields, connectivity and current land use of ``config`` on any quarter sections in a metric CRS."""
    quarters = quarters.copy()
    rng = np.random.default_rng(config.seed)
    centroids = quarters.geometry.centroid
    km = np.column_stack([centroids.x, centroids.y]) / 1_000.0
    n = len(quarters)

    def smooth() -> np.ndarray:
        return _field(rng, km, config.range_km)

    def own() -> np.ndarray:
        mixed = np.sqrt(1 - config.nugget) * smooth() + np.sqrt(config.nugget) * rng.standard_normal(n)
        return _standardised(mixed)

    soil, warmth = smooth(), smooth()
    rough = _extreme(own() - 0.5 * soil, config.rough_share)
    yields = {}
    for crop, profile in config.crops.items():
        score = profile.soil * soil + np.sqrt(1 - profile.soil**2) * own()
        grown = np.maximum(profile.mean_t_ha * (1 + profile.cv * score), _LEAST_OF_MEAN * profile.mean_t_ha)
        barred = rough | _extreme(-warmth, profile.cool_share)
        yields[crop] = np.round(np.where(barred, 0.0, grown), 3)

    spread = config.connectivity
    score = spread.soil * soil + np.sqrt(1 - spread.soil**2) * own()
    linked = np.clip(spread.mean + spread.sd * score + spread.on_rough * rough, 0.01, 1.0)
    for crop, values in yields.items():
        quarters[f"{crop}{YIELD_SUFFIX}"] = values
    quarters[CONNECTIVITY] = np.round(linked, 3)
    quarters[CURRENT] = _current_land_use(rng, config, yields, soil, rough)
    return Landscape(config.name, quarters, tuple(config.crops))


def _field(rng: np.random.Generator, km: np.ndarray, range_km: float) -> np.ndarray:
    """(n,) standardised Gaussian field with an exponential covariance over (n, 2) positions in km."""
    scale = range_km / -np.log(_CORRELATION_AT_RANGE)
    # The exponential covariance's spectrum in the plane is a bivariate Cauchy distribution.
    waves = rng.standard_normal((2, _COSINES)) / np.abs(rng.standard_normal(_COSINES)) / scale
    phases = rng.uniform(0, 2 * np.pi, _COSINES)
    total = np.zeros(len(km))
    for wave, phase in zip(waves.T, phases, strict=True):
        total += np.cos((km - km[0]) @ wave + phase)
    return _standardised(total)


def _standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def _extreme(field: np.ndarray, share: float) -> np.ndarray:
    """Where ``field`` belongs to its highest ``share`` (rounded to whole quarters)."""
    chosen = np.zeros(len(field), dtype=bool)
    chosen[np.argsort(-field, kind="stable")[: round(share * len(field))]] = True
    return chosen


def _current_land_use(
    rng: np.random.Generator,
    config: SynthesisConfig,
    yields: dict[str, np.ndarray],
    soil: np.ndarray,
    rough: np.ndarray,
) -> np.ndarray:
    """Poorest land in habitat, then pasture; elsewhere a crop drawn by its share, likelier where it does well."""
    n = len(soil)
    table = np.column_stack(list(yields.values()))
    weight = np.array([profile.current_share for profile in config.crops.values()])
    mean = np.array([profile.mean_t_ha for profile in config.crops.values()])
    appeal = weight * table / mean
    draw = np.where(appeal > 0, appeal, 0.0) / rng.exponential(size=table.shape)
    use = np.array(list(yields), dtype=object)[np.argmax(draw, axis=1)]
    poorness = rng.standard_normal(n) - soil + 100.0 * rough + 1_000.0 * (appeal.max(axis=1) <= 0)
    order = np.argsort(-poorness, kind="stable")
    habitat = max(round(config.habitat_share * n), int((appeal.max(axis=1) <= 0).sum()))
    use[order[:habitat]] = HABITAT
    use[order[habitat : habitat + round(config.pasture_share * n)]] = OTHER
    return use


class _Group(BaseModel):
    """``count`` landscapes of one region, on a lattice of townships with a township between any two."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    region: str
    role: Literal["train", "held_out"]
    count: int = Field(ge=1)
    township: int = Field(ge=1, description="township of the first landscape")
    range: int = Field(ge=1, description="range of the first landscape")
    across: int = Field(4, ge=1, description="landscapes side by side before the next row")


class _Embedded(BaseModel):
    """The file behind :func:`embedded_landscapes`: later levels win (defaults, region, what varies)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    seed: int = Field(ge=0)
    defaults: dict[str, Any]
    regions: dict[str, dict[str, Any]]
    vary: dict[str, tuple[float, float]] = Field(description="dotted setting: [low, high], drawn uniformly")
    landscapes: list[_Group]


def embedded_landscapes(path: Path | None = None) -> list[SynthesisConfig]:
    """The embedded landscapes, expanded from ``data/embedded.yaml`` (or ``path``); the same list every time.

    Every setting of every landscape is drawn from a stream of its own, so a setting more, a landscape more at the end
    of a group, or a group more at the end of the file changes nothing else.

    Raises
    ------
    ConfigurationError
        Where the file cannot be read, names an unknown setting or region, or draws a value out of range.
    """
    path = Path(path) if path is not None else EMBEDDED
    try:
        recipe = _Embedded.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        return [config for number, group in enumerate(recipe.landscapes) for config in _expand(recipe, number, group)]
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not YAML ({error})") from error
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {explain(error)}") from error


def _expand(recipe: _Embedded, number: int, group: _Group) -> list[SynthesisConfig]:
    if group.region not in recipe.regions:
        raise ConfigurationError(f"unknown region {group.region!r}; there are {', '.join(recipe.regions)}")
    configs = []
    for k in range(group.count):
        stream = [recipe.seed, number, k]
        settings = _merged(recipe.defaults, recipe.regions[group.region])
        for key, (low, high) in {**recipe.vary, **settings.pop("vary", {})}.items():
            drawn = np.random.default_rng([*stream, zlib.crc32(key.encode())]).uniform(low, high)
            settings = _merged(settings, _nested(key, round(float(drawn), 4)))
        placed = {
            "name": f"{group.region}_{group.role}_{k + 1:02d}",
            "region": group.region,
            "role": group.role,
            "seed": int(np.random.default_rng(stream).integers(2**31)),
            "township": group.township + 3 * (k // group.across),
            "range": group.range + 3 * (k % group.across),
        }
        configs.append(SynthesisConfig.model_validate({**settings, **placed}))
    return configs


def _merged(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _nested(dotted: str, value: float) -> dict[str, Any]:
    head, _, rest = dotted.partition(".")
    return {head: _nested(rest, value) if rest else value}
