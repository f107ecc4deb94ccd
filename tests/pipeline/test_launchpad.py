"""The launchpad: every setting with its description and range, and no run from a wrong value."""

from __future__ import annotations

import dagster as dg
import pytest

from oracle.glm_config import GLMConfig
from pipeline.automation import retrain, solve_landscape
from pipeline.definitions import defs
from pipeline.launchpad import GLM, Training, as_settings
from tests.pipeline.conftest import execute
from training.config import TrainingConfig


def fields(job: str, resource: str) -> dict[str, dg.Field]:
    schema = defs.resolve_job_def(job).run_config_schema.config_type.fields["resources"].config_type.fields
    offered = {
        name for name, of in schema.items() if getattr(of.config_type.fields["config"].config_type, "fields", {})
    }
    assert offered <= {"glm", "training"} | {"io_manager"}
    return schema[resource].config_type.fields["config"].config_type.fields


def test_it_offers_the_settings_of_the_glm_and_of_training_and_nothing_else() -> None:
    glm = fields(solve_landscape.name, "glm")
    assert set(glm) == set(GLMConfig.model_fields)
    assert glm["connectivity_weight"].description.endswith("at least 0 and below 1")
    training = fields(retrain.name, "training")
    assert set(training) == {*TrainingConfig.model_fields, "launcher", "cluster"}
    assert "at least 1" in training["max_train_rows"].description
    assert "at least 1" in training["model"].config_type.fields["layers"].description
    assert all(field.description for field in [*glm.values(), *training.values()])


def test_what_is_set_wins_and_the_rest_stays() -> None:
    recipe = GLMConfig(connectivity_weight=0.3, prices={"wheat": 1.0, "oat": 2.0})
    applied = GLM(connectivity_weight=0.7, prices={"oat": 5.0}).applied(recipe)
    assert (applied.connectivity_weight, applied.prices) == (0.7, {"wheat": 1.0, "oat": 5.0})
    assert GLM().applied(recipe) == recipe
    changes = [
        "grpo.beta=0.01",
        "sft.learning_rate=1e-4",
        "evaluation.splits=[held_out_block]",
        "gate_on_decision=false",
    ]
    config = Training(**as_settings(changes)).config()
    assert (config.grpo["beta"], config.sft["learning_rate"]) == (0.01, 1e-4)
    assert (config.evaluation.splits, config.gate_on_decision) == (("held_out_block",), False)
    assert Training().overrides == []


@pytest.mark.parametrize(
    ("resource", "config", "said"),
    [
        ("glm", {"connectivity_weight": 1.5}, "connectivity_weight: Input should be less than 1"),
        ("glm", {"habitat_share": {"min": 0.5, "max": 0.1}}, "min 0.5 is above max 0.1"),
        ("training", {"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ("training", {"grpo": {"beta": 0}}, "without the KL anchor the policy collapses"),
        ("training", {"profile": "pockett"}, "no profile or file 'pockett'"),
        ("training", {"sft": {"warmup_ratio": 0.1}}, "write `warmup_steps`"),
        (
            "training",
            {"grpo": {"beta": 0.1, "num_generation": 4}},
            "grpo.num_generation (did you mean num_generations?)",
        ),
        ("training", {"cluster": "cluster.yaml"}, "cluster is for launcher slurm"),
    ],
)
def test_a_wrong_value_fails_before_anything_runs(
    resource: str, config: dict[str, object], said: str, instance: dg.DagsterInstance
) -> None:
    job, key = (solve_landscape, "farm") if resource == "glm" else (retrain, None)
    instance.add_dynamic_partitions("landscapes", ["farm"])
    result = execute(job.name, instance, partition_key=key, run_config={"resources": {resource: {"config": config}}})
    assert not result.success
    assert not result.filter_events(lambda event: event.is_step_start)
    (failed,) = result.filter_events(lambda event: event.event_type is dg.DagsterEventType.RESOURCE_INIT_FAILURE)
    assert said in str(failed.engine_event_data.error)


def test_wrong_types_and_choices_are_marked_in_the_launchpad(instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions("landscapes", ["farm"])
    for config in ({"floor_kind": "bushels"}, {"prices": "high"}, {"colour": "red"}):
        resources = {"resources": {"glm": {"config": config}}}
        with pytest.raises(dg.DagsterInvalidConfigError):
            execute(solve_landscape.name, instance, partition_key="farm", run_config=resources)
