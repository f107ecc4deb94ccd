"""What runs by itself: new files in the drop folder become solved partitions; training is repeated on a schedule."""

import json

import dagster as dg

from pipeline.assets import FROM_ALL, LANDSCAPES, PER_LANDSCAPE, grpo_model, oracle_plan
from pipeline.sources import dropped_sources, embedded_sources

solve_landscape = dg.define_asset_job(
    "solve_landscape", dg.AssetSelection.assets(*PER_LANDSCAPE), description="Read and solve one landscape."
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

    The embedded landscapes are partitions too, from the first evaluation on, but nothing solves them unasked.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    dropped = dropped_sources()
    now = {key: source.fingerprint() for key, source in dropped.items()}
    changed = [key for key, print_ in now.items() if seen.get(key) != print_]
    known = set(context.instance.get_dynamic_partitions(str(LANDSCAPES.name)))
    wanted = {*now, *embedded_sources()}
    gone = sorted(key for key in known & set(seen) if key not in wanted)
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if added := sorted(wanted - known):
        requests.append(LANDSCAPES.build_add_request(added))
    if gone:
        requests.append(LANDSCAPES.build_delete_request(gone))
    return dg.SensorResult(
        skip_reason=None if changed or requests else f"nothing new in data/landscapes ({len(now)} file(s))",
        # No run key: a file that goes back to an earlier content has to be solved again.
        run_requests=[dg.RunRequest(partition_key=key) for key in changed],
        dynamic_partitions_requests=requests,
        cursor=json.dumps(now, sort_keys=True),
    )


@dg.schedule(job=retrain, cron_schedule="0 3 * * 0", execution_timezone="UTC")
def weekly_retraining(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Sundays at 03:00 UTC: train again where a plan is newer than the model."""
    labels = context.instance.get_latest_materialization_event(oracle_plan.key)
    model = context.instance.get_latest_materialization_event(grpo_model.key)
    if labels is None:
        return dg.SkipReason("no landscape has been solved yet")
    if model is not None and model.timestamp > labels.timestamp:
        return dg.SkipReason("no plan is newer than the last trained model")
    return dg.RunRequest()
