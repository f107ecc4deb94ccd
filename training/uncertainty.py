"""Where to spend rollouts: prompts are drawn by how uncertain the policy is about them.

A group in which every sample is right, or every one wrong, teaches no decision. What the policy thinks of a prompt is
known from its last votes: with a share p of right decisions it weighs (4 p (1 - p))^s, 1 where the policy is of two
minds and 0 where it is of one. Older votes of the same prompt count half. A few votes say little, so p is drawn to the
mean of all votes as if two more had been cast for it: of a policy that is mostly right, six right votes of eight are
mostly luck's doing, two of eight are not. With s = 8 little else than open prompts is drawn. Labels that the oracle
proved to be the only optimum go before others.

Prompts never voted on are looked at while the uncertain ones known add up to less than ``pool`` generations: they
weigh together as much as is missing, at most one generation. So exploring stops when enough is found, and comes back
when it has been learned. A stated share of every generation is drawn from all rows alike, whatever the votes say: no
row is ever given up, and the same run shows what uniform drawing would give (``signal/uniform`` beside
``signal/drawn``).

The draw of a generation depends on the seed, its number and the votes, and on nothing else; votes are kept in every
checkpoint, so a resumed run draws the same prompts. It is made when a generation begins, not in the data loader, which
reads one batch ahead and replays batches on resume.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from training.section import Section

VOTES = "votes.safetensors"
PRIOR_VOTES = 2.0


class DrawSection(Section):
    """How prompts are drawn."""

    by: Literal["uniform", "uncertainty"] = "uniform"
    uniform_share: float = Field(default=0.1, ge=0.01, le=1, description="of every generation, from all rows alike")
    sharpness: float = Field(default=8.0, gt=0, description="s of the weight")
    pool: float = Field(
        default=0.5, gt=0, description="generations of uncertain prompts to know of, then to stop exploring"
    )
    tied_weight: float = Field(
        default=0.25, ge=0, le=1, description="of a row whose label is not the proven only optimum"
    )
    first_votes: int = Field(default=0, ge=0, description="rows voted on with the start weights before training")


@dataclass
class Votes:
    """What the policy last decided on each training row.

    Parameters
    ----------
    label_sure : ndarray
        (n,) bool, the oracle's label is its only optimum.
    section : DrawSection
        The profile's.
    seed : int
        Of the draws.
    """

    label_sure: np.ndarray
    section: DrawSection
    seed: int
    right: np.ndarray = field(init=False)
    """(n,) right decisions, older ones at half weight."""
    votes: np.ndarray = field(init=False)
    """(n,) decisions, older ones at half weight; 0 = never voted on."""
    generation: int = 0

    def __post_init__(self) -> None:
        self.right = np.zeros(len(self.label_sure))
        self.votes = np.zeros(len(self.label_sure))

    def weights(self, prompts: int) -> np.ndarray:
        """(n,) how much each row is worth drawing, for a generation of ``prompts`` prompts."""
        seen = self.votes > 0
        mean = self.right.sum() / max(self.votes.sum(), 1.0)
        share = np.where(seen, (self.right + PRIOR_VOTES * mean) / (self.votes + PRIOR_VOTES), 0.0)
        sure = np.where(self.label_sure, 1.0, self.section.tied_weight)
        known = (4 * share * (1 - share)) ** self.section.sharpness * sure
        missing = min(max(self.section.pool * prompts - known.sum(), 0.0), prompts)
        unseen = np.where(seen, 0.0, sure)
        return known + unseen * (missing / max(unseen.sum(), 1e-9))

    def draw(self, prompts: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the next generation.

        Parameters
        ----------
        prompts : int
            How many.

        Returns
        -------
        rows : ndarray
            (prompts,) positions, no two alike while there are enough rows.
        by_weight : ndarray
            (prompts,) bool: drawn by uncertainty; False: from all rows alike.
        """
        random = np.random.default_rng((self.seed, self.generation))
        self.generation += 1
        n = len(self.votes)
        weights = self.weights(prompts)
        wanted = prompts - int(random.binomial(prompts, self.section.uniform_share))
        wanted = min(wanted, int((weights > 0).sum()))
        # Without replacement: the largest log(u) / w (Efraimidis and Spirakis 2006).
        keys = np.divide(np.log(random.random(n)), weights, out=np.full(n, -np.inf), where=weights > 0)
        chosen = np.argsort(-keys, kind="stable")[:wanted]
        others = np.setdiff1d(np.arange(n), chosen)
        missing = prompts - len(chosen)
        alike = random.choice(others if len(others) >= missing else np.arange(n), missing, replace=n < missing)
        order = random.permutation(prompts)
        return np.concatenate([chosen, alike])[order], (np.arange(prompts) < len(chosen))[order]

    def note(self, rows: np.ndarray, right: np.ndarray, group: int) -> None:
        """Take in the votes of a generation.

        Parameters
        ----------
        rows : ndarray
            (m,) positions of the prompts.
        right : ndarray
            (m,) share of right decisions in each group, in [0, 1].
        group : int
            Decisions in a group.
        """
        self.right[rows] = self.right[rows] / 2 + right * group
        self.votes[rows] = self.votes[rows] / 2 + group

    def save(self, checkpoint: Path) -> None:
        """Write the votes into a checkpoint."""
        from safetensors.numpy import save_file

        state = {"right": self.right, "votes": self.votes, "generation": np.array([self.generation])}
        save_file(state, checkpoint / VOTES)

    def load(self, checkpoint: Path) -> None:
        """Take the votes from a checkpoint."""
        from safetensors.numpy import load_file

        state = load_file(checkpoint / VOTES)
        self.right, self.votes, self.generation = state["right"], state["votes"], int(state["generation"][0])


def votes_on(rows: pd.DataFrame, section: DrawSection, seed: int) -> Votes | None:
    """Empty votes on the training rows, or None where the profile draws uniformly."""
    if section.by == "uniform":
        return None
    sure = rows["status"].to_numpy() == "unique" if "status" in rows else np.ones(len(rows), dtype=bool)
    return Votes(sure, section, seed)
