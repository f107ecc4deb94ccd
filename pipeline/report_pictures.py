"""The pictures of a report, as data URIs: maps of the landscapes decided whole, and curves of the training."""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from oracle.map import draw_comparison
from oracle.solution import SOLUTION, read_json
from prompts.plan_folder import is_plan, read_plan
from training.curves import draw_curves
from training.evaluate import PLANS
from training.run import METRICS


def maps(evaluation: Path, model: str, plans: Sequence[Path]) -> list[dict[str, str]]:
    """Oracle, model and their difference coloured by regret, for each landscape that was decided whole.

    Parameters
    ----------
    evaluation : Path
        Folder of ``plans.parquet``; without it there is no map.
    model : str
    plans : sequence of Path
        Plans, or folders of plans.
    """
    if not (evaluation / PLANS).is_file():
        return []
    decided = pd.read_parquet(evaluation / PLANS)
    folders = _by_landscape(plans)
    drawn = []
    for name, rows in decided[decided["model"] == model].groupby("landscape", sort=False):
        source = read_plan(folders[str(name)])
        said = rows.set_index("polygon_id")["land_use"].reindex(source.landscape.ids.astype(str)).to_numpy(dtype=object)
        solution = source.solution
        place = np.array([solution.classes.index(c) for c in said])
        regret = solution.regret_low[np.arange(len(said)), place]
        png = draw_comparison(source.landscape, solution.land_use, said, np.where(np.isfinite(regret), regret, 0.0))
        drawn.append({"title": str(name), "picture": _data_uri(png)})
    return drawn


def curves(models: Mapping[str, Path]) -> list[dict[str, str]]:
    """How each of the models was trained: reward and what became of it by GRPO, loss by SFT."""
    drawn = []
    for name, folder in models.items():
        table = folder / f"{METRICS}.parquet"
        if not table.is_file():
            continue
        metrics = pd.read_parquet(table)
        if "reward" in metrics:
            with tempfile.TemporaryDirectory() as temporary:
                draw_curves(folder, Path(temporary) / "curves.png")
                png = (Path(temporary) / "curves.png").read_bytes()
        elif "loss" in metrics:
            png = _loss(metrics)
        else:
            continue
        drawn.append({"title": name, "picture": _data_uri(png)})
    return drawn


def _loss(metrics: pd.DataFrame) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 2.4), layout="constrained")
    axes = figure.subplots()
    line = metrics.dropna(subset=["loss"])
    axes.plot(line["step"], line["loss"], color="#006600", linewidth=1)
    axes.set_title("loss on the target", fontsize=9, loc="left")
    axes.set_xlabel("step", fontsize=8)
    axes.tick_params(labelsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _by_landscape(plans: Sequence[Path]) -> dict[str, Path]:
    found = [path for folder in plans for path in [folder, *sorted(folder.iterdir())] if is_plan(path)]
    return {str(read_json(path / SOLUTION)["landscape"]): path for path in found}


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
