"""Asset checks: what has to hold before the next stage may use a result."""

import json
import warnings

import dagster as dg

from oracle.errors import LandoracleError
from oracle.landscape import load_landscape
from oracle.verify import verify
from pipeline.assets import LANDSCAPES, Files, held_out_accuracy, landscape, oracle_plan, prompt_dataset, served_policy
from pipeline.policy import Policies, policy_name
from prompts.dataset import PromptDataset
from prompts.leaks import refuse_leaks
from training.config import Stage
from training.evaluate import EVALUATION

# Checks with a partition each are marked as a preview; the pin on dagster holds them still.
warnings.filterwarnings("ignore", "Specifying a partitions_def on an AssetCheckSpec", dg.PreviewWarning)


@dg.asset_check(asset=landscape, blocking=True, partitions_def=LANDSCAPES)
def landscape_is_usable(context: dg.AssetCheckExecutionContext, workspace: Files) -> dg.AssetCheckResult:
    """The written landscape reads back through the contract, and something can be decided in it."""
    try:
        value = load_landscape(workspace.landscape(context.partition_key))
    except LandoracleError as error:
        return dg.AssetCheckResult(passed=False, description=str(error))
    free = int((value.allowed.sum(axis=1) > 1).sum())
    return dg.AssetCheckResult(
        passed=free > 0,
        metadata={"polygons": len(value), "with a choice": free},
        description=None if free else "no polygon has more than one class to choose from: check yields and locks",
    )


@dg.asset_check(asset=oracle_plan, blocking=True, partitions_def=LANDSCAPES)
def certificate_holds(context: dg.AssetCheckExecutionContext, workspace: Files) -> dg.AssetCheckResult:
    """Feasibility, value and bound of the plan, recomputed from the landscape up without a solver."""
    try:
        verified = verify(workspace.plan(context.partition_key))
    except LandoracleError as error:
        return dg.AssetCheckResult(passed=False, description=f"{error}. Solve the landscape again.")
    return dg.AssetCheckResult(passed=True, metadata={"gap": verified.gap})


@dg.asset_check(asset=prompt_dataset, blocking=True)
def no_leak(workspace: Files) -> dg.AssetCheckResult:
    """No polygon that a held-out prompt shows is the centre of, or appears in, a training prompt."""
    try:
        refuse_leaks(PromptDataset.load(workspace.dataset).frame)
    except LandoracleError as error:
        return dg.AssetCheckResult(passed=False, description=str(error))
    return dg.AssetCheckResult(passed=True)


@dg.asset_check(asset=served_policy)
def promotion(workspace: Files) -> dg.AssetCheckResult:
    """The newest policy is the served one; where it is not, it was not better on the same held-out rows."""
    served, newest = Policies(workspace.path).served, policy_name(workspace.model(Stage.GRPO))
    if served is None:
        why = f"no policy is served: {newest} decides no better than the commonest class; train longer"
    else:
        why = f"{served.name} stays served, {newest} was not better (or was rolled back): see the asset's verdict"
    promoted = served is not None and served.name == newest
    return dg.AssetCheckResult(
        passed=promoted, severity=dg.AssetCheckSeverity.WARN, description=None if promoted else why
    )


@dg.asset_check(asset=held_out_accuracy)
def accuracy_beats_majority(workspace: Files) -> dg.AssetCheckResult:
    """Every model decides more held-out polygons rightly than always answering the commonest class."""
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
