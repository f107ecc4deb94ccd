"""The gate: format and repetition must not move a group in which all decisions agree."""

from __future__ import annotations

import pytest

from training.grpo import gate

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

    levelled, silent = gate(torch.tensor(REWARDS), NAMES, group=2)
    assert levelled[:4].tolist() == [
        pytest.approx(row) for row in [[1, 1, -0.1], [1, 1, -0.1], [0, 1, -0.2], [0, 1, -0.2]]
    ]
    assert levelled[4:].tolist() == [pytest.approx(row) for row in REWARDS[4:]]
    assert silent == 0.75


def test_columns_are_found_by_name() -> None:
    import torch

    order = [2, 0, 1]
    shuffled, silent = gate(torch.tensor(REWARDS)[:, order], [NAMES[i] for i in order], group=2)
    assert shuffled.tolist() == gate(torch.tensor(REWARDS), NAMES, group=2)[0][:, order].tolist()
    assert silent == 0.75
    untouched, _ = gate(torch.tensor(REWARDS)[:, 1:], NAMES[1:], group=2)
    assert untouched.tolist() == torch.tensor(REWARDS)[:, 1:].tolist()
