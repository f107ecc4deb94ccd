"""open-r1: ``problem`` and ``solution`` for its GRPO script, ``messages`` for its SFT script, splits train and test.

Its GRPO script puts the system prompt of its own recipe before ``problem``, so all of a prompt's messages go into
``problem``; the R1 distillations are best asked without a system prompt anyway. ``test`` holds the held-out rows that
cannot leak; a random split keeps its own name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from prompts.dataset import PromptDataset
from prompts.exports.tables import LEAK_FREE, MESSAGES, TEXT, labels, parquet, rows_by_split

USE = """\
In its recipe: `dataset_name: FOLDER`, `dataset_prompt_column: problem`, and no `system_prompt`. Register
`lu_reward`, `format_reward` and `repetition_penalty` of `reward.py` in its `rewards.py` (they read the columns
`answer`, `classes` and `accepted`); weights 3, 2, 1."""


def files(dataset: PromptDataset) -> dict[str, bytes]:
    """``train.parquet``, ``test.parquet``, and a random split's file where there is one."""
    splits: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for split, rows in rows_by_split(dataset):
        splits["test" if split in LEAK_FREE else split] += [_row(row) for row in rows]
    types = {"problem": TEXT, "solution": TEXT, "messages": MESSAGES}
    return {f"{split}.parquet": parquet(rows, types) for split, rows in splits.items()}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    problem = "\n\n".join(message["content"] for message in row["prompt"])
    messages = [{"role": "user", "content": problem}, {"role": "assistant", "content": row["target"]}]
    return {"problem": problem, "solution": row["answer"], "messages": messages, **labels(row)}
