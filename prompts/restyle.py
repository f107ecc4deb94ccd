"""The same prompts asking for another kind of turn: with a think block, or the answer alone.

A compact prompt says nothing of the turn and stays as it is. Of layout ``full`` the system message is exchanged; what
the user says is the same in both styles.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle.errors import DatasetError
from prompts.config import Layout, PromptConfig, Style
from prompts.render import Message, system_message


def restyled(
    prompts: Sequence[Sequence[Message]],
    classes: Sequence[Sequence[str]],
    layout: Layout,
    before: Style,
    after: Style,
) -> list[list[Message]]:
    """Prompts of style ``before`` as they would have been rendered in style ``after``.

    Parameters
    ----------
    prompts : sequence of chat messages
        n prompts of one layout and style.
    classes : sequence of sequence of str
        Allowed answers of each.
    layout : Layout
    before, after : Style

    Raises
    ------
    DatasetError
        Where a system message is not what this version renders in style ``before``.
    """
    if layout is Layout.COMPACT or before is after:
        return [list(messages) for messages in prompts]
    old, new = (PromptConfig(layout=layout, style=style) for style in (before, after))
    found = []
    for messages, allowed in zip(prompts, classes, strict=True):
        system, *rest = messages
        if system["content"] != system_message(tuple(allowed), old):
            raise DatasetError(
                f"the system message of a prompt is not what this version writes for style {before}: build the dataset "
                f"anew, then its prompts can be asked in style {after} as well"
            )
        found.append([{**system, "content": system_message(tuple(allowed), new)}, *rest])
    return found
