"""The rewards that exports ship: loaded as other trainers do, with the values of the rewards trained with here."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.errors import DatasetError
from training.reward_file import reward_file
from training.rewards import build_rewards
from training.turn import TAGS

CLASSES = ["wheat", "oat", "corn", "soy", "habitat"]
CASES = [json.loads(line) for line in (Path(__file__).parent.parent / "cases/rewards.jsonl").read_text().splitlines()]
TURNS = [case for case in CASES if "id" in case]
REPETITIONS = [case for case in CASES if case.get("ngram") == 3 and case["max_penalty"] == -1.0]
PIECES = st.lists(st.sampled_from([*TAGS, " ", "\n", "wheat", "Oat", "corn.", "barley", "0.7"]), max_size=12).map(
    "".join
)
NAMES = ["lu_reward", "format_reward", "repetition_penalty"]


def load(folder: Path, **settings: object) -> ModuleType:
    """As verl and OpenRLHF do: by path, without an entry in ``sys.modules``."""
    file = folder / "reward.py"
    file.write_text(reward_file(**settings), encoding="utf-8")  # type: ignore[arg-type]
    spec = importlib.util.spec_from_file_location("reward_func", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "reward_func" not in sys.modules
    return module


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load(tmp_path_factory.mktemp("reward"))


@pytest.mark.parametrize("case", TURNS, ids=[f"{c['id']}-{c['name']}" for c in TURNS])
def test_every_case_of_the_table_in_every_trainer_s_form(case: dict, shipped: ModuleType) -> None:
    said, answer, prefill = case["completion"], case["answer"], case["prefill"]
    info = {"classes": CLASSES, "accepted": [answer]}
    if case["land_use"] is None:  # the label is not one of the classes: the data is wrong, not the model
        with pytest.raises(ValueError, match="barley"):
            shipped.compute_score("landoracle/train", said, answer, info)
        return
    expected = {"acc": case["land_use"], "format": case["format"]}
    expected["score"] = pytest.approx(0.6 * expected["acc"] + 0.4 * expected["format"])
    text = shipped.text_of(said)  # verl and OpenRLHF know no messages
    verl = shipped.compute_score("landoracle/train", text, answer, info, prefill=prefill)
    assert {name: verl[name] for name in expected} == expected
    prompt, label = f"<|user|>decide<|assistant|>{prefill}", json.dumps({"answer": answer, "classes": CLASSES})
    rlhf = shipped.reward_func([f"{prompt}{text}<|im_end|>"], [prompt], [label])
    assert rlhf["scores"].tolist() == rlhf["rewards"].tolist() == [expected["score"]]
    assert rlhf["extra_logs"]["acc"].tolist() == [expected["acc"]]
    if not prefill:
        assert shipped.lu_reward(completions=[said], answer=[answer], classes=[CLASSES]) == [expected["acc"]]
        assert shipped.format_reward(completions=[said], classes=[CLASSES]) == [expected["format"]]


@pytest.mark.parametrize("case", REPETITIONS, ids=[c["completion"] or "empty" for c in REPETITIONS])
def test_repetition_cases(case: dict, shipped: ModuleType) -> None:
    assert shipped.repetition_penalty([case["completion"]]) == [pytest.approx(case["repetition"], abs=1e-6)]


@given(PIECES, st.sampled_from(CLASSES), st.sampled_from(["", "<think>\n"]), st.booleans())
def test_any_turn_has_the_values_trained_with_here(
    shipped_for: dict[tuple[str, bool], ModuleType], text: str, answer: str, prefill: str, thinks: bool
) -> None:
    module = shipped_for[prefill, thinks]
    columns = {"completions": [[{"role": "assistant", "content": text}]], "answer": [answer], "classes": [CLASSES]}
    ours = [reward(prompts=["?"], **columns) for reward in build_rewards(NAMES, prefill=prefill, thinks=thinks)]
    assert [getattr(module, name)(prompts=["?"], **columns) for name in NAMES] == ours


@pytest.fixture(scope="module")
def shipped_for(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], ModuleType]:
    return {
        (prefill, thinks): load(tmp_path_factory.mktemp("reward"), prefill=prefill, thinks=thinks)
        for prefill in ("", "<think>\n")
        for thinks in (True, False)
    }


def test_gold_scores_one_and_its_neighbours_what_they_deserve(shipped_for: dict[tuple[str, bool], ModuleType]) -> None:
    for (_, thinks), module in shipped_for.items():
        gold, wrong = module.gold_turn("oat"), module.gold_turn("corn")
        unformed = f"so: {gold}" if thinks else f"<think>x</think>{gold}"
        said = [gold, wrong, unformed, "", "oat"]
        scores = [module.judge(text, "oat", CLASSES, prefill="")["score"] for text in said]
        assert scores == [1.0, 0.4, 0.6, 0.0, 0.0]


def test_every_answer_that_a_tied_label_accepts_is_right(shipped: ModuleType) -> None:
    said = [shipped.gold_turn(name) for name in ("oat", "corn", "soy")]
    columns = {"answer": ["oat"] * 3, "classes": [CLASSES] * 3, "accepted": [["oat", "corn"]] * 3}
    assert shipped.lu_reward(said, **columns) == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="flax"):
        shipped.judge(said[0], "oat", CLASSES, ["flax"], prefill="")


def test_data_that_is_not_the_exported_one_is_refused(shipped: ModuleType) -> None:
    with pytest.raises(ValueError, match="classes"):
        shipped.compute_score("landoracle/train", "<answer>oat</answer>", "oat", {"index": 3})
    with pytest.raises(ValueError, match="prompt"):
        shipped.reward_func(["other prompt"], ["prompt"], [json.dumps({"answer": "oat", "classes": CLASSES})])


def test_the_file_needs_no_landoracle(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(reward_file(), encoding="utf-8")
    script = (
        "import runpy, sys; known = runpy.run_path('reward.py');"
        "assert known['compute_score']('x', known['gold_turn']('oat'), 'oat', {'classes': ['oat']})['score'] == 1.0;"
        "assert not {'training', 'prompts', 'oracle', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-I", "-c", script], cwd=tmp_path, check=True)


def test_the_file_is_the_source_itself() -> None:
    text = reward_file(prefill="<think>\n", thinks=False)
    assert "PREFILL = '<think>\\n'" in text
    assert "THINKS = False" in text
    assert "from training" not in text
    assert "__future__" not in text
    turn = Path("training/turn.py")
    source = (Path(__file__).parents[2] / turn).read_text(encoding="utf-8")
    assert source[source.index("THINK_OPEN, THINK_CLOSE =") :].strip() in text


def test_the_in_tree_rewards_refuse_what_the_file_refuses() -> None:
    (reward,) = build_rewards(["lu_reward"])
    with pytest.raises(DatasetError, match="barley"):
        reward(["?"], ["<answer>barley</answer>"], answer=["barley"], classes=[CLASSES])
