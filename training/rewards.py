"""Rewards: what GRPO optimises, one function per concept, registered by the name that a profile's YAML uses.

Every reward has TRL's signature ``reward(prompts, completions, **columns) -> list[float]`` with one number per
completion, and reads the dataset's columns ``answer`` (the oracle's class), ``classes`` (the allowed ones) and
``accepted`` (the right ones, the oracle's first).

===================== ====================================================================== ================
name                  value                                                                  seed's weight
===================== ====================================================================== ================
``lu_reward``         1 where the turn decides for the oracle's class, else 0                3
``format_reward``     1 where the turn is well-formed (:mod:`training.turn`), else 0         2
``repetition_penalty`` ``max_penalty * (1 - distinct n-grams / n-grams)`` of the words, <= 0 1
``regret_reward``     1 - regret of the decision / its scale, in [0, 1]; off unless asked for  -
``length_reward``     1 at ``length.target`` words, falling to 0 at ``tolerance`` from it      -
===================== ====================================================================== ================

A reward of one's own goes by ``module:function``, with TRL's signature, where a profile on this machine names it; the
module is imported when training starts, and nothing is ever downloaded for it.

Weights go by name and never by position. A reward never returns None: TRL would count that as 0.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import Field

from oracle.errors import ConfigurationError, DatasetError, TrainingError, name_some
from training.section import Section
from training.turn import Completion, read_turn, text_of

DEFAULT_WEIGHTS: Mapping[str, float] = {"lu_reward": 3.0, "format_reward": 2.0, "repetition_penalty": 1.0}


class RegretSection(Section):
    """Settings of ``regret_reward``."""

    scale: float | None = Field(
        default=None, gt=0, description="regret, in objective units, that is worth 0; None = the row's largest"
    )


class LengthSection(Section):
    """Settings of ``length_reward``."""

    target: int = Field(default=40, ge=1, description="words of a completion worth 1")
    tolerance: int = Field(default=40, ge=1, description="words from the target worth 0")


class Reward(Protocol):
    """A reward function as TRL calls it."""

    __name__: str

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float]:
        """One number per completion."""
        ...


def lu_reward(prefill: str = "") -> Reward:
    """Land-use reward: 1 where the decision is the oracle's class, or one of the row's ``accepted`` where it has them.

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
        accepted: Sequence[Sequence[str]] | None = None,
        **_: Any,
    ) -> list[float]:
        unknown = [a for a, allowed in zip(answer, classes, strict=True) if a not in allowed]
        if unknown:
            raise DatasetError(
                f"the oracle's class must be one of its row's classes; {name_some(unknown)} is not: rebuild the dataset"
            )
        return [
            float(read_turn(said, allowed, prefill).decision in right)
            for said, right, allowed in zip(completions, accepted or [[a] for a in answer], classes, strict=True)
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
        return [max_penalty * repeated_share(text_of(said), ngram) + 0.0 for said in completions]

    return _named(reward, "repetition_penalty")


def regret_reward(prefill: str = "", scale: float | None = None) -> Reward:
    """Regret reward: 1 - (objective lost by the decision) / ``scale``, clipped to [0, 1]; 0 where nothing is decided.

    Reads the column ``regret_low``: per class, in the order of ``classes``, the least loss of the landscape's objective
    when the polygon is put to that class; infinite where it cannot be.

    Parameters
    ----------
    prefill : str
        How turns are read.
    scale : float, optional
        In objective units; by default the row's largest finite regret, so that its worst possible class is worth 0.
    """

    def reward(
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        *,
        classes: Sequence[Sequence[str]],
        regret_low: Sequence[Sequence[float]],
        **_: Any,
    ) -> list[float]:
        return [
            _kept(read_turn(said, allowed, prefill).decision, allowed, lost, scale)
            for said, allowed, lost in zip(completions, classes, regret_low, strict=True)
        ]

    return _named(reward, "regret_reward")


def length_reward(target: int = 40, tolerance: int = 40) -> Reward:
    """Length shaping: 1 - |words - ``target``| / ``tolerance``, not below 0."""

    def reward(prompts: Sequence[Any], completions: Sequence[Completion], **_: Any) -> list[float]:
        return [max(0.0, 1 - abs(len(text_of(said).split()) - target) / tolerance) for said in completions]

    return _named(reward, "length_reward")


def imported_reward(name: str) -> Reward:
    """The function that ``module:function`` names, checked to give one finite number per completion.

    Raises
    ------
    ConfigurationError
        Where there is no such module or function.
    TrainingError
        From the reward, where it gives anything else.
    """
    module, _, function = name.partition(":")
    try:
        called = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"rewards.{name}: {error}; write module:function, importable from here") from error

    def reward(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float]:
        values = list(called(prompts=prompts, completions=completions, **columns))
        if len(values) != len(completions) or not all(isinstance(v, int | float) and math.isfinite(v) for v in values):
            raise TrainingError(f"reward {name} gave no number; it must give a finite one for each completion")
        return [float(v) for v in values]

    return _named(reward, name)


REGISTRY: Mapping[str, Callable[..., Reward]] = {
    "lu_reward": lu_reward,
    "format_reward": format_reward,
    "repetition_penalty": repetition_penalty,
    "regret_reward": regret_reward,
    "length_reward": length_reward,
}
"""Every reward by its name in a profile's ``rewards``."""


def is_known(name: str) -> bool:
    """Whether a profile may use this name: one of the registry, or ``module:function``."""
    module, colon, function = name.partition(":")
    return name in REGISTRY or (
        colon == ":" and function.isidentifier() and all(map(str.isidentifier, module.split(".")))
    )


def build_rewards(
    names: Sequence[str],
    *,
    prefill: str = "",
    thinks: bool = True,
    ngram: int = 3,
    max_penalty: float = -1.0,
    regret: RegretSection | None = None,
    length: LengthSection | None = None,
) -> list[Reward]:
    """The rewards called ``names``, in that order.

    Parameters
    ----------
    names : sequence of str
        Keys of :data:`REGISTRY`, or ``module:function``.
    prefill, thinks
        How turns are read (:func:`training.turn.read_turn`).
    ngram, max_penalty
        Of the repetition penalty.
    regret, length
        Of the rewards of these names.

    Raises
    ------
    ConfigurationError
        Where a name is neither in the registry nor importable.
    """
    unknown = [n for n in names if not is_known(n)]
    if unknown:
        raise ConfigurationError(f"no reward is called {name_some(unknown)}; known are {', '.join(REGISTRY)}")
    length = length or LengthSection()
    settings: Mapping[str, Mapping[str, Any]] = {
        "lu_reward": {"prefill": prefill},
        "format_reward": {"prefill": prefill, "thinks": thinks},
        "repetition_penalty": {"ngram": ngram, "max_penalty": max_penalty},
        "regret_reward": {"prefill": prefill, "scale": (regret or RegretSection()).scale},
        "length_reward": {"target": length.target, "tolerance": length.tolerance},
    }
    return [REGISTRY[n](**settings[n]) if n in REGISTRY else imported_reward(n) for n in names]


def repeated_share(text: str, ngram: int = 3) -> float:
    """Share of a text's word n-grams that stood in it before; 0 where it has fewer than ``ngram`` words."""
    words = text.lower().split()
    grams = [tuple(words[i : i + ngram]) for i in range(len(words) - ngram + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0


def _kept(decision: str | None, classes: Sequence[str], regret: Sequence[float], scale: float | None) -> float:
    if decision is None:
        return 0.0
    lost = regret[list(classes).index(decision)]
    worst = scale or max((r for r in regret if math.isfinite(r)), default=0.0)
    return max(0.0, 1 - lost / worst) if worst > 0 else float(lost == 0)


def _named(reward: Any, name: str) -> Reward:
    reward.__name__ = name  # TRL logs rewards/<name>/mean
    return reward
