"""``landoracle``: every stage from the command line, thin over the same functions as the Dagster assets.

Exit codes: 0 done, 1 the input or the result is not good (the reason stands on standard error), 2 wrong usage.
"""

from __future__ import annotations

import typer

from pipeline.bench import bench_app
from pipeline.dataset_commands import dataset_app
from pipeline.evaluation_commands import evaluation_app
from pipeline.export_commands import export_app
from pipeline.landscape_commands import graph_app, landscape_app
from pipeline.launch_commands import launch_app
from pipeline.learning_commands import learning_app
from pipeline.operations_commands import operations_app
from pipeline.plan_commands import plan_app
from pipeline.training_commands import training_app

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn a map of farm polygons into proven land-use labels, and a small language model into a planner.\n\n"
    "Start with `landoracle demo`, or with your own file: `landoracle landscape check farms.gpkg`, then "
    "`landoracle solve farms.gpkg --out plan`.",
)
app.add_typer(learning_app)
app.add_typer(evaluation_app)
app.add_typer(dataset_app)
app.add_typer(export_app)
app.add_typer(launch_app, name="launch")
app.add_typer(landscape_app, name="landscape")
app.add_typer(graph_app)
app.add_typer(plan_app)
app.add_typer(training_app)
app.add_typer(operations_app)
app.add_typer(bench_app, name="bench")

if __name__ == "__main__":
    app()
