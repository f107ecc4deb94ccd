"""TRL: chat messages in ``prompt`` with the label in columns beside it; for SFT, ``prompt`` and ``completion``."""

from __future__ import annotations

from prompts.dataset import PromptDataset
from prompts.exports.tables import MESSAGES, labels, parquet, rows_by_split

USE = """\
```python
load_dataset("FOLDER")         # prompt (messages) and label columns: GRPOTrainer and its like
load_dataset("FOLDER", "sft")  # prompt and completion: SFTTrainer
```

In the folder: `trl grpo --dataset_name . --reward_funcs reward.lu_reward reward.format_reward
reward.repetition_penalty --reward_weights 3 2 1 --beta 0.04 ...` (TRL's own beta is 0: no anchor)."""


def files(dataset: PromptDataset) -> dict[str, bytes]:
    """A Parquet file per split, and the same rows as SFT examples under ``sft/``."""
    written = {}
    for split, rows in rows_by_split(dataset):
        written[f"{split}.parquet"] = parquet([{"prompt": row["prompt"], **labels(row)} for row in rows])
        written[f"sft/{split}.parquet"] = parquet(
            [
                {
                    "prompt": row["prompt"],
                    "completion": [{"role": "assistant", "content": row["target"]}],
                    "prompt_id": row["prompt_id"],
                }
                for row in rows
            ],
            {"completion": MESSAGES},
        )
    return written
