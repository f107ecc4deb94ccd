"""What reinforcement learning added, and what became of it without its parts: the same runs for several seeds.

An arm is one run; most start from another arm's weights. Every finished model decides the same held-out rows, and is
compared, row by row, with SFT alone and with the weights that it started from. An arm and seed that is finished is not
run again as long as configuration, dataset and start weights are the same.

Folders: ``<arm>-<seed>`` for each run, ``evaluation`` and ``evaluation_answer_only`` (:mod:`training.evaluate`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oracle.errors import ConfigurationError
from prompts.answer_only import answer_only
from prompts.config import Style
from prompts.dataset import PromptDataset
from training.config import Stage, load_profile
from training.evaluate import EVALUATION
from training.launch import evaluation_command, run_command, training_command
from training.run import RUN, weights_sha256

ANSWER_ONLY = f"prompts.style={Style.ANSWER_ONLY}"
ANSWER_ONLY_DATASET = "dataset_answer_only"


@dataclass(frozen=True)
class Arm:
    """One kind of run.

    Parameters
    ----------
    what : str
        For the report.
    stage : Stage
        Its trainer.
    start : str, optional
        The arm whose weights it starts from; None = those that the profile names.
    overrides : tuple of str
        Changes to the profile.
    """

    what: str
    stage: Stage
    start: str | None = None
    overrides: tuple[str, ...] = ()


REFERENCE = "sft"
ARMS: Mapping[str, Arm] = {
    REFERENCE: Arm("SFT on true rationales", Stage.SFT),
    "sft_grpo": Arm("then GRPO", Stage.GRPO, REFERENCE),
    "beta_zero": Arm("the same without a KL anchor", Stage.GRPO, REFERENCE, ("grpo.beta=0", "allow_zero_beta=true")),
    "shuffled_labels": Arm("the same on shuffled labels", Stage.GRPO, REFERENCE, ("labels_shuffled=true",)),
    "answer_only": Arm("SFT on bare answers", Stage.SFT, None, (ANSWER_ONLY,)),
    "answer_only_grpo": Arm("then GRPO, no thinking", Stage.GRPO, "answer_only", (ANSWER_ONLY,)),
    "format_only": Arm("SFT on the format alone", Stage.SFT, None, ("targets=format_only", "sft.max_steps=100")),
    "format_only_grpo": Arm("then GRPO", Stage.GRPO, "format_only"),
}


@dataclass(frozen=True)
class Run:
    """An arm with a seed."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        """Of its folder, and of its rows in ``predictions.parquet``."""
        return f"{self.arm}-{self.seed}"


def runs_of(arms: Sequence[str], seeds: int) -> list[Run]:
    """The runs that the arms need, their starts before them, seed by seed.

    Raises
    ------
    ConfigurationError
        Where an arm is unknown, or there is no seed.
    """
    unknown = [name for name in arms if name not in ARMS]
    if unknown or not arms or seeds < 1:
        raise ConfigurationError(
            f"unknown arm {', '.join(unknown) or '(none given)'}, or {seeds} seeds: arms are {', '.join(ARMS)}, "
            "and one seed at least is needed"
        )
    needed: dict[str, None] = {}
    for name in (REFERENCE, *arms):
        start = ARMS[name].start
        needed.update(dict.fromkeys([*([start] if start else []), name]))
    return [Run(arm, seed) for seed in range(seeds) for arm in needed]


def overrides_of(run: Run, changes: Sequence[str]) -> list[str]:
    """Settings of a run on top of the profile: its arm's, then those asked for; ``ARM:key=value`` is for one arm."""
    mine = list(ARMS[run.arm].overrides)
    for change in changes:
        arm, colon, text = change.partition(":")
        if not colon or arm not in ARMS:
            mine.append(change)
        elif arm == run.arm:
            mine.append(text)
    return [*mine, f"seed={run.seed}"]


def ablate(
    dataset: Path,
    out: Path,
    *,
    profile: str | Path = "pocket",
    changes: Sequence[str] = (),
    arms: Sequence[str] = tuple(ARMS),
    seeds: int = 3,
    say: Callable[[str], None] = print,
) -> list[Run]:
    """Train every arm with every seed, one after the other, and let all of them decide the held-out rows.

    Parameters
    ----------
    dataset : Path
        Folder of a prompt dataset that asks for a think block.
    out : Path
        Of the runs and the evaluations.
    profile : str or Path
        Profile name or YAML file.
    changes : sequence of str
        ``key=value`` for every arm, ``ARM:key=value`` for one.
    arms : sequence of str
        Of :data:`ARMS`; starts are added.
    seeds : int
        Seeds 0, 1, ...
    say : callable
        Gets a line before each run.

    Returns
    -------
    list of Run
        All of them, finished.

    Raises
    ------
    TrainingError, ConfigurationError, DatasetError
        Where a run refuses or is stopped; the same command goes on from there.
    """
    runs = runs_of(arms, seeds)
    configs = {run: load_profile(profile, overrides_of(run, changes)) for run in runs}
    datasets = {False: dataset}
    if not all(config.thinks for config in configs.values()):
        datasets[True] = out / ANSWER_ONLY_DATASET
        answer_only(PromptDataset.load(dataset)).save(datasets[True])
    hashes = {bare: PromptDataset.load(folder).sha256 for bare, folder in datasets.items()}
    for number, run in enumerate(runs, start=1):
        arm = ARMS[run.arm]
        start = out / Run(arm.start, run.seed).name if arm.start else None
        bare = not configs[run].thinks
        if _finished(out / run.name, configs[run].sha256, hashes[bare], start):
            say(f"[{number}/{len(runs)}] {run.name}: finished before")
            continue
        say(f"[{number}/{len(runs)}] {run.name}: {arm.what}")
        settings = overrides_of(run, changes)
        run_command(
            training_command(arm.stage, datasets[bare], profile, out / run.name, start=start, overrides=settings)
        )
    for bare, folder in datasets.items():
        models = {run.name: out / run.name for run in runs if configs[run].thinks != bare}
        settings = [change for change in changes if change.partition(":")[0] not in ARMS]
        _evaluate(folder, profile, evaluation_folder(out, bare), models, settings + [ANSWER_ONLY] * bare, say)
    return runs


def evaluation_folder(out: Path, bare: bool) -> Path:
    """Where the decisions of the arms lie that think, or of those that answer only."""
    return out / ("evaluation_answer_only" if bare else "evaluation")


def _finished(folder: Path, config_sha256: str, dataset_sha256: str, start: Path | None) -> bool:
    if not (folder / RUN).is_file():
        return False
    record = json.loads((folder / RUN).read_text(encoding="utf-8"))
    begun = weights_sha256(start) if start is not None else "as configured"
    found = (record["config_sha256"], record["dataset_sha256"], record["start"])
    return found == (config_sha256, dataset_sha256, begun)


def _evaluate(
    dataset: Path,
    profile: str | Path,
    folder: Path,
    models: Mapping[str, Path],
    settings: Sequence[str],
    say: Callable[[str], None],
) -> None:
    wanted = {name: weights_sha256(path) for name, path in models.items()}
    config = load_profile(profile, settings).sha256
    if (folder / EVALUATION).is_file():
        record = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
        if record["weights_sha256"] == wanted and record["config_sha256"] == config:
            say(f"{folder.name}: finished before")
            return
    say(f"{folder.name}: {len(models)} models")
    run_command(evaluation_command(dataset, profile, folder, models, overrides=settings))
