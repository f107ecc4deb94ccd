"""The rewards as other trainers call them: TRL and open-r1, verl, OpenRLHF, and anything that scores one turn.

The values are those of the rewards that Landoracle trains with. This stands on the reading of turns alone, so that
the two can be shipped as one file.

==================== ===============================================================================
``judge``            one turn: ``score``, ``acc``, ``format``, ``repetition``
``lu_reward`` etc.   TRL and open-r1: a list of numbers for a list of completions
``compute_score``    verl: ``custom_reward_function.path`` and ``name=compute_score``
``reward_func``      OpenRLHF: ``--reward.remote_url reward.py``
==================== ===============================================================================

``score`` weighs decision and format 3 : 2, as the published recipe does, and is 1 for every gold answer. Repetition
is a figure beside it (0 or negative): true rationales repeat themselves too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from training.turn import ANSWER_CLOSE, ANSWER_OPEN, THINK_CLOSE, THINK_OPEN, Completion, read_turn, text_of

PREFILL = ""
"""What the model's chat template opens after the prompt, e.g. ``"<think>\\n"`` for the R1 distillations."""
THINKS = True
"""The prompts ask for a think block."""
WEIGHTS = {"acc": 0.6, "format": 0.4}
NGRAM, MAX_PENALTY = 3, -1.0

_OPENED = re.compile(rf"{THINK_OPEN}\s*\Z")
_END_OF_TURN = re.compile(r"(?:\s*(?:<[|｜][^<>]*[|｜]>|</s>|<eos>|<end_of_turn>))+\s*\Z")


def judge(
    completion: Completion, answer: str, classes: Sequence[str], accepted: Iterable[str] | None = None, *, prefill: str
) -> dict[str, float]:
    """The figures of one turn.

    Parameters
    ----------
    completion : str or list of messages
        What the model said.
    answer : str
        The oracle's class.
    classes : sequence of str
        Allowed answers.
    accepted : iterable of str, optional
        Classes that are as good as ``answer`` where the label is tied; none: ``answer`` alone counts.
    prefill : str
        What the chat template already opened.

    Raises
    ------
    ValueError
        Where ``answer`` is not one of ``classes``: the data is wrong, not the model.
    """
    gold = {answer, *(accepted if accepted is not None else ())}
    if not gold <= set(classes):
        raise ValueError(f"the oracle's class must be one of {', '.join(classes)}; found {', '.join(sorted(gold))}")
    turn = read_turn(completion, classes, prefill, thinks=THINKS)
    figures = {"acc": float(turn.decision in gold), "format": float(turn.well_formed)}
    score = sum(weight * figures[name] for name, weight in WEIGHTS.items())
    return {"score": score, **figures, "repetition": MAX_PENALTY * _repeated_share(text_of(completion)) + 0.0}


def gold_turn(answer: str) -> str:
    """The shortest turn that is right: it scores 1."""
    block = f"{ANSWER_OPEN}{answer}{ANSWER_CLOSE}"
    return f"{THINK_OPEN}{answer}{THINK_CLOSE}{block}" if THINKS else block


def lu_reward(
    completions: Sequence[Completion],
    answer: Sequence[str],
    classes: Sequence[Sequence[str]],
    accepted: Sequence[Iterable[str] | None] | None = None,
    **_: Any,
) -> list[float]:
    """TRL, open-r1: 1 where the turn decides for the oracle's class."""
    return [
        judge(said, gold, allowed, ties, prefill=PREFILL)["acc"]
        for said, gold, allowed, ties in zip(
            completions, answer, classes, accepted or [None] * len(answer), strict=True
        )
    ]


def format_reward(completions: Sequence[Completion], classes: Sequence[Sequence[str]], **_: Any) -> list[float]:
    """TRL, open-r1: 1 where the turn is well-formed, whatever it decides."""
    return [
        float(read_turn(said, allowed, PREFILL, thinks=THINKS).well_formed)
        for said, allowed in zip(completions, classes, strict=True)
    ]


def repetition_penalty(completions: Sequence[Completion], **_: Any) -> list[float]:
    """TRL, open-r1: from 0 (no word triple comes twice) down to -1."""
    return [MAX_PENALTY * _repeated_share(text_of(said)) + 0.0 for said in completions]


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, prefill: str = PREFILL, **_: Any
) -> dict[str, float]:
    """verl: the figures of one response; ``extra_info`` is that of the exported row.

    A template that opens the think block is told by ``custom_reward_function.reward_kwargs.prefill``.
    """
    if not extra_info or "classes" not in extra_info:
        raise ValueError(f"{data_source}: extra_info must carry the row's classes; use the exported Parquet files")
    ties = extra_info.get("accepted")
    return judge(solution_str, ground_truth, list(extra_info["classes"]), ties, prefill=prefill)


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """OpenRLHF: ``rewards``, ``scores`` and ``extra_logs`` of queries (prompt + response, with end-of-turn tokens).

    ``labels`` are the exported JSON objects. Whether the template opened the think block is read from the prompt.
    """
    import torch

    figures = []
    for query, prompt, label in zip(queries, prompts, labels, strict=True):
        if not query.startswith(prompt):
            raise ValueError(
                "a query must begin with its prompt; this tokenizer does not give the prompt back as it was"
            )
        opened = _OPENED.search(prompt)
        row = json.loads(label)
        said = _END_OF_TURN.sub("", query.removeprefix(prompt))
        prefill = opened.group() if opened else ""
        figures.append(judge(said, row["answer"], row["classes"], row.get("accepted"), prefill=prefill))
    columns = {name: torch.tensor([f[name] for f in figures]) for name in figures[0]}
    score = columns.pop("score")
    return {"rewards": score, "scores": score, "extra_logs": columns}


def _repeated_share(text: str) -> float:
    words = text.lower().split()
    grams = [tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0
