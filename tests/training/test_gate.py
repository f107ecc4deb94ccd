"""The gate: format and repetition must not move a group in which all decisions agree."""

from __future__ import annotations

import numpy as np
import pytest

from training.gate import gate, silent_advantage_share, silent_groups

NAMES = ["lu_reward", "format_reward", "repetition_penalty"]
# Four groups of two samples: land use, format, repetition.
REWARDS = [
    *([1.0, 1.0, -0.2], [1.0, 1.0, 0.0]),  # both right and well-formed: nothing to learn but repetition
    *([0.0, 1.0, -0.4], [0.0, 1.0, 0.0]),  # both wrong and well-formed: likewise
    *([1.0, 1.0, -0.2], [0.0, 1.0, 0.0]),  # one right
    *([0.0, 1.0, 0.0], [0.0, 0.0, -0.6]),  # both wrong, but the form is still to be learned
]


def test_only_silent_well_formed_groups_are_levelled() -> None:
    import torch

    rewards = torch.tensor(REWARDS)
    levelled = gate(rewards, NAMES, group=2)
    assert levelled[:4].tolist() == [
        pytest.approx(row) for row in [[1, 1, -0.1], [1, 1, -0.1], [0, 1, -0.2], [0, 1, -0.2]]
    ]
    assert levelled[4:].tolist() == [pytest.approx(row) for row in REWARDS[4:]]
    assert silent_groups(rewards, NAMES, group=2).tolist() == [True, True, False, True]


def test_columns_are_found_by_name() -> None:
    import torch

    order = [2, 0, 1]
    shuffled, names = torch.tensor(REWARDS)[:, order], [NAMES[i] for i in order]
    assert shuffled.tolist() != gate(shuffled, names, group=2).tolist()
    assert gate(shuffled, names, group=2).tolist() == gate(torch.tensor(REWARDS), NAMES, group=2)[:, order].tolist()
    renamed = ["of_my_own", *NAMES[1:]]
    assert (
        gate(torch.tensor(REWARDS), renamed, 2, "of_my_own").tolist() == gate(torch.tensor(REWARDS), NAMES, 2).tolist()
    )
    untouched = gate(torch.tensor(REWARDS)[:, 1:], NAMES[1:], group=2)
    assert untouched.tolist() == torch.tensor(REWARDS)[:, 1:].tolist()


def test_advantage_share_by_hand() -> None:
    """Unscaled: distances from the group's mean are 0.1, 0.2, 1.4 and 1.3 for both samples of the four groups."""
    import torch

    share = silent_advantage_share(torch.tensor(REWARDS), torch.tensor([3.0, 2.0, 1.0]), NAMES, 2, "none")
    assert share == pytest.approx((0.1 + 0.2 + 1.3) / (0.1 + 0.2 + 1.4 + 1.3))
    nothing = torch.zeros((4, 3))
    assert silent_advantage_share(nothing, torch.ones(3), NAMES, 2) == 0.0


def test_phantom_advantages_of_a_run_whose_format_is_saturated() -> None:
    """Groups of 4, weights 3/2/1, repetition -0.10 +- 0.03: about two groups in five agree, and as scaled by their own
    deviation they own about as much of all |advantage| as their number; gated, they own nothing."""
    import torch

    random = np.random.default_rng(0)
    groups, size = 20_000, 4
    chance = random.beta(0.93, 0.93, groups)  # of a right decision, prompt by prompt
    right = random.random((groups, size)) < chance[:, None]
    rewards = torch.tensor(
        np.stack([right, np.ones_like(right), random.normal(-0.10, 0.03, right.shape)], axis=-1).reshape(-1, 3)
    )
    weights = torch.tensor([3.0, 2.0, 1.0], dtype=rewards.dtype)
    silent = silent_groups(rewards, NAMES, size)
    assert float(silent.double().mean()) == pytest.approx(0.42, abs=0.01)
    assert silent_advantage_share(rewards, weights, NAMES, size, "group") == pytest.approx(0.41, abs=0.02)
    assert silent_advantage_share(rewards, weights, NAMES, size, "batch") == pytest.approx(0.012, abs=0.003)
    gated = gate(rewards, NAMES, size)
    assert silent_advantage_share(gated, weights, NAMES, size, "group") == 0.0
    spread = (rewards * weights).sum(dim=1).view(-1, size).std(dim=1)
    assert float((spread < 1e-6).double().mean()) == 0.0  # what TRL's frac_reward_zero_std would say
