"""The report of an evaluation: ``report.json`` for machines and ``report.html``, one self-contained page, for people.

Everything on it is read from what the stages left; nothing is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oracle.errors import TrainingError
from oracle.files import write_json, write_text
from pipeline.report_completions import ten_completions
from pipeline.report_pictures import curves, maps
from pipeline.runs import STAGE_NAMES
from pipeline.sources import PROJECT
from prompts.exports.card import read_ceiling
from training.evaluate import EVALUATION
from training.run import RUN

TEMPLATES = Path(__file__).parent / "templates"
SPLITS = {
    "held_out_landscape": "landscapes never seen",
    "held_out_block": "held-out blocks",
    "held_out_random": "single polygons amid training ones, which leak",
}
LABELLED = PROJECT / "tests" / "training" / "motifs"
CEILING = "ceiling.json"


def write_report(root: Path) -> dict[str, Any]:
    """Write ``report.json`` and ``report.html`` into a workspace's folder and return what the JSON holds.

    Raises
    ------
    TrainingError
        Where the evaluation has not been run.
    """
    models = {name: root / "models" / stage for stage, name in STAGE_NAMES.items()}
    plans = [root / "plans"] if (root / "plans").is_dir() else []
    return write_run_report(root / "evaluation", root / "dataset", models, plans, root)


def write_run_report(
    evaluation: Path, dataset: Path, models: Mapping[str, Path], plans: Sequence[Path], out: Path
) -> dict[str, Any]:
    """Write ``report.json`` and ``report.html`` into ``out`` and return what the JSON holds.

    Parameters
    ----------
    evaluation : Path
        Folder that an evaluation was written into.
    dataset : Path
        The prompt dataset evaluated on; its ceiling is shown where ``landoracle ceiling`` was run on it.
    models : mapping of str to Path
        The models' folders by the names in the evaluation: their curves and records are shown.
    plans : sequence of Path
        Plans, or folders of plans: the landscapes decided whole are drawn from them.
    out : Path

    Raises
    ------
    TrainingError
        Where there is no evaluation of a model, or no dataset.
    """
    found, manifest = _read(evaluation / EVALUATION), _read(dataset / "manifest.json")
    if not found["models"]:
        raise TrainingError(f"{evaluation} holds an evaluation of baselines alone: a report is about a run")
    if "records" not in found or any("blocks" not in of for by in found["models"].values() for of in by.values()):
        raise TrainingError(f"{evaluation} was written by an earlier version: run `landoracle evaluate` again")
    model = list(found["models"])[-1]
    split = next(s for s in [*SPLITS, *found["best"]] if s in found["best"])
    ceiling = _ceiling(read_ceiling(dataset / CEILING, found["dataset_sha256"]), manifest, split)
    figures = {
        "headline": _headline(found, model, split, ceiling),
        "model": model,
        "split": split,
        "ceiling": ceiling,
        "accuracy": {s: _accuracy(found, s) for s in _ordered(found["best"])},
        "best": found["best"],
        "rewards": list(found["models"][model][split]["text"]["mean_rewards"]),
        "split_names": {s: SPLITS.get(s, s.replace("_", " ")) for s in found["best"]},
        "details": found["models"],
        "comparisons": found["comparisons"],
        "votes": found["votes"],
        "plan_worth": found["plans"],
        "reasoning": found["reasoning"],
        "detectors": _detectors(),
        "seeds": found["seeds"],
        "over_seeds": {s: found["over_seeds"][s] for s in _ordered(found["over_seeds"])},
        "stopped": {name: record["stopped"] for name, record in found["records"].items() if record["stopped"]},
        "other_style": _in_other_style(found, manifest),
        "completions": ten_completions(evaluation, model, split),
        "prompts": {name: record["prompts"] for name, record in manifest["splits"].items()},
        "variant": manifest["prompts"],
        "plans": _oracle_plans(plans, manifest),
        "lineage": _lineage(found, manifest, models),
    }
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda share: "" if share is None else f"{100 * share:.1f}\u00a0%"
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    pictures = {"curves": curves(models), "maps": maps(evaluation, model, plans)}
    page = environment.get_template("report.html.j2").render(figures=figures, pictures=pictures)
    write_json(out / "report.json", figures)
    write_text(out / "report.html", page)
    return figures


def _ordered(splits: Mapping[str, Any]) -> list[str]:
    return [s for s in SPLITS if s in splits] + [s for s in splits if s not in SPLITS]


def _accuracy(found: dict[str, Any], split: str) -> dict[str, dict[str, Any]]:
    """Everybody on one split, the best first; ``p`` values against the best."""
    deciders = {n: (kind, by[split]) for kind in ("models", "baselines") for n, by in found[kind].items()}
    with_best = {
        name: one
        for one in found["comparisons"]
        if one["split"] == split and found["best"][split] in (one["first"], one["second"])
        for name in (one["first"], one["second"])
        if name != found["best"][split]
    }
    table = {}
    for name, (kind, of) in sorted(deciders.items(), key=lambda item: -item[1][1]["accuracy"]):
        test = with_best.get(name)
        table[name] = {
            "kind": kind,
            "accuracy": of["accuracy"],
            "rows": of["rows"],
            **of["wilson"],
            "in_blocks": of["blocks"],
            "blocks": of["block_bootstrap"],
            "unique": of["unique"]["accuracy"] if of["unique"] else None,
            "balanced_accuracy": of["balanced_accuracy"],
            "macro_f1": of["macro_f1"],
            "mcc": of["mcc"],
            "regret": of["regret"],
            "text": of["text"],
            "mcnemar_p": test["mcnemar_p"] if test else None,
            "block_permutation_p": test["block_permutation_p"] if test else None,
        }
    return table


def _in_other_style(found: dict[str, Any], manifest: dict[str, Any]) -> dict[str, list[str]]:
    """Models that were asked in another style than that of the dataset's prompts, by style."""
    styles: dict[str, list[str]] = {}
    for name, record in found["records"].items():
        if record["style"] != manifest["prompts"]["style"]:
            styles.setdefault(record["style"], []).append(name)
    return styles


def _headline(found: dict[str, Any], model: str, split: str, ceiling: dict[str, Any] | None) -> str:
    of = found["models"][model][split]
    blocks = of["block_bootstrap"]
    over_blocks = (
        f"over blocks {blocks['low']:.1%} to {blocks['high']:.1%}" if blocks else "over blocks no interval can be told"
    )
    text = (
        f"{model} decides {of['accuracy']:.1%} of {of['rows']:,} polygons on {SPLITS.get(split, split)} as the "
        f"oracle does (95 % interval {of['wilson']['low']:.1%} to {of['wilson']['high']:.1%}; {over_blocks})"
    )
    if found["baselines"]:
        best = max(found["baselines"], key=lambda name: found["baselines"][name][split]["accuracy"])
        text += f"; the best baseline, {best.replace('_', ' ')}, {found['baselines'][best][split]['accuracy']:.1%}"
    if ceiling:
        text += f"; the best learner on these prompts' numbers, {ceiling['accuracy']:.1%}"
    return text + "." + _plan_sentence([one for one in found["plans"] if one["decider"] == model])


def _plan_sentence(plans: list[dict[str, Any]]) -> str:
    repaired = [one["repaired"] for one in plans if one["repaired"] and one["repaired"]["share"] is not None]
    if not plans or len(repaired) < len(plans):
        return ""
    missed = sum(bool(one["missed"]) for one in plans)
    shares = [one["share"] for one in repaired]
    changed = sum(one["changed"] for one in repaired) / sum(one["polygons"] for one in plans)
    after = f"after the smallest repair ({changed:.1%} of the polygons)"
    if len(plans) == 1:
        did = "misses" if missed else "meets"
        return f" Its plan of a landscape {did} the supply floors; {after} it reaches {shares[0]:.1%} of the optimum."
    return (
        f" Of its plans of {len(plans)} whole landscapes {missed} miss supply floors; {after} they reach "
        f"{min(shares):.1%} to {max(shares):.1%} of the optimum."
    )


def _ceiling(stated: dict[str, Any] | None, manifest: dict[str, Any], split: str) -> dict[str, Any] | None:
    """The dataset's own variant in ``ceiling.json``, where it was measured on this split."""
    if stated is None:
        return None
    variant = {key: manifest["prompts"][key] for key in ("order", "context")}
    for one in stated["variants"]:
        if stated["split"] == split and one["variant"] == variant:
            best = {key: one["best"][key] for key in ("accuracy", "wilson", "bootstrap", "learner", "fields")}
            return best | {"rows": stated["rows"]}
    return None


def _detectors() -> list[dict[str, Any]] | None:
    """What the motif detectors find in completions labelled by hand that they were not tuned on, where these are."""
    from training.labelled import measure, read_labelled

    if not LABELLED.is_dir():
        return None
    measured = measure(one for one in read_labelled(LABELLED) if one.held_out)
    return [asdict(agreement) for agreement in measured]


def _oracle_plans(plans: Sequence[Path], manifest: dict[str, Any]) -> list[dict[str, Any]]:
    roles = {source["landscape"]: source["role"] for source in manifest["sources"]}
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
    found = []
    for folder in plans:
        for path in [folder, *sorted(folder.iterdir())]:
            stated = _read(path / "solution.json") if (path / "solution.json").is_file() else {}
            if stated.get("landscape") in roles:
                found.append({key: stated[key] for key in keys} | {"role": roles[stated["landscape"]]})
    return found


def _lineage(found: dict[str, Any], manifest: dict[str, Any], models: Mapping[str, Path]) -> dict[str, Any]:
    runs = {name: _read(path / RUN) for name, path in models.items() if (path / RUN).is_file()}
    keys = ("stage", "profile", "seed", "wall_time_s", "dataset_sha256", "start", "weights_sha256", "stopped")
    stated = ("landscape", "role", "solver", "gap", "landscape_sha256", "graph_sha256", "glm_config_sha256")
    return {
        "landscapes": [{key: source[key] for key in stated} for source in manifest["sources"]],
        "dataset_sha256": found["dataset_sha256"],
        "templates_sha256": manifest["templates_sha256"],
        "weights_sha256": found["weights_sha256"],
        "training": {name: {key: run.get(key) for key in keys} for name, run in runs.items()},
        "versions": found["versions"],
    }


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TrainingError(f"{path} is missing: run the stage that writes it, then make the report")
    return json.loads(path.read_text(encoding="utf-8"))
