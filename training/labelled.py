"""Completions labelled by hand, and how well the detectors agree with them.

The format of a labelled completion stands beside the files (``tests/training/motifs/README.md``).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from oracle.errors import DatasetError
from prompts.claims import Facts, Status, claims, facts_of
from prompts.mentions import sentences
from training.motifs import Motif, motifs
from training.reasoning import conclusion, think_block

NEIGHBOURHOODS = "neighbourhoods.json"
HELD_OUT = "held_out"
_HEADER = re.compile(r"^=== (?P<place>\S+) \| (?P<motifs>[^|]+) \| (?P<conclusion>\S+)\n", re.MULTILINE)
_LABEL = re.compile(r"\[(?P<comparison>>?)(?P<status>[scu])\]")
_STATUS = {status.value[0]: status for status in Status}


@dataclass(frozen=True)
class Labelled:
    """One completion with its labels.

    Parameters
    ----------
    name : str
        File and number in it.
    held_out : bool
        Not looked at while the detectors were tuned.
    facts : Facts
        Of its prompt.
    completion : str
        Without the labels.
    answer : str
        The class in its answer block.
    motifs : dict of Motif to Status
        Those present.
    conclusion : str or None
        The class that the reasoning ends with.
    numbers : dict of int to Status
        By the place where the number ends in the reasoning.
    comparisons : tuple of (int, Status)
        By a place in the sentence, in the reasoning.
    """

    name: str
    held_out: bool
    facts: Facts
    completion: str
    answer: str
    motifs: dict[Motif, Status]
    conclusion: str | None
    numbers: dict[int, Status]
    comparisons: tuple[tuple[int, Status], ...]


@dataclass(frozen=True)
class Agreement:
    """How often a detector and the labels agree on one thing (a motif, a status)."""

    what: str
    labelled: int
    found: int
    agreed: int

    @property
    def precision(self) -> float:
        """Share of what was found that is labelled so; NaN where nothing was found."""
        return self.agreed / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        """Share of what is labelled that was found; NaN where nothing is labelled."""
        return self.agreed / self.labelled if self.labelled else float("nan")


def read_labelled(folder: Path) -> list[Labelled]:
    """Every labelled completion of a folder, file by file.

    Raises
    ------
    DatasetError
        Naming the file and the completion: an unknown neighbourhood, motif or status.
    """
    rows = json.loads((folder / NEIGHBOURHOODS).read_text(encoding="utf-8"))
    places = {name: facts_of(row) for name, row in rows.items()}
    found = []
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        headers = list(_HEADER.finditer(text))
        ends = [h.start() for h in headers[1:]] + [len(text)]
        for k, (header, end) in enumerate(zip(headers, ends, strict=True), start=1):
            name = f"{path.stem}:{k}"
            try:
                found.append(_labelled(name, places, header, text[header.end() : end].strip()))
            except (KeyError, ValueError) as error:
                raise DatasetError(f"{path.name}, completion {k}: unknown label or neighbourhood {error}") from error
    return found


def measure(labelled: Iterable[Labelled]) -> list[Agreement]:
    """Precision and recall of the detectors: each motif, its status, each status of a claim, the conclusions.

    A number agrees with its label in place and status, a comparison in sentence and status; ``status of motifs`` counts
    the motifs that are both labelled and found. In the order of first appearance; nothing for no completions.
    """
    labels: Counter[str] = Counter()
    found: Counter[str] = Counter()
    agreed: Counter[str] = Counter()
    measured: dict[str, None] = {}
    for one in labelled:
        for what, wanted, got in _answers(one):
            measured[what] = None
            labels[what] += wanted.total()
            found[what] += got.total()
            agreed[what] += (wanted & got).total()
    return [Agreement(what, labels[what], found[what], agreed[what]) for what in measured]


def _answers(one: Labelled) -> list[tuple[str, Counter[Hashable], Counter[Hashable]]]:
    """What is measured, its labels and its findings in one completion: things that agree where they are equal."""
    shown = {s.motif: s.status for s in motifs(one.completion, one.facts, one.answer)}
    said = conclusion(one.completion, one.facts.classes)
    both = one.motifs.keys() & shown.keys()
    answers = [(m.value, _count({m} & one.motifs.keys()), _count({m} & shown.keys())) for m in Motif]
    answers.append(("status of motifs", _count((m, one.motifs[m]) for m in both), _count((m, shown[m]) for m in both)))
    answers.append(("conclusion", _count({one.conclusion} - {None}), _count({said} - {None})))

    text = think_block(one.completion)
    stated = claims(text, one.facts)
    starts = [s.start for s in sentences(text, one.facts.classes)]
    numbers = [(c.end, c.status) for c in stated if c.relation is None]
    compared = [(_sentence(c.start, starts), c.status) for c in stated if c.relation is not None]
    compared_labels = [(_sentence(place, starts), status) for place, status in one.comparisons]
    for kind, labels, found in (
        ("numbers", list(one.numbers.items()), numbers),
        ("comparisons", compared_labels, compared),
    ):
        for status in Status:
            of = [_count(place for place, s in pairs if s is status) for pairs in (labels, found)]
            answers.append((f"{kind} {status}", of[0], of[1]))
    return answers


def _count(things: Iterable[Hashable]) -> Counter[Hashable]:
    return Counter(things)


def _sentence(place: int, starts: Sequence[int]) -> int:
    return sum(start <= place for start in starts)


def _labelled(name: str, places: dict[str, Facts], header: re.Match[str], text: str) -> Labelled:
    plain, numbers, comparisons, end = "", {}, [], 0
    opening = text.index("<think>") + len("<think>")
    for label in _LABEL.finditer(text):
        plain += text[end : label.start()]
        end = label.end()
        if label["comparison"]:
            comparisons.append((len(plain) - opening, _STATUS[label["status"]]))
        else:
            numbers[len(plain) - opening] = _STATUS[label["status"]]
    plain += text[end:]
    stated = [] if header["motifs"].strip() == "-" else [item.split(":") for item in header["motifs"].split()]
    answer = re.search(r"<answer>(.*)</answer>", plain)
    if answer is None:
        raise ValueError("has no answer block")
    return Labelled(
        name=name,
        held_out=name.startswith(HELD_OUT),
        facts=places[header["place"]],
        completion=plain,
        answer=answer[1],
        motifs={Motif(motif): _STATUS[status] for motif, status in stated},
        conclusion=None if header["conclusion"] == "-" else header["conclusion"],
        numbers=numbers,
        comparisons=tuple(comparisons),
    )
