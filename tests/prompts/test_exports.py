"""Exports: files that each trainer loads, no held-out row where it trains, the same to the byte each time."""

from __future__ import annotations

import hashlib
import importlib
import json
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, TypeVar

import pandas as pd
import pydantic
import pytest
import yaml

from oracle.errors import DatasetError
from prompts.config import Layout, PromptConfig
from prompts.dataset import PromptDataset, Source, build_dataset
from prompts.exports.card import read_ceiling
from prompts.exports.export import Target, export
from prompts.split import Role, Split
from training.reward_file import reward_file

LEAK_FREE = {Split.HELD_OUT_BLOCK.value, Split.HELD_OUT_LANDSCAPE.value}


@pytest.fixture(scope="module")
def dataset(source_once: Callable[..., Source]) -> PromptDataset:
    """Two landscapes with different crops: one to train on, with a held-out block and its buffer, one held out."""
    home = source_once(12, 12, name="home", crops=("wheat", "oat"))
    away = source_once(4, 5, name="away", crops=("barley", "flax"), role=Role.HELD_OUT, seed=1)
    return build_dataset([home, away], PromptConfig(order=1, layout=Layout.FULL))


@pytest.fixture(params=list(Target))
def exported(request: pytest.FixtureRequest, dataset: PromptDataset, tmp_path: Path) -> tuple[Target, Path]:
    export(dataset, request.param, tmp_path / "out", rewards=reward_file())
    return request.param, tmp_path / "out"


def read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return pd.read_parquet(file).to_dict("records")


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        str(f.relative_to(folder)): read(f) for f in sorted(folder.rglob("*")) if f.suffix in (".jsonl", ".parquet")
    }


def ids(rows: list[dict[str, Any]]) -> set[str]:
    return {row["extra_info"]["prompt_id"] if "extra_info" in row else row["prompt_id"] for row in rows}


def ids_of(dataset: PromptDataset, *splits: str) -> set[str]:
    return set(dataset.split(*splits)["prompt_id"])


def test_no_held_out_row_is_trained_on_and_none_is_lost(exported: tuple[Target, Path], dataset: PromptDataset) -> None:
    _, folder = exported
    buffer = ids_of(dataset, "buffer")
    assert buffer
    for name, rows in tables(folder).items():
        split = Path(name).stem
        wanted = LEAK_FREE if split == "test" else {split}
        assert ids(rows) == ids_of(dataset, *wanted)
        assert len(rows) == len(ids(rows))
        assert not ids(rows) & buffer


def test_exported_twice_is_the_same_to_the_byte_and_as_its_manifest_says(
    exported: tuple[Target, Path], dataset: PromptDataset, tmp_path: Path
) -> None:
    target, folder = exported
    export(dataset, target, tmp_path / "again", rewards=reward_file())
    files = {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    assert files == {
        str(f.relative_to(tmp_path / "again")): f.read_bytes() for f in (tmp_path / "again").rglob("*") if f.is_file()
    }
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert manifest["rows"] == {
        s.value: len(dataset.split(s)) for s in Split if s is not Split.BUFFER and len(dataset.split(s))
    }
    assert manifest["dataset"]["files"]["prompts.parquet"] == dataset.sha256
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_the_folder_loads_by_its_card(
    exported: tuple[Target, Path], dataset: PromptDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    target, folder = exported
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    splits = set(dataset.frame["split"]) - {Split.BUFFER.value}
    assert splits >= {"train", *LEAK_FREE}
    assert set(loaded) == (splits - LEAK_FREE | {"test"} if target is Target.OPENR1 else splits)
    assert loaded["train"].num_rows == len(dataset.split("train"))
    if target is Target.TRL:
        sft = datasets.load_dataset(str(folder), "sft", cache_dir=str(tmp_path / "cache"))["train"][0]
        assert [m["role"] for m in sft["prompt"]] == ["system", "user"]
        assert sft["completion"] == [{"role": "assistant", "content": dataset.split("train")["target"][0]}]


def test_trl_and_openr1_score_every_gold_completion_one(dataset: PromptDataset, tmp_path: Path) -> None:
    for target in (Target.TRL, Target.OPENR1):
        export(dataset, target, tmp_path / target, rewards=reward_file())
        reward = load_reward(tmp_path / target / "reward.py")
        for rows in [rows for name, rows in tables(tmp_path / target).items() if not name.startswith("sft")]:
            columns = {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}
            gold = dataset.frame.set_index("prompt_id").loc[columns["prompt_id"], "target"].tolist()
            said = [[{"role": "assistant", "content": text}] for text in gold]
            assert set(reward.lu_reward(prompts=None, completions=said, **columns)) == {1.0}
            assert set(reward.format_reward(prompts=None, completions=said, **columns)) == {1.0}


def test_openr1_s_problem_is_the_whole_prompt(dataset: PromptDataset, tmp_path: Path) -> None:
    export(dataset, Target.OPENR1, tmp_path / "out", rewards=reward_file())
    for row in read(tmp_path / "out/train.parquet"):
        ours = dataset.frame.set_index("prompt_id").loc[row["prompt_id"]]
        assert row["problem"] == "\n\n".join(m["content"] for m in ours["prompt"])
        assert row["solution"] == ours["answer"]
        assert [m["role"] for m in row["messages"]] == ["user", "assistant"]


def test_verl_s_rows_have_its_schema_and_its_reward_scores_gold_one(dataset: PromptDataset, tmp_path: Path) -> None:
    """Fields and types of verl's documented rows, read with the loader that it uses."""
    export(dataset, Target.VERL, tmp_path / "out", rewards=reward_file())
    reward = load_reward(tmp_path / "out/reward.py")
    gold = dict(zip(dataset.frame["prompt_id"], dataset.frame["target"], strict=True))
    for name, rows in tables(tmp_path / "out").items():
        for index, row in enumerate(rows):
            assert list(row) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
            assert row["data_source"] == f"landoracle/{Path(name).stem}"
            assert all(set(message) == {"role", "content"} for message in row["prompt"])
            assert row["reward_model"]["style"] == "rule"
            assert (row["extra_info"]["split"], row["extra_info"]["index"]) == (Path(name).stem, index)
            info = dict(row["extra_info"]) | {"num_turns": 2, "rollout_reward_scores": {}}  # verl adds these
            truth = row["reward_model"]["ground_truth"]
            figures = reward.compute_score(row["data_source"], gold[info["prompt_id"]], truth, info)
            assert figures["score"] == figures["acc"] == figures["format"] == 1.0
            wrong = next(c for c in info["classes"] if c != truth)
            assert reward.compute_score("x", f"<think>x</think><answer>{wrong}</answer>", truth, info)["acc"] == 0.0


def test_openrlhf_s_rows_and_reward(dataset: PromptDataset, tmp_path: Path) -> None:
    export(dataset, Target.OPENRLHF, tmp_path / "out", rewards=reward_file())
    reward = load_reward(tmp_path / "out/reward.py")
    gold = dict(zip(dataset.frame["prompt_id"], dataset.frame["target"], strict=True))
    for rows in tables(tmp_path / "out").values():
        prompts = ["".join(f"<|{m['role']}|>{m['content']}" for m in row["prompt"]) + "<|assistant|>" for row in rows]
        queries = [f"{p}{gold[row['prompt_id']]}<|im_end|>\n" for p, row in zip(prompts, rows, strict=True)]
        figures = reward.reward_func(queries, prompts, [row["label"] for row in rows])
        assert set(figures["rewards"].tolist()) == set(figures["scores"].tolist()) == {1.0}
        assert reward.reward_func([f"{prompts[0]}<answer>"], prompts[:1], [rows[0]["label"]])["scores"].tolist() == [
            0.0
        ]


def test_verifiers_package_yields_a_task_per_prompt_whose_gold_answer_scores_one(
    dataset: PromptDataset, tmp_path: Path, verifiers: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(dataset, Target.VERIFIERS, tmp_path / "out", rewards=reward_file())
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    package = importlib.import_module("landoracle_land_use")
    taskset = package.LandUseTaskset
    assert package.__all__ == ["LandUseTaskset"]
    config = sys.modules["landoracle_land_use.taskset"].LandUseConfig
    for split in ("train", *LEAK_FREE):
        tasks = list(taskset(config(split=split)).load())
        rows = dataset.split(split)
        assert [task.data.id for task in tasks] == rows["prompt_id"].tolist()
        assert [[task.data.system_prompt, task.data.prompt] for task in tasks] == [
            [m["content"] for m in messages] for messages in rows["prompt"]
        ]
        for task, target in zip(tasks, rows["target"], strict=True):
            assert run(task.validate(None))
            assert scores(task, target) == (1.0, 1.0)
            reasoned, answered = target.removeprefix("<think>").split("</think>")
            assert scores(task, answered, reasoning=reasoned) == (1.0, 1.0)
            wrong = next(c for c in task.data.classes if c != task.data.answer)
            assert scores(task, f"<think>x</think><answer>{wrong}</answer>") == (0.0, 1.0)
    weights = [getattr(package.taskset.LandUseTask, name).weight for name in ("decision", "form")]
    assert weights == [0.6, 0.4]
    with pytest.raises(ValueError, match="train"):
        next(taskset(config(split="tset")).load())


def test_ties_that_count_as_right_reach_the_rewards(dataset: PromptDataset, tmp_path: Path) -> None:
    tied = [c[:2] if i == 0 else None for i, c in enumerate(dataset.frame["classes"])]
    frame = dataset.frame.assign(accepted=pd.Series(tied, dtype=object))
    export(replace(dataset, frame=frame), Target.TRL, tmp_path / "out", rewards=reward_file())
    rows = {
        row["prompt_id"]: row for name, table in tables(tmp_path / "out").items() if "/" not in name for row in table
    }
    first = frame.iloc[0]
    assert set(rows[first["prompt_id"]]["accepted"]) == {first["answer"], *first["classes"][:2]}
    assert all(list(row["accepted"]) == [row["answer"]] for name, row in rows.items() if name != first["prompt_id"])


def test_a_random_split_is_not_passed_off_as_open_r1_s_test(dataset: PromptDataset, tmp_path: Path) -> None:
    if not hasattr(Split, "HELD_OUT_RANDOM"):
        pytest.skip("the dataset has no random split")
    frame = dataset.frame.copy()
    chosen = frame.index[frame["split"] == "train"][:3]
    frame.loc[chosen, "split"] = "held_out_random"
    export(replace(dataset, frame=frame), Target.OPENR1, tmp_path / "out", rewards=reward_file())
    found = tables(tmp_path / "out")
    assert ids(found["held_out_random.parquet"]) == set(frame.loc[frame["split"] == "held_out_random", "prompt_id"])
    assert ids(found["test.parquet"]) == ids_of(dataset, *LEAK_FREE)


CEILING = {
    "datasets": ["measured on"],
    "variants": [
        {
            "variant": {"order": order, "context": "prices"},
            "best": {
                "learner": "gradient boosting",
                "fields": "central",
                "accuracy": 0.9,
                "bootstrap": {"low": 0.88, "high": 0.92},
            },
        }
        for order in (0, 1)
    ],
}


def test_the_card_says_what_a_stranger_must_know(dataset: PromptDataset, tmp_path: Path) -> None:
    frame = dataset.frame.copy()
    frame["status"] = "unique"
    frame.loc[frame.index[frame["split"] == "train"][::4], "status"] = "tied"
    folder = tmp_path / "out"
    export(replace(dataset, frame=frame), Target.TRL, folder, rewards="", ceiling=CEILING, licence="cc-by-4.0")
    card = (folder / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["license"] == "cc-by-4.0"
    assert [c["config_name"] for c in front["configs"]] == ["default", "sft"]
    train = frame[frame["split"] == "train"]
    tied = (train["status"] == "tied").mean()
    assert f"| train | {len(train):,} | {1 - tied:.1%} | {tied:.1%} | 0.0% |" in card
    assert "| 1 (this one) | prices | gradient boosting, central | 90.0% | 88.0% to 92.0% |" in card
    assert "- Licence: cc-by-4.0." in card
    for source in dataset.manifest.sources:
        assert f"{source.gap:.1e} | {source.solver} | {source.landscape_sha256[:12]} |" in card
    assert "barley" in card


def test_a_ceiling_is_read_or_refused_but_never_guessed(tmp_path: Path) -> None:
    file = tmp_path / "ceiling.json"
    assert read_ceiling(file) is None
    file.write_text(json.dumps(CEILING))
    assert read_ceiling(file) == read_ceiling(file, "measured on") == CEILING
    assert read_ceiling(file, "built anew since") is None
    for wrong in ("{", "[]", json.dumps({"variants": [{"accuracy": 0.9}]})):
        file.write_text(wrong)
        with pytest.raises(DatasetError, match=r"ceiling\.json"):
            read_ceiling(file)


def test_an_earlier_export_is_replaced_and_anything_else_is_left_alone(dataset: PromptDataset, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(dataset, Target.TRL, folder, rewards="")
    export(dataset, Target.VERL, folder, rewards="")
    assert not (folder / "sft").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="holds something that is no export"):
        export(dataset, Target.TRL, mine, rewards="")
    assert [p.name for p in mine.iterdir()] == ["notes.txt"]


def test_a_dataset_that_leaks_or_holds_nothing_is_not_exported(dataset: PromptDataset, tmp_path: Path) -> None:
    frame = dataset.frame.copy()
    held_out = frame.index[frame["split"] == "held_out_block"][0]
    frame.at[frame.index[frame["split"] == "train"][0], "shown"] = frame.at[held_out, "shown"]
    with pytest.raises(DatasetError, match="shown by training prompts"):
        export(replace(dataset, frame=frame), Target.TRL, tmp_path / "out", rewards="")
    nothing = dataset.frame[dataset.frame["split"] == "buffer"]
    with pytest.raises(DatasetError, match="no row"):
        export(replace(dataset, frame=nothing), Target.TRL, tmp_path / "out", rewards="")
    assert not (tmp_path / "out").exists()


def load_reward(file: Path) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(file)))


def run(coroutine: Any) -> Any:
    """The value of a coroutine that awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


def scores(task: Any, content: str, reasoning: str | None = None) -> tuple[float, float]:
    message = SimpleNamespace(content=content, reasoning_content=reasoning)
    trace = SimpleNamespace(assistant_messages=[message], last_reply=content)
    assert run(task.repetition(trace)) <= 0
    return run(task.decision(trace)), run(task.form(trace))


Data, Config = TypeVar("Data"), TypeVar("Config")


@pytest.fixture
def verifiers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """What of ``verifiers.v1`` 0.4 the package builds on: frozen pydantic data, tasks, tasksets, marked methods."""

    class TaskData(pydantic.BaseModel, frozen=True):
        id: str | None = None
        prompt: str | None = None
        system_prompt: str | None = None

    class Task(Generic[Data]):
        def __init__(self, data: Data, config: object = None) -> None:
            self.data, self.config = data, config

        key = property(lambda self: "hash")

    class TasksetConfig(pydantic.BaseModel):
        task: object = None

    class Taskset(Generic[Data, Config]):
        def __init__(self, config: Config) -> None:
            self.config = config

    def reward(weight: float) -> Callable[[Any], Any]:
        def mark(method: Any) -> Any:
            method.weight = weight
            return method

        return mark

    v1 = ModuleType("verifiers.v1")
    parts: Sequence[Any] = (TaskData, Task, TasksetConfig, Taskset, reward)
    v1.__dict__.update({part.__name__: part for part in parts})
    v1.__dict__.update(metric=lambda method: method, Trace=object, Runtime=object)
    whole = ModuleType("verifiers")
    whole.__dict__["v1"] = v1
    monkeypatch.setitem(sys.modules, "verifiers", whole)
    monkeypatch.setitem(sys.modules, "verifiers.v1", v1)
    yield v1
    for name in [n for n in sys.modules if n.split(".")[0] == "landoracle_land_use"]:
        del sys.modules[name]
