"""Where landscapes come from: files in the drop folder ``data/landscapes``, and the embedded ``data/embedded.yaml``.

A source's key is its partition: a file's stem, or an embedded landscape's name. A file wins over an embedded name.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from oracle.errors import LandoracleError, LandscapeError
from oracle.glm_config import GLMConfig
from oracle.intake import IntakeReport, read_landscape
from oracle.landscape import Landscape
from oracle.recipe import recipe_beside, recipe_for
from oracle.synthesis import SynthesisConfig, embedded_landscapes, synthesise

PROJECT = Path(__file__).resolve().parents[1]
DROP_FOLDER = Path(os.environ.get("LANDORACLE_LANDSCAPES", PROJECT / "data" / "landscapes"))
READABLE = (".geojson", ".json", ".gpkg", ".shp", ".zip", ".parquet", ".geoparquet", ".fgb")
SHAPEFILE = (".shp", ".shx", ".dbf", ".prj", ".cpg")
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
    rivals: tuple[Path, ...] = ()
    """Other files that would have the same key."""

    def read(self) -> tuple[Landscape, IntakeReport | None]:
        """The landscape, and for a file what intake did to it.

        Raises
        ------
        LandoracleError
            Where the file or its recipe is not usable, changes while it is read, or is not the only one of its name.
        """
        if isinstance(self.origin, SynthesisConfig):
            return synthesise(self.origin), None
        if self.rivals:
            names = ", ".join(file.name for file in (self.origin, *self.rivals))
            raise LandscapeError(f"{names} would be the same landscape {self.key!r}: rename or remove all but one")
        before = self.fingerprint()
        try:
            read = read_landscape(self.origin, recipe_for(self.origin, None))
        except LandoracleError:
            self._refuse_moving(before)
            raise
        self._refuse_moving(before)
        return read

    def _refuse_moving(self, before: str) -> None:
        if self.fingerprint() != before:
            raise LandscapeError(f"the file of {self.key!r} changed while it was read; it will be solved again")

    def settings(self) -> Settings:
        """The economy the landscape is solved under and its role among the landscapes."""
        if isinstance(self.origin, SynthesisConfig):
            return Settings(self.origin.glm, self.origin.role)
        recipe = recipe_for(self.origin, None)
        return Settings(recipe.glm, recipe.role)

    def fingerprint(self) -> str:
        """SHA-256 of the file's parts and of its recipe, or of the synthetic landscape's settings."""
        if isinstance(self.origin, SynthesisConfig):
            return hashlib.sha256(self.origin.model_dump_json().encode()).hexdigest()
        digest = hashlib.sha256()
        for part in (*_parts(self.origin), recipe_beside(self.origin)):
            if part is not None and part.is_file():
                at = part.stat()
                digest.update(_sha256(part, at.st_size, at.st_mtime_ns, at.st_ctime_ns).encode())
        return digest.hexdigest()


def _parts(file: Path) -> list[Path]:
    """The file, or the files of a Shapefile."""
    if file.suffix.lower() != ".shp":
        return [file]
    return sorted(p for p in file.parent.glob(f"{glob.escape(file.stem)}.*") if p.suffix.lower() in SHAPEFILE)


@lru_cache(maxsize=4096)
def _sha256(file: Path, size: int, modified_ns: int, changed_ns: int) -> str:
    """Hash of a file's content, read again only when the file system says that something was done to it."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@cache
def embedded_sources() -> dict[str, Source]:
    """The embedded landscapes by key, in the order of ``data/embedded.yaml``."""
    return {config.name: Source(config.name, config) for config in embedded_landscapes()}


def dropped_sources(*, settled: bool = True) -> dict[str, Source]:
    """The polygon files of the drop folder by key; hidden files are left out.

    With ``settled``, so are files of which a part was modified within the last ``SETTLED_S`` seconds: they may still be
    on their way.
    """
    files = defaultdict(list)
    for file in sorted(DROP_FOLDER.glob("*")):
        if file.suffix.lower() in READABLE and not file.name.startswith("."):
            files[file.stem].append(file)
    found = {key: Source(key, first, tuple(others)) for key, (first, *others) in files.items()}
    return {key: source for key, source in found.items() if not settled or _is_settled(source)}


def _is_settled(source: Source) -> bool:
    files = [part for file in (source.origin, *source.rivals) if isinstance(file, Path) for part in _parts(file)]
    try:
        return all(time.time() - file.stat().st_mtime >= SETTLED_S for file in files)
    except FileNotFoundError:  # removed while we looked
        return False


def find_source(key: str) -> Source:
    """The source of one partition.

    Raises
    ------
    LandscapeError
        Where neither a file nor an embedded landscape has this name.
    """
    dropped = dropped_sources(settled=False).get(key)
    if dropped is not None and not _is_settled(dropped):
        raise LandscapeError(f"the file of {key!r} was modified just now: wait until it is copied, then try again")
    source = dropped or embedded_sources().get(key)
    if source is None:
        raise LandscapeError(
            f"no landscape {key!r}: put {key}.geojson (or .gpkg, .zip, .parquet ...) into data/landscapes/, "
            f"or use one of the embedded ones ({', '.join(list(embedded_sources())[:3])}, ...)"
        )
    return source
