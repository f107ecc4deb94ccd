"""Where landscapes come from: files in the drop folder ``data/landscapes``, and the embedded ``data/embedded.yaml``.

A source's key is its partition: a file's stem, or an embedded landscape's name. A file wins over an embedded name.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oracle.errors import LandscapeError
from oracle.glm_config import GLMConfig
from oracle.intake import IntakeReport, read_landscape
from oracle.landscape import Landscape
from oracle.recipe import recipe_beside, recipe_for
from oracle.synthesis import SynthesisConfig, embedded_landscapes, synthesise

PROJECT = Path(__file__).resolve().parents[1]
DROP_FOLDER = PROJECT / "data" / "landscapes"
READABLE = (".geojson", ".json", ".gpkg", ".shp", ".zip", ".parquet", ".geoparquet", ".fgb")
SETTLED_S = 2.0  # a file younger than this may still be on its way


@dataclass(frozen=True)
class Settings:
    """What a landscape's recipe says besides its columns; ``role`` is ``train`` or ``held_out``."""

    glm: GLMConfig
    role: str


@dataclass(frozen=True)
class Source:
    """A landscape to be: a file with its recipe, or the settings of a synthetic one."""

    key: str
    origin: Path | SynthesisConfig

    def read(self) -> tuple[Landscape, IntakeReport | None]:
        """The landscape, and for a file what intake did to it.

        Raises
        ------
        LandoracleError
            Where the file or its recipe is not usable.
        """
        if isinstance(self.origin, SynthesisConfig):
            return synthesise(self.origin), None
        return read_landscape(self.origin, recipe_for(self.origin, None))

    def settings(self) -> Settings:
        """The economy the landscape is solved under and its role among the landscapes."""
        if isinstance(self.origin, SynthesisConfig):
            return Settings(self.origin.glm, self.origin.role)
        recipe = recipe_for(self.origin, None)
        return Settings(recipe.glm, recipe.role)

    def fingerprint(self) -> str:
        """SHA-256 of the file and of its recipe, or of the synthetic landscape's settings."""
        digest = hashlib.sha256()
        if isinstance(self.origin, SynthesisConfig):
            digest.update(self.origin.model_dump_json().encode())
        else:
            for part in (self.origin, recipe_beside(self.origin)):
                if part is not None and part.is_file():
                    digest.update(part.read_bytes())
        return digest.hexdigest()


@cache
def embedded_sources() -> dict[str, Source]:
    """The embedded landscapes by key, in the order of ``data/embedded.yaml``."""
    return {config.name: Source(config.name, config) for config in embedded_landscapes()}


def dropped_sources() -> dict[str, Source]:
    """The polygon files of the drop folder by key; hidden files and files still being copied are left out."""
    files = sorted(p for p in DROP_FOLDER.glob("*") if p.suffix.lower() in READABLE and not p.name.startswith("."))
    settled = [p for p in files if time.time() - p.stat().st_mtime >= SETTLED_S]
    return {p.stem: Source(p.stem, p) for p in settled}


def find_source(key: str) -> Source:
    """The source of one partition.

    Raises
    ------
    LandscapeError
        Where neither a file nor an embedded landscape has this name.
    """
    source = dropped_sources().get(key) or embedded_sources().get(key)
    if source is None:
        raise LandscapeError(
            f"no landscape {key!r}: put {key}.geojson (or .gpkg, .zip, .parquet ...) into data/landscapes/, "
            f"or use one of the embedded ones ({', '.join(list(embedded_sources())[:3])}, ...)"
        )
    return source
