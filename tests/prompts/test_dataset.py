"""The dataset: same input, same bytes; what does not belong together is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from oracle.errors import DatasetError
from oracle.solution import Hashes
from prompts.config import PromptConfig
from prompts.dataset import CARD, MANIFEST, PROMPTS, PromptDataset, Source, build_dataset
from prompts.split import Role, Split, SplitConfig
from prompts.summary import _wilson_width
from prompts.transforms import AugmentConfig

ROOT = Path(__file__).parents[2]
FILES = (PROMPTS, CARD, MANIFEST)


@pytest.fixture
def sources(source: Callable[..., Source]) -> list[Source]:
    """A landscape to train on and one held out, with different crops."""
    return [
        source(12, 12, name="home", crops=("wheat", "oat")),
        source(4, 5, name="away", crops=("barley", "canola", "flax"), role=Role.HELD_OUT, seed=1),
    ]


def test_built_twice_is_the_same_to_the_byte(sources: list[Source], tmp_path: Path) -> None:
    for folder in ("once", "again"):
        build_dataset(sources, PromptConfig(order=2)).save(tmp_path / folder)
    for name in FILES:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "once").iterdir()) == sorted(FILES)


def test_another_process_builds_the_same_bytes(sources: list[Source]) -> None:
    """Neither the salt of Python's hashes nor what ran before in a process shows."""
    script = (
        "from tests.prompts.conftest import build_source; from prompts.dataset import build_dataset\n"
        "from prompts.config import PromptConfig\n"
        "home = build_source(12, 12, name='home', crops=('wheat', 'oat'))\n"
        "away = build_source(4, 5, name='away', crops=('barley', 'canola', 'flax'), role='held_out', seed=1)\n"
        "print(build_dataset([home, away], PromptConfig(order=2)).sha256)"
    )
    expected = build_dataset(sources, PromptConfig(order=2)).sha256
    environment = os.environ | {"PYTHONHASHSEED": "4711"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("context", ["none", "supply", "prices"])
def test_loading_gives_back_what_was_saved(sources: list[Source], tmp_path: Path, context: str) -> None:
    dataset = build_dataset(sources, PromptConfig.model_validate({"order": 1, "context": context}))
    dataset.save(tmp_path)
    loaded = PromptDataset.load(tmp_path)
    pd.testing.assert_frame_equal(loaded.frame, dataset.frame)
    assert loaded.manifest == dataset.manifest
    assert loaded.sha256 == dataset.sha256
    loaded.save(tmp_path / "copy")
    assert (tmp_path / "copy" / PROMPTS).read_bytes() == (tmp_path / PROMPTS).read_bytes()


def test_every_polygon_is_a_row_and_answers_come_from_its_own_crops(sources: list[Source]) -> None:
    frame = build_dataset(sources).frame
    assert frame["prompt_id"].is_unique
    assert len(frame) == 12 * 12 + 4 * 5
    away = frame[frame["landscape"] == "away"]
    assert set(map(tuple, away["classes"])) == {("barley", "canola", "flax", "habitat")}
    assert set(away["split"]) == {Split.HELD_OUT_LANDSCAPE}
    for row in frame.itertuples():
        assert row.answer in row.classes
        assert row.target.endswith(f"<answer>{row.answer}</answer>")
        assert row.shown[0] == row.polygon_id
        assert np.argmin(row.regret_low) == row.classes.index(row.answer)  # the stand-in's label costs nothing


def test_manifest_counts_what_the_rows_hold(sources: list[Source]) -> None:
    dataset = build_dataset(sources)
    for split, record in dataset.manifest.splits.items():
        rows = dataset.split(split)
        assert record.prompts == len(rows)
        for name, share in record.classes.items():
            assert share == pytest.approx((rows["answer"] == name).mean(), abs=1e-6)
    home, away = dataset.manifest.sources
    assert (home.role, away.role) == (Role.TRAIN, Role.HELD_OUT)
    assert home.landscape_sha256 == sources[0].landscape.sha256
    assert len(home.held_out_blocks) >= 1


def test_small_splits_say_how_wide_their_interval_will_be(sources: list[Source]) -> None:
    dataset = build_dataset(sources)
    small = [note for note in dataset.manifest.notes if "Wilson" in note]
    assert [note.split()[0] for note in small] == ["held_out_block", "held_out_landscape", "held_out_random"]
    # 13 of 20 right: (0.65 + 0.0960) / 1.1921 -+ 1.96 / 1.1921 * sqrt(0.65 * 0.35 / 20 + 0.0024) = 0.4329 .. 0.8188
    assert "held_out_landscape has only 20 rows" in small[1]
    assert "of 0.65 will be 38.6 points wide" in small[1]


@pytest.mark.parametrize("rows", [20, 400, 2_000])
def test_interval_widths_are_wilson_s(rows: int) -> None:
    for share in (0.65, 0.5):
        interval = binomtest(round(share * rows), rows).proportion_ci(method="wilson")
        assert _wilson_width(share, rows) == pytest.approx(interval.high - interval.low, abs=1e-4)


def test_locked_polygons_are_left_out_and_counted(source: Callable[..., Source]) -> None:
    locked = [None] * 15 + ["habitat"]
    dataset = build_dataset([source(4, 4, locked=locked)], PromptConfig(order=1))
    assert "r3c3" not in set(dataset.frame["polygon_id"])
    assert any("r3c3" in shown for shown in dataset.frame["shown"])  # still somebody's neighbour
    assert dataset.manifest.sources[0].locked == 1
    assert any("1 polygons with a locked land use" in note for note in dataset.manifest.notes)


def test_a_small_landscape_alone_says_that_nothing_is_held_out(source: Callable[..., Source]) -> None:
    dataset = build_dataset([source(3, 3)])
    assert set(dataset.frame["split"]) <= {Split.TRAIN, Split.HELD_OUT_RANDOM}
    assert any("nothing can be evaluated" in note for note in dataset.manifest.notes)
    assert any("no block is held out in grid" in note for note in dataset.manifest.notes)


def test_one_landscape_alone_is_split_by_blocks(source: Callable[..., Source]) -> None:
    splits = build_dataset([source(12, 12)], split_config=SplitConfig(buffer=1)).manifest.splits
    assert splits["train"].prompts > splits["held_out_block"].prompts > 0
    assert splits["held_out_landscape"].prompts == 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_changed_or_lost_is_found_out(sources: list[Source], tmp_path: Path, name: str) -> None:
    build_dataset(sources).save(tmp_path)
    with (tmp_path / name).open("ab") as file:
        file.write(b"!")
    with pytest.raises(DatasetError, match=name):
        PromptDataset.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DatasetError, match=f"lacks {name}"):
        PromptDataset.load(tmp_path)


def test_what_does_not_belong_together_is_refused(sources: list[Source], source: Callable[..., Source]) -> None:
    home, away = sources
    with pytest.raises(DatasetError, match="polygons or classes differ"):
        build_dataset([replace(home, solution=away.solution)])
    stale = replace(home.solution, hashes=Hashes("0" * 64, home.graph.sha256, ""))  # type: ignore[type-var]
    with pytest.raises(DatasetError, match="computed from another landscape"):
        build_dataset([replace(home, solution=stale)])
    with pytest.raises(DatasetError, match="home were given twice"):
        build_dataset([home, home])
    with pytest.raises(DatasetError, match="no landscape"):
        build_dataset([])


def test_labels_outside_the_classes_are_refused(
    sources: list[Source], relabel: Callable[[Source, str], Source]
) -> None:
    with pytest.raises(DatasetError, match="found tulips"):
        build_dataset([relabel(sources[0], "tulips")])


def test_held_out_landscape_that_is_trained_on_under_another_name_is_refused(source: Callable[..., Source]) -> None:
    train, held_out = source(4, 4, name="a"), source(4, 4, name="b", role=Role.HELD_OUT)
    with pytest.raises(DatasetError, match="b are also trained on"):
        build_dataset([train, held_out])


@pytest.mark.parametrize("crops", [("oat", "Oat"), ("a|b",), ("</answer>",), ("two\nlines",), (" oat",)])
def test_names_that_cannot_be_answers_are_refused(source: Callable[..., Source], crops: tuple[str, ...]) -> None:
    with pytest.raises(DatasetError, match="cannot be answers"):
        build_dataset([source(2, 2, crops=crops)])


def test_card_names_splits_and_landscapes(sources: list[Source], tmp_path: Path) -> None:
    build_dataset(sources).save(tmp_path)
    card = (tmp_path / CARD).read_text()
    assert "164 prompts from 2 landscape(s)" in card
    assert "| away | held_out | 20 |" in card
    assert "| held_out_landscape | 20 | 38.6 / 40.1 |" in card
    assert "the only right answer (the default, `labels: keep`)" in card
    assert "It leaks by its nature" in card
    assert "yields (t/ha) to 2 decimals" in card


def test_manifest_says_how_long_blocks_are_and_why(sources: list[Source]) -> None:
    (measured, few), (by_hand, _) = (
        build_dataset(sources, split_config=config).manifest.sources
        for config in (SplitConfig(), SplitConfig(block_m=2_400.0))
    )
    assert measured.yield_range_m is not None
    assert (measured.block_rule, measured.block_m) == ("yield range", measured.yield_range_m)
    assert measured.block_m < 3 * 800  # the stand-in's yields are noise
    assert (few.block_rule, few.yield_range_m) == ("a third of the landscape", None)  # 20 polygons tell nothing
    assert (by_hand.block_rule, by_hand.block_m, by_hand.yield_range_m) == ("set", 2_400.0, None)


def test_copies_turn_and_shuffle_training_rows_alone(source: Callable[..., Source]) -> None:
    config = PromptConfig(order=1, context="none")
    plain = build_dataset([source(8, 8)], config).frame
    copied = build_dataset([source(8, 8)], config, augment=AugmentConfig(rotations=True, shuffles=1)).frame
    training = plain[plain["split"] == "train"]
    assert len(copied) == len(plain) + 8 * len(training)
    copies = copied[copied["prompt_id"].str.contains("~")]
    assert set(copies["split"]) == {"train"}
    assert copied["prompt_id"].is_unique
    answers = dict(zip(plain["prompt_id"], plain["answer"], strict=True))
    assert [answers[i.split("~")[0]] for i in copies["prompt_id"]] == copies["answer"].tolist()


def test_copies_of_prompts_without_neighbours_are_refused(source: Callable[..., Source]) -> None:
    with pytest.raises(DatasetError, match="order 0 show no neighbours"):
        build_dataset([source(4, 4)], PromptConfig(order=0), augment=AugmentConfig(rotations=True))
