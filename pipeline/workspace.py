"""Where every stage finds and leaves its files: one folder, the same for Dagster, the demo and the report."""

import os
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipeline.plans import ORIGIN
from pipeline.sources import PROJECT


class Workspace(dg.ConfigurableResource):
    """The folder of one pipeline's files (``runs/demo`` unless the launchpad says otherwise)."""

    root: str = Field(
        default_factory=lambda: os.environ.get("LANDORACLE_WORKSPACE", "runs/demo"),
        description="folder of all files, below the project where it is relative",
    )

    @property
    def path(self) -> Path:
        """The folder; a relative one lies in the project."""
        return PROJECT / self.root

    def landscape(self, key: str) -> Path:
        """GeoParquet of one landscape."""
        return self.path / "landscapes" / key / "landscape.parquet"

    def origin(self, key: str) -> Path:
        """What the landscape beside it was read from, as its source's fingerprint."""
        return self.path / "landscapes" / key / ORIGIN

    def graph(self, key: str) -> Path:
        """Neighbour graph of one landscape."""
        return self.path / "landscapes" / key / "graph.parquet"

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
    def evaluation(self) -> Path:
        """Folder of the predictions and figures on held-out rows."""
        return self.path / "evaluation"

    @property
    def report(self) -> Path:
        """``report.html``; ``report.json`` lies beside it."""
        return self.path / "report.html"
