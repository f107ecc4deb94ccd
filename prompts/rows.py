"""The rows of a prompt dataset, as a table and as a file: one row per polygon that the oracle decided.

======================  ===================================================================================
``prompt_id``           ``landscape:polygon``
``landscape``           name of the landscape
``polygon_id``          id in the landscape
``prompt``              chat messages, list of ``{role, content}``
``answer``              the oracle's class
``classes``             the allowed answers: the landscape's crops, then ``habitat``
``target``              the completion that SFT imitates
``split``               train, held_out_block, held_out_landscape or buffer (:mod:`prompts.split`)
``block``               spatial block, for block bootstraps
``status``              unique, tied or undecided: how sure the label is
``regret``              least regret of each class, objective units, in the order of ``classes``
``order`` ... ``layout``  the prompt's variant (:class:`prompts.config.PromptConfig`)
``shown``               ids of the polygons that the prompt shows, the central one first
``positions``           their position codes, ``central`` first
``yields``              their printed yields, t/ha, one list per polygon in the order of the crops
``connectivity``        their printed connectivity
``market_price``, ``supplement``, ``effective_price``  printed prices per crop, currency/t; null where not shown
``habitat_price``, ``adjacency_price``  printed, currency/ha and currency/m; null where not shown
======================  ===================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oracle.landscape import Landscape
from prompts.config import Layout, PromptConfig
from prompts.neighbourhood import Neighbourhoods
from prompts.rationale import targets
from prompts.render import render
from prompts.split import Splits

if TYPE_CHECKING:
    from oracle.solution import Solution

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
SCHEMA = pa.schema(
    [
        ("prompt_id", pa.string()),
        ("landscape", pa.string()),
        ("polygon_id", pa.string()),
        ("prompt", pa.list_(_MESSAGE)),
        ("answer", pa.string()),
        ("classes", pa.list_(pa.string())),
        ("target", pa.string()),
        ("split", pa.string()),
        ("block", pa.string()),
        ("status", pa.string()),
        ("regret", pa.list_(pa.float64())),
        ("order", pa.int64()),
        ("context", pa.string()),
        ("style", pa.string()),
        ("layout", pa.string()),
        ("shown", pa.list_(pa.string())),
        ("positions", pa.list_(pa.string())),
        ("yields", pa.list_(pa.list_(pa.float64()))),
        ("connectivity", pa.list_(pa.float64())),
        ("market_price", pa.list_(pa.float64())),
        ("supplement", pa.list_(pa.float64())),
        ("effective_price", pa.list_(pa.float64())),
        ("habitat_price", pa.float64()),
        ("adjacency_price", pa.float64()),
    ]
)


def prompt_rows(
    landscape: Landscape,
    solution: Solution,
    shown: Neighbourhoods,
    splits: Splits,
    config: PromptConfig,
    rows: np.ndarray,
) -> pa.Table:
    """The dataset rows of the polygons at ``rows`` (row positions) of one landscape."""
    prices = shown.prices
    n, members = len(rows), [shown.rows(i) for i in rows.tolist()]
    ids, yields, connectivity = shown.ids.tolist(), shown.yields.value.tolist(), shown.connectivity.value.tolist()
    every_price_shown = prices is not None and config.layout is Layout.FULL
    adjacency_shown = prices is not None and config.order >= 1
    columns = {
        "prompt_id": [f"{landscape.name}:{i}" for i in landscape.ids[rows]],
        "landscape": [landscape.name] * n,
        "polygon_id": landscape.ids[rows].tolist(),
        "prompt": render(shown, config, rows),
        "answer": solution.land_use[rows].tolist(),
        "classes": [list(landscape.classes)] * n,
        "target": targets(shown, solution.land_use, config, rows),
        "split": splits.split[rows].tolist(),
        "block": splits.block[rows].tolist(),
        "status": [str(status) for status in solution.status[rows]],
        "regret": solution.regret_low[rows].tolist(),
        "order": [config.order] * n,
        "context": [config.context.value] * n,
        "style": [config.style.value] * n,
        "layout": [config.layout.value] * n,
        "shown": [[ids[m] for m in rows_shown] for rows_shown in members],
        "positions": [shown.positions(i) for i in rows.tolist()],
        "yields": [[yields[m] for m in rows_shown] for rows_shown in members],
        "connectivity": [[connectivity[m] for m in rows_shown] for rows_shown in members],
        "market_price": [prices.market.value.tolist() if prices and every_price_shown else None] * n,
        "supplement": [prices.supplement.value.tolist() if prices and every_price_shown else None] * n,
        "effective_price": [prices.effective.value.tolist() if prices else None] * n,
        "habitat_price": [float(prices.habitat.value) if prices else None] * n,
        "adjacency_price": [float(prices.adjacency.value) if prices and adjacency_shown else None] * n,
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """The rows with plain Python lists in the nested columns, whether just built or read from a file."""
    nested = [f.name for f in SCHEMA if pa.types.is_list(f.type)]
    frame = table.drop_columns(nested).to_pandas()
    lists = {name: pd.Series(table.column(name).to_pylist(), dtype=object) for name in nested}
    return pd.concat([frame, pd.DataFrame(lists)], axis=1)[SCHEMA.names]


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """The content of ``prompts.parquet``: the same rows give the same bytes."""
    columns = {name: frame[name].tolist() for name in SCHEMA.names}
    for name in ("habitat_price", "adjacency_price"):  # pandas turned null into NaN
        columns[name] = [None if v is None or v != v else v for v in columns[name]]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pydict(columns, schema=SCHEMA), sink, compression="zstd")
    return sink.getvalue().to_pybytes()
