"""A graph network on what the prompts show: the polygon, its listed neighbours, and who borders whom as far as said.

GraphSAGE (Hamilton et al. 2017) of torch_geometric, three layers. It is inductive: it learns how to read a
neighbourhood, and neighbours need no label, so it decides landscapes of which it never saw a polygon.

Nodes are the listed polygons. A direct neighbour is tied to the central polygon, one at ``N-NE`` to the direct
neighbours at ``N`` (to the central one where none is listed there), both ways. A node holds its yields, its
connectivity, what each class is worth there at the stated prices, its order, and everything stated of the landscape.
Directions tell who is tied to whom and no more. Where a prompt lists the central polygon alone, what is left is a
perceptron of three layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle, islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from prompts.features import feature_table
from prompts.neighbourhood import CENTRAL
from training.progress import Progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_TRAINING_ROWS = 10_000
"""More are drawn from by the seed: an evaluation should not wait for minutes."""
AT_ONCE = 5_000
"""Rows to decide that become graphs at a time: a landscape may have many."""
HIDDEN, LAYERS, BATCH, LEARNING_RATE = 64, 3, 256, 3e-3
STEPS, EPOCHS = 600, 50
"""At most so many steps, and passes over the training rows."""


def graph_probabilities(
    train: pd.DataFrame, rows: pd.DataFrame, seed: int = 0, *, progress: bool = True
) -> tuple[list[str], np.ndarray]:
    """Learn from the training rows and judge others.

    Parameters
    ----------
    train, rows : DataFrame
        Rows of prompt datasets; of ``train`` at most :data:`MOST_TRAINING_ROWS`, drawn by the seed.
    seed : int
        Of the draw, the first weights and the order of the rows; the same seed gives the same numbers.
    progress : bool
        Say how far the training is.

    Returns
    -------
    names : list of str
        The C classes that occur among the training rows' answers.
    probabilities : ndarray
        (n, C) of each of ``rows``.
    """
    import torch
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn.models import GraphSAGE

    if len(train) > MOST_TRAINING_ROWS:
        train = train.sample(n=MOST_TRAINING_ROWS, random_state=seed)
    names, answers = np.unique(train["answer"].to_numpy(dtype=str), return_inverse=True)
    reader = _Reader.of(train)
    known = reader.graphs(train)
    for graph, answer in zip(known, answers.tolist(), strict=True):
        graph.y = answer
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        batches = list(DataLoader(known, BATCH, shuffle=True))  # put together once: that takes longer than a step
        steps = min(STEPS, EPOCHS * len(batches))
        told = Progress("neural baseline", steps) if progress else None
        network = GraphSAGE(known[0].num_node_features, HIDDEN, LAYERS, len(names), dropout=0.1)
        optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, weight_decay=1e-4)
        slowing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for step, batch in enumerate(islice(cycle(batches), steps), start=1):
            scores = network(batch.x, batch.edge_index)[batch.ptr[:-1]]  # the central polygon is a graph's first
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(scores, batch.y).backward()
            optimizer.step()
            slowing.step()
            if told:
                told.update(step)
        network.eval()
        with torch.inference_mode():
            judged = [
                network(batch.x, batch.edge_index)[batch.ptr[:-1]].softmax(dim=1)
                for first in range(0, len(rows), AT_ONCE)
                for batch in DataLoader(reader.graphs(rows.iloc[first : first + AT_ONCE]), BATCH)
            ]
    return names.tolist(), torch.cat(judged).double().numpy()


@cache
def ties(positions: tuple[str, ...]) -> np.ndarray:
    """(2, E) places among ``positions`` from where to where a node's numbers go (this module's docstring)."""
    letters = [code.rstrip("0123456789") for code in positions]
    found = []
    for place, steps in enumerate(letter.split("-") for letter in letters):
        if place == 0:
            continue
        through = [p for p, code in enumerate(letters) if code == steps[0]] if len(steps) > 1 else []
        for other in through or [0]:
            found += [(place, other), (other, place)]
    return np.array(found, dtype=int).reshape(-1, 2).T


@dataclass(frozen=True, eq=False)
class _Reader:
    """Turns rows into graphs, with the crops and the stated numbers of the training rows, scaled as there."""

    crops: tuple[str, ...]
    stated: tuple[str, ...]
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, train: pd.DataFrame) -> _Reader:
        crops = sorted({crop for classes in train["classes"] for crop in classes[:-1]})
        table = feature_table(train)
        stated = [name for name in map(str, table) if "." not in name and table[name].notna().any()]
        plain = cls(tuple(crops), tuple(stated), np.zeros(1), np.ones(1))
        numbers, _ = plain.nodes(train)
        deviation = np.nanstd(numbers, axis=0)
        return replace(plain, mean=np.nanmean(numbers, axis=0), deviation=np.where(deviation > 0, deviation, 1.0))

    def graphs(self, rows: pd.DataFrame) -> list[Data]:
        """One graph per row."""
        import torch
        from torch_geometric.data import Data

        numbers, start = self.nodes(rows)
        scaled = np.nan_to_num((numbers - self.mean) / self.deviation)  # what is not stated: the mean
        nodes = torch.tensor(scaled, dtype=torch.float32)
        edges = [torch.tensor(ties(tuple(positions))) for positions in rows["positions"]]
        return [Data(x=nodes[start[i] : start[i + 1]], edge_index=edge) for i, edge in enumerate(edges)]

    def nodes(self, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """(N, F) numbers of all listed polygons, and (n + 1,) where those of each row begin."""
        lengths = rows["positions"].map(len).to_numpy()
        row = np.repeat(np.arange(len(rows)), lengths)
        positions = np.concatenate([np.asarray(p, dtype=object) for p in rows["positions"]]).astype(str)
        connectivity = np.concatenate([np.asarray(e, dtype=float) for e in rows["connectivity"]])
        yields = np.zeros((len(row), len(self.crops)))  # 0, cannot be grown, also where a landscape has not the crop
        crops_of = rows["classes"].map(lambda classes: tuple(classes[:-1]))
        for crops in crops_of.unique():
            mine = (crops_of == crops).to_numpy()
            listed = np.concatenate([np.asarray(y, dtype=float).reshape(-1, len(crops)) for y in rows["yields"][mine]])
            for k, crop in enumerate(crops):
                if crop in self.crops:
                    yields[mine[row], self.crops.index(crop)] = listed[:, k]
        stated = feature_table(rows).reindex(columns=list(self.stated))
        columns = [yields, connectivity[:, None], stated.to_numpy(dtype=float)[row]]
        if "habitat_price" in stated:
            price = stated.reindex(columns=[f"{crop}_effective_price" for crop in self.crops]).to_numpy(dtype=float)
            habitat = stated["habitat_price"].to_numpy(dtype=float)
            columns += [yields * price[row], (connectivity * habitat[row])[:, None]]
        order = np.where(positions == CENTRAL, 0, 1 + np.char.count(positions, "-"))
        columns.append((order[:, None] == np.arange(3)).astype(float))
        return np.column_stack(columns), np.concatenate([[0], np.cumsum(lengths)])
