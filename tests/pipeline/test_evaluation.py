"""Evaluating runs from the command line: figures, whole plans, several seeds, comparisons, and the report as a page."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.solution import save_solution
from oracle.solve import solve
from pipeline.cli import app
from pipeline.report import write_run_report
from pipeline.report_completions import ten_completions
from pipeline.runs import models_of, named
from prompts.config import PromptConfig
from prompts.dataset import PromptDataset, Source, build_dataset
from prompts.split import Role, SplitConfig
from tests.pipeline.chromium import CHROMIUM, browser, needs_chromium
from tests.prompts.conftest import grid_landscape
from training.ceiling import ceiling, save_ceiling
from training.config import load_profile
from training.evaluate import evaluate
from training.held_out_plans import held_out_plans
from training.sft import run_sft

TINY = [
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=320"),
    *("sft.per_device_train_batch_size=8", "sft.max_steps=2", "sft.save_steps=2", "threads=1"),
    *("grpo.max_completion_length=24", "evaluation.samples=2", "evaluation.sampled_rows=5", "evaluation.repair_s=1"),
]


@dataclass(frozen=True)
class Made:
    """Two runs of one configuration on a small dataset, the first one evaluated."""

    plans: Path
    dataset: Path
    first: Path
    second: Path
    reported: dict

    @property
    def evaluation(self) -> Path:
        return self.first / "evaluation"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("evaluated")
    config = GLMConfig(prices={"wheat": 280.0, "oat": 250.0}, supply_floors={"wheat": 0.8, "oat": 0.5})
    sources = []
    for k, name in enumerate(("near", "nearer", "far", "farther")):
        landscape = grid_landscape(5, 5, name=name, seed=k)
        graph = neighbour_graph(landscape)
        solution = solve(landscape, graph, config)
        save_solution(root / "plans" / name, landscape, graph, solution)
        sources.append(Source(landscape, graph, solution, Role.HELD_OUT if name.startswith("far") else Role.TRAIN))
    profile = load_profile("pocket", TINY)
    splits = SplitConfig(random_share=0.3, block_share=0.0)
    dataset = build_dataset(sources, PromptConfig.model_validate(profile.prompts.model_dump()), splits)
    dataset.save(root / "dataset")
    save_ceiling(root / "dataset", ceiling([dataset]))
    for seed in (1, 2):
        run_sft(
            dataset.frame,
            load_profile("pocket", [*TINY, f"seed={seed}"]),
            root / f"mine-{seed}" / "sft",
            dataset_sha256=dataset.sha256,
        )
    models = {"SFT": root / "mine-1" / "sft"}
    evaluate(
        dataset.frame,
        models,
        profile,
        root / "mine-1" / "evaluation",
        dataset_sha256=dataset.sha256,
        prompts=dataset.manifest.prompts,
        plans=held_out_plans([root / "plans"], dataset.manifest),
    )
    folder = root / "mine-1" / "evaluation"
    reported = write_run_report(folder, root / "dataset", models, [root / "plans"], folder)
    return Made(root / "plans", root / "dataset", root / "mine-1", root / "mine-2", reported)


def test_predictions_say_what_the_figures_count(made: Made) -> None:
    figures = json.loads((made.evaluation / "evaluation.json").read_text())
    table = pd.read_parquet(made.evaluation / "predictions.parquet")
    assert {"prompt_id", "completion", "decision", "well_formed", "votes", "regret"} <= set(table)
    assert set(figures["best"]) == {"held_out_landscape", "held_out_random"}
    for name, by_split in (figures["models"] | figures["baselines"]).items():
        for split, of in by_split.items():
            rows = table[(table["model"] == name) & (table["split"] == split)]
            assert of["accuracy"] == rows["correct"].mean()
            assert of["unique"]["rows"] == (rows["status"] == "unique").sum()
            assert of["regret"]["mean"] == pytest.approx(rows["regret"].mean())
            assert rows.loc[rows["correct"], "regret"].eq(0).all()
    sampled = table[(table["model"] == "SFT") & (table["split"] == "held_out_landscape")]["votes"].dropna()
    assert sampled.map(len).tolist() == [2] * 5
    assert figures["votes"]["SFT"]["held_out_landscape"]["rows"] == 5
    compared = {(c["first"], c["second"]) for c in figures["comparisons"] if c["split"] == "held_out_landscape"}
    assert all(figures["best"]["held_out_landscape"] in pair for pair in compared)
    assert len(compared) == len(figures["models"] | figures["baselines"]) - 1


def test_whole_plans_are_priced_for_everybody(made: Made) -> None:
    figures = json.loads((made.evaluation / "evaluation.json").read_text())
    plans = pd.read_parquet(made.evaluation / "plans.parquet")
    deciders = set(figures["models"] | figures["baselines"])
    assert {(p["landscape"], p["decider"]) for p in figures["plans"]} == {
        (name, d) for name in ("far", "farther") for d in deciders
    }
    for one in figures["plans"]:
        rows = plans[(plans["landscape"] == one["landscape"]) & (plans["model"] == one["decider"])]
        assert len(rows) == one["polygons"] == 25
        assert (rows["land_use"] == rows["oracle"]).sum() == one["agree"]
        assert (rows["land_use"] != rows["repaired"]).sum() == one["repaired"]["changed"]
        assert one["repaired"]["objective"] <= one["upper_bound"] + 1e-9
        assert bool(one["missed"]) == (one["repaired"]["changed"] > 0)


class _Page(HTMLParser):
    """Everything that a page takes from elsewhere, its open tags, and its text."""

    VOID = frozenset({"meta", "img", "br", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_is_one_page_that_takes_nothing_from_elsewhere(made: Made) -> None:
    source = (made.evaluation / "report.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(source)
    assert page.open == []
    assert page.sources
    assert all(of.startswith("data:image/png;base64,") for of in page.sources)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "url(" not in source
    assert "@import" not in source
    assert made.reported["headline"] in page.text
    for asked in ("Confusion", "What the plans are worth", "Votes", "Reasoning of SFT", "Completions", "Lineage"):
        assert asked in page.text
    assert page.tags.count("img") == 3  # two landscapes, one curve


def test_the_report_says_the_same_to_machines(made: Made) -> None:
    report = json.loads((made.evaluation / "report.json").read_text())
    assert report == json.loads(json.dumps(made.reported))
    assert list(report["accuracy"]) == ["held_out_landscape", "held_out_random"]
    assert "leak" in report["split_names"]["held_out_random"]
    shown = [of["accuracy"] for of in report["accuracy"]["held_out_landscape"].values()]
    assert shown == sorted(shown, reverse=True)
    stated = json.loads((made.dataset / "ceiling.json").read_text())
    assert report["ceiling"]["accuracy"] in [v["best"]["accuracy"] for v in stated["variants"]]
    assert f"{report['ceiling']['accuracy']:.1%}" in report["headline"]
    assert "supply floors" in report["headline"]
    measured = {one["what"]: one for one in report["detectors"]}
    one = measured["yield_max"]
    assert one["agreed"] <= min(one["found"], one["labelled"])
    assert one["labelled"] < 30  # of the third on which the detectors were not tuned
    assert f"<td>{one['agreed']} of {one['found']}</td>" in (made.evaluation / "report.html").read_text()
    assert set(report["lineage"]["training"]["SFT"]) >= {"weights_sha256", "dataset_sha256", "seed"}
    assert {s["landscape"] for s in report["lineage"]["landscapes"]} == {"near", "nearer", "far", "farther"}


@needs_chromium
def test_a_browser_shows_it_on_a_phone_and_prints_it(made: Made, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    source = (made.evaluation / "report.html").read_text(encoding="utf-8")
    page = tmp_path / "phone.html"
    read = "const d = this.contentDocument.documentElement; document.title = [d.scrollWidth, d.clientWidth, "
    read += "[...this.contentDocument.images].every(i => i.complete && i.naturalWidth > 0)].join()"
    page.write_text(
        f'<!doctype html><iframe width="360" height="700" srcdoc="{html.escape(source)}" onload="{read}"></iframe>',
        encoding="utf-8",
    )
    quiet = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*quiet, "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    width, window, pictures = shown.split("<title>")[1].split("</title>")[0].split(",")
    assert int(width) <= int(window) <= 360  # wide tables scroll by themselves, the page does not
    assert pictures == "true"
    pdf = tmp_path / "report.pdf"
    uri = (made.evaluation / "report.html").as_uri()
    subprocess.run([*quiet, f"--print-to-pdf={pdf}", uri], capture_output=True, timeout=60, check=True)
    assert pdf.read_bytes().startswith(b"%PDF")


@needs_chromium
def test_every_table_fits_on_printed_paper_and_the_maps_are_legible_on_a_phone(made: Made) -> None:
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 680, "height": 980})  # A4 within its margins, CSS pixels
        page.emulate_media(media="print")
        page.goto((made.evaluation / "report.html").as_uri())
        widths = page.evaluate("[...document.querySelectorAll('table, img')].map(one => one.scrollWidth)")
        assert len(widths) > 8
        assert max(widths) <= 680
        assert page.evaluate("document.documentElement.scrollWidth") <= 680
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 360, "height": 740})
        assert min(page.evaluate("[...document.querySelectorAll('.map')].map(one => one.clientWidth)")) >= 600
        assert page.evaluate("document.documentElement.scrollWidth") <= 360  # they scroll by themselves


def test_runs_of_several_seeds_and_their_comparison(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "both"
    more = ("--set", "evaluation.samples=0", "--set", "evaluation.cited_rows=0", "--out", out)
    assert "say with --out" in run("evaluate", made.first, made.second, made.dataset).stderr
    result = run("evaluate", made.first, made.second, made.dataset, *more)
    assert result.exit_code == 0, result.output
    figures = json.loads((out / "evaluation.json").read_text())
    assert list(figures["models"]) == ["mine-1 SFT", "mine-2 SFT"]
    (group,) = figures["seeds"]
    assert (group["name"], group["runs"]) == ("mine-* SFT", ["mine-1 SFT", "mine-2 SFT"])
    found = [figures["models"][name]["held_out_landscape"]["accuracy"] for name in group["runs"]]
    spread = group["figures"]["held_out_landscape"]["accuracy"]
    assert (spread["low"], spread["high"]) == (min(found), max(found))
    assert spread["mean"] == pytest.approx(sum(found) / 2)
    assert (out / "report.html").is_file()

    result = run("compare", made.first, f"both={out}", "--json", "--out", tmp_path / "compared.json")
    assert result.exit_code == 0, result.output
    compared = json.loads(result.stdout)
    assert compared == json.loads((tmp_path / "compared.json").read_text())
    assert compared["models"] == {"mine-1": "SFT", "both": "mine-2 SFT"}
    (difference,) = (d for d in compared["differences"] if d["split"] == "held_out_landscape")
    assert difference["difference"] == pytest.approx(found[1] - found[0])
    assert difference["block_bootstrap"] is None  # after two steps neither decides anything: all blocks are alike
    assert "differences" in run("compare", made.first, f"both={out}").stdout


def test_other_labels_cannot_be_compared(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.evaluation, tmp_path / "shuffled")
    table = pd.read_parquet(tmp_path / "shuffled" / "predictions.parquet")
    table.assign(answer=table["answer"].to_numpy()[::-1]).to_parquet(tmp_path / "shuffled" / "predictions.parquet")
    result = run("compare", made.first, tmp_path / "shuffled")
    assert result.exit_code == 1
    assert "other labels" in " ".join(result.stderr.split())
    table.assign(accepted=[["wheat", "oat", "habitat"]] * len(table)).to_parquet(
        tmp_path / "shuffled" / "predictions.parquet"
    )
    result = run("compare", made.first, tmp_path / "shuffled")
    assert result.exit_code == 1
    assert "ties count in one dataset and not in the other" in " ".join(result.stderr.split())
    assert "at least two runs" in run("compare", made.first).stderr
    assert "landoracle evaluate" in " ".join(run("compare", made.first, made.second).stderr.split())


def test_rows_that_only_one_run_decided_are_counted(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.evaluation, tmp_path / "fewer")
    table = pd.read_parquet(tmp_path / "fewer" / "predictions.parquet")
    kept = table.groupby(["model", "split"]).cumcount() >= 3
    table[kept].to_parquet(tmp_path / "fewer" / "predictions.parquet")
    assert "mine-1: 3 further rows that not all runs decided" in run("compare", made.first, tmp_path / "fewer").stdout


def test_of_few_blocks_the_report_gives_no_interval_over_blocks(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.evaluation, tmp_path / "one")
    frame = PromptDataset.load(made.dataset).frame
    frame = frame[frame["split"] != "held_out_random"].assign(block="alone")
    models = {"SFT": made.first / "sft"}
    evaluate(frame, models, load_profile("pocket", TINY), tmp_path / "one")
    shown = write_run_report(tmp_path / "one", made.dataset, models, [], tmp_path / "one")
    assert "; over blocks no interval can be told)" in shown["headline"]
    page = (tmp_path / "one" / "report.html").read_text()
    assert "50 polygons in 1 block<" in page
    assert "<td>–</td>" in page
    compared = run("compare", f"a={tmp_path / 'one'}", f"b={tmp_path / 'one'}").stdout
    assert "b - a +0.0 - 1 1" in " ".join(compared.split())


def test_a_plan_of_something_else_is_refused(made: Made, tmp_path: Path) -> None:
    result = run("evaluate", made.first, made.dataset, "--plans", made.plans / "near", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert not (tmp_path / "out" / "evaluation.json").exists()


def test_runs_are_found_and_named(made: Made, tmp_path: Path) -> None:
    assert models_of([str(made.first)]) == {"SFT": made.first / "sft"}
    assert models_of([f"a={made.first}", str(made.second / "sft")]) == {
        "a SFT": made.first / "sft",
        "sft": made.second / "sft",
    }
    assert named(str(made.first)) == ("mine-1", made.first)
    assert "two runs are called" in run("evaluate", made.first / "sft", made.second / "sft", made.dataset).stderr
    assert "no finished run" in run("evaluate", tmp_path, made.dataset).stderr


def test_ten_completions_show_the_best_the_worst_and_the_most_costly(tmp_path: Path) -> None:
    n = 16
    table = pd.DataFrame(
        {
            "prompt_id": [f"a:{i}" for i in range(n)],
            "model": "m",
            "split": "held_out_block",
            "answer": "oat",
            "decision": ["oat"] * 5 + ["corn"] * 7 + [None] * 4,
            "correct": [True] * 5 + [False] * 11,
            "well_formed": [True] * 12 + [False] * 4,
            "tokens": range(n),
            "regret": [0.0] * 5 + [0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4] + [0.9] * 4,
            "worst_regret": [0.5, 0.9, 0.1, 0.8, 0.7] + [0.9] * 11,
            "completion": "...",
        }
    )
    table.to_parquet(tmp_path / "predictions.parquet")
    shown = [(c["kind"], int(c["prompt_id"][2:])) for c in ten_completions(tmp_path, "m", "held_out_block")]
    assert shown == [
        *[("best", i) for i in (1, 3, 4)],  # right where most was at stake
        *[("most costly", i) for i in (6, 8, 10, 11)],  # decided, by regret
        *[("worst", i) for i in (15, 14, 13)],  # nothing decided, the longest first
    ]
