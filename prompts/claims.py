"""What a completion claims in numbers and comparisons, checked against the prompt's own row.

    facts = facts_of(row)
    for claim in claims(completion, facts):
        print(claim.text, claim.status)

A number is supported where it differs from what the prompt states by half of its last printed digit at most. The
readings are rules over a small vocabulary (:mod:`prompts.mentions`), measured on completions labelled by hand
(:func:`training.motifs.measure`): they miss claims and mistake some.
"""

from __future__ import annotations

from prompts.cited import number_claims
from prompts.claim import Claim, Quantity, Relation, Status, judged, matches
from prompts.compared import comparison_claims
from prompts.facts import Facts, facts_of
from prompts.mentions import sentences

__all__ = ["Claim", "Facts", "Quantity", "Relation", "Status", "claims", "facts_of", "judged", "matches"]


def claims(text: str, facts: Facts) -> list[Claim]:
    """The claims of a text in order of their place: numbers (``relation`` is None) and comparisons.

    Parameters
    ----------
    text : str
        The reasoning; give the think block without its tags.
    facts : Facts
        What the prompt states (:func:`facts_of`).
    """
    parts = sentences(text, facts.classes)
    found = [*number_claims(text, facts, parts), *comparison_claims(text, facts, parts)]
    return sorted(found, key=lambda claim: (claim.start, claim.end))
