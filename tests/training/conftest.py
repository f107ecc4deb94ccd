"""Small prompt datasets in the shape of the real ones, whose best class is the largest value at the stated prices."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prompts.card import dataset_card
from prompts.config import PromptConfig
from prompts.dataset import CARD, PROMPTS, PromptDataset
from prompts.manifest import FORMAT, Manifest
from prompts.rows import SCHEMA, parquet_bytes
from prompts.split import SplitConfig
from prompts.transforms import AugmentConfig

CROPS = ("wheat", "oat", "corn", "soy")
CLASSES = [*CROPS, "habitat"]


def synthetic_frame(landscapes: int = 6, rows: int = 40, held_out: int = 1, seed: int = 0) -> pd.DataFrame:
    """``rows`` polygons in each landscape; the last ``held_out`` landscapes are held out."""
    random = np.random.default_rng(seed)
    parts = [
        _landscape(f"land{k}", rows, "held_out_landscape" if k >= landscapes - held_out else "train", random)
        for k in range(landscapes)
    ]
    return pd.concat(parts, ignore_index=True)


def _landscape(name: str, rows: int, split: str, random: np.random.Generator) -> pd.DataFrame:
    prices = random.integers([200, 180, 150, 300], [420, 400, 320, 620])
    habitat = int(random.integers(900, 2600))
    yields = np.clip(random.normal([3.2, 3.0, 6.5, 2.2], [0.9, 0.9, 2.2, 0.8], (rows, 4)), 0.0, 9.99).round(2)
    yields[random.random((rows, 4)) < 0.12] = 0.0
    connectivity = random.beta(2, 3, rows).round(2)
    values = np.column_stack([yields * prices, connectivity * habitat]) / 100
    answers = [CLASSES[best] for best in values.argmax(axis=1)]
    columns = {
        "prompt_id": [f"{name}:{i}" for i in range(rows)],
        "landscape": [name] * rows,
        "polygon_id": [str(i) for i in range(rows)],
        "prompt": [
            [{"role": "user", "content": _line(y, e, prices, habitat)}]
            for y, e in zip(yields, connectivity, strict=True)
        ],
        "answer": answers,
        "classes": [list(CLASSES) for _ in range(rows)],
        "accepted": [[a] for a in answers],
        "target": [_target(v, a) for v, a in zip(values, answers, strict=True)],
        "split": [split] * rows,
        "block": [f"{name}:{i // 10}-0" for i in range(rows)],
        "status": ["unique"] * rows,
        "regret_low": [[0.0] * len(CLASSES) for _ in range(rows)],
        "regret_high": [[0.0] * len(CLASSES) for _ in range(rows)],
        "order": [0] * rows,
        "context": ["prices"] * rows,
        "style": ["think"] * rows,
        "layout": ["compact"] * rows,
        "shown": [[str(i)] for i in range(rows)],
        "positions": [["central"] for _ in range(rows)],
        "yields": [[y.tolist()] for y in yields],
        "connectivity": [[float(e)] for e in connectivity],
        "market_price": [None] * rows,
        "supplement": [None] * rows,
        "effective_price": [[float(p) for p in prices] for _ in range(rows)],
        "habitat_price": [float(habitat)] * rows,
        "adjacency_price": [np.nan] * rows,
        "floor_t": [None] * rows,
        "reference_supply_t": [None] * rows,
        "prompt_tokens": [None] * rows,
    }
    return pd.DataFrame(columns)[SCHEMA.names]


def _line(yields: np.ndarray, connectivity: float, prices: np.ndarray, habitat: int) -> str:
    crops = " ".join(f"{c} {y:.2f}*{p:04d}" for c, y, p in zip(CROPS, yields, prices, strict=True))
    return f"{crops} habitat {connectivity:.2f}*{habitat:04d}\n"


def _target(values: np.ndarray, answer: str) -> str:
    worth = " ".join(f"{c} {v:.1f}" for c, v in zip(CLASSES, values, strict=True))
    return f"<think>{worth}</think><answer>{answer}</answer>"


def save_dataset(frame: pd.DataFrame, folder: Path) -> PromptDataset:
    """Save a frame as the prompt dataset that ``python -m training`` reads."""
    manifest = Manifest(
        format=FORMAT,
        template_version="1",
        templates_sha256="",
        prompts=PromptConfig(),
        split_config=SplitConfig(),
        augment=AugmentConfig(),
        sources=(),
        splits={},
        notes=(),
        versions={},
        files={},
    )
    files = {
        PROMPTS: hashlib.sha256(parquet_bytes(frame)).hexdigest(),
        CARD: hashlib.sha256(dataset_card(manifest).encode()).hexdigest(),
    }
    dataset = PromptDataset(frame, manifest.model_copy(update={"files": files}))
    dataset.save(folder)
    return dataset


@pytest.fixture(scope="session")
def make_frame() -> Callable[..., pd.DataFrame]:
    """``make_frame(landscapes, rows, held_out, seed)``."""
    return synthetic_frame


@pytest.fixture(scope="session")
def save_frame() -> Callable[[pd.DataFrame, Path], PromptDataset]:
    """``save_frame(frame, folder)``."""
    return save_dataset
