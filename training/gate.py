"""The decision gate: a group of samples that all decide alike teaches no decision.

In such a group differences of format or repetition are all that is left, and scaling by the group's own deviation
blows them up into advantages as large as any. So once every sample of a group is well-formed and all have the same
decision reward, the group moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Scale = Literal["group", "batch", "none"]


def silent_groups(rewards: torch.Tensor, names: Sequence[str], group: int, decision: str = "lu_reward") -> torch.Tensor:
    """(n / group,) whether all decision rewards of a group are equal; nowhere where no reward is called so."""
    if decision not in names:
        return rewards.new_zeros(len(rewards) // group, dtype=bool)
    decided = rewards[:, names.index(decision)].view(-1, group)
    return (decided == decided[:, :1]).all(dim=1)


def gate(rewards: torch.Tensor, names: Sequence[str], group: int, decision: str = "lu_reward") -> torch.Tensor:
    """Give every sample of a well-formed silent group the group's mean, so that its advantages are 0.

    Parameters
    ----------
    rewards : Tensor
        (n, R) rewards apart, groups of ``group`` rows after each other.
    names : sequence of str
        The R names. Without ``format_reward`` every sample counts as well-formed.
    group : int
        Samples per prompt.
    decision : str
        The reward that judges the decision; without it nothing is gated.

    Returns
    -------
    Tensor
        (n, R) rewards with the gated groups' replaced.
    """
    grouped = rewards.view(-1, group, len(names))
    gated = silent_groups(rewards, names, group, decision)
    if "format_reward" in names:
        gated = gated & (grouped[:, :, names.index("format_reward")] == 1).all(dim=1)
    levelled = grouped.mean(dim=1, keepdim=True).expand_as(grouped)
    return levelled.where(gated[:, None, None], grouped).reshape_as(rewards)


def silent_advantage_share(
    rewards: torch.Tensor,
    weights: torch.Tensor,
    names: Sequence[str],
    group: int,
    scale: Scale | str = "group",
    decision: str = "lu_reward",
) -> float:
    """Share of all |advantage| that groups without a decision signal own: what their samples would push about.

    Parameters
    ----------
    rewards, names, group, decision
        As of :func:`gate`.
    weights : Tensor
        (R,) weight of each reward.
    scale : str
        TRL's ``scale_rewards``: by what the distance from the group's mean is divided.

    Returns
    -------
    float
        In [0, 1]; 0 where no sample has an advantage.
    """
    total = (rewards * weights).sum(dim=1).view(-1, group)
    advantage = total - total.mean(dim=1, keepdim=True)
    if scale == "group":
        advantage = advantage / (total.std(dim=1, keepdim=True) + 1e-4)
    size = advantage.abs().sum(dim=1)
    everything = float(size.sum())
    return float(size[silent_groups(rewards, names, group, decision)].sum()) / everything if everything > 0 else 0.0
