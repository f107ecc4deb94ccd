"""The solved landscape: a label per polygon, what it is worth, and the folder in which it travels.

A solution's folder holds

====================  =======================================================================================
labels.parquet        GeoParquet: the labels (:mod:`oracle.labels`) with fiboa's crop columns
labels.gpkg           the same for a GIS without the crop columns, in the layer ``labels``, styled for QGIS in the class
                      colours
solution.json         objective, bound, supply, prices, hashes, configuration, versions
certificate.json      the multipliers that prove the bound; other plans found, by what they change, and the
                      bound of the search for the best plan that differs (the solver's word)
landscape.parquet     the landscape solved
graph.parquet         its neighbour graph
connectivity.json     how connected the plan's habitat is, beside that of the current land use
                      (:mod:`oracle.connectivity`)
map.png               the plan
====================  =======================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import geopandas as gpd
import numpy as np
import pandas as pd
from pydantic import ValidationError

from oracle.certificate import Certificate
from oracle.coefficients import SharedLengths
from oracle.connectivity import CONNECTIVITY_FILE, DISPERSAL_M, save_connectivity
from oracle.errors import CertificateError
from oracle.files import write_atomically, write_json
from oracle.glm_config import GLMConfig
from oracle.labels import labels, with_crop_columns
from oracle.landscape import Landscape, save_landscape
from oracle.map import class_colours, draw_map
from oracle.plan import Terms, relative_gap
from oracle.qgis_style import add_style
from oracle.regret import Searched

LABELS, LABELS_GPKG = "labels.parquet", "labels.gpkg"
SOLUTION, CERTIFICATE = "solution.json", "certificate.json"
LANDSCAPE, GRAPH, MAP = "landscape.parquet", "graph.parquet", "map.png"
WRITTEN = (LABELS, LABELS_GPKG, SOLUTION, CERTIFICATE, LANDSCAPE, GRAPH, CONNECTIVITY_FILE, MAP)


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
    ids, land_use, status, proof : (n,) arrays of str
        Status and what it rests on: see :class:`oracle.regret.Status` and :class:`oracle.regret.Proof`.
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
    searched : Searched
        What a search for the best plan that differs has shown; plans in the landscape's order of rows.
    plan_time_s, wall_time_s : float
        Seconds until the plan and its bound stood, and in all, with the search for other plans and the regret.
    """

    landscape: str
    classes: tuple[str, ...]
    ids: np.ndarray
    land_use: np.ndarray
    status: np.ndarray
    proof: np.ndarray
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
    searched: Searched
    hashes: Hashes
    config: GLMConfig
    plan_time_s: float
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
        return positions(self.classes, self.land_use)


def positions(classes: tuple[str, ...], land_use: np.ndarray) -> np.ndarray:
    """(n,) int: position of each name in ``classes``; -1 where it is none of them."""
    return pd.Index(classes).get_indexer(pd.Index(land_use))


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
    write_atomically(folder / LABELS, lambda p: with_crop_columns(table).to_parquet(p, index=False))
    write_atomically(folder / LABELS_GPKG, lambda p: _write_gpkg(table, solution, p))
    save_landscape(landscape, folder / LANDSCAPE)
    write_atomically(folder / GRAPH, graph.save)
    write_json(folder / CERTIFICATE, _certificate_to_json(solution))
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
        land_use = table["land_use"].to_numpy(dtype=object)
        searched = _read_searched(folder, positions(classes, land_use), table["id"].astype(str), classes)
        low, high = (
            np.column_stack([table[f"regret_{name}_{end}"].to_numpy(dtype=float) for name in classes])
            for end in ("low", "high")
        )
        return Solution(
            landscape=stated["landscape"],
            classes=classes,
            ids=table["id"].to_numpy(dtype=object),
            land_use=land_use,
            status=table["status"].to_numpy(dtype=object),
            proof=table["proof"].to_numpy(dtype=object),
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
            searched=searched,
            hashes=Hashes(**stated["hashes"]),
            config=GLMConfig.model_validate(stated["config"]),
            plan_time_s=float(stated["plan_time_s"]),
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
    except (FileNotFoundError, NotADirectoryError) as error:
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
    except (FileNotFoundError, NotADirectoryError) as error:
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


def _read_searched(folder: Path, choice: np.ndarray, ids: pd.Series, classes: tuple[str, ...]) -> Searched:
    stated = read_json(folder / CERTIFICATE)["search"]
    row_of, others = pd.Index(ids), []
    for changes in stated["other_plans"]:
        rows, to = row_of.get_indexer(list(changes)), positions(classes, np.array(list(changes.values()), dtype=object))
        if (rows < 0).any() or (to < 0).any():
            raise ValueError("another plan names an id or a class that the landscape has not")
        other = choice.copy()
        other[rows] = to
        others.append(other)
    bound = stated["bound"]
    return Searched(tuple(others), np.inf if bound is None else float(bound))


def _certificate_to_json(s: Solution) -> dict[str, Any]:
    choice, ids, classes = s.choice, s.ids.astype(str), np.array(s.classes, dtype=object)
    changed = [np.flatnonzero(other != choice) for other in s.searched.others]
    return {
        "floor_multiplier": s.certificate.floor_multiplier.tolist(),
        "habitat_least": s.certificate.habitat_least,
        "habitat_greatest": s.certificate.habitat_greatest,
        "pair_share": s.certificate.pair_share.tolist(),
        "search": {
            "other_plans": [
                dict(zip(ids[rows].tolist(), classes[other[rows]].tolist(), strict=True))
                for rows, other in zip(changed, s.searched.others, strict=True)
            ],
            "bound": s.searched.bound if np.isfinite(s.searched.bound) else None,
        },
    }


def _to_json(s: Solution) -> dict[str, Any]:
    return {
        "landscape": s.landscape,
        "classes": list(s.classes),
        "polygons": len(s.ids),
        "status": {status: int((s.status == status).sum()) for status in sorted(set(s.status))},
        "proof": {proof: int((s.proof == proof).sum()) for proof in sorted(set(s.proof))},
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
        "plan_time_s": s.plan_time_s,
        "wall_time_s": s.wall_time_s,
        "solver": s.solver,
        "versions": dict(s.versions),
    }
