"""verl: Parquet with ``data_source``, ``prompt``, ``ability``, ``reward_model`` and ``extra_info``.

``data_source`` names the split, because verl averages validation figures over it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from prompts.dataset import PromptDataset
from prompts.exports.tables import ID_COLUMNS, TEXT, TEXTS, accepted, parquet, rows_by_split

USE = """\
`data.train_files=FOLDER/train.parquet data.val_files=[FOLDER/held_out_block.parquet,...]
reward.custom_reward_function.path=FOLDER/reward.py reward.custom_reward_function.name=compute_score`. Validation
figures come per `data_source`, that is, per split. verl has no KL term unless asked: set `algorithm.use_kl_in_reward`
or `actor_rollout_ref.actor.use_kl_loss`."""

ABILITY = "land_use"
TYPES = {
    "data_source": TEXT,
    "ability": TEXT,
    "reward_model": pa.struct([("style", TEXT), ("ground_truth", TEXT)]),
    "extra_info": pa.struct(
        [
            *((name, TEXT) for name in ID_COLUMNS),
            ("index", pa.int64()),
            ("classes", TEXTS),
            ("accepted", TEXTS),
            ("status", TEXT),
        ]
    ),
}


def files(dataset: PromptDataset) -> dict[str, bytes]:
    """A Parquet file per split."""
    return {
        f"{split}.parquet": parquet([_row(row, index) for index, row in enumerate(rows)], TYPES)
        for split, rows in rows_by_split(dataset)
    }


def _row(row: dict[str, Any], index: int) -> dict[str, Any]:
    ids = {name: row[name] for name in ID_COLUMNS}
    return {
        "data_source": f"landoracle/{row['split']}",
        "prompt": row["prompt"],
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": row["answer"]},
        "extra_info": {
            **ids,
            "index": index,
            "classes": row["classes"],
            "accepted": accepted(row),
            "status": row["status"],
        },
    }
