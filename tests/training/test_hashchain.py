"""Another task through the same trainer: what SFT half teaches, GRPO improves by the task's own reward."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import networkx as nx
import pandas as pd

from examples.hashchain import PROFILE, REWARD, end_of_shortest, puzzles, train
from training.config import load_profile, profile_rewards

QUICK = (  # three seeds gained 0.08 to 0.23 of the decisions by it; with 300 steps of SFT two of three gained nothing
    *("seed=1", "threads=1", "model.hidden=64", "model.layers=2", "model.intermediate=128"),
    *("sft.max_steps=800", "sft.save_steps=800", "sft.learning_rate=4e-3", "sft.warmup_steps=20"),
    *("grpo.max_steps=35", "grpo.save_steps=35", "grpo.per_device_train_batch_size=128", "grpo.beta=0.01"),
    *("grpo.learning_rate=3e-4", "grpo.max_completion_length=24", "guard.evaluate_every=35", "guard.rows=50"),
)


def test_answers_are_those_of_a_graph_search() -> None:
    for row in puzzles(50, seed=1, lengths=(1, 2, 3), hashes=ascii_lowercase).itertuples():
        graph = nx.DiGraph([link.split(">") for link in row.prompt[0]["content"].split()])
        ends = {
            tuple(sorted(part)): next(n for n in part if not graph.out_degree(n))
            for part in nx.weakly_connected_components(graph)
        }
        assert row.answer == ends[min(ends, key=len)]
        assert row.classes == sorted(ends.values())


def test_gold_scores_one_and_the_other_end_nothing() -> None:
    frame = puzzles(20, seed=0)
    columns = {"answer": list(frame["answer"]), "classes": list(frame["classes"])}
    for reward in profile_rewards(load_profile("pocket", PROFILE), ""):
        assert reward(list(frame["prompt"]), list(frame["target"]), **columns) == [1.0] * 20
    wrong = [
        f"<think>x</think><answer>{next(e for e in c if e != a)}</answer>"
        for a, c in zip(*columns.values(), strict=True)
    ]
    assert end_of_shortest([], wrong, **columns) == [0.0] * 20


def test_the_trainer_learns_it_from_reward(tmp_path: Path) -> None:
    _, grpo = train(tmp_path, puzzles(2_000, seed=0), QUICK)
    figures = pd.read_parquet(grpo / "metrics.parquet")
    decided = figures[f"rewards/{REWARD}/mean"]
    assert decided.iloc[-8:].mean() > decided.iloc[:5].mean() + 0.03
    assert figures["reward"].iloc[-8:].mean() > figures["reward"].iloc[:5].mean() + 0.15
    assert figures["decision_signal_frac"].mean() > 0.6
