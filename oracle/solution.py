"""The solved landscape: a label per polygon, what it is worth, and the folder in which it travels.

A solution's folder holds

====================  =======================================================================================
labels.parquet        GeoParquet: the landscape's columns, ``land_use``, ``status`` and per class
                      ``regret_<class>_low`` and ``_high``, objective units (null: no number, see below),
                      and fiboa's crop columns (:mod:`oracle.fiboa`)
labels.gpkg           the same for a GIS without the crop columns, styled for QGIS in the class colours
solution.json         objective, bound, supply, prices, hashes, configuration, versions
certificate.json      the multipliers that prove the bound
landscape.parquet     the landscape solved
graph.parquet         its neighbour graph
connectivity.json     how connected the plan's habitat is, beside that of the current land use
                      (:mod:`oracle.connectivity`)
map.png               the plan
====================  =======================================================================================

An infinite regret is written as null: a null ``high`` beside a number in ``low`` means that no feasible plan with the
class was found; both null, that the polygon may not have the class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import geopandas as gpd
import numpy as np
from pydantic import ValidationError

from oracle.certificate import Certificate
from oracle.coefficients import SharedLengths
from oracle.connectivity import DISPERSAL_M, save_connectivity
from oracle.errors import CertificateError
from oracle.fiboa import FIBOA_COLUMNS, crop_columns
from oracle.files import write_atomically, write_json
from oracle.glm_config import GLMConfig
from oracle.landscape import Landscape, save_landscape
from oracle.map import class_colours, draw_map
from oracle.plan import Terms, relative_gap
from oracle.qgis_style import add_style

LABELS, LABELS_GPKG = "labels.parquet", "labels.gpkg"
SOLUTION, CERTIFICATE = "solution.json", "certificate.json"
LANDSCAPE, GRAPH, MAP = "landscape.parquet", "graph.parquet", "map.png"


class SavedGraph(SharedLengths, Protocol):
    """A neighbour graph that can be written."""

    def save(self, path: Path) -> None: ...


@dataclass(frozen=True)
class Hashes:
    """SHA-256 of what was solved."""

    landscape: str
    graph: str
    config: str


@dataclass(frozen=True, eq=False)
class Solution:
    """A plan for n polygons and K crops, with its proof.

    Parameters
    ----------
    landscape : str
        Its name.
    classes : tuple of str
        The K crops and ``habitat``.
    ids, land_use, status : (n,) arrays of str
        Status: see :class:`oracle.regret.Status`.
    regret_low, regret_high : (n, K + 1) arrays
        Objective units, infinite where there is no number (:mod:`oracle.regret`).
    terms : Terms
        The objective, term by term.
    upper_bound : float
        Certified: no plan exceeds it.
    solver_bound : float
        The solver's own claim, proven by nothing here.
    supply_t, floor_t : (K,) arrays
        Tonnes.
    shadow_price : dict of crop to float
        Currency/t that one more tonne of floor costs at the relaxation's optimum.
    habitat_price : float
        Currency per hectare of habitat of connectivity 1.
    adjacency_price : float
        Currency per metre between two habitats of mean connectivity 1.
    """

    landscape: str
    classes: tuple[str, ...]
    ids: np.ndarray
    land_use: np.ndarray
    status: np.ndarray
    regret_low: np.ndarray
    regret_high: np.ndarray
    terms: Terms
    upper_bound: float
    solver_bound: float
    supply_t: np.ndarray
    floor_t: np.ndarray
    shadow_price: dict[str, float]
    habitat_price: float
    adjacency_price: float
    certificate: Certificate
    hashes: Hashes
    config: GLMConfig
    wall_time_s: float
    solver: str
    versions: Mapping[str, str]

    @property
    def crops(self) -> tuple[str, ...]:
        return self.classes[:-1]

    @property
    def objective(self) -> float:
        """The plan's objective: 0..1, less where classes cost something."""
        return self.terms.objective

    @property
    def gap(self) -> float:
        """Relative gap to the certified bound: the plan is proven to be at most this share below the optimum."""
        return relative_gap(self.objective, self.upper_bound)

    @property
    def choice(self) -> np.ndarray:
        """(n,) int: each polygon's position in ``classes``."""
        position = {name: k for k, name in enumerate(self.classes)}
        return np.array([position[u] for u in self.land_use])


def labels(landscape: Landscape, solution: Solution) -> gpd.GeoDataFrame:
    """The landscape's table with the solution's columns in front of the geometry."""
    table = landscape.polygons.copy()
    table["land_use"] = solution.land_use
    table["status"] = solution.status.astype(str)
    for k, name in enumerate(solution.classes):
        for end, values in (("low", solution.regret_low[:, k]), ("high", solution.regret_high[:, k])):
            table[f"regret_{name}_{end}"] = np.where(np.isfinite(values), values, np.nan)
    return table[[*(c for c in table.columns if c != "geometry"), "geometry"]]


def save_solution(
    folder: Path, landscape: Landscape, graph: SavedGraph, solution: Solution, dispersal_m: float = DISPERSAL_M
) -> None:
    """Write everything of this module's docstring into ``folder``, which is made where it does not exist.

    Raises
    ------
    ConfigurationError
        Where ``dispersal_m``, the distance at which connectivity is stated, is not above 0.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table = labels(landscape, solution)
    coded = table.assign(**crop_columns(solution.land_use).set_axis(table.index))[
        [*table.columns[:-1], *FIBOA_COLUMNS, "geometry"]
    ]
    write_atomically(folder / LABELS, lambda p: coded.to_parquet(p, index=False))
    write_atomically(folder / LABELS_GPKG, lambda p: _write_gpkg(table, solution, p))
    save_landscape(landscape, folder / LANDSCAPE)
    write_atomically(folder / GRAPH, graph.save)
    write_json(folder / CERTIFICATE, _certificate_to_json(solution.certificate))
    write_json(folder / SOLUTION, _to_json(solution))
    save_connectivity(folder, landscape, graph, solution.land_use, dispersal_m)
    draw_map(
        landscape,
        solution.land_use,
        folder / MAP,
        title_of(solution),
        supply_t=solution.supply_t,
        floor_t=solution.floor_t,
    )


def _write_gpkg(table: gpd.GeoDataFrame, solution: Solution, path: Path) -> None:
    table.to_file(path, driver="GPKG", layer="labels", index=False)
    add_style(path, "labels", "land_use", class_colours(solution.classes))


def title_of(solution: Solution) -> str:
    """``name: objective 0.5281, at most 0.0053 % below the optimum``."""
    below = f"at most {100 * solution.gap:.2g} % below the optimum"
    return f"{solution.landscape}: objective {solution.objective:.4f}, {below}"


def load_solution(folder: Path) -> Solution:
    """Read what :func:`save_solution` wrote; checks nothing (see :func:`oracle.verify.verify`).

    Raises
    ------
    CertificateError
        Where a file is missing or is not what was written.
    """
    folder = Path(folder)
    stated = read_json(folder / SOLUTION)
    certificate = read_certificate(folder)
    table = read_table(folder / LABELS)
    try:
        classes = tuple(stated["classes"])
        low, high = (
            np.column_stack([table[f"regret_{name}_{end}"].to_numpy(dtype=float) for name in classes])
            for end in ("low", "high")
        )
        return Solution(
            landscape=stated["landscape"],
            classes=classes,
            ids=table["id"].to_numpy(dtype=object),
            land_use=table["land_use"].to_numpy(dtype=object),
            status=table["status"].to_numpy(dtype=object),
            regret_low=np.where(np.isnan(low), np.inf, low),
            regret_high=np.where(np.isnan(high), np.inf, high),
            terms=Terms(**stated["terms"]),
            upper_bound=float(stated["upper_bound"]),
            solver_bound=float(stated["solver_bound"]),
            supply_t=np.array([stated["supply_t"][crop] for crop in classes[:-1]], dtype=float),
            floor_t=np.array([stated["floor_t"][crop] for crop in classes[:-1]], dtype=float),
            shadow_price={crop: float(stated["shadow_price"][crop]) for crop in classes[:-1]},
            habitat_price=float(stated["habitat_price"]),
            adjacency_price=float(stated["adjacency_price"]),
            certificate=certificate,
            hashes=Hashes(**stated["hashes"]),
            config=GLMConfig.model_validate(stated["config"]),
            wall_time_s=float(stated["wall_time_s"]),
            solver=stated["solver"],
            versions=stated["versions"],
        )
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise CertificateError(
            f"{folder}: {SOLUTION} or {LABELS} is not what a solution has ({type(error).__name__}: {error})"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; CertificateError where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CertificateError(f"{path} is missing: solve again, or name the folder that a solve wrote") from error
    except ValueError as error:
        raise CertificateError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise CertificateError(f"{path} holds no JSON object")
    return content


def read_table(path: Path) -> gpd.GeoDataFrame:
    """A GeoParquet table; CertificateError where there is none."""
    try:
        return gpd.read_parquet(path)
    except FileNotFoundError as error:
        raise CertificateError(f"{path} is missing: solve again, or name the folder that a solve wrote") from error
    except (OSError, ValueError) as error:
        raise CertificateError(f"{path} is not a GeoParquet table: {error}") from error


def read_certificate(folder: Path) -> Certificate:
    """The certificate beside a solution; CertificateError where it is missing or malformed."""
    stated = read_json(Path(folder) / CERTIFICATE)
    try:
        return Certificate(
            floor_multiplier=np.array(stated["floor_multiplier"], dtype=float),
            habitat_least=float(stated["habitat_least"]),
            habitat_greatest=float(stated["habitat_greatest"]),
            pair_share=np.array(stated["pair_share"], dtype=float),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"{CERTIFICATE} is malformed ({type(error).__name__}: {error})") from error


def _certificate_to_json(certificate: Certificate) -> dict[str, Any]:
    return {
        "floor_multiplier": certificate.floor_multiplier.tolist(),
        "habitat_least": certificate.habitat_least,
        "habitat_greatest": certificate.habitat_greatest,
        "pair_share": certificate.pair_share.tolist(),
    }


def _to_json(s: Solution) -> dict[str, Any]:
    return {
        "landscape": s.landscape,
        "classes": list(s.classes),
        "polygons": len(s.ids),
        "status": {status: int((s.status == status).sum()) for status in sorted(set(s.status))},
        "objective": s.objective,
        "upper_bound": s.upper_bound,
        "gap": s.gap,
        "solver_bound": s.solver_bound,
        "terms": asdict(s.terms),
        "supply_t": dict(zip(s.crops, s.supply_t.tolist(), strict=True)),
        "floor_t": dict(zip(s.crops, s.floor_t.tolist(), strict=True)),
        "shadow_price": s.shadow_price,
        "habitat_price": s.habitat_price,
        "adjacency_price": s.adjacency_price,
        "hashes": asdict(s.hashes),
        "config": s.config.model_dump(mode="json"),
        "wall_time_s": s.wall_time_s,
        "solver": s.solver,
        "versions": dict(s.versions),
    }
