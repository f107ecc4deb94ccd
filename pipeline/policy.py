"""The policy that is served: the last one that an evaluation found better, kept whole beside its predecessors.

``policies/<first digits of the weights' hash>/`` holds a policy's files; ``served.json`` names the one that is served
and how it came to that. A trained model takes no place by itself: :func:`promote` decides on the same held-out rows.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oracle.errors import TrainingError
from oracle.files import write_json
from training.evaluate import EVALUATION
from training.run import RUN

SERVED = "served.json"
KEPT = 5
"""Policies kept besides the served one, for going back to."""


@dataclass(frozen=True)
class Change:
    """One entry of the history, the last one being what is served."""

    policy: str
    since: str
    why: str
    accuracy: float
    split: str


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate took the place, and why."""

    promoted: bool
    why: str


class Policies:
    """The policies of one workspace.

    Parameters
    ----------
    root : Path
        The workspace's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, name: str) -> Path:
        """Weights, tokenizer and ``run.json`` of one policy."""
        return self._root / "policies" / name

    @property
    def history(self) -> list[Change]:
        """Every change of the served policy, oldest first."""
        return [Change(**entry) for entry in self._read()["history"]]

    @property
    def state(self) -> Path:
        """The file that says which policy is served."""
        return self._root / SERVED

    @property
    def kept(self) -> list[Path]:
        """Folders of the served policy and of those that can be gone back to, the latest first."""
        return [self.folder(name) for name in self._names()[: KEPT + 1]]

    @property
    def dropped(self) -> list[Path]:
        """Folders of those that were served too long ago."""
        return [self.folder(name) for name in self._names()[KEPT + 1 :]]

    def _names(self) -> list[str]:
        """Every policy that was served, the latest first."""
        return list(dict.fromkeys(change.policy for change in reversed(self.history)))

    @property
    def served(self) -> Path | None:
        """Folder of the policy that is served."""
        history = self.history
        return self.folder(history[-1].policy) if history else None

    def promote(self, candidate: Path, evaluation: Path, served_evaluation: Path | None) -> Verdict:
        """Serve ``candidate`` where it decided more held-out polygons rightly than the served policy did.

        Parameters
        ----------
        candidate : Path
            A finished run.
        evaluation : Path
            Folder of an evaluation whose last model is the candidate.
        served_evaluation : Path, optional
            Folder of the served policy's evaluation on the same rows.
        """
        name, served = policy_name(candidate), self.served
        split, reached, majority = _figures(evaluation)
        if served is not None and served.name == name:
            return Verdict(True, f"{name} is served already")
        if name in self._read()["withdrawn"]:
            return Verdict(False, f"{name} was rolled back by hand: retrain on something new")
        if reached <= majority:
            return Verdict(False, f"{name} decides {reached:.1%} of {split}, the commonest class alone {majority:.1%}")
        why = f"{reached:.1%} of {split}"
        if served is not None:
            if served_evaluation is None:
                raise TrainingError(f"the served policy {served.name} has not been evaluated on the same rows")
            before = _figures(served_evaluation)[1]
            if reached <= before:
                return Verdict(False, f"{name} decides {why}, the served {served.name} {before:.1%}: it stays")
            why += f", {served.name} before it {before:.1%}"
        self._keep(candidate, name)
        self._enter(Change(name, _now(), why, reached, split))
        return Verdict(True, f"{name}: {why}")

    def roll_back(self) -> Change:
        """Serve the policy before the present one again; the present one is not promoted again by itself.

        Raises
        ------
        TrainingError
            Where there is none before it.
        """
        history = self.history
        if not history:
            raise TrainingError("no policy is served yet: materialize served_policy")
        current = history[-1].policy
        withdrawn = [*self._read()["withdrawn"], current]
        usable = [c for c in history if c.policy not in withdrawn and self.folder(c.policy).is_dir()]
        if not usable:
            raise TrainingError(f"{current} has no predecessor to go back to")
        back = usable[-1]
        entry = Change(back.policy, _now(), f"rolled back from {current}", back.accuracy, back.split)
        self._enter(entry, withdrawn)
        return entry

    def _keep(self, candidate: Path, name: str) -> None:
        folder = self.folder(name)
        if folder.is_dir():
            return
        partial = folder.with_name(f".{name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(candidate, partial, copy_function=_link)
        partial.rename(folder)

    def _enter(self, entry: Change, withdrawn: list[str] | None = None) -> None:
        history = [*self.history, entry]
        state = {
            "served": entry.policy,
            "withdrawn": self._read()["withdrawn"] if withdrawn is None else withdrawn,
            "history": [asdict(change) for change in history],
        }
        write_json(self.state, state)
        for folder in self.dropped:
            shutil.rmtree(folder, ignore_errors=True)

    def _read(self) -> dict[str, Any]:
        if not self.state.is_file():
            return {"history": [], "withdrawn": []}
        stated: dict[str, Any] = json.loads(self.state.read_text(encoding="utf-8"))
        return stated


def policy_name(run: Path) -> str:
    """The first twelve digits of the weights' SHA-256."""
    return str(json.loads((run / RUN).read_text(encoding="utf-8"))["weights_sha256"])[:12]


def _figures(evaluation: Path) -> tuple[str, float, float]:
    """Split, accuracy of the last model on it, and of always answering the commonest class."""
    stated = json.loads((evaluation / EVALUATION).read_text(encoding="utf-8"))
    by_split = list(stated["models"].values())[-1]
    split = next((s for s in ("held_out_landscape", "held_out_block") if s in by_split), next(iter(by_split)))
    majority = stated["baselines"]["majority"][split]["accuracy"]
    return split, float(by_split[split]["accuracy"]), float(majority)


def _link(source: str, target: str) -> None:
    """Runs are replaced, never written to, so their files can be shared."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
