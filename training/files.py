"""Text and tables that appear whole or not at all (:mod:`oracle.files`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from oracle.files import write_atomically


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file."""

    def write(beside: Path) -> None:
        beside.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an indented JSON file with sorted keys."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a Parquet file without the index."""

    def write(beside: Path) -> None:
        table.to_parquet(beside, index=False)

    write_atomically(path, write)
