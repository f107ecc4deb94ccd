"""The KL anchor's weight by hand."""

from __future__ import annotations

import math

import pytest

from oracle.errors import ConfigurationError
from training.config import load_profile
from training.kl import KLSection, controlled_beta, scheduled_beta


def test_schedules_by_hand() -> None:
    linear = KLSection(control="linear", to=0.01, steps=10)
    assert [scheduled_beta(linear, 0.05, s, 99) for s in (0, 5, 10, 50)] == pytest.approx([0.05, 0.03, 0.01, 0.01])
    cosine = KLSection(control="cosine", to=0.01)  # over the whole run of 4 steps
    assert [scheduled_beta(cosine, 0.05, s, 4) for s in range(5)] == pytest.approx(
        [0.05, 0.05 - 0.04 * (1 - math.sqrt(0.5)) / 2, 0.03, 0.05 - 0.04 * (1 + math.sqrt(0.5)) / 2, 0.01]
    )


def test_the_controller_by_hand() -> None:
    """Errors beyond a fifth of the target count as a fifth: beta moves by at most gain / 5."""
    section = KLSection(control="target", target=0.1, gain=0.1)
    assert controlled_beta(section, 0.02, 0.11) == pytest.approx(0.02 * 1.01)
    assert controlled_beta(section, 0.02, 5.0) == pytest.approx(0.02 * 1.02)
    assert controlled_beta(section, 0.02, 0.0) == pytest.approx(0.02 * 0.98)
    assert controlled_beta(section, 0.02, math.nan) == 0.02


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["kl.control=linear"], "kl.to is needed"),
        (["kl.to=0.1"], "only there"),
        (["kl.control=target"], "kl.target is needed"),
        (["kl.control=linear", "kl.to=0"], "kl.to"),
        (["grpo.beta=0", "allow_zero_beta=true", "kl.reset_every=5"], "no KL term"),
        (["model.lora={rank: 4}", "kl.reset_every=5"], "with model.lora the reference is the base"),
    ],
)
def test_what_does_not_fit_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_profile("pocket", overrides)
