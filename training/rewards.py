"""Rewards: what GRPO optimises, one function per concept, registered by the name that a profile's YAML uses.

Every reward has TRL's signature ``reward(prompts, completions, **columns) -> list[float]`` with one number per
completion, and reads the dataset's columns ``answer`` (the oracle's class) and ``classes`` (the allowed ones).

===================== ====================================================================== ================
name                  value                                                                  seed's weight
===================== ====================================================================== ================
``lu_reward``         1 where the turn decides for the oracle's class, else 0                3
``format_reward``     1 where the turn is well-formed (:mod:`training.turn`), else 0         2
``repetition_penalty`` ``max_penalty * (1 - distinct n-grams / n-grams)`` of the words, <= 0 1
===================== ====================================================================== ================

Weights go by name and never by position. A reward never returns None: TRL would count that as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from oracle.errors import ConfigurationError, DatasetError, name_some
from training.turn import Completion, read_turn, text_of

DEFAULT_WEIGHTS: Mapping[str, float] = {"lu_reward": 3.0, "format_reward": 2.0, "repetition_penalty": 1.0}


class Reward(Protocol):
    """A reward function as TRL calls it."""

    __name__: str

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float]:
        """One number per completion."""
        ...


def lu_reward(prefill: str = "") -> Reward:
    """Land-use reward: 1 where the decision is the oracle's class.

    Raises
    ------
    DatasetError
        From the reward, where an ``answer`` is not among its row's ``classes``.
    """

    def reward(
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        *,
        answer: Sequence[str],
        classes: Sequence[Sequence[str]],
        **_: Any,
    ) -> list[float]:
        unknown = [a for a, allowed in zip(answer, classes, strict=True) if a not in allowed]
        if unknown:
            raise DatasetError(
                f"the oracle's class must be one of its row's classes; {name_some(unknown)} is not: rebuild the dataset"
            )
        return [
            float(read_turn(said, allowed, prefill).decision == gold)
            for said, gold, allowed in zip(completions, answer, classes, strict=True)
        ]

    return _named(reward, "lu_reward")


def format_reward(prefill: str = "", *, thinks: bool = True) -> Reward:
    """Format reward: 1 where the whole turn is well-formed, whatever it decides."""

    def reward(
        prompts: Sequence[Any], completions: Sequence[Completion], *, classes: Sequence[Sequence[str]], **_: Any
    ) -> list[float]:
        return [
            float(read_turn(said, allowed, prefill, thinks=thinks).well_formed)
            for said, allowed in zip(completions, classes, strict=True)
        ]

    return _named(reward, "format_reward")


def repetition_penalty(ngram: int = 3, max_penalty: float = -1.0) -> Reward:
    """Repetition penalty over words (lower case, split at white space); 0 where there are fewer than ``ngram``.

    Raises
    ------
    ConfigurationError
        Where ``max_penalty`` is above 0 (it would reward repetition) or ``ngram`` below 1.
    """
    if max_penalty > 0:
        raise ConfigurationError(f"repetition.max_penalty is {max_penalty}: it must be 0 or negative")
    if ngram < 1:
        raise ConfigurationError(f"repetition.ngram is {ngram}: it must be 1 or more")

    def reward(prompts: Sequence[Any], completions: Sequence[Completion], **_: Any) -> list[float]:
        return [max_penalty * _repeated_share(text_of(said), ngram) + 0.0 for said in completions]

    return _named(reward, "repetition_penalty")


REGISTRY: Mapping[str, Callable[..., Reward]] = {
    "lu_reward": lu_reward,
    "format_reward": format_reward,
    "repetition_penalty": repetition_penalty,
}
"""Every reward by its name in a profile's ``rewards``."""


def build_rewards(
    names: Sequence[str], *, prefill: str = "", thinks: bool = True, ngram: int = 3, max_penalty: float = -1.0
) -> list[Reward]:
    """The rewards called ``names``, in that order.

    Parameters
    ----------
    names : sequence of str
        Keys of :data:`REGISTRY`.
    prefill, thinks
        How turns are read (:func:`training.turn.read_turn`).
    ngram, max_penalty
        Of the repetition penalty.

    Raises
    ------
    ConfigurationError
        Where a name is not in the registry.
    """
    unknown = [n for n in names if n not in REGISTRY]
    if unknown:
        raise ConfigurationError(f"no reward is called {name_some(unknown)}; known are {', '.join(REGISTRY)}")
    settings: Mapping[str, Mapping[str, Any]] = {
        "lu_reward": {"prefill": prefill},
        "format_reward": {"prefill": prefill, "thinks": thinks},
        "repetition_penalty": {"ngram": ngram, "max_penalty": max_penalty},
    }
    return [REGISTRY[n](**settings[n]) for n in names]


def _repeated_share(text: str, ngram: int) -> float:
    words = text.lower().split()
    grams = [tuple(words[i : i + ngram]) for i in range(len(words) - ngram + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0


def _named(reward: Any, name: str) -> Reward:
    reward.__name__ = name  # TRL logs rewards/<name>/mean
    return reward
