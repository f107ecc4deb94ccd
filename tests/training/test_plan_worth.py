"""Whole plans: priced as the oracle prices its own, repaired with as few changes as there can be."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oracle.coefficients import coefficients
from oracle.errors import DatasetError
from oracle.glm_config import GLMConfig
from oracle.neighbours import neighbour_graph
from oracle.plan import violations
from oracle.solution import save_solution
from oracle.solve import solve
from prompts.dataset import PromptDataset, Source, build_dataset
from prompts.split import Role
from tests.prompts.conftest import grid_landscape
from training.held_out_plans import held_out_plans, optima
from training.plan_worth import decided_plan, plan_rows
from training.smallest_repair import smallest_repair

CONFIG = GLMConfig(prices={"wheat": 280.0, "oat": 250.0}, supply_floors={"wheat": 0.8, "oat": 0.6})


def _solved(name: str, role: Role, seed: int, *, rows: int = 2, locked: list[str | None] | None = None) -> Source:
    landscape = grid_landscape(rows, 4, name=name, seed=seed, locked=locked)
    graph = neighbour_graph(landscape)
    return Source(landscape, graph, solve(landscape, graph, CONFIG), role)


@pytest.fixture(scope="module")
def held_out() -> Source:
    return _solved("far", Role.HELD_OUT, 1)


@pytest.fixture(scope="module")
def dataset(held_out: Source) -> PromptDataset:
    return build_dataset([_solved("near", Role.TRAIN, 2, rows=6), held_out])


def _said(plan: Source, choice: np.ndarray) -> dict[str, str | None]:
    classes = plan.landscape.classes
    return {str(i): classes[k] for i, k in zip(plan.landscape.ids, choice, strict=True)}


def test_the_oracle_s_own_decisions_are_worth_the_optimum(held_out: Source) -> None:
    worth = decided_plan(held_out, _said(held_out, held_out.solution.choice), "oracle", 2.0).worth
    assert worth.objective == pytest.approx(held_out.solution.objective)
    assert (worth.share, worth.missed, worth.undecided, worth.agree) == (pytest.approx(1.0), (), 0, 8)
    assert worth.repaired is not None
    assert (worth.repaired.changed, worth.repaired.smallest) == (0, True)


@pytest.mark.parametrize("crop", [0, 1, 2])
def test_no_repair_changes_fewer_polygons(held_out: Source, crop: int) -> None:
    c = coefficients(held_out.landscape, held_out.graph, CONFIG)
    choice = np.where(c.allowed[:, crop], crop, c.allowed.argmax(axis=1))
    assert violations(c, choice)
    plans = np.array(list(product(range(3), repeat=8)))
    grown = np.stack([np.where(plans == k, c.production_t[:, k], 0.0).sum(axis=1) for k in (0, 1)], axis=1)
    feasible = (grown >= c.floor_t * (1 - 1e-9)).all(axis=1) & c.allowed[np.arange(8), plans].all(axis=1)
    fewest = (plans[feasible] != choice).sum(axis=1).min()
    found = smallest_repair(c, choice, CONFIG, 5.0)
    assert found is not None
    assert not violations(c, found.choice)
    assert (found.changed, found.smallest) == (fewest, True)


def test_a_plan_that_misses_floors_says_which_and_is_repaired(held_out: Source) -> None:
    everywhere = dict.fromkeys(map(str, held_out.landscape.ids), "habitat")
    one = decided_plan(held_out, everywhere, "green", 5.0)
    assert [m.crop for m in one.worth.missed] == ["wheat", "oat"]
    assert all(m.supply_t == 0 < m.floor_t for m in one.worth.missed)
    repaired = one.worth.repaired
    assert repaired is not None
    assert repaired.share is not None
    assert repaired.share <= 1 + 1e-9  # a plan that meets the floors is at most the optimum
    assert repaired.changed == (one.repaired != one.choice).sum() > 0


def test_no_decision_and_an_impossible_one_get_the_worst_class(held_out: Source) -> None:
    said = _said(held_out, held_out.solution.choice)
    first, second = list(said)[:2]
    worth = decided_plan(held_out, said | {first: None, second: "barley"}, "lazy", 2.0)
    assert worth.worth.undecided == 2
    low = np.where(np.isfinite(held_out.solution.regret_low), held_out.solution.regret_low, -1)
    assert worth.choice[:2].tolist() == low[:2].argmax(axis=1).tolist()


def test_what_no_prompt_asks_for_stays_with_the_oracle() -> None:
    plan = _solved("locked", Role.HELD_OUT, 4, locked=["wheat", *[None] * 7])
    said = _said(plan, plan.solution.choice)
    del said[str(plan.landscape.ids[0])]
    worth = decided_plan(plan, said, "oracle", 2.0).worth
    assert (worth.given, worth.undecided, worth.share) == (1, 0, pytest.approx(1.0))


def test_only_the_plans_that_the_dataset_was_made_from(
    held_out: Source, dataset: PromptDataset, tmp_path: Path
) -> None:
    plans = tmp_path / "plans"
    save_solution(plans / "far", held_out.landscape, held_out.graph, held_out.solution)  # type: ignore[arg-type]
    other = _solved("elsewhere", Role.HELD_OUT, 9)
    save_solution(plans / "elsewhere", other.landscape, other.graph, other.solution)  # type: ignore[arg-type]
    (found,) = held_out_plans([plans], dataset.manifest)
    assert found.landscape.name == "far"
    assert held_out_plans([plans], dataset.manifest, 0) == []
    assert optima([plans], dataset.manifest) == {"far": (held_out.solution.objective, 8)}
    with pytest.raises(DatasetError, match="'elsewhere', which this dataset does not hold out"):
        held_out_plans([plans / "elsewhere"], dataset.manifest)
    with pytest.raises(DatasetError, match="is no plan and holds none"):
        held_out_plans([tmp_path / "absent"], dataset.manifest)

    moved = _solved("far", Role.HELD_OUT, 7)
    save_solution(tmp_path / "moved", moved.landscape, moved.graph, moved.solution)  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match="made from another landscape of 'far'"):
        held_out_plans([tmp_path / "moved"], dataset.manifest)


def test_other_labels_than_the_dataset_s_are_refused(held_out: Source, dataset: PromptDataset) -> None:
    assert len(plan_rows(dataset.frame, held_out)) == 8
    turned = np.roll(held_out.solution.land_use, 1)
    assert not pd.Series(turned).equals(pd.Series(held_out.solution.land_use))
    changed = replace(held_out, solution=replace(held_out.solution, land_use=turned))  # type: ignore[type-var]
    with pytest.raises(DatasetError, match="other labels for polygons"):
        plan_rows(dataset.frame, changed)
