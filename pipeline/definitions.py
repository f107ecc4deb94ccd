"""The Dagster code location: what `dg dev`, `dg launch` and the demo load."""

from __future__ import annotations

import dagster as dg

from pipeline.assets import FROM_ALL, PER_LANDSCAPE
from pipeline.automation import landscape_folder, retrain, solve_landscape, weekly_retraining
from pipeline.checks import accuracy_beats_majority, certificate_holds, landscape_is_usable, no_leak, promotion
from pipeline.console import words
from pipeline.launchpad import GLM, Training
from pipeline.workspace import Workspace

defs = dg.Definitions(
    assets=[*PER_LANDSCAPE, *FROM_ALL],
    asset_checks=[landscape_is_usable, certificate_holds, no_leak, accuracy_beats_majority, promotion],
    jobs=[solve_landscape, retrain],
    sensors=[landscape_folder],
    schedules=[weekly_retraining],
    resources={"workspace": Workspace(), "glm": GLM(), "training": Training()},
    loggers={"console": words},
    # One process a run: twenty times less start-up than the default, and a killed run takes its child with it.
    executor=dg.in_process_executor,
)
