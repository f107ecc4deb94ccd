"""The detectors of the motifs, measured on completions labelled by hand (``motifs/README.md``)."""

from pathlib import Path

import pytest

from oracle.errors import DatasetError
from prompts.claims import Status
from training.labelled import Agreement, Labelled, measure, read_labelled
from training.motifs import SEED_SHARE, Motif, Shown, motif_table, motifs
from training.reasoning import conclusion, conclusion_figures, think_block

FOLDER = Path(__file__).parent / "motifs"
MOTIFS = [motif.value for motif in Motif]


@pytest.fixture(scope="module")
def labelled() -> list[Labelled]:
    return read_labelled(FOLDER)


@pytest.fixture(scope="module", params=["tuned on", "held out"])
def agreement(request: pytest.FixtureRequest, labelled: list[Labelled]) -> dict[str, Agreement]:
    return {a.what: a for a in measure(one for one in labelled if one.held_out == (request.param == "held out"))}


def test_the_fixture_is_large_and_a_third_of_it_held_out(labelled: list[Labelled]) -> None:
    held_out = [one for one in labelled if one.held_out]
    assert len(labelled) >= 200
    assert len(held_out) / len(labelled) >= 0.32
    assert len({one.completion for one in labelled}) == len(labelled)
    for part in (held_out, labelled):
        for motif in Motif:
            shown = sum(motif in one.motifs for one in part)
            assert 4 <= shown < len(part), motif


@pytest.mark.parametrize("motif", MOTIFS)
def test_motifs_are_found_and_look_alikes_are_not(agreement: dict[str, Agreement], motif: str) -> None:
    assert agreement[motif].precision >= 0.9
    assert agreement[motif].recall >= 0.7


@pytest.mark.parametrize(
    ("what", "precision", "recall"),
    [
        ("status of motifs", 0.9, 0.9),
        ("conclusion", 0.95, 0.9),
        ("numbers supported", 0.95, 0.93),
        ("numbers contradicted", 0.85, 0.8),
        ("comparisons supported", 0.9, 0.9),
        ("comparisons contradicted", 0.8, 0.9),
    ],
)
def test_claims_agree_with_their_labels(
    agreement: dict[str, Agreement], what: str, precision: float, recall: float
) -> None:
    assert agreement[what].precision >= precision
    assert agreement[what].recall >= recall


def test_a_detector_that_says_everything_would_fail(labelled: list[Labelled]) -> None:
    """The look-alikes are there: no motif is in so many completions that always finding it would pass."""
    for motif in Motif:
        assert sum(motif in one.motifs for one in labelled) / len(labelled) < 0.5


def test_the_table_counts_each_motif_once_per_completion(labelled: list[Labelled]) -> None:
    one = next(one for one in labelled if one.name == "distilled:2")
    other = next(one for one in labelled if one.name == "terse:22")
    assert motifs(one.completion, one.facts, one.answer) == [
        Shown(Motif.YIELD_MAX, Status.SUPPORTED),
        Shown(Motif.TIE_BREAK, Status.SUPPORTED),
    ]
    both = [one, one, other]
    table = motif_table([b.completion for b in both], [b.facts for b in both], [b.answer for b in both])
    lines = {line.motif: line for line in table.motifs}
    assert lines[Motif.YIELD_MAX].share == pytest.approx(2 / 3)
    assert (lines[Motif.YIELD_MAX].shown, lines[Motif.YIELD_MAX].supported) == (2, 2)
    assert (lines[Motif.CORRIDOR].shown, lines[Motif.CORRIDOR].contradicted) == (1, 1)
    assert [line.seed_share for line in table.motifs] == list(SEED_SHARE.values())
    assert [counts.kind for counts in table.claims] == ["numbers", "comparisons"]
    assert table.claims[0].supported == 8  # 3.40, 3.25, 0.62 and 0.48, twice


def test_an_unknown_label_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "neighbourhoods.json").write_text((FOLDER / "neighbourhoods.json").read_text())
    (tmp_path / "some.txt").write_text("=== line | tie_brake:s | -\n<think>so</think><answer>corn</answer>\n")
    with pytest.raises(DatasetError, match=r"some\.txt, completion 1: .*tie_brake"):
        read_labelled(tmp_path)


@pytest.mark.parametrize(
    ("reasoning", "said"),
    [
        ("wheat 9.1 oat 6.7 habitat 1.6", None),
        ("Oat is possible. So habitat rather than oat.", "habitat"),
        ("I could take oat, or wheat. The answer is not oat but wheat.", "wheat"),
        ("", None),
    ],
)
def test_conclusions(reasoning: str, said: str | None) -> None:
    assert conclusion(f"<think>{reasoning}</think><answer>oat</answer>", ("wheat", "oat", "habitat")) == said


def test_conclusions_beside_answers() -> None:
    turns = ["<think>So oat.</think>", "<think>So wheat.</think>", "<think>oat 1.0</think>"]
    figures = conclusion_figures(turns, [("wheat", "oat", "habitat")] * 3, ["oat", "oat", "oat"])
    assert (figures.completions, figures.concluded, figures.agreed) == (3, 2, 1)
    assert figures.agreed_share.low < 0.5 < figures.agreed_share.high


@pytest.mark.parametrize(
    ("turn", "block"),
    [
        ("<think>a</think><answer>oat</answer>", "a"),
        ("a</think><answer>oat</answer>", "a"),  # the template opened the block
        ("a <answer>oat</answer>", "a "),
        ("<think>a", "a"),
    ],
)
def test_think_block(turn: str, block: str) -> None:
    assert think_block(turn) == block
