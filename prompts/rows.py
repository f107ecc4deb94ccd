"""The rows of a prompt dataset, as a table and as a file: one row per polygon that the oracle decided.

======================  ===================================================================================
``prompt_id``           ``landscape:polygon``
``landscape``           name of the landscape
``polygon_id``          id in the landscape
``prompt``              chat messages, list of ``{role, content}``
``answer``              the oracle's class
``classes``             the allowed answers: the landscape's crops, then ``habitat``
``accepted``            the right answers, ``answer`` first: more than one only with ``labels: accept_set``
``target``              the completion that SFT imitates
``split``               train, held_out_block, held_out_landscape, held_out_random or buffer (:mod:`prompts.split`)
``block``               spatial block, for block bootstraps
``status``              unique, tied or undecided: how sure the label is
``regret_low``          what each class costs the landscape at least, objective units, in the order of ``classes``;
                        infinite where the polygon may not have the class (:mod:`oracle.regret`)
``regret_high``         what it costs at most; infinite also where no plan with the class was found
``order`` ... ``layout``  the prompt's variant (:class:`prompts.config.PromptConfig`)
``shown``               ids of the polygons that the prompt shows, the central one first
``positions``           their position codes, ``central`` first
``yields``              their printed yields, t/ha, one list per polygon in the order of the crops
``connectivity``        their printed connectivity
``market_price``, ``supplement``, ``effective_price``  printed prices per crop, currency/t; null where not shown
``habitat_price``, ``adjacency_price``  printed, currency/ha and currency/m; null where not shown
``floor_t``, ``reference_supply_t``  printed supply floor and reference supply per crop, t; null where not shown
``prompt_tokens``       tokens of the prompt in the training profile's tokenizer; null where nobody counted
======================  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oracle.landscape import Landscape
from oracle.regret import TIE, Status
from prompts.config import Labels, Layout, PromptConfig
from prompts.neighbourhood import Neighbourhoods
from prompts.numbers import Printed
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
        ("accepted", pa.list_(pa.string())),
        ("target", pa.string()),
        ("split", pa.string()),
        ("block", pa.string()),
        ("status", pa.string()),
        ("regret_low", pa.list_(pa.float64())),
        ("regret_high", pa.list_(pa.float64())),
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
        ("floor_t", pa.list_(pa.float64())),
        ("reference_supply_t", pa.list_(pa.float64())),
        ("prompt_tokens", pa.int64()),
    ]
)


def prompt_rows(
    landscape: Landscape,
    solution: Solution,
    shown: Neighbourhoods,
    splits: Splits,
    config: PromptConfig,
    rows: np.ndarray,
) -> pd.DataFrame:
    """The dataset rows of the polygons at ``rows`` (row positions) of one landscape; no tokens are counted yet."""
    prices, supply = shown.prices, shown.supply
    every_price = prices if config.layout is Layout.FULL else None
    n, members = len(rows), [shown.rows(i) for i in rows.tolist()]
    ids, yields, connectivity = shown.ids.tolist(), shown.yields.value.tolist(), shown.connectivity.value.tolist()
    columns = {
        "prompt_id": [f"{landscape.name}:{i}" for i in landscape.ids[rows]],
        "landscape": [landscape.name] * n,
        "polygon_id": landscape.ids[rows].tolist(),
        "prompt": render(shown, config, rows),
        "answer": solution.land_use[rows].tolist(),
        "classes": [list(landscape.classes) for _ in range(n)],
        "accepted": accepted(solution, config.labels, rows),
        "target": targets(shown, solution.land_use, config, rows),
        "split": splits.split[rows].tolist(),
        "block": splits.block[rows].tolist(),
        "status": [str(status) for status in solution.status[rows]],
        "regret_low": solution.regret_low[rows].tolist(),
        "regret_high": solution.regret_high[rows].tolist(),
        "order": [config.order] * n,
        "context": [config.context.value] * n,
        "style": [config.style.value] * n,
        "layout": [config.layout.value] * n,
        "shown": [[ids[m] for m in rows_shown] for rows_shown in members],
        "positions": [shown.positions(i) for i in rows.tolist()],
        "yields": [[yields[m] for m in rows_shown] for rows_shown in members],
        "connectivity": [[connectivity[m] for m in rows_shown] for rows_shown in members],
        "market_price": _everywhere(every_price.market if every_price else None, n),
        "supplement": _everywhere(every_price.supplement if every_price else None, n),
        "effective_price": _everywhere(prices.effective if prices else None, n),
        "habitat_price": _everywhere(prices.habitat if prices else None, n),
        "adjacency_price": _everywhere(prices.adjacency if prices and config.order >= 1 else None, n),
        "floor_t": _everywhere(supply.floor if supply else None, n),
        "reference_supply_t": _everywhere(supply.reference if supply else None, n),
        "prompt_tokens": [None] * n,
    }
    return to_frame(columns)


def accepted(solution: Solution, labels: Labels, rows: np.ndarray) -> list[list[str]]:
    """The right answers of the polygons at ``rows``, the oracle's class first.

    A class ties where the plan with it reaches the oracle's plan within :data:`oracle.regret.TIE`, the rule by which
    :func:`oracle.regret.judge` calls a label tied.
    """
    answers = solution.land_use[rows].tolist()
    if labels is not Labels.ACCEPT_SET:
        return [[answer] for answer in answers]
    high, names = solution.regret_high[rows], np.array(solution.classes, dtype=object)
    own = names[None, :] == solution.land_use[rows][:, None]
    ties = (high - high[own][:, None] <= TIE) & ~own
    ties[solution.status[rows] != Status.TIED.value] = False
    return [[answer, *names[tied].tolist()] for answer, tied in zip(answers, ties, strict=True)]


def to_frame(columns: Mapping[str, list[object]]) -> pd.DataFrame:
    """The rows with plain Python lists in the nested columns, whether just built or read from a file."""
    return pd.DataFrame({f.name: pd.Series(columns[f.name], dtype=_dtype(f.type)) for f in SCHEMA})


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """The content of ``prompts.parquet``: the same rows give the same bytes."""
    columns = {name: [None if _absent(v) else v for v in frame[name].tolist()] for name in SCHEMA.names}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pydict(columns, schema=SCHEMA), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def _everywhere(number: Printed | None, n: int) -> list[object]:
    return [number.value.tolist() if number is not None else None for _ in range(n)]


def _dtype(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "float64"
    return "Int64" if pa.types.is_integer(kind) else "object"


def _absent(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)
