"""Every number and every comparison of a rationale is true of the printed row, whatever the label is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.wording import MOST_TOKENS, tokens

CROPS = ("wheat", "oat", "corn", "soy")
NUMBER = r"(\d+(?:\.\d+)?)"


@pytest.fixture
def rows(source: Callable[..., Source]) -> Callable[..., pd.DataFrame]:
    """Rows of layout full; a third of the yields is 0, and half of the labels are drawn at random."""

    def build(size: int, crops: tuple[str, ...] = CROPS, **config: object) -> pd.DataFrame:
        rng = np.random.default_rng(7)
        n = size * size
        yields = rng.uniform(0.3, 4.0, (n, len(crops))) * (rng.uniform(size=(n, len(crops))) > 0.3)
        made = source(size, size, crops=crops, yields=yields, connectivity=rng.uniform(0.2, 1.0, n))
        plan = made.solution
        labels = plan.land_use.copy()
        any_class = rng.integers(len(plan.classes), size=n)
        grown = np.column_stack([yields > 0, np.ones(n, bool)])[np.arange(n), any_class]
        changed = grown & (rng.uniform(size=n) < 0.5)
        labels[changed] = np.array(plan.classes, dtype=object)[any_class[changed]]
        made = replace(made, solution=replace(plan, land_use=labels))  # type: ignore[type-var]
        return build_dataset([made], PromptConfig.model_validate({"layout": "full", **config})).frame

    return build


def think(row: pd.Series) -> str:
    return row["target"].removeprefix("<think>").partition("</think>")[0]


class Claims:
    """Reads one rationale against the numbers of its row; asserts each sentence, and that none stays unread."""

    def __init__(self, row: pd.Series) -> None:
        self.row, self.label = row, row["answer"]
        self.crops = row["classes"][:-1]
        self.yields = dict(zip(self.crops, row["yields"][0], strict=True))
        self.connectivity = row["connectivity"][0]
        self.direct = [i for i, code in enumerate(row["positions"]) if i and "-" not in code]
        if row["effective_price"] is not None:
            price = dict(zip(self.crops, row["effective_price"], strict=True))
            self.worth = {c: round(self.yields[c] * price[c]) for c in self.crops}
            self.worth["habitat"] = round(self.connectivity * row["habitat_price"])

    def check(self) -> int:
        sentences = [s for s in re.split(r"(?<=\.) (?=\S)", think(self.row)) if s]
        for sentence in sentences:
            readers = [self.ranking, self.barren, self.habitat, self.around, self.mean, self.conclusion]
            assert any(read(sentence) for read in readers), sentence
        return len(sentences)

    def ranking(self, text: str) -> bool:
        found = re.fullmatch(
            r"(?:Worth per hectare:|Yield times price, from high to low:|At these prices a hectare brings"
            r"|First the crops:|Yields from high to low:|By yield in t/ha:|The crops rank) (.*)\.",
            text,
        )
        if not found:
            return False
        said = found[1].split(", ")
        cut = said[-1] == "the rest no higher"
        said = said[: -1 if cut else None]
        values = []
        for part in said:
            product = re.fullmatch(rf"(\w+) {NUMBER} \* {NUMBER} = (\d+)", part)
            if product:
                name, a, b, value = product.groups()
                assert float(a) == self.yields[name]
                assert abs(float(a) * float(b) - float(value)) <= 0.5
            else:
                name, value = re.fullmatch(rf"(\w+) {NUMBER}", part).groups()  # type: ignore[union-attr]
            of = self.worth if hasattr(self, "worth") else self.yields
            assert float(value) == of[name]
            assert self.yields[name] > 0
            values.append(float(value))
        assert values == sorted(values, reverse=True)
        grown = sum(y > 0 for y in self.yields.values())
        assert len(said) < grown if cut else len(said) == grown
        left = [c for c in self.crops if not any(part.startswith(f"{c} ") for part in said)]
        assert all(of[c] <= min(values) for c in left)
        return True

    def barren(self, text: str) -> bool:
        none = [c for c in self.crops if self.yields[c] == 0]
        if text == "No crop has a yield here.":
            assert none == list(self.crops)
            return True
        found = re.fullmatch(r"No yield: (.*?)( and others)?\.", text)
        if found:
            named = found[1].split(", ")
            assert set(named) <= set(none)
            assert len(named) < len(none) if found[2] else len(named) == len(none)
        return bool(found)

    def habitat(self, text: str) -> bool:
        found = re.fullmatch(
            rf"Habitat: {NUMBER} \* {NUMBER} = (\d+)(?:, as much as (\w+)|, (above|below) (\w+))?\.", text
        )
        if not found:
            return False
        e, price, value, same, side, crop = found.groups()
        assert float(e) == self.connectivity
        assert float(price) == self.row["habitat_price"]
        assert int(value) == self.worth["habitat"]
        best = max(self.worth[c] for c in self.crops)
        if same or crop:
            assert self.worth[same or crop] == best
            assert np.sign(int(value) - best) == {"above": 1, "below": -1, None: 0}[side]
        return True

    def around(self, text: str) -> bool:
        none = text == "No direct neighbour is worth most as habitat."
        found = re.fullmatch(r"Direct neighbours worth most as habitat: (.*?)( and others)?\.", text)
        if not found and not none:
            return False
        wild = [
            self.row["positions"][i]
            for i in self.direct
            if self.row["connectivity"][i] * self.row["habitat_price"]
            > max(np.multiply(self.row["yields"][i], self.row["effective_price"]))
        ]
        assert self.direct
        assert none == (not wild)
        if found:
            named = found[1].split(", ")
            assert named == wild[: len(named)]
            assert len(named) < len(wild) if found[2] else len(named) == len(wild)
        return True

    def mean(self, text: str) -> bool:
        found = re.fullmatch(
            rf"Ecological connectivity: {NUMBER}"
            rf"(?:, (above|below|equal to) the direct neighbours' mean of {NUMBER})?\.",
            text,
        )
        if not found:
            return False
        assert float(found[1]) == self.connectivity
        assert bool(found[2]) == bool(self.direct)
        if found[2]:
            assert abs(np.mean([self.row["connectivity"][i] for i in self.direct]) - float(found[3])) <= 0.005 + 1e-9
            apart = np.sign(self.connectivity - float(found[3]))
            assert apart == {"above": 1, "below": -1, "equal to": 0}[found[2]]
        return True

    def conclusion(self, text: str) -> bool:
        first = re.fullmatch(
            r"(?:So|That puts|Worth most is|The best of these is) (\w+?)(?: first)?\.", text
        ) or re.fullmatch(r"(\w+) is worth no less than any other\.", text)
        if first:
            assert first[1] == self.label
            if hasattr(self, "worth"):
                assert self.worth[self.label] == max(self.worth.values())
            else:
                assert not any(self.yields.values())
            return True
        if not hasattr(self, "worth"):
            return self.conclusion_without_prices(text)
        if "plan" not in text:
            return False
        assert re.search(rf"plan .*\b({self.label})\b|{self.label}.* plan has\.", text), text
        assert max(self.worth.values()) > self.worth[self.label]
        leaders = [c for c in self.worth if c != self.label and re.search(rf"\b{c}\b", text)]
        assert [self.worth[c] for c in leaders] == [max(self.worth.values())]
        if "border" in text or "along" in text:
            assert self.label == "habitat"
            assert self.row["adjacency_price"] > 0
        return True

    def conclusion_without_prices(self, text: str) -> bool:
        top = max(self.yields.values())
        if found := re.fullmatch(r"No crop yields more than (\w+), and the landscape's plan has it here\.", text):
            assert found[1] == self.label
            assert self.yields[self.label] == top
        elif found := re.fullmatch(
            r"(\w+) yields more than (\w+), yet the plan of the whole landscape has (\w+) here\.", text
        ):
            assert found[2] == found[3] == self.label
            assert self.yields[found[1]] == top > self.yields[self.label]
        elif found := re.fullmatch(
            r"A yield of (\w+) and connectivity cannot be compared without prices; the landscape's plan has habitat\.",
            text,
        ):
            assert self.label == "habitat"
            assert self.yields[found[1]] == top
        return bool(found)


@pytest.mark.parametrize(
    "config",
    [{"order": 0}, {"order": 1}, {"order": 2}, {"order": 0, "context": "none"}, {"order": 1, "context": "none"}],
    ids=str,
)
def test_every_claim_of_a_thousand_rationales_is_true(rows: Callable[..., pd.DataFrame], config: dict) -> None:
    frame = rows(32, **config)
    assert len(frame) == 1024
    read = [Claims(row).check() for _, row in frame.iterrows()]
    assert min(read) >= 2
    assert all(
        t.endswith(f"</think><answer>{a}</answer>") for t, a in zip(frame["target"], frame["answer"], strict=True)
    )


def test_a_false_rationale_is_found_out(rows: Callable[..., pd.DataFrame]) -> None:
    frame = rows(6, order=1)
    row = frame[frame["target"].str.contains("below")].iloc[0].copy()
    row["target"] = row["target"].replace("below", "above")
    with pytest.raises(AssertionError):
        Claims(row).check()


@pytest.mark.parametrize("crops", [CROPS, (*CROPS, "barley"), tuple(f"crop{c}" for c in "abcdefgh")], ids=len)
@pytest.mark.parametrize("context", ["none", "prices"])
def test_no_rationale_is_longer_than_120_tokens(
    rows: Callable[..., pd.DataFrame], crops: tuple[str, ...], context: str
) -> None:
    frame = rows(20, crops, order=1, context=context)
    assert max(tokens(think(row)) for _, row in frame.iterrows()) <= MOST_TOKENS == 120


def test_tokens_count_words_signs_and_every_digit() -> None:
    assert tokens("wheat 3.11 * 301 = 936, oat.") == 1 + 4 + 1 + 3 + 1 + 3 + 1 + 1 + 1


def test_wordings_vary_with_the_prompt_and_stay_with_it(rows: Callable[..., pd.DataFrame]) -> None:
    frame, again = rows(20, order=1), rows(20, order=1)
    assert frame["target"].equals(again["target"])
    openings = Counter(re.match(r"\D+?(?=:| wheat| oat| corn| soy)", think(row))[0] for _, row in frame.iterrows())  # type: ignore[index]
    assert {name for name, count in openings.items() if count > 40} == {
        "Worth per hectare",
        "Yield times price, from high to low",
        "At these prices a hectare brings",
        "First the crops",
    }


def test_no_rationale_argues_for_a_label_that_the_numbers_speak_against(rows: Callable[..., pd.DataFrame]) -> None:
    frame = rows(20, order=0)
    price = frame["effective_price"].iloc[0]
    against = 0
    for _, row in frame.iterrows():
        worth = [
            round(v) for v in [*np.multiply(row["yields"][0], price), row["connectivity"][0] * row["habitat_price"]]
        ]
        if worth[row["classes"].index(row["answer"])] < max(worth):
            against += 1
            assert "plan" in think(row)
            assert not re.search(rf"(So|puts|than|is) {row['answer']}( first)?\.$", think(row))
    assert against > 50
