"""The report of a workspace: ``report.json`` for machines and ``report.html``, one self-contained page, for people.

Everything on it is read from what the stages left; nothing is computed again.
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oracle.errors import TrainingError
from oracle.files import write_json, write_text
from oracle.map import draw_comparison
from pipeline.plans import read_plan
from training.config import Stage
from training.evaluate import EVALUATION, PREDICTIONS
from training.run import RUN

TEMPLATES = Path(__file__).parent / "templates"
SPLITS = {"held_out_landscape": "landscapes never seen", "held_out_block": "held-out blocks"}
STAGE_NAMES = {Stage.SFT: "SFT", Stage.GRPO: "SFT + GRPO"}
SHOWN_COMPLETIONS = 6


def write_report(root: Path) -> dict[str, Any]:
    """Write ``report.json`` and ``report.html`` into a workspace's folder and return what the JSON holds.

    Raises
    ------
    TrainingError
        Where the evaluation has not been run.
    """
    figures = _figures(root)
    pictures = {"curves": _curves(root), "maps": _maps(root)}
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        figures=figures, pictures=pictures, completions=_completions(root)
    )
    write_json(root / "report.json", figures)
    write_text(root / "report.html", page)
    return figures


def _figures(root: Path) -> dict[str, Any]:
    evaluation = _read(root / "evaluation" / EVALUATION)
    manifest = _read(root / "dataset" / "manifest.json")
    accuracy: dict[str, dict[str, Any]] = {}
    text: dict[str, dict[str, Any]] = {}
    for kind in ("models", "baselines"):
        for name, by_split in evaluation[kind].items():
            for split, of in by_split.items():
                accuracy.setdefault(split, {})[name] = {"accuracy": of["accuracy"], "rows": of["rows"], **of["wilson"]}
                if of["text"] is not None:
                    text.setdefault(split, {})[name] = of["text"]
    return {
        "headline": _headline(accuracy),
        "accuracy": accuracy,
        "writing": text,
        "comparisons": evaluation["comparisons"],
        "prompts": {name: record["prompts"] for name, record in manifest["splits"].items()},
        "variant": manifest["prompts"],
        "plans": [_plan(root, source) for source in manifest["sources"]],
        "lineage": _lineage(root, evaluation, manifest),
    }


def _headline(accuracy: dict[str, dict[str, Any]]) -> str:
    split = next((s for s in SPLITS if s in accuracy), next(iter(accuracy)))
    models = [name for name in STAGE_NAMES.values() if name in accuracy[split]]
    of, others = (
        accuracy[split][models[-1]],
        {n: f for n, f in accuracy[split].items() if n not in STAGE_NAMES.values()},
    )
    best = max(others, key=lambda name: others[name]["accuracy"])
    return (
        f"{models[-1]} decides {of['accuracy']:.1%} of {of['rows']:,} polygons on {SPLITS.get(split, split)} as the "
        f"oracle does (95 % interval {of['low']:.1%} to {of['high']:.1%}); the best baseline, "
        f"{best.replace('_', ' ')}, {others[best]['accuracy']:.1%}."
    )


def _plan(root: Path, source: dict[str, Any]) -> dict[str, Any]:
    stated = _read(root / "plans" / source["landscape"] / "solution.json")
    keys = (
        "landscape",
        "polygons",
        "objective",
        "upper_bound",
        "gap",
        "status",
        "shadow_price",
        "wall_time_s",
        "solver",
    )
    return {key: stated[key] for key in keys} | {"role": source["role"]}


def _lineage(root: Path, evaluation: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    runs = {
        stage: _read(root / "models" / stage / RUN)
        for stage in STAGE_NAMES
        if (root / "models" / stage / RUN).is_file()
    }
    return {
        "landscapes": len(manifest["sources"]),
        "dataset_sha256": evaluation["dataset_sha256"],
        "weights_sha256": evaluation["weights_sha256"],
        "training": {
            stage: {key: run[key] for key in ("profile", "seed", "wall_time_s", "dataset_sha256", "weights_sha256")}
            for stage, run in runs.items()
        },
        "versions": evaluation["versions"],
    }


def _curves(root: Path) -> list[str]:
    """Loss of SFT; reward, its parts, KL and length of GRPO: data URIs of PNGs."""
    panels = {
        "sft": [("loss", "SFT: loss on the target")],
        "grpo": [
            ("reward", "GRPO: weighted reward"),
            ("rewards/lu_reward/mean", "share of right decisions among samples"),
            ("kl", "KL to the SFT model"),
            ("completions/mean_length", "completion length, tokens"),
        ],
    }
    drawn = []
    for stage, wanted in panels.items():
        path = root / "models" / stage / "metrics.parquet"
        if path.is_file():
            metrics = pd.read_parquet(path)
            drawn += [_curve(metrics, key, title) for key, title in wanted if key in metrics]
    return drawn


def _curve(metrics: pd.DataFrame, key: str, title: str) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 2.2), layout="constrained")
    axes = figure.subplots()
    line = metrics.dropna(subset=[key])
    axes.plot(line["step"], line[key], color="#006600", linewidth=1)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("step", fontsize=8)
    axes.tick_params(labelsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return _data_uri(buffer.getvalue())


def _maps(root: Path) -> list[dict[str, str]]:
    """Oracle and model side by side for each landscape that was held out as a whole."""
    predictions = pd.read_parquet(root / "evaluation" / PREDICTIONS)
    model = [name for name in STAGE_NAMES.values() if name in set(predictions["model"])][-1]
    rows = predictions[(predictions["model"] == model) & (predictions["split"] == "held_out_landscape")]
    drawn = []
    for name, decided in rows.groupby("landscape"):
        source = read_plan(root / "plans" / str(name))
        decision = decided.set_index("polygon_id")["decision"].reindex(source.landscape.ids)
        png = draw_comparison(source.landscape, source.solution.land_use, decision.to_numpy(dtype=object))
        drawn.append({"title": str(name), "picture": _data_uri(png)})
    return drawn


def _completions(root: Path) -> list[dict[str, Any]]:
    predictions = pd.read_parquet(root / "evaluation" / PREDICTIONS)
    model = [name for name in STAGE_NAMES.values() if name in set(predictions["model"])][-1]
    rows = predictions[predictions["model"] == model]
    some = pd.concat([part.head(SHOWN_COMPLETIONS // 2) for _, part in rows.groupby("correct")])
    columns = ["prompt_id", "answer", "decision", "completion"]
    return [dict(zip(columns, row, strict=True)) for row in some[columns].itertuples(index=False)]


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TrainingError(f"{path} is missing: run the stage that writes it, then make the report")
    return json.loads(path.read_text(encoding="utf-8"))
