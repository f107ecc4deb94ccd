"""Where every stage finds and leaves its files: one folder, the same for Dagster, the demo and the report."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.plans import ORIGIN
from pipeline.sources import PROJECT
from pipeline.store import store_of_environment


@dataclass(frozen=True)
class Workspace:
    """The folder of one pipeline's files: ``root``, else ``LANDORACLE_WORKSPACE``, else ``runs/demo``."""

    root: str | None = None

    @property
    def path(self) -> Path:
        """The folder; a relative one lies in the project."""
        return PROJECT / (self.root or os.environ.get("LANDORACLE_WORKSPACE", "runs/demo"))

    def fetch(self, *paths: Path, say: Callable[[str], None] = lambda line: None) -> None:
        """Bring these of its files and folders to what the store has, where ``LANDORACLE_STORE`` names one.

        Raises
        ------
        StoreError
            See :meth:`pipeline.store.Store.fetch`.
        """
        if store := store_of_environment():
            store.fetch(self.path, paths, say)

    def publish(self, *paths: Path, say: Callable[[str], None] = lambda line: None) -> None:
        """Copy these of its finished files and folders into the store, where ``LANDORACLE_STORE`` names one.

        Raises
        ------
        StoreError
            See :meth:`pipeline.store.Store.publish`.
        """
        if store := store_of_environment():
            store.publish(self.path, paths, say)

    def finished(self) -> list[Path]:
        """Everything in it that is finished, in the order in which it is made."""
        named = [path for what in ("landscapes", "plans") for path in sorted(self.path.glob(f"{what}/[!.]*"))]
        trained = [self.model("sft"), self.model("grpo"), self.evaluation, *sorted(self.path.glob("policies/[!.]*"))]
        reported = [self.path / "served.json", self.report, self.report.with_suffix(".json")]
        return [path for path in (*named, self.dataset, *trained, *reported) if path.exists()]

    def withdraw(self, *paths: Path) -> None:
        """Take these of its files and folders out of the store, where ``LANDORACLE_STORE`` names one.

        Raises
        ------
        StoreError
            See :meth:`pipeline.store.Store.remove`.
        """
        if store := store_of_environment():
            for path in paths:
                store.remove(path.relative_to(self.path).as_posix())

    def intake(self, key: str) -> Path:
        """Folder of one landscape as it was read, and of its neighbour graph."""
        return self.path / "landscapes" / key

    def landscape(self, key: str) -> Path:
        """GeoParquet of one landscape."""
        return self.intake(key) / "landscape.parquet"

    def origin(self, key: str) -> Path:
        """What the landscape beside it was read from, as its source's fingerprint."""
        return self.intake(key) / ORIGIN

    def graph(self, key: str) -> Path:
        """Neighbour graph of one landscape."""
        return self.intake(key) / "graph.parquet"

    def plan(self, key: str) -> Path:
        """Folder of the oracle's plan: labels, solution, certificate and map."""
        return self.path / "plans" / key

    @property
    def dataset(self) -> Path:
        """Folder of the prompt dataset."""
        return self.path / "dataset"

    def model(self, stage: str) -> Path:
        """Folder of the weights after ``sft`` or ``grpo``."""
        return self.path / "models" / stage

    @property
    def models(self) -> Path:
        """Folder of the models of every stage."""
        return self.path / "models"

    @property
    def evaluation(self) -> Path:
        """Folder of the predictions and figures on held-out rows."""
        return self.path / "evaluation"

    @property
    def report(self) -> Path:
        """``report.html``; ``report.json`` lies beside it."""
        return self.path / "report.html"

    @property
    def served_evaluation(self) -> Path:
        """Folder of the served policy's figures on the same rows as its candidate's."""
        return self.path / "served_evaluation"
