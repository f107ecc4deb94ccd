"""The variant of a dataset that asks for the answer alone."""

from __future__ import annotations

import hashlib

from oracle.errors import DatasetError
from prompts.card import dataset_card
from prompts.config import Layout, Style
from prompts.dataset import CARD, PROMPTS, PromptDataset
from prompts.rows import parquet_bytes


def answer_only(dataset: PromptDataset) -> PromptDataset:
    """The same rows with targets that leave out the think block.

    Raises
    ------
    DatasetError
        Where the prompts themselves ask for a think block: those of layout ``full`` have to be rendered anew.
    """
    asked = dataset.manifest.prompts
    if asked.style is Style.ANSWER_ONLY:
        return dataset
    if asked.layout is not Layout.COMPACT:
        raise DatasetError(
            f"prompts of layout {asked.layout} ask for a think block; build a dataset of the same plans with "
            "`landoracle prompts --style answer_only`"
        )
    targets = [f"<answer>{answer}</answer>" for answer in dataset.frame["answer"]]
    frame = dataset.frame.assign(style=Style.ANSWER_ONLY.value, target=targets)
    manifest = dataset.manifest.model_copy(
        update={"prompts": asked.model_copy(update={"style": Style.ANSWER_ONLY}), "files": {}}
    )
    files = {
        PROMPTS: hashlib.sha256(parquet_bytes(frame)).hexdigest(),
        CARD: hashlib.sha256(dataset_card(manifest).encode()).hexdigest(),
    }
    return PromptDataset(frame, manifest.model_copy(update={"files": files}))
