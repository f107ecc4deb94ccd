"""The leak check finds what is planted, from the dataset's own rows."""

from collections.abc import Callable

import geopandas as gpd
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from libpysal.graph import Graph
from shapely import box

from oracle.errors import DatasetError
from oracle.landscape import CONNECTIVITY, Landscape
from oracle.neighbours import NeighbourGraph
from prompts.config import PromptConfig
from prompts.dataset import Source, build_dataset
from prompts.leaks import leaks, refuse_leaks
from prompts.split import Role, Split, SplitConfig
from tests.prompts.conftest import plan_for


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_planted_leak_is_named(source: Callable[..., Source], order: int) -> None:
    frame = build_dataset([source(16, 16)], PromptConfig(order=order)).frame
    assert leaks(frame) == []
    held_out = frame.index[frame["split"] == Split.HELD_OUT_BLOCK][0]
    victim = frame.at[held_out, "polygon_id"]
    train = frame.index[frame["split"] == Split.TRAIN][0]
    frame.at[train, "shown"] = [*frame.at[train, "shown"], victim]
    assert leaks(frame) == [f"grid:{victim}"]
    with pytest.raises(DatasetError, match=f"grid:{victim}"):
        refuse_leaks(frame)


def test_buffer_rows_may_show_anything_and_training_rows_may_not(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(16, 16)], PromptConfig(order=1)).frame
    assert (frame["split"] == Split.BUFFER).any()
    frame.loc[frame["split"] == Split.BUFFER, "split"] = Split.TRAIN.value
    assert leaks(frame)


def test_random_rows_may_be_shown_but_not_trained_on(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(16, 16)], PromptConfig(order=1)).frame
    random = frame.index[frame["split"] == Split.HELD_OUT_RANDOM]
    shown_in_training = {p for shown in frame.loc[frame["split"] == Split.TRAIN, "shown"] for p in shown}
    assert set(frame.loc[random, "polygon_id"]) & shown_in_training  # it leaks, as its name says
    assert leaks(frame) == []
    twin = frame.loc[[random[0]]].assign(split=Split.TRAIN.value)
    victim = frame.at[random[0], "polygon_id"]
    assert leaks(pd.concat([frame, twin], ignore_index=True)) == [f"grid:{victim}"]
    frame.loc[random, "split"] = Split.HELD_OUT_BLOCK.value  # under a sealed name the exception is gone
    assert leaks(frame)


def test_a_split_without_a_rule_is_refused(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(3, 3)]).frame
    frame.loc[0, "split"] = "held_out_friends"
    with pytest.raises(DatasetError, match=r"held_out_friends are unknown.*expected train, held_out_block"):
        leaks(frame)


@st.composite
def irregular(draw: st.DrawFn) -> Source:
    """Scattered squares whose neighbours are any pairs: hubs, islands, bridges, long chains."""
    n = draw(st.integers(8, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    places = random.choice(900, size=n, replace=False)
    squares = [
        box(
            500_000 + 500 * (p % 30), 5_700_000 + 500 * (p // 30), 500_100 + 500 * (p % 30), 5_700_100 + 500 * (p // 30)
        )
        for p in places.tolist()
    ]
    columns = {
        "id": [f"p{i}" for i in range(n)],
        CONNECTIVITY: random.uniform(size=n),
        "rye_yield": random.uniform(1, 9, size=n),
    }
    landscape = Landscape("any", gpd.GeoDataFrame(columns, geometry=squares, crs="EPSG:32613"), ("rye",))
    pairs = random.integers(0, n, size=(draw(st.integers(0, 2 * n)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    joined = np.zeros((n, n))
    joined[pairs[:, 0], pairs[:, 1]] = joined[pairs[:, 1], pairs[:, 0]] = 1.0
    given = Graph.from_sparse(sp.coo_array(joined), ids=landscape.ids)
    graph = NeighbourGraph.from_libpysal(given, landscape)
    return Source(landscape, graph, plan_for(landscape, graph), Role.TRAIN)


@settings(deadline=None, max_examples=40)
@given(
    source=irregular(), order=st.integers(0, 2), buffer=st.integers(1, 3), side=st.floats(1, 60), seed=st.integers(0, 9)
)
def test_no_irregular_graph_leaks(source: Source, order: int, buffer: int, side: float, seed: int) -> None:
    """By brute force over pairs of prompts and steps counted by networkx, not by the check under test alone."""
    config = SplitConfig(block_side=side, buffer=buffer, block_share=0.3, random_share=0.2, seed=seed)
    frame = build_dataset([source], PromptConfig.model_validate({"order": order}), config).frame
    assert leaks(frame) == []
    first = source.graph.table[source.graph.table["order"] == 1]
    steps = dict(nx.all_pairs_shortest_path_length(nx.Graph(zip(first["source"], first["target"], strict=True))))
    train, sealed, random = (
        frame[frame["split"] == s] for s in (Split.TRAIN, Split.HELD_OUT_BLOCK, Split.HELD_OUT_RANDOM)
    )
    for mine in train.itertuples():
        assert mine.polygon_id not in set(random["polygon_id"])
        for theirs in sealed.itertuples():
            assert not set(mine.shown) & set(theirs.shown)
            assert steps.get(mine.polygon_id, {}).get(theirs.polygon_id, np.inf) > max(buffer, order)


def test_equal_ids_in_two_landscapes_are_two_polygons(source: Callable[..., Source]) -> None:
    frame = build_dataset([source(4, 4, name="a"), source(4, 4, name="b", seed=1, role="held_out")]).frame
    assert leaks(frame) == []
