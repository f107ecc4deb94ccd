"""Datasets inside a zip: at its top, in folders, in zips within it, and File Geodatabases, which are folders."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

from oracle.errors import LandscapeError

_DATASETS = (".shp", ".gpkg", ".geojson", ".json", ".fgb", ".gml", ".kml", ".tab", ".parquet", ".geoparquet")
_DEEPEST = 3


def datasets_in(archive: Path) -> list[str]:
    """GDAL paths (``/vsizip/{...}/...``) of the polygon datasets in a zip, Parquet files among them.

    Raises
    ------
    LandscapeError
        Where the file is no zip, is encrypted, or holds no dataset.
    """
    try:
        with zipfile.ZipFile(archive) as content:
            found = _datasets(content, str(archive.resolve()), 1)
            names = content.namelist()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as error:
        raise LandscapeError(f"{archive.name}: cannot be read as a zip ({error})") from error
    if not found:
        listed = ", ".join(names[:5]) or "nothing"
        raise LandscapeError(
            f"{archive.name}: no dataset of polygons in it, only {listed}; known: {' '.join(_DATASETS)}"
        )
    return found


def read_member(path: str) -> io.BytesIO:
    """The bytes of a Parquet file that :func:`datasets_in` found, one level deep."""
    archive, _, member = path.removeprefix("/vsizip/{").partition("}/")
    with zipfile.ZipFile(archive) as content:
        return io.BytesIO(content.read(member))


def _datasets(content: zipfile.ZipFile, path: str, depth: int) -> list[str]:
    found: dict[str, None] = {}
    inside = f"/vsizip/{{{path}}}"
    for info in content.infolist():
        member = PurePosixPath(info.filename)
        if "__MACOSX" in member.parts or member.name.startswith("."):
            continue
        geodatabase = next((k for k, part in enumerate(member.parts) if part.lower().endswith(".gdb")), None)
        suffix = member.suffix.lower()
        if geodatabase is not None:
            found[f"{inside}/{PurePosixPath(*member.parts[: geodatabase + 1])}"] = None
        elif suffix == ".zip" and depth < _DEEPEST:
            with zipfile.ZipFile(io.BytesIO(content.read(info))) as nested:
                found |= dict.fromkeys(_datasets(nested, f"{inside}/{member}", depth + 1))
        elif suffix in _DATASETS and not (suffix.endswith("parquet") and depth > 1):
            found[f"{inside}/{member}"] = None
    return list(found)
