"""What runs by itself: new files in the drop folder become solved partitions; training is repeated on a schedule."""

import json

import dagster as dg

from pipeline.assets import CODE_VERSION, FROM_ALL, LANDSCAPES, PER_LANDSCAPE
from pipeline.executors import solving_executor
from pipeline.launchpad import Training
from pipeline.news import usable_plans, what_is_new
from pipeline.sources import dropped_sources, embedded_sources
from pipeline.workspace import Workspace
from training.config import Stage

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

solve_landscape = dg.define_asset_job(
    "solve_landscape",
    dg.AssetSelection.assets(*PER_LANDSCAPE),
    description="Read and solve one landscape.",
    executor_def=solving_executor(),
)
retrain = dg.define_asset_job(
    "retrain",
    dg.AssetSelection.assets(*FROM_ALL),
    description="Dataset, SFT, GRPO, evaluation and report.",
    tags={"landoracle/trains": "yes"},  # of which dagster.yaml lets one run at a time
)


@dg.sensor(job=solve_landscape, minimum_interval_seconds=15)
def landscape_folder(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Watch ``data/landscapes``: a new or changed file is solved, a removed one leaves the partitions.

    The embedded landscapes are partitions too, from the first evaluation on, but nothing solves them unasked. A file
    that is still being copied waits, and so does one whose partition is being solved: its next state comes after.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    there, settled = dropped_sources(settled=False), dropped_sources()
    now = {key: f"{CODE_VERSION} {source.fingerprint()}" for key, source in settled.items()}
    now |= {key: seen[key] for key in there if key not in settled and key in seen}
    busy = _being_solved(context.instance)
    changed = [key for key, state in now.items() if seen.get(key) != state]
    waiting = [key for key in changed if key in busy]
    for key in waiting:
        now[key] = seen.get(key, "")
    asked = [key for key in changed if key not in busy]
    known = set(context.instance.get_dynamic_partitions(str(LANDSCAPES.name)))
    wanted = {*now, *embedded_sources()}
    gone = sorted(key for key in known & set(seen) if key not in {*wanted, *there})
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if added := sorted(wanted - known):
        requests.append(LANDSCAPES.build_add_request(added))
    if gone:
        requests.append(LANDSCAPES.build_delete_request(gone))
    still = [*(key for key in there if key not in settled), *waiting]
    skip = f"nothing new in data/landscapes ({len(now)} file(s))"
    skip += f"; still being copied or solved: {', '.join(still)}" if still else ""
    return dg.SensorResult(
        skip_reason=None if asked or requests else skip,
        # No run key: a file that goes back to an earlier content has to be solved again.
        run_requests=[dg.RunRequest(partition_key=key) for key in asked],
        dynamic_partitions_requests=requests,
        cursor=json.dumps(now, sort_keys=True),
    )


def _being_solved(instance: dg.DagsterInstance) -> set[str]:
    runs = instance.get_runs(dg.RunsFilter(job_name=solve_landscape.name, statuses=UNFINISHED))
    return {run.tags.get("dagster/partition", "") for run in runs}


@dg.schedule(job=retrain, cron_schedule="0 3 * * 0", execution_timezone="UTC")
def weekly_retraining(
    context: dg.ScheduleEvaluationContext, workspace: dg.ResourceParam[Workspace], training: Training
) -> dg.RunRequest | dg.SkipReason:
    """Sundays at 03:00 UTC: train again where plans or the configuration are others than the last model's."""
    running = context.instance.get_runs(dg.RunsFilter(job_name=retrain.name, statuses=UNFINISHED), limit=1)
    if running:
        return dg.SkipReason(f"a training is still under way (run {running[0].run_id[:8]})")
    keys = context.instance.get_dynamic_partitions(str(LANDSCAPES.name))
    workspace.fetch(*map(workspace.plan, keys), workspace.dataset, workspace.model(Stage.GRPO))
    plans = usable_plans(workspace, keys)
    if not plans:
        return dg.SkipReason("no landscape has been solved yet")
    news = what_is_new(workspace, plans, training.config())
    if not news:
        return dg.SkipReason(
            f"nothing is new: the {len(plans)} plan(s) and the configuration are those of the last trained model"
        )
    return dg.RunRequest(tags={"landoracle/because": "; ".join(news)})
