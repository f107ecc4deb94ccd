"""What the prompts of a batch have in common is read once: their common beginning, and the whole prompt of its samples.

The tokens of a batch are laid out as *prefix, padding, rest*: the prefix is read for one row and its keys and values
are copied to the others, then the rest of every different prompt is read, and its keys and values are copied to the
prompt's samples. Positions count the tokens that are not padding, and no token attends to padding, so every token
sees what it would see in a batch read whole. Rounding differs as it does between two batches of other sizes.

Models whose layers keep something else than keys and values of every token (recurrent states, a sliding window) are
read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LEAST_SAVED = 0.2
"""Share of a batch's tokens that has to be saved; below it two or three passes take longer than one."""


def common_prefix(rows: Sequence[Sequence[int]]) -> int:
    """With how many equal tokens all rows begin; at least one token of each is left."""
    first, last = (
        min(map(tuple, rows)),
        max(map(tuple, rows)),
    )  # what the first and the last in order begin with, all between begin with
    most = min(map(len, rows)) - 1
    return next((i for i in range(most) if first[i] != last[i]), max(most, 0))


def saved_share(rows: Sequence[Sequence[int]]) -> float:
    """Share of the tokens of a batch that need not be read: repeated beginnings and repeated prompts."""
    different = sorted(set(map(tuple, rows)))
    prefix = common_prefix(different)
    read = prefix + sum(len(row) - prefix for row in different)
    return 1.0 - read / sum(map(len, rows))


def can_share(model: PreTrainedModel) -> bool:
    """The model can be read in parts, and its cache is keys and values of every token, layer by layer."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    if model.config.is_encoder_decoder or model._is_stateful or not model._supports_logits_to_keep():
        return False
    layers = DynamicCache(config=model.config).layers
    return all(type(layer) is DynamicLayer for layer in layers)


def read_once(model: PreTrainedModel, rows: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """What ``model.generate`` takes for the rows: tokens, attention mask, and a cache of all but the last column.

    Parameters
    ----------
    model : PreTrainedModel
        One that :func:`can_share`, in evaluation mode.
    rows : sequence of sequence of int
        n prompts as tokens.
    pad : int
        The padding token.

    Returns
    -------
    dict
        ``input_ids`` and ``attention_mask``, (n, T), and ``past_key_values`` of T - 1 tokens.
    """
    import torch
    from transformers import DynamicCache

    different = list(dict.fromkeys(map(tuple, rows)))
    place = {row: i for i, row in enumerate(different)}
    prefix = common_prefix(different)
    width = max(map(len, different))
    padding = [width - len(row) for row in different]
    ids = torch.tensor([[*r[:prefix], *[pad] * p, *r[prefix:]] for r, p in zip(different, padding, strict=True)])
    mask = torch.tensor([[1] * prefix + [0] * p + [1] * (width - prefix - p) for p in padding])
    ids, mask = ids.to(model.device), mask.to(model.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)

    def read(some: slice, first: int, end: int) -> None:
        if first < end:
            model(
                input_ids=ids[some, first:end],
                attention_mask=mask[some, :end],
                position_ids=positions[some, first:end],
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )

    read(slice(0, 1), 0, prefix)
    if prefix:
        cache.batch_repeat_interleave(len(different))
    read(slice(None), prefix, width - 1)
    chosen: Tensor = torch.tensor([place[tuple(row)] for row in rows], device=model.device)
    if len(rows) > len(different):
        cache.batch_select_indices(chosen)
    return {"input_ids": ids[chosen], "attention_mask": mask[chosen], "past_key_values": cache}
