"""OpenRLHF: JSON lines with the messages under ``prompt`` and, as its reward gets one string, the label as JSON."""

from __future__ import annotations

import json
from typing import Any

from prompts.dataset import PromptDataset
from prompts.exports.tables import ID_COLUMNS, accepted, jsonl, rows_by_split

USE = """\
`--data.prompt_dataset FOLDER/train.jsonl --data.input_key prompt --data.label_key label --data.apply_chat_template
--reward.remote_url FOLDER/reward.py`; evaluate on `FOLDER/held_out_*.jsonl`."""


def files(dataset: PromptDataset) -> dict[str, bytes]:
    """A JSON lines file per split."""
    return {f"{split}.jsonl": jsonl([_row(row) for row in rows]) for split, rows in rows_by_split(dataset)}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    label = {"answer": row["answer"], "classes": row["classes"], "accepted": accepted(row)}
    ids = {name: row[name] for name in ID_COLUMNS}
    # OpenRLHF averages evaluation figures over `datasource`
    return {
        "prompt": row["prompt"],
        "label": json.dumps(label, ensure_ascii=False),
        "datasource": f"landoracle/{row['split']}",
        **ids,
    }
