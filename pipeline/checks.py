"""Asset checks: what has to hold before the next stage may use a result."""

import json
import warnings
from pathlib import Path

import dagster as dg
import numpy as np

from oracle.errors import LandoracleError, name_some
from oracle.landscape import load_landscape
from oracle.verify import verify
from pipeline.assets import (
    LANDSCAPES,
    Files,
    grpo_model,
    held_out_accuracy,
    landscape,
    oracle_plan,
    prompt_dataset,
    refusals,
    served_policy,
)
from pipeline.launchpad import Training
from pipeline.policy import Policies, policy_name
from pipeline.workspace import Workspace
from prompts.dataset import PromptDataset
from prompts.leaks import refuse_leaks
from prompts.split import Split
from training.config import Stage
from training.evaluate import EVALUATION
from training.rewards import format_reward, lu_reward
from training.run import RUN

MOST_OF_ONE = 0.9

# Checks with a partition each are marked as a preview; the pin on dagster holds them still.
warnings.filterwarnings("ignore", "Specifying a partitions_def on an AssetCheckSpec", dg.PreviewWarning)


@dg.asset_check(asset=landscape, blocking=True, partitions_def=LANDSCAPES)
def landscape_is_usable(context: dg.AssetCheckExecutionContext, workspace: Files) -> dg.AssetCheckResult:
    """The written landscape reads back through the contract, and something can be decided in it."""
    _fetch(workspace, workspace.intake(context.partition_key))
    try:
        value = load_landscape(workspace.landscape(context.partition_key))
    except LandoracleError as error:
        return dg.AssetCheckResult(passed=False, description=f"{error}. Mend the file or its recipe.")
    free = int((value.allowed.sum(axis=1) > 1).sum())
    return dg.AssetCheckResult(
        passed=free > 0,
        metadata={"polygons": len(value), "with a choice": free},
        description=None if free else "no polygon has more than one class to choose from: check yields and locks",
    )


@dg.asset_check(asset=oracle_plan, blocking=True, partitions_def=LANDSCAPES)
def certificate_holds(context: dg.AssetCheckExecutionContext, workspace: Files) -> dg.AssetCheckResult:
    """Feasibility, value and bound of the plan, recomputed from the landscape up without a solver."""
    _fetch(workspace, workspace.plan(context.partition_key))
    try:
        verified = verify(workspace.plan(context.partition_key))
    except LandoracleError as error:
        return dg.AssetCheckResult(passed=False, description=f"{error}. Solve the landscape again.")
    return dg.AssetCheckResult(passed=True, metadata={"gap": verified.gap})


@dg.asset_check(asset=prompt_dataset, blocking=True)
def no_leak(workspace: Files) -> dg.AssetCheckResult:
    """No polygon that a held-out prompt shows is the centre of, or appears in, a training prompt."""
    _fetch(workspace, workspace.dataset)
    try:
        refuse_leaks(PromptDataset.load(workspace.dataset).frame)
    except LandoracleError as error:
        hint = f"{error}. Build the dataset again; where it stays, raise the buffer of its split."
        return dg.AssetCheckResult(passed=False, description=hint)
    return dg.AssetCheckResult(passed=True)


@dg.asset_check(asset=served_policy)
def promotion(workspace: Files) -> dg.AssetCheckResult:
    """The newest policy is the served one; where it is not, it was not better on the same held-out rows."""
    _fetch(workspace, workspace.model(Stage.GRPO), Policies(workspace.path).state)
    served, newest = Policies(workspace.path).served, policy_name(workspace.model(Stage.GRPO))
    if served is None:
        why = f"no policy is served: {newest} decides no better than the commonest class; train longer"
    else:
        why = f"{served.name} stays served, {newest} was not better (or was rolled back): see the asset's verdict"
    promoted = served is not None and served.name == newest
    return dg.AssetCheckResult(
        passed=promoted, severity=dg.AssetCheckSeverity.WARN, description=None if promoted else why
    )


@dg.asset_check(asset=prompt_dataset)
def label_share(workspace: Files) -> dg.AssetCheckResult:
    """No class has nearly all training labels: a model that always answers it would look good."""
    _fetch(workspace, workspace.dataset)
    shares = PromptDataset.load(workspace.dataset).split(Split.TRAIN)["answer"].value_counts(normalize=True)
    commonest, share = str(shares.index[0]), float(shares.iloc[0])
    hint = f"{commonest} has {share:.1%} of the training labels, above {MOST_OF_ONE:.0%}: move connectivity_weight, "
    hint += "prices or supply floors, or add landscapes with other soils"
    return dg.AssetCheckResult(
        passed=share <= MOST_OF_ONE,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={f"share_{name}": float(value) for name, value in shares.items()},
        description=hint if share > MOST_OF_ONE else None,
    )


@dg.asset_check(asset=prompt_dataset)
def token_limit(workspace: Files) -> dg.AssetCheckResult:
    """Every prompt was counted in the model's tokenizer, and the longest leaves room for a completion."""
    _fetch(workspace, workspace.dataset)
    tokens = PromptDataset.load(workspace.dataset).manifest.tokens
    if tokens is None:
        hint = "nobody counted the tokens: the profile's tokenizer is not here; install it, then build the dataset anew"
        return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, description=hint)
    over = tokens.greatest > tokens.limit
    hint = (
        f"the longest prompt has {tokens.greatest} tokens of {tokens.limit}: take a compact layout, a lower order or a "
    )
    return dg.AssetCheckResult(
        passed=not over,
        metadata={"longest": tokens.greatest, "limit": tokens.limit},
        description=hint + "larger model.max_length" if over else None,
    )


@dg.asset_check(asset=prompt_dataset, blocking=True)
def gold_reward(workspace: Files, training: Training) -> dg.AssetCheckResult:
    """The completion that SFT imitates earns the full reward for decision and format, in every row."""
    _fetch(workspace, workspace.dataset)
    frame = PromptDataset.load(workspace.dataset).frame
    given = {name: frame[name].tolist() for name in ("answer", "classes", "accepted")}
    said = frame["target"].tolist()
    decided = np.array(lu_reward()(frame["prompt"].tolist(), said, **given))
    formed = np.array(format_reward(thinks=training.config().thinks)(frame["prompt"].tolist(), said, **given))
    short = frame["prompt_id"][(decided < 1) | (formed < 1)]
    hint = f"targets of {name_some(short)} earn less than 1: prompts and training are of different versions or styles; "
    return dg.AssetCheckResult(
        passed=short.empty,
        metadata={"decision": float(decided.mean()), "format": float(formed.mean())},
        description=None if short.empty else hint + "build the dataset again with the profile that trains on it",
    )


@dg.asset_check(asset=grpo_model)
def no_collapse(workspace: Files) -> dg.AssetCheckResult:
    """The guard did not have to stop the run, and its reward at the end is a number."""
    _fetch(workspace, workspace.model(Stage.GRPO))
    record = json.loads((workspace.model(Stage.GRPO) / RUN).read_text(encoding="utf-8"))
    stopped = record.get("stopped")
    hint = f"{stopped} Raise grpo.beta or lower grpo.learning_rate; guard.json holds the evidence"
    return dg.AssetCheckResult(passed=not stopped, description=hint if stopped else None)


@dg.asset_check(asset=held_out_accuracy)
def accuracy_beats_majority(workspace: Files) -> dg.AssetCheckResult:
    """Every model decides more held-out polygons rightly than always answering the commonest class."""
    _fetch(workspace, workspace.evaluation)
    evaluation = json.loads((workspace.evaluation / EVALUATION).read_text(encoding="utf-8"))
    majority = evaluation["baselines"]["majority"]
    behind = [
        f"{name} on {split}: {of['accuracy']:.1%}, majority {majority[split]['accuracy']:.1%}"
        for name, by_split in evaluation["models"].items()
        for split, of in by_split.items()
        if of["accuracy"] <= majority[split]["accuracy"]
    ]
    hint = "; train longer, or look at the completions in the report"
    return dg.AssetCheckResult(passed=not behind, description="; ".join(behind) + hint if behind else None)


def _fetch(workspace: Workspace, *paths: Path) -> None:
    """What a check reads may have been made on another machine."""
    with refusals():
        workspace.fetch(*paths)


CHECKS = [
    landscape_is_usable,
    certificate_holds,
    no_leak,
    label_share,
    token_limit,
    gold_reward,
    no_collapse,
    accuracy_beats_majority,
    promotion,
]
