"""A prompt asked in another style is the prompt that would have been rendered so."""

from __future__ import annotations

import pytest

from oracle.errors import DatasetError
from prompts.config import Layout, PromptConfig, Style
from prompts.dataset import Source, build_dataset
from prompts.restyle import restyled


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("context", ["none", "supply", "prices"])
@pytest.mark.parametrize("before", list(Style))
def test_prompts_are_those_rendered_in_the_other_style(
    nine: Source, layout: Layout, context: str, before: Style
) -> None:
    frames = {
        style: build_dataset(
            [nine], PromptConfig.model_validate({"order": 1, "context": context, "layout": layout, "style": style})
        ).frame
        for style in Style
    }
    after = next(style for style in Style if style is not before)
    given, wanted = frames[before], frames[after]
    found = restyled(given["prompt"], given["classes"], layout, before, after)
    assert found == wanted["prompt"].tolist()
    assert (found == given["prompt"].tolist()) == (layout is Layout.COMPACT)
    assert restyled(given["prompt"], given["classes"], layout, before, before) == given["prompt"].tolist()


def test_a_system_message_of_another_version_is_refused() -> None:
    prompt = [{"role": "system", "content": "You are someone else."}, {"role": "user", "content": "?"}]
    with pytest.raises(DatasetError, match="build the dataset anew"):
        restyled([prompt], [["oat", "habitat"]], Layout.FULL, Style.THINK, Style.ANSWER_ONLY)
