"""Settings of the sections ``sft`` and ``grpo`` that the installed TRL does not know, found before anything runs.

Importing TRL takes 8 s, and neither the code server nor the command line does so. The names of its settings are read
from its source instead, in 0.06 s: the fields of ``SFTConfig`` and ``GRPOConfig``, and of the classes they build on. A
training process checks its settings once more, with TRL itself.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from oracle.errors import ConfigurationError
from training.config import SYNONYMS, Stage, TrainingConfig

SOURCES = ("trl/trainer/sft_config.py", "trl/trainer/grpo_config.py", "trl/trainer/base_config.py")
BASE = "transformers/training_args.py"
CLASSES = {Stage.SFT: "SFTConfig", Stage.GRPO: "GRPOConfig"}


def refuse_unknown_settings(config: TrainingConfig) -> None:
    """Check the names in ``sft`` and ``grpo`` against the installed TRL's.

    Where TRL is not installed, or is a release that keeps its settings elsewhere, nothing is refused here.

    Raises
    ------
    ConfigurationError
        Names every unknown setting, with the nearest known one.
    """
    problems = []
    for stage, name in CLASSES.items():
        known = known_settings(name)
        for key in config.section(stage) if known else ():
            if key not in known and _synonym(key) not in known:
                close = difflib.get_close_matches(key, sorted(known), n=1)
                problems.append(f"{stage.value}.{key}" + (f" (did you mean {close[0]}?)" if close else ""))
    if problems:
        raise ConfigurationError(f"the installed TRL has no setting called {'; '.join(problems)}")


@cache
def known_settings(name: str) -> frozenset[str]:
    """The fields of one of TRL's configuration classes, its bases' included; empty where its source is not found."""
    classes = {definition.name: definition for file in _sources() for definition in _classes(file)}
    found: set[str] = set()
    waiting = [name]
    while waiting:
        definition = classes.get(waiting.pop())
        if definition is None:
            return frozenset()
        found |= {
            statement.target.id
            for statement in definition.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        }
        waiting += [base.id for base in definition.bases if isinstance(base, ast.Name)]
    return frozenset(name for name in found if not name.startswith("_"))


def _sources() -> Iterator[Path]:
    for source in (*SOURCES, BASE):
        package, _, rest = source.partition("/")
        spec = find_spec(package)  # finds a top-level package without importing it
        for folder in (spec and spec.submodule_search_locations) or ():
            if (Path(folder) / rest).is_file():
                yield Path(folder) / rest


def _classes(file: Path) -> Iterator[ast.ClassDef]:
    module = ast.parse(file.read_text(encoding="utf-8"))
    return (statement for statement in module.body if isinstance(statement, ast.ClassDef))


def _synonym(key: str) -> str | None:
    return SYNONYMS.get(key) or {newer: older for older, newer in SYNONYMS.items()}.get(key)
