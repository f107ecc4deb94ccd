"""Where a landscape is read and solved: in its run's own process, or on the workers of one of Dagster's executors.

A run solves one landscape, and on one machine its own process does all of it. With ``LANDORACLE_EXECUTOR``, the path of
a YAML file, its steps go to workers on several machines, who exchange files through the store (:mod:`pipeline.store`)::

    executor: dagster_celery.celery_executor     # module.name
    execution:
      config: {...}                              # as the executor's own documentation says

Training stays in its run's process: what ends it, resumes it and lends it a device is on that machine.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from oracle.errors import ConfigurationError
from pipeline.sources import PROJECT

EXECUTOR = "LANDORACLE_EXECUTOR"


def solving_executor() -> dg.ExecutorDefinition | None:
    """The executor that ``LANDORACLE_EXECUTOR`` states; None, the run's own process, without it.

    Raises
    ------
    ConfigurationError
        See :func:`load_executor`.
    """
    file = os.environ.get(EXECUTOR)
    return load_executor(PROJECT / file) if file else None


def load_executor(file: Path) -> dg.ExecutorDefinition:
    """The executor that a YAML file states, configured.

    Raises
    ------
    ConfigurationError
        Where there is no such file, no such executor, or a setting is not one of its settings.
    """
    try:
        stated: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        module, _, name = str(stated["executor"]).rpartition(".")
        found = getattr(import_module(module), name)
        config = stated.get("execution", {}).get("config", {})
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, ImportError) as error:
        raise ConfigurationError(
            f"{file}: {type(error).__name__}: {error}; {EXECUTOR} is a YAML file with `executor: module.name` of an "
            "installed executor and `execution: {config: ...}`"
        ) from error
    if not isinstance(found, dg.ExecutorDefinition):
        raise ConfigurationError(f"{file}: {stated['executor']} is no executor of Dagster")
    checked = found.configured(config).apply_config_mapping({"config": {}})
    if not checked.success:
        reasons = "; ".join(problem.message for problem in checked.errors or [])
        raise ConfigurationError(f"{file}: {stated['executor']} does not take this configuration: {reasons}")
    return found.configured(config)
