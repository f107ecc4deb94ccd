"""Does the answer follow the numbers that the reasoning cites?

A number that a completion cites is changed in the prompt, against the answer: the answered class's yield (of habitat,
the connectivity) is halved, or else a cited rival's is doubled. The prompt is rendered again and the model answers
again. A model that reads its decision off the numbers moves; one that decorates its answer with them does not. What the
prompt states of the whole landscape stays as it is: without the areas, nobody can tell from the prompt how much of the
reference supply a single polygon is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from oracle.errors import DatasetError
from oracle.landscape import HABITAT
from prompts.claims import Facts, Quantity, Status, claims, facts_of
from prompts.config import Layout, PromptConfig
from prompts.neighbourhood import CENTRAL, Neighbourhoods
from prompts.numbers import Printed, printed
from prompts.prices import PRICE_DECIMALS, Prices
from prompts.render import Message, render
from prompts.supply import Supply, whole_tonnes
from training.figures import Interval, wilson
from training.reasoning import think_block
from training.turn import read_turn

Generate = Callable[[Sequence[Sequence[Message]]], Sequence[str]]
"""Completions of prompts, in their order."""

_CITED = (Quantity.YIELD, Quantity.CONNECTIVITY, Quantity.WORTH)


@dataclass(frozen=True)
class Edit:
    """A prompt in which one cited number of the central polygon is changed.

    Parameters
    ----------
    row : int
        Row position in the frame.
    subject : str
        The class whose yield, or, of habitat, whose connectivity is changed.
    before, after : float
        The number in the prompt and in the edited prompt.
    prompt : list of messages
        The edited prompt.
    classes : tuple of str
        Its allowed answers.
    worth_flips : bool or None
        At the stated prices another class is now worth most; None where the prompt states none.
    """

    row: int
    subject: str
    before: float
    after: float
    prompt: list[Message]
    classes: tuple[str, ...]
    worth_flips: bool | None


def cited_edits(
    frame: pd.DataFrame, completions: Sequence[str], answers: Sequence[str | None], config: PromptConfig
) -> list[Edit]:
    """One edited prompt for each completion that decides and cites a number of the centre truly.

    Parameters
    ----------
    frame : DataFrame
        n rows of a prompt dataset.
    completions, answers : sequences
        n turns and their decisions.
    config : PromptConfig
        With which the dataset was rendered (``manifest.prompts``).

    Raises
    ------
    DatasetError
        Where a row does not render to its own prompt again: another configuration or template version.
    """
    edits = []
    for i, (completion, answer) in enumerate(zip(completions, answers, strict=True)):
        row = {str(name): value for name, value in frame.iloc[i].items()}
        facts = facts_of(row)
        subject = _subject(completion, answer, facts)
        if answer is None or subject is None:
            continue
        of_current = _reference_of_current(row, facts, config)
        factor = 0.5 if subject == answer else 2.0
        before, changed = _changed(facts, subject, factor, config)
        after = _central(changed, subject)
        if after == before:
            continue
        flips = _worth_flips(facts, changed)
        edits.append(Edit(i, subject, before, after, rendered(changed, config, of_current), facts.classes, flips))
    return edits


@dataclass(frozen=True)
class CitedFigures:
    """How often the answer moves when a cited number does.

    Parameters
    ----------
    completions, edited, changed : int
        Completions, those with an edited prompt, and those of them whose answer changed.
    changed_share : Interval
        Of the edited ones, Wilson.
    flips, changed_at_flips : int or None
        Edits after which another class is worth most at the stated prices, and changed answers among them.
    """

    completions: int
    edited: int
    changed: int
    changed_share: Interval
    flips: int | None
    changed_at_flips: int | None


def cited_figures(
    edits: Sequence[Edit], answers: Sequence[str | None], generate: Generate, prefill: str = ""
) -> CitedFigures:
    """Let a model decide the edited prompts.

    Parameters
    ----------
    edits : sequence of Edit
        From :func:`cited_edits`.
    answers : sequence of str or None
        The model's n decisions on the prompts as they were.
    generate : callable
        Completions of prompts; decode as the answers were decoded (greedily, or the noise counts as a change).
    prefill : str
        What the chat template already opened (:func:`training.turn.read_turn`).
    """
    turns = generate([edit.prompt for edit in edits])
    again = [read_turn(turn, edit.classes, prefill).decision for edit, turn in zip(edits, turns, strict=True)]
    moved = [new != answers[edit.row] for edit, new in zip(edits, again, strict=True)]
    known = [edit.worth_flips for edit in edits if edit.worth_flips is not None]
    at_flips = [m for edit, m in zip(edits, moved, strict=True) if edit.worth_flips]
    return CitedFigures(
        completions=len(answers),
        edited=len(edits),
        changed=sum(moved),
        changed_share=wilson(sum(moved), len(edits)),
        flips=sum(known) if known else None,
        changed_at_flips=sum(at_flips) if known else None,
    )


def rendered(facts: Facts, config: PromptConfig, of_current: bool = False) -> list[Message]:
    """The chat messages that state these facts (:func:`prompts.render.render`).

    ``of_current`` says where the reference supply comes from (:class:`prompts.supply.Supply`).
    """
    n, pad = len(facts.positions), config.layout is Layout.COMPACT
    text = [f"{e:.{config.connectivity_digits}f}" for e in facts.connectivity.tolist()]
    shown = Neighbourhoods(
        landscape="",
        crops=facts.crops,
        ids=np.arange(n),
        yields=printed(facts.yields, config.yield_digits, pad=pad),
        connectivity=Printed(np.array(text, dtype=object), np.array(text, dtype=float)),
        start=np.array([0] + [n - 1] * n),
        member=np.arange(1, n),
        position=np.array(facts.positions[1:], dtype=object),
        prices=_prices(facts, pad),
        supply=_supply(facts, pad, of_current),
    )
    return render(shown, config, np.array([0]))[0]


def _prices(facts: Facts, pad: bool) -> Prices | None:
    if facts.effective_price is None or facts.habitat_price is None:
        return None
    # A layout or order that does not print a price does not store it either: what stands in for it is never seen.
    market = facts.effective_price if facts.market_price is None else facts.market_price
    supplement = np.zeros_like(market) if facts.supplement is None else facts.supplement
    text = np.array([f"{s:g}" for s in supplement.tolist()], dtype=object)
    return Prices(
        market=printed(market, PRICE_DECIMALS, pad=pad),
        supplement=Printed(text, text.astype(float)),
        effective=printed(facts.effective_price, PRICE_DECIMALS, pad=pad),
        habitat=printed(np.array(facts.habitat_price), PRICE_DECIMALS, pad=pad),
        adjacency=printed(np.array(facts.adjacency_price or 0.0), PRICE_DECIMALS, pad=pad),
    )


def _supply(facts: Facts, pad: bool, of_current: bool) -> Supply | None:
    if facts.floor_t is None or facts.reference_supply_t is None:
        return None
    floor, reference = (whole_tonnes(t, pad=pad) for t in (facts.floor_t, facts.reference_supply_t))
    return Supply(floor=floor, reference=reference, of_current=of_current)


def _reference_of_current(row: Mapping[str, Any], facts: Facts, config: PromptConfig) -> bool:
    """Where the reference supply comes from: no column says it, but the row's prompt does."""
    for of_current in (False, True):
        if rendered(facts, config, of_current) == row["prompt"]:
            return of_current
    raise DatasetError(
        f"prompt {row['prompt_id']!r} is not what its row renders to: take the configuration and the templates "
        "that the dataset was built with"
    )


def _subject(completion: str, answer: str | None, facts: Facts) -> str | None:
    """The class to edit: the answered one where its number is cited, else the first cited that can be doubled."""
    cited = [
        HABITAT if claim.quantity is Quantity.CONNECTIVITY else claim.subject
        for claim in claims(think_block(completion), facts)
        if claim.status is Status.SUPPORTED and claim.relation is None and claim.quantity in _CITED
        if claim.position in (CENTRAL, None) and claim.mean_of is None
    ]
    usable = [c for c in cited if c is not None and _central(facts, c) > 0]
    return answer if answer in usable else next(iter(usable), None)


def _central(facts: Facts, subject: str) -> float:
    if subject == HABITAT:
        return float(facts.connectivity[0])
    return float(facts.yields[0, facts.crops.index(subject)])


def _changed(facts: Facts, subject: str, factor: float, config: PromptConfig) -> tuple[float, Facts]:
    """The number as it was, and the facts with it multiplied and rounded to what a prompt prints."""
    before = _central(facts, subject)
    if subject == HABITAT:
        connectivity = facts.connectivity.copy()
        connectivity[0] = round(min(before * factor, 1.0), config.connectivity_digits)
        return before, replace(facts, connectivity=connectivity)
    yields = facts.yields.copy()
    yields[0, facts.crops.index(subject)] = printed(np.array(before * factor), config.yield_digits, pad=False).value
    return before, replace(facts, yields=yields)


def _worth_flips(facts: Facts, changed: Facts) -> bool | None:
    before, after = facts.worth(), changed.worth()
    return None if before is None or after is None else bool(before.argmax() != after.argmax())
