"""The Dagster code location: what `dg dev`, `dg launch` and the demo load."""

from __future__ import annotations

import warnings

import dagster as dg

from pipeline.assets import FROM_ALL, PER_LANDSCAPE
from pipeline.automation import landscape_folder, retrain, solve_landscape, weekly_retraining
from pipeline.checks import CHECKS
from pipeline.console import words
from pipeline.launchpad import GLM, Training
from pipeline.workspace import Workspace

# Links to the source are marked as beta; the pin on dagster holds them still.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

defs = dg.Definitions(
    assets=dg.with_source_code_references([*PER_LANDSCAPE, *FROM_ALL]),
    asset_checks=CHECKS,
    jobs=[solve_landscape, retrain],
    sensors=[landscape_folder],
    schedules=[weekly_retraining],
    resources={"workspace": Workspace(), "glm": GLM(), "training": Training()},
    loggers={"console": words},
    # One process a run: twenty times less start-up than the default, and a killed run takes its child with it.
    executor=dg.in_process_executor,
)
