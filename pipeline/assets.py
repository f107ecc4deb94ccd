"""The asset graph: landscape -> neighbour_graph -> oracle_plan -> prompt_dataset -> sft_model -> grpo_model -> ...

The first three have a partition per landscape. Each asset calls one function of the packages below and writes its files
into the workspace; nothing is computed here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg  # which reads annotations at run time: no `from __future__ import annotations` here

from oracle.errors import DatasetError, LandoracleError
from oracle.files import write_json
from oracle.landscape import load_landscape, save_landscape
from oracle.neighbours import NeighbourGraph
from oracle.neighbours import neighbour_graph as build_graph
from oracle.solution import LABELS, MAP, read_json
from oracle.solve import solve
from pipeline import metadata as shown
from pipeline.launchpad import GLM, Training
from pipeline.plans import refuse_stale, write_plan
from pipeline.policy import Policies, policy_name
from pipeline.report import STAGE_NAMES, write_report
from pipeline.sources import find_source
from pipeline.token_audit import audit_if_possible
from pipeline.workspace import Workspace
from prompts.dataset import PROMPTS, build_dataset
from prompts.plan_folder import read_plan
from prompts.split import Role
from training.config import Stage
from training.evaluate import EVALUATION
from training.launch import evaluation_command, run_command

LANDSCAPES = dg.DynamicPartitionsDefinition(name="landscapes")
CODE_VERSION = "2"
"""Raised when a change to the code can change labels: every landscape is solved again then."""
COMMON: dict[str, Any] = {"group_name": "landoracle", "owners": ["team:landoracle"]}
SOLVED: dict[str, Any] = {
    "partitions_def": LANDSCAPES,
    "tags": {"stage": "oracle"},
    "code_version": CODE_VERSION,
    **COMMON,
}
Files = dg.ResourceParam[Workspace]


@contextmanager
def refusals() -> Iterator[None]:
    """Our own errors as failures that Dagster shows without a traceback and does not retry."""
    try:
        yield
    except LandoracleError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


@dg.asset(
    partitions_def=LANDSCAPES,
    kinds={"geopandas", "parquet"},
    tags={"stage": "oracle"},
    code_version=CODE_VERSION,
    **COMMON,
)
def landscape(context: dg.AssetExecutionContext, workspace: Files) -> dg.MaterializeResult:
    """Farm polygons with yields per crop (t/ha) and ecological connectivity (0..1), checked at the door."""
    key = context.partition_key
    with refusals():
        source = find_source(key)
        fingerprint = source.fingerprint()
        value, report = source.read()
        save_landscape(value, workspace.landscape(key))
        write_json(workspace.origin(key), {"fingerprint": fingerprint})
        workspace.publish(workspace.intake(key), say=context.log.info)
    return dg.MaterializeResult(
        metadata=shown.of_landscape(value, report) | shown.columns(workspace.landscape(key)),
        data_version=dg.DataVersion(fingerprint),
    )


@dg.asset(
    partitions_def=LANDSCAPES,
    deps=[landscape],
    kinds={"networkx", "parquet"},
    tags={"stage": "oracle"},
    code_version=CODE_VERSION,
    **COMMON,
)
def neighbour_graph(context: dg.AssetExecutionContext, workspace: Files) -> dg.MaterializeResult:
    """Who borders whom, in which direction: first- and second-order compass codes, borders and gaps in metres."""
    key = context.partition_key
    with refusals():
        workspace.fetch(workspace.intake(key), say=context.log.info)
        graph = build_graph(load_landscape(workspace.landscape(key)))
        graph.save(workspace.graph(key))
        workspace.publish(workspace.intake(key), say=context.log.info)
    return dg.MaterializeResult(
        metadata=shown.of_graph(graph) | shown.columns(workspace.graph(key)),
        data_version=dg.DataVersion(graph.sha256),
    )


@dg.asset(
    partitions_def=LANDSCAPES,
    deps=[neighbour_graph],
    kinds={"highs", "parquet"},
    tags={"stage": "oracle"},
    code_version=CODE_VERSION,
    **COMMON,
)
def oracle_plan(context: dg.AssetExecutionContext, glm: GLM, workspace: Files) -> dg.MaterializeResult:
    """The Global Land Manager's optimum: a label per polygon, its certificate, supplies and shadow prices, a map."""
    key = context.partition_key
    with refusals():
        workspace.fetch(workspace.intake(key), say=context.log.info)
        value, graph = load_landscape(workspace.landscape(key)), NeighbourGraph.load(workspace.graph(key))
        solution = solve(value, graph, glm.applied(find_source(key).settings().glm), progress=context.log.debug)
        fingerprint = read_json(workspace.origin(key))["fingerprint"]
        write_plan(workspace.plan(key), value, graph, solution, fingerprint)
        workspace.publish(workspace.plan(key), say=context.log.info)
    plan = workspace.plan(key)
    return dg.MaterializeResult(metadata=shown.of_plan(value, solution, plan / MAP) | shown.columns(plan / LABELS))


@dg.asset(deps=[oracle_plan], kinds={"jinja", "parquet"}, tags={"stage": "prompts"}, **COMMON)
def prompt_dataset(context: dg.AssetExecutionContext, training: Training, workspace: Files) -> dg.MaterializeResult:
    """A prompt and its label per polygon, split by whole landscapes and by buffered spatial blocks."""
    sources, skipped = [], {}
    with refusals():
        keys = sorted(context.instance.get_dynamic_partitions(str(LANDSCAPES.name)))
        workspace.fetch(*map(workspace.plan, keys), say=context.log.info)
        for key in keys:
            try:
                source = find_source(key)
                refuse_stale(workspace.plan(key), source.fingerprint())
                sources.append(read_plan(workspace.plan(key), Role(source.settings().role)))
            except LandoracleError as error:  # one landscape without a plan must not hold up the others
                skipped[key] = str(error)
        if not sources:
            raise DatasetError("no landscape has a plan yet: materialize oracle_plan for at least one partition")
        profile = training.config()
        audit = audit_if_possible(profile, context.log.warning)
        dataset = build_dataset(sources, profile.prompts, audit=audit, augment=profile.augment)
        dataset.save(workspace.dataset)
        workspace.publish(workspace.dataset, say=context.log.info)
    return dg.MaterializeResult(
        metadata=shown.of_dataset(dataset, skipped) | shown.columns(workspace.dataset / PROMPTS),
        data_version=dg.DataVersion(dataset.sha256),
    )


@dg.asset(deps=[prompt_dataset], kinds={"pytorch", "huggingface"}, tags={"stage": "training"}, **COMMON)
def sft_model(context: dg.AssetExecutionContext, training: Training, workspace: Files) -> dg.MaterializeResult:
    """A small language model fine-tuned to write a true rationale and the oracle's class."""
    out = workspace.model(Stage.SFT)
    with refusals():
        workspace.fetch(workspace.dataset, say=context.log.info)
        training.train(Stage.SFT, workspace, context.log.info)
        workspace.publish(out, say=context.log.info)
    return dg.MaterializeResult(metadata=shown.of_run(out))


@dg.asset(deps=[sft_model], kinds={"pytorch", "huggingface"}, tags={"stage": "training"}, **COMMON)
def grpo_model(context: dg.AssetExecutionContext, training: Training, workspace: Files) -> dg.MaterializeResult:
    """The same model after GRPO on verifiable rewards: land use (3), format (2), repetition (1), anchored by KL."""
    out = workspace.model(Stage.GRPO)
    with refusals():
        workspace.fetch(workspace.dataset, workspace.model(Stage.SFT), say=context.log.info)
        training.train(Stage.GRPO, workspace, context.log.info)
        workspace.publish(out, say=context.log.info)
    return dg.MaterializeResult(metadata=shown.of_run(out))


@dg.asset(deps=[sft_model, grpo_model], kinds={"python", "json"}, tags={"stage": "evaluation"}, **COMMON)
def held_out_accuracy(context: dg.AssetExecutionContext, training: Training, workspace: Files) -> dg.MaterializeResult:
    """Share of held-out polygons decided as the oracle does, with intervals, beside baselines on the same rows."""
    models = {name: workspace.model(stage) for stage, name in STAGE_NAMES.items()}
    keys = context.instance.get_dynamic_partitions(str(LANDSCAPES.name))
    with refusals():
        workspace.fetch(workspace.dataset, *models.values(), *map(workspace.plan, keys), say=context.log.info)
        command = evaluation_command(
            workspace.dataset,
            training.profile,
            workspace.evaluation,
            models,
            plans=[workspace.path / "plans"],
            overrides=training.overrides,
        )
        run_command(command, on_line=context.log.info)
        workspace.publish(workspace.evaluation, say=context.log.info)
    return dg.MaterializeResult(metadata=shown.of_evaluation(workspace.evaluation / EVALUATION))


@dg.asset(deps=[held_out_accuracy], kinds={"python", "json"}, tags={"stage": "evaluation"}, **COMMON)
def served_policy(context: dg.AssetExecutionContext, training: Training, workspace: Files) -> dg.MaterializeResult:
    """The last policy that an evaluation found better; `landoracle policy rollback` goes back to the one before."""
    policies, candidate = Policies(workspace.path), workspace.model(Stage.GRPO)
    with refusals():
        workspace.fetch(workspace.dataset, candidate, workspace.evaluation, policies.state, say=context.log.info)
        workspace.fetch(*policies.kept, say=context.log.info)
        served, compared = policies.served, None
        if served is not None and served.name != policy_name(candidate):
            compared = workspace.served_evaluation
            command = evaluation_command(
                workspace.dataset, training.profile, compared, {"served": served}, overrides=training.overrides
            )
            run_command(command, on_line=context.log.info)
        verdict = policies.promote(candidate, workspace.evaluation, compared)
        if verdict.promoted:  # the weights before the word that they are served
            workspace.publish(*policies.kept[:1], policies.state, say=context.log.info)
            workspace.withdraw(*policies.dropped)
    context.log.info(verdict.why)
    return dg.MaterializeResult(metadata=shown.of_policies(policies, verdict))


@dg.asset(deps=[held_out_accuracy], kinds={"html", "json"}, tags={"stage": "evaluation"}, **COMMON)
def report(context: dg.AssetExecutionContext, workspace: Files) -> dg.MaterializeResult:
    """One page: held-out accuracy beside baselines, reward curves, maps, completions and the lineage."""
    keys = context.instance.get_dynamic_partitions(str(LANDSCAPES.name))
    read = [workspace.dataset, workspace.evaluation, *map(workspace.model, Stage), *map(workspace.plan, keys)]
    with refusals():
        workspace.fetch(*read, say=context.log.info)
        figures = write_report(workspace.path)
        workspace.publish(workspace.report, workspace.report.with_suffix(".json"), say=context.log.info)
    page = dg.MetadataValue.path(str(workspace.report))
    return dg.MaterializeResult(metadata={"report": page, "headline": figures["headline"]})


PER_LANDSCAPE = [landscape, neighbour_graph, oracle_plan]
FROM_ALL = [prompt_dataset, sft_model, grpo_model, held_out_accuracy, served_policy, report]
