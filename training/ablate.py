"""What reinforcement learning added, and what became of it without its parts: the same runs for several seeds.

An arm is one run; most start from another arm's weights. Every finished model decides the same held-out rows, and is
compared, row by row, with SFT alone and with the weights that it started from. An arm and seed that is finished is not
run again as long as configuration, dataset and start weights are the same.

Folders: ``<arm>-<seed>`` for each run, ``evaluation`` (:mod:`training.evaluate`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from oracle.errors import ConfigurationError
from prompts.answer_only import answer_only
from prompts.config import Style
from prompts.dataset import PromptDataset
from training.config import Stage, TrainingConfig, load_profile
from training.evaluate import EVALUATION
from training.launch import evaluation_command, run_command, training_command
from training.run import RUN, weights_sha256

ANSWER_ONLY = f"prompts.style={Style.ANSWER_ONLY}"
DECISIONS_ALONE = ("evaluation.cited_rows=0", "evaluation.plan_landscapes=0")
"""Of an evaluation, what a comparison of decisions needs."""
ANSWER_ONLY_DATASET = "dataset_answer_only"
EVALUATED = "evaluation"


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
    "sft_grpo_drawn": Arm("the same, prompts drawn by votes", Stage.GRPO, REFERENCE, ("draw.by=uncertainty",)),
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
    """Settings of a run on top of the profile.

    Those asked for, then what makes the arm what it is, then those asked for this arm alone, as ``ARM:key=value``.
    """
    common, own = list[str](), list[str]()
    for change in changes:
        arm, colon, text = change.partition(":")
        if not colon or arm not in ARMS:
            common.append(change)
        elif arm == run.arm:
            own.append(text)
    return [*common, *ARMS[run.arm].overrides, *own, f"seed={run.seed}"]


@dataclass(frozen=True)
class Ablation:
    """The runs of one dataset, profile and set of changes, in one folder.

    Parameters
    ----------
    dataset : Path
        Folder of a prompt dataset that asks for a think block.
    out : Path
        Of the runs and the evaluations.
    profile : str or Path
        Profile name or YAML file.
    changes : tuple of str
        ``key=value`` for every arm, ``ARM:key=value`` for one.
    """

    dataset: Path
    out: Path
    profile: str | Path = "pocket"
    changes: tuple[str, ...] = ()

    def config(self, run: Run) -> TrainingConfig:
        """The run's whole configuration."""
        return load_profile(self.profile, overrides_of(run, self.changes))

    def folder(self, run: Run) -> Path:
        """The run's folder."""
        return self.out / run.name

    @property
    def evaluation(self) -> Path:
        """Where the decisions of all runs lie."""
        return self.out / EVALUATED

    def start(self, run: Run) -> Path | None:
        """The weights that it starts from; None = those that the profile names."""
        start = ARMS[run.arm].start
        return self.folder(Run(start, run.seed)) if start else None

    @cached_property
    def datasets(self) -> dict[bool, tuple[Path, str]]:
        """Folder and hash of the dataset for arms that think (True), and of its variant for those that do not."""
        given = PromptDataset.load(self.dataset)
        bare = answer_only(given)
        if not (self.out / ANSWER_ONLY_DATASET).is_dir():
            bare.save(self.out / ANSWER_ONLY_DATASET)
        return {True: (self.dataset, given.sha256), False: (self.out / ANSWER_ONLY_DATASET, bare.sha256)}

    def finished(self, run: Run) -> bool:
        """The run's folder is that of this configuration, dataset and start, trained to the end."""
        record = self.folder(run) / RUN
        start = self.start(run)
        if not record.is_file() or (start is not None and not start.is_dir()):
            return False
        found = json.loads(record.read_text(encoding="utf-8"))
        config = self.config(run)
        wanted = {
            "config_sha256": config.sha256,
            "dataset_sha256": self.datasets[config.thinks][1],
            "start": weights_sha256(start) if start is not None else "as configured",
        }
        return bool(wanted.items() <= found.items())

    def finished_runs(self) -> list[Run]:
        """All of the folder, of earlier calls too, arm by arm."""
        found = [(arm, path.name.removeprefix(f"{arm}-")) for arm in ARMS for path in self.out.glob(f"{arm}-*")]
        runs = [
            Run(arm, int(seed))
            for arm, seed in sorted(found, key=lambda pair: list(ARMS).index(pair[0]))
            if seed.isdigit()
        ]
        return [run for run in runs if self.finished(run)]

    def train(self, run: Run) -> None:
        """Train one run, in a process of its own; an interrupted one goes on."""
        dataset, _ = self.datasets[self.config(run).thinks]
        overrides = overrides_of(run, self.changes)
        stage, start = ARMS[run.arm].stage, self.start(run)
        run_command(training_command(stage, dataset, self.profile, self.folder(run), start=start, overrides=overrides))

    def evaluate(self, runs: Sequence[Run]) -> None:
        """Let the runs decide the held-out rows, greedily and by samples, unless the same weights have."""
        models = {run.name: self.folder(run) for run in runs}
        common = [change for change in self.changes if change.partition(":")[0] not in ARMS]
        overrides = [*DECISIONS_ALONE, *common]
        wanted = {
            "weights_sha256": {name: weights_sha256(path) for name, path in models.items()},
            "config_sha256": load_profile(self.profile, overrides).sha256,
        }
        record = self.evaluation / EVALUATION
        if record.is_file() and wanted.items() <= json.loads(record.read_text(encoding="utf-8")).items():
            return
        run_command(evaluation_command(self.dataset, self.profile, self.evaluation, models, overrides=overrides))


def ablate(ablation: Ablation, arms: Sequence[str], seeds: int, say: Callable[[str], None] = print) -> list[Run]:
    """Train the arms with seeds 0, 1, ..., one after the other, and let every finished run decide the held-out rows.

    Parameters
    ----------
    ablation : Ablation
        Dataset, folder and settings.
    arms : sequence of str
        Of :data:`ARMS`; starts are added.
    seeds : int
        How many.
    say : callable
        Gets a line before each run.

    Returns
    -------
    list of Run
        The finished runs of the folder, those of earlier calls with the same settings too.

    Raises
    ------
    TrainingError, ConfigurationError, DatasetError
        Where a run refuses or is stopped; the same command goes on from there.
    """
    runs = runs_of(arms, seeds)
    for run in runs:
        ablation.config(run)  # a wrong setting is refused before hours of work
    for number, run in enumerate(runs, start=1):
        done = ablation.finished(run)
        say(f"[{number}/{len(runs)}] {run.name}: {'finished before' if done else ARMS[run.arm].what}")
        if not done:
            ablation.train(run)
    finished = ablation.finished_runs()
    say(f"evaluation of {len(finished)} models")
    ablation.evaluate(finished)
    return finished
