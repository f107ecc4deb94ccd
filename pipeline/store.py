"""A store by URL where finished artefacts are published whole, and from where other machines fetch them.

The stages work in a local folder: a training resumes in it, and files are written beside before they are renamed.
Where ``LANDORACLE_STORE`` names a store (``s3://bucket/prefix``, ``file:///mnt/shared``, or another URL of fsspec), a
finished plan, dataset, model, evaluation or report is copied there, and whoever reads one takes the store's, unless the
local one is the same::

    <store>/plans/farm/manifest.json          which version is whole, with the SHA-256 of each of its files
    <store>/plans/farm/<version>/labels.gpkg

The manifest is written last, in one piece: until then readers see the version before, and an upload that was cut off is
never seen. A version is named by its content, and the last one but one is removed when the next is published.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from oracle.errors import LandoracleError
from oracle.files import write_json
from pipeline.folders import put_in_place

STORE = "LANDORACLE_STORE"
MANIFEST = "manifest.json"
KEPT_HERE = ".store"
"""Folder of a workspace that says which version of what it holds."""


class StoreError(LandoracleError):
    """The store cannot be used, or what it or the workspace holds is not what it should be."""


@dataclass(frozen=True)
class Manifest:
    """What is whole in the store: the version, its files' SHA-256 by relative path, and the version before it."""

    version: str
    files: Mapping[str, str]
    before: str | None = None


class Store:
    """The artefacts of one workspace on other storage.

    Parameters
    ----------
    url : str
        Where; credentials and endpoint come from what the storage's own library reads (for ``s3://`` the variables
        ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_ENDPOINT_URL`` or the files in ``~/.aws``).

    Raises
    ------
    StoreError
        Where the URL is none, or its library is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with self._refusals("cannot be opened"):
            options = {"auto_mkdir": True} if url.startswith("file:") else {}
            self._files, self._root = url_to_fs(self.url, skip_instance_cache=True, **options)
        self._is_local = isinstance(self._files, LocalFileSystem)

    def publish(self, root: Path, paths: Iterable[Path], say: Callable[[str], None] = lambda line: None) -> None:
        """Copy finished files and folders of the workspace ``root`` into the store; what it has is not sent again.

        Raises
        ------
        StoreError
            Where the storage refuses; what was published before stays whole.
        """
        for path in paths:
            name = path.relative_to(root).as_posix()
            with _locked(root, name), self._refusals(f"{name} was not published"):
                files = _hashes(path)
                version, old = _version(files), self._manifests([name]).get(name)
                if old is None or old.version != version:
                    there = [f"{self._root}/{name}/{version}/{file}" for file in files]
                    self._files.put([str(_local(path, file)) for file in files], there)
                    before = old.version if old else None
                    self._write(f"{self._root}/{name}/{MANIFEST}", Manifest(version, files, before))
                    if old and old.before not in (None, version, old.version):
                        self._remove(f"{self._root}/{name}/{old.before}")
                    say(f"published {name}, {len(files)} file(s), to {self.url}")
                self._record(root, name, version)

    def fetch(self, root: Path, paths: Iterable[Path], say: Callable[[str], None] = lambda line: None) -> None:
        """Bring files and folders of the workspace ``root`` to the versions that the store has.

        What the store does not have stays as it is here. What was changed here since it came from the store, or was
        published to it, is replaced only once the store has another version.

        Raises
        ------
        StoreError
            Where the storage refuses, its files are not those of their manifest, or what lies here was never published
            and is not what the store has.
        """
        names = {path.relative_to(root).as_posix(): path for path in paths}
        with self._refusals("cannot be read"):
            manifests = self._manifests(names)
        for name, manifest in manifests.items():
            path = names[name]
            with _locked(root, name), self._refusals(f"{name} was not fetched"):
                if not self._is_current(root, name, path, manifest.version):
                    self._download(root, name, path, manifest)
                    say(f"fetched {name}, {len(manifest.files)} file(s), from {self.url}")
                self._record(root, name, manifest.version)

    def remove(self, name: str) -> None:
        """Take an artefact, e.g. ``policies/0123456789ab``, out of the store; nothing where it has none.

        Raises
        ------
        StoreError
            Where the storage refuses.
        """
        with self._refusals(f"{name} was not removed"):
            if self._manifests([name]):
                self._files.rm_file(f"{self._root}/{name}/{MANIFEST}")
                self._remove(f"{self._root}/{name}")

    def _is_current(self, root: Path, name: str, path: Path, version: str) -> bool:
        if not path.exists():
            return False
        here = self._recorded(root, name)
        if here is None and _version(_hashes(path)) != version:
            raise StoreError(
                f"{path} was never published to {self.url}, which has another {name}: move yours away to take the "
                "store's, or materialize it again to publish it"
            )
        return here in (None, version)

    def _download(self, root: Path, name: str, path: Path, manifest: Manifest) -> None:
        partial = root / KEPT_HERE / "partial" / name
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        here = [partial / file for file in manifest.files]
        for copy in here:
            copy.parent.mkdir(parents=True, exist_ok=True)
        self._files.get(
            [f"{self._root}/{name}/{manifest.version}/{file}" for file in manifest.files], list(map(str, here))
        )
        for copy, (file, wanted) in zip(here, manifest.files.items(), strict=True):
            if _sha256(copy) != wanted:
                raise StoreError(
                    f"{self.url}/{name}/{manifest.version}/{file} is not what its manifest says: publish again"
                )
        path.parent.mkdir(parents=True, exist_ok=True)
        if list(manifest.files) == [path.name]:
            here[0].replace(path)
        else:
            put_in_place(partial, path)

    def _manifests(self, names: Iterable[str]) -> dict[str, Manifest]:
        """Of those names that the store has."""
        asked = list(names)
        with ThreadPoolExecutor(8) as several:
            found = {name: it for name, it in zip(asked, several.map(self._manifest, asked), strict=True) if it}
        top = self._root if self._is_local else self._root.partition("/")[0]
        if asked and not found and not self._files.exists(top):
            raise StoreError(f"{self.url}: there is no {top}: make it, or mount it, or mend {STORE}")
        return found

    def _manifest(self, name: str) -> Manifest | None:
        try:
            return Manifest(**json.loads(self._files.cat_file(f"{self._root}/{name}/{MANIFEST}")))
        except FileNotFoundError:
            return None

    def _write(self, path: str, manifest: Manifest) -> None:
        if self._is_local:
            write_json(Path(path), asdict(manifest))
        else:  # object stores show an object whole or not at all
            self._files.pipe_file(path, json.dumps(asdict(manifest), indent=2).encode())

    def _remove(self, folder: str) -> None:
        if self._is_local:
            shutil.rmtree(folder, ignore_errors=True)
            return
        self._files.invalidate_cache()
        for file in self._files.find(folder):
            self._files.rm_file(file)

    def _recorded(self, root: Path, name: str) -> str | None:
        """The version that was last exchanged with this store."""
        file = root / KEPT_HERE / f"{name}.json"
        record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return str(record["version"]) if record.get("store") == self.url else None

    def _record(self, root: Path, name: str, version: str) -> None:
        if self._recorded(root, name) != version:
            write_json(root / KEPT_HERE / f"{name}.json", {"store": self.url, "version": version})

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except LandoracleError:
            raise
        except Exception as error:  # every storage's library has errors of its own
            raise StoreError(f"{self.url}: {what}: {type(error).__name__}: {error}{_advice(error)}") from error


def store_of_environment() -> Store | None:
    """The store that ``LANDORACLE_STORE`` names."""
    url = os.environ.get(STORE)
    return _opened(url) if url else None


@cache
def _opened(url: str) -> Store:
    """One connection for the whole process: making it takes longer than a question."""
    return Store(url)


def _advice(error: Exception) -> str:
    if isinstance(error, PermissionError) or "Credentials" in type(error).__name__:
        return "; check the credentials, and that they may read, write, list and delete there"
    return "; pip install -e '.[s3]'" if isinstance(error, ImportError) else ""


def _hashes(path: Path) -> dict[str, str]:
    """SHA-256 of a file, or of all files of a folder but hidden ones, by relative path."""
    if path.is_file():
        return {path.name: _sha256(path)}
    files = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    shown = [file for file in files if not any(part.startswith(".") for part in file.parts)]
    if not shown:
        raise StoreError(f"{path} holds no file to publish")
    return {file.as_posix(): _sha256(path / file) for file in shown}


def _local(path: Path, file: str) -> Path:
    return path if path.is_file() else path / file


def _version(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def _locked(root: Path, name: str) -> Iterator[None]:
    """One process of this machine at a time."""
    lock = root / KEPT_HERE / f"{name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
