"""What models are asked: the evaluated rows and more, in the style of the turns that a model was trained to write."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from prompts.config import Layout, PromptConfig, Style
from prompts.restyle import restyled
from training.config import TrainingConfig


@dataclass(frozen=True, eq=False)
class Asked:
    """What every model of one style decides.

    Parameters
    ----------
    rows : DataFrame
        n rows of a prompt dataset that are evaluated.
    everything : DataFrame
        These first, then further rows whose decision alone counts.
    config : TrainingConfig
        Its ``prompts.style`` is the style asked for.
    prompts : PromptConfig, optional
        With which the prompts were rendered; without it no cited number is changed.
    pairs : DataFrame, optional
        Counterfactual pairs.
    """

    rows: pd.DataFrame
    everything: pd.DataFrame
    config: TrainingConfig
    prompts: PromptConfig | None
    pairs: pd.DataFrame | None

    def in_style(self, style: Style) -> Asked:
        """The same rows with prompts that ask for turns of another style.

        Raises
        ------
        DatasetError
            Where the prompts are of another version (:func:`prompts.restyle.restyled`).
        """
        before, layout = Style(self.rows["style"].iloc[0]), Layout(self.rows["layout"].iloc[0])

        def turned(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
            classes = list(frame["classes"])
            prompts = {c: restyled(list(frame[c]), classes, layout, before, style) for c in columns}
            return frame.assign(**{c: pd.Series(of, index=frame.index, dtype=object) for c, of in prompts.items()})

        asked_in = {"style": style}
        return replace(
            self,
            rows=turned(self.rows, "prompt").assign(style=style.value),
            everything=turned(self.everything, "prompt").assign(style=style.value),
            config=self.config.model_copy(update={"prompts": self.config.prompts.model_copy(update=asked_in)}),
            prompts=None if self.prompts is None else self.prompts.model_copy(update=asked_in),
            pairs=None if self.pairs is None else turned(self.pairs, "prompt", "edited_prompt"),
        )
