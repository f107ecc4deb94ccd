"""A cited number is changed in the prompt: who reads it changes its mind, who does not read keeps it."""

import re
from collections.abc import Callable, Sequence

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import box

from oracle.errors import DatasetError
from oracle.glm_config import FloorKind, GLMConfig
from oracle.landscape import CURRENT, Landscape
from oracle.neighbours import neighbour_graph
from oracle.solve import solve
from prompts.claims import facts_of
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.render import Message
from prompts.split import Role
from training.cited_numbers import cited_edits, cited_figures, rendered

PRICES = PromptConfig()


@pytest.fixture
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Compact prompts whose label is the largest value at the stated prices, and SFT targets that cite the values."""
    return make_frame(landscapes=2, rows=40)


def worths(prompt: Sequence[Message]) -> dict[str, float]:
    found = re.findall(r"(\w+) ([\d.]+)\*([\d.]+)", prompt[0]["content"])
    return {name: float(a) * float(b) for name, a, b in found}


def reader(prompts: Sequence[Sequence[Message]]) -> list[str]:
    """A model that multiplies and takes the largest."""
    answers = [max(w, key=w.__getitem__) for w in map(worths, prompts)]
    return [f"<think>so</think><answer>{answer}</answer>" for answer in answers]


def decorator(prompts: Sequence[Sequence[Message]]) -> list[str]:
    """A model that always says the same."""
    return ["<think>so</think><answer>corn</answer>" for _ in prompts]


def test_a_reader_moves_exactly_where_another_class_is_worth_most(frame: pd.DataFrame) -> None:
    answers = frame["answer"].tolist()
    edits = cited_edits(frame, frame["target"].tolist(), answers, PRICES)
    figures = cited_figures(edits, answers, reader)
    assert figures.completions == figures.edited == len(frame)
    assert figures.flips == figures.changed == figures.changed_at_flips
    assert figures.changed > len(frame) / 2
    assert figures.changed_share.low < figures.changed / figures.edited < figures.changed_share.high


def test_a_decorator_never_moves(frame: pd.DataFrame) -> None:
    answers = ["corn"] * len(frame)
    edits = cited_edits(frame, frame["target"].tolist(), answers, PRICES)
    assert cited_figures(edits, answers, decorator).changed == 0


def test_the_answered_class_is_halved_and_else_a_cited_rival_doubled(frame: pd.DataFrame) -> None:
    row = frame.iloc[[0]]
    facts = facts_of(row.iloc[0].to_dict())
    wheat, connectivity = float(facts.yields[0, 0]), float(facts.connectivity[0])
    said = f"<think>wheat yields {wheat:.2f}</think>"
    (own,) = cited_edits(row, [said], ["wheat"], PRICES)
    assert (own.subject, own.before) == ("wheat", wheat)
    assert own.after == pytest.approx(wheat / 2, abs=0.0051)
    assert f"wheat {own.after:.2f}*" in own.prompt[0]["content"]
    (rival,) = cited_edits(row, [said], ["oat"], PRICES)
    assert rival.after == pytest.approx(2 * wheat, abs=0.05)
    (habitat,) = cited_edits(row, [f"<think>connectivity {connectivity:.2f}</think>"], ["habitat"], PRICES)
    assert habitat.after == pytest.approx(connectivity / 2, abs=0.0051)


def test_nothing_is_edited_where_nothing_true_is_cited_or_nothing_decided(frame: pd.DataFrame) -> None:
    row = frame.iloc[[0]]
    assert cited_edits(row, ["<think>so wheat</think>"], ["wheat"], PRICES) == []
    assert cited_edits(row, ["<think>wheat yields 99.5 t/ha</think>"], ["wheat"], PRICES) == []
    assert cited_edits(row, [row["target"].iloc[0]], [None], PRICES) == []
    none = cited_figures([], [None], reader)
    assert (none.edited, none.changed, none.flips) == (0, 0, None)


def test_a_configuration_that_renders_other_prompts_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(DatasetError, match="land0:0"):
        cited_edits(frame, frame["target"].tolist(), frame["answer"].tolist(), PromptConfig(layout="full"))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("context", ["none", "supply", "prices"])
@pytest.mark.parametrize("layout", ["compact", "full"])
def test_a_row_renders_to_its_own_prompt(layout: str, context: str, order: int) -> None:
    shown, prompts = _dataset(PromptConfig(layout=layout, context=context, order=order))
    assert [rendered(facts_of(row), prompts) for row in shown] == [row["prompt"] for row in shown]


@pytest.mark.parametrize("current", [None, "barley"], ids=["even share", "current land use"])
@pytest.mark.parametrize("layout", ["compact", "full"])
def test_with_supply_one_number_of_the_polygon_changes_and_nothing_else(layout: str, current: str | None) -> None:
    shown, prompts = _dataset(PromptConfig(layout=layout, context="supply", order=1), current)
    row = next(row for row in shown if row["yields"][0][0] > 1)  # type: ignore[index]
    before = row["yields"][0][0]  # type: ignore[index]
    (edit,) = cited_edits(pd.DataFrame([row]), [f"<think>barley yields {before} t/ha</think>"], ["barley"], prompts)
    assert (edit.subject, edit.before, edit.worth_flips) == ("barley", before, None)
    texts = [message[-1]["content"] for message in (row["prompt"], edit.prompt)]  # type: ignore[index]
    old, new = (re.findall(r"[A-Za-z]+|[\d.]+", text) for text in texts)
    assert [(float(a), float(b)) for a, b in zip(old, new, strict=True) if a != b] == [(before, edit.after)]
    if layout == "full":
        assert ("present land use supplies" in texts[1]) == (current is not None)


def _dataset(config: PromptConfig, current: str | None = None) -> tuple[list[dict[str, object]], PromptConfig]:
    rng = np.random.default_rng(1)
    corners = [(500_000.0 + 800 * c, 5_700_000.0 + 800 * r) for r in range(4) for c in range(4)]
    columns = {
        "id": [str(i) for i in range(16)],
        "ecological_connectivity": rng.uniform(size=16),
        "barley_yield": rng.uniform(0, 12, 16),
        "flax_yield": rng.uniform(0, 3, 16),
    }
    if current is not None:
        columns[CURRENT] = [current] * 16
    squares = [box(x, y, x + 800, y + 800) for x, y in corners]
    land = Landscape("four", gpd.GeoDataFrame(columns, geometry=squares, crs="EPSG:32613"), ("barley", "flax"))
    graph = neighbour_graph(land)
    glm = GLMConfig(
        prices={"barley": 230.0, "flax": 520.0},
        supply_floors={"barley": 0.3},
        floor_kind=FloorKind.POTENTIAL if current is None else FloorKind.CURRENT,
    )
    solution = solve(land, graph, glm)
    frame = build_dataset([Source(land, graph, solution, Role.TRAIN)], config).frame
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")], config
