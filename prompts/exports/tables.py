"""What the exports share: rows by split, and the bytes of a table, the same whenever the rows are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prompts.dataset import PromptDataset
from prompts.rows import SCHEMA
from prompts.split import Split

Row = Mapping[str, Any]

TEXT, TEXTS = pa.string(), pa.list_(pa.string())
MESSAGES = SCHEMA.field("prompt").type
_TYPES = {field.name: field.type for field in SCHEMA} | {"accepted": TEXTS}

TRAIN = Split.TRAIN.value
LEAK_FREE = (Split.HELD_OUT_BLOCK.value, Split.HELD_OUT_LANDSCAPE.value)
"""Held-out splits whose polygons no training prompt shows."""
LABEL_COLUMNS = ("answer", "classes", "accepted", "status", "regret_low", "regret_high")
ID_COLUMNS = ("prompt_id", "landscape", "polygon_id", "block", "split")


def rows_by_split(dataset: PromptDataset) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Training rows, then each held-out split's, as dictionaries; ``buffer`` rows belong to neither."""
    frame = dataset.frame
    for split in Split:
        rows = frame[frame["split"] == split.value]
        if split is not Split.BUFFER and len(rows):
            yield split.value, [_plain(row) for row in rows.to_dict("records")]


def accepted(row: Row) -> list[str]:
    """Answers that count as right: the oracle's class first, then those that a tied label accepts beside it."""
    beside = [name for name in row.get("accepted") or [] if name != row["answer"]]
    return [row["answer"], *beside]


def labels(row: Row) -> dict[str, Any]:
    """Ids and everything known of the label, as columns that a reward may read."""
    columns = {name: row[name] for name in (*ID_COLUMNS, *LABEL_COLUMNS) if name in row}
    return columns | {"accepted": accepted(row)}


def parquet(rows: Sequence[Row], types: Mapping[str, pa.DataType] | None = None) -> bytes:
    """One Parquet file; equal rows give equal bytes.

    Parameters
    ----------
    rows : sequence of mappings
        At least one; the first names the columns.
    types : mapping, optional
        Types of the columns that the dataset does not have, so that every split's file has the same ones.
    """
    known = _TYPES | dict(types or {})
    schema = pa.schema([(name, known[name]) for name in rows[0]])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def jsonl(rows: Sequence[Row]) -> bytes:
    """One JSON object a line, UTF-8."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Missing numbers as None: JSON has no NaN, and regret that is not bounded is not known."""
    return {str(name): _known(value) for name, value in row.items()}


def _known(value: Any) -> Any:
    if isinstance(value, list):
        return [_known(v) for v in value]
    if isinstance(value, float) and (pd.isna(value) or abs(value) == float("inf")):
        return None
    return value
