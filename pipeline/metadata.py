"""What an asset shows in the Dagster UI: pictures, tables and numbers that plot over time."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow.parquet as pq
from PIL import Image

from oracle.intake import IntakeReport
from oracle.landscape import Landscape
from oracle.map import thumbnail
from oracle.neighbours import NeighbourGraph
from oracle.solution import Solution
from pipeline.policy import Policies, Verdict
from prompts.dataset import PromptDataset
from training.run import RUN

Metadata = dict[str, Any]
HELD = {
    "id": "name of the polygon",
    "geometry": "polygon",
    "ecological_connectivity": "0..1",
    "current_land_use": "what grows there now",
    "locked_land_use": "this class and no other",
    "land_use": "class in the optimum: the label",
    "status": "unique, tied or undecided: how sure the label is",
    "source": "polygon",
    "target": "its neighbour; in a prompt dataset, the completion that SFT imitates",
    "order": "1: neighbour, 2: neighbour of a neighbour",
    "code": "compass direction from source to target",
    "position": "the code, made unique for its source",
    "kind": "border, gap or corner",
    "border_m": "length of the shared border, m",
    "facing_m": "length along which they face each other, m",
    "gap_m": "distance between the borders, m",
    "distance_m": "distance between the centroids, m",
    "azimuth_deg": "from true north, degrees",
    "prompt": "chat messages",
    "answer": "the oracle's class",
    "classes": "the allowed answers",
    "split": "train, a held-out one, or buffer",
    "block": "spatial block, for intervals",
}
"""What the columns of the written tables hold, for the UI."""
INLINE = 1000  # Markdown longer than this opens in a window instead of the page
LARGEST = 50_000  # characters of a picture; every materialization's stays in Dagster's storage


def picture(png: bytes, alt: str) -> dg.MarkdownMetadataValue:
    """A PNG as Markdown with its bytes inside; shown in the page when it is small."""
    return dg.MetadataValue.md(f"![{alt}](data:image/png;base64,{base64.b64encode(png).decode()})")


def bounded_picture(png: bytes, alt: str) -> dg.MarkdownMetadataValue:
    """A PNG as Markdown of at most ``LARGEST`` characters: in a palette of 32 colours, and smaller where need be."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    while True:
        buffer = io.BytesIO()
        # The method that keeps a colour of few pixels: a rare class does not turn into its neighbour's.
        palette = image.quantize(32, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        palette.save(buffer, format="PNG", optimize=True)
        shown = picture(buffer.getvalue(), alt)
        if len(shown.value) <= LARGEST:
            return shown
        smaller = (image.width * 4 // 5, image.height * 4 // 5)
        image = image.resize(smaller, Image.Resampling.LANCZOS)


def table(rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Rows with the same keys as a table."""
    return dg.MetadataValue.table(records=[dg.TableRecord(dict(row)) for row in rows])


def columns(file: Path) -> Metadata:
    """The columns of a Parquet file, their types and what they hold."""
    schema = pq.read_schema(file)
    described = [dg.TableColumn(field.name, str(field.type), description=_held(field.name)) for field in schema]
    return {"dagster/column_schema": dg.TableSchema(columns=described)}


def _held(name: str) -> str | None:
    if name.endswith("_yield"):
        return "yield of the crop, t/ha; 0: it cannot be grown here"
    if name.startswith("regret_") and name.endswith(("_low", "_high")):
        return "what the class instead would cost the whole landscape, at least or at most, objective units"
    return HELD.get(name)


def of_landscape(landscape: Landscape, report: IntakeReport | None) -> Metadata:
    """Counts and ranges of a landscape, and what intake did to its file."""
    yields = [
        {
            "crop": crop,
            "mean t/ha": round(float(column.mean()), 3),
            "largest t/ha": round(float(column.max()), 3),
            "cannot be grown on": int((column == 0).sum()),
        }
        for crop, column in zip(landscape.crops, landscape.yields.T, strict=True)
    ]
    shown: Metadata = {
        "dagster/row_count": len(landscape),
        "area_ha": float(landscape.areas_ha.sum()),
        "mean_connectivity": float(landscape.connectivity.mean()),
        "yields": table(yields),
        "sha256": landscape.sha256,
    }
    if report is not None:
        shown["intake"] = dg.MetadataValue.json(report.to_dict())
    return shown


def of_graph(graph: NeighbourGraph) -> Metadata:
    """How many neighbours of which kind, and what hangs together."""
    first = graph.table[graph.table["order"] == 1]
    return {
        "dagster/row_count": len(graph.table),
        "first_order_pairs": len(first) // 2,
        "second_order_pairs": (len(graph.table) - len(first)) // 2,
        "components": int(graph.components.max()) + 1,
        "isolated_polygons": len(graph.isolated),
        "kinds": table({"kind": k, "ordered pairs": int(n)} for k, n in first["kind"].value_counts().items()),
        "sha256": graph.sha256,
    }


def of_plan(landscape: Landscape, solution: Solution, map_file: Path) -> Metadata:
    """The plan as a map, its supply against the floors, and the figures that prove it."""
    maps = (picture(thumbnail(landscape, solution.land_use, side), "plan") for side in (96, 72, 48, 24))
    small = next((m for m in maps if len(m.value) < INLINE), None)
    shown: Metadata = {
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "wall_time_s": solution.wall_time_s,
        "unique_label_share": float((solution.status == "unique").mean()),
        "tied_label_share": float((solution.status == "tied").mean()),
        "undecided_label_share": float((solution.status == "undecided").mean()),
        "habitat_share": float((solution.land_use == "habitat").mean()),
        "supply": table(
            {
                "crop": crop,
                "supply t": round(float(supply), 1),
                "floor t": round(float(floor), 1),
                "shadow price /t": round(solution.shadow_price[crop], 2),
            }
            for crop, supply, floor in zip(solution.crops, solution.supply_t, solution.floor_t, strict=True)
        ),
        "map_large": bounded_picture(map_file.read_bytes(), "map of the plan"),
    }
    return shown if small is None else {"map": small, **shown}


def of_dataset(dataset: PromptDataset, skipped: Mapping[str, str]) -> Metadata:
    """Prompts and class shares per split, one prompt in full, and the landscapes that were left out with the reason."""
    splits = [
        {"split": name, "prompts": record.prompts, **{c: round(share, 3) for c, share in record.classes.items()}}
        for name, record in dataset.manifest.splits.items()
    ]
    classes = sorted({key for row in splits for key in row} - {"split", "prompts"})
    first = dataset.frame.iloc[0]
    return {
        "dagster/row_count": len(dataset.frame),
        "landscapes": len(dataset.manifest.sources),
        "landscapes_skipped": len(skipped),
        "skipped": dg.MetadataValue.json(dict(skipped)),
        "splits": table(
            {"split": r["split"], "prompts": r["prompts"], **{c: r.get(c, 0.0) for c in classes}} for r in splits
        ),
        "a_prompt": dg.MetadataValue.json({"prompt": first["prompt"], "target": first["target"]}),
        "sha256": dataset.sha256,
    }


def of_run(folder: Path) -> Metadata:
    """Last figures of a training run and what it was made from."""
    record = json.loads((folder / RUN).read_text(encoding="utf-8"))
    metrics = pd.read_parquet(folder / "metrics.parquet")
    last = metrics.ffill().iloc[-1]
    wanted = (
        "step",
        "loss",
        "mean_token_accuracy",
        "reward",
        "rewards/lu_reward/mean",
        "rewards/format_reward/mean",
        "kl",
    )
    return {
        **{key.replace("/", "_"): float(last[key]) for key in wanted if key in last and last[key] == last[key]},
        "wall_time_s": float(record["wall_time_s"]),
        "weights_sha256": record["weights_sha256"],
        "folder": dg.MetadataValue.path(str(folder)),
    }


def of_evaluation(file: Path) -> Metadata:
    """Accuracy with its interval per split, for every model and baseline; the models' as numbers that plot."""
    evaluation = json.loads(file.read_text(encoding="utf-8"))
    rows, numbers = [], {}
    for kind in ("models", "baselines"):
        for name, by_split in evaluation[kind].items():
            for split, of in by_split.items():
                low, high = of["wilson"]["low"], of["wilson"]["high"]
                rows.append(
                    {
                        "split": split,
                        "decides": name,
                        "accuracy": of["accuracy"],
                        "low": low,
                        "high": high,
                        "rows": of["rows"],
                    }
                )
                if kind == "models":
                    plotted = {"accuracy": of["accuracy"], "accuracy_low": low, "accuracy_high": high}
                    for what, number in plotted.items():
                        numbers[f"{what} {name} {split}".replace(" ", "_")] = float(number)
    return {**numbers, "accuracy": table(rows)}


def of_policies(policies: Policies, verdict: Verdict) -> Metadata:
    """What is served, how it came to that, and what became of the newest policy."""
    shown: Metadata = {"verdict": verdict.why, "promoted": verdict.promoted}
    if policies.history:
        now = policies.history[-1]
        shown |= {
            "served": now.policy,
            "accuracy_served": now.accuracy,
            "folder": dg.MetadataValue.path(str(policies.served)),
            "history": table(asdict(change) for change in reversed(policies.history)),
        }
    return shown
