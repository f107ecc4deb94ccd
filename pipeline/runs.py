"""Finding the models of a training run's folder, and the settings that they were trained with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from oracle.errors import TrainingError
from oracle.files import write_text
from training.config import Stage
from training.run import RUN

STAGE_NAMES = {Stage.SFT: "SFT", Stage.GRPO: "SFT + GRPO"}
WEIGHTS = "*.safetensors"


def models_of(runs: Sequence[str]) -> dict[str, Path]:
    """The models of several runs by the names that they are reported under.

    Parameters
    ----------
    runs : sequence of str
        ``FOLDER`` or ``NAME=FOLDER``: what ``landoracle train`` wrote (its stages are models of their own), one stage's
        folder, or the folder of a model that was not trained here.

    Raises
    ------
    TrainingError
        Where a folder holds none of them, or two models have one name.
    """
    found: dict[str, Path] = {}
    for text in runs:
        name, folder = named(text)
        stages = {label: folder / stage for stage, label in STAGE_NAMES.items() if (folder / stage / RUN).is_file()}
        if not stages and not (folder / RUN).is_file() and not any(folder.glob(WEIGHTS)):
            raise TrainingError(
                f"{folder} holds no finished run; train one with `landoracle train DATASET --out {folder}`"
            )
        alone = len(runs) == 1 and "=" not in text
        models = {label if alone else f"{name} {label}": path for label, path in stages.items()} or {name: folder}
        if twice := found.keys() & models.keys():
            raise TrainingError(f"two runs are called {', '.join(twice)}: give them names, NAME=FOLDER")
        found |= models
    return found


def named(text: str) -> tuple[str, Path]:
    """Name and folder of ``NAME=FOLDER``, or of ``FOLDER``, whose own name counts."""
    name, equals, folder = text.partition("=")
    path = Path(folder if equals else text)
    return (name if equals else path.resolve().name), path


def own_profile(models: dict[str, Path], folder: Path) -> str:
    """A profile with the settings of the last model that was trained here, written into ``folder``.

    Raises
    ------
    TrainingError
        Where none was.
    """
    for path in reversed(models.values()):
        if (path / RUN).is_file():
            config = json.loads((path / RUN).read_text(encoding="utf-8"))["config"]
            write_text(folder / "profile.yaml", yaml.safe_dump(config, sort_keys=False))
            return str(folder / "profile.yaml")
    raise TrainingError("none of the models was trained here: say with --profile how they are to be asked")
