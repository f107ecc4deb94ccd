"""Completions are written once, and the same whether an evaluation was stopped or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from training.completion_cache import CompletionCache
from training.config import load_profile
from training.generate import Generated, Writer
from training.models import load_model, load_tokenizer, save_pocket

TINY = [*("model.hidden=32", "model.layers=1", "model.heads=2", "model.intermediate=64", "model.max_length=256")]


@pytest.fixture(scope="module")
def frame(make_frame: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return make_frame(landscapes=2, rows=10)


@pytest.fixture(scope="module")
def weights(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    save_pocket(load_profile("pocket", TINY).model, frame, folder, seed=0)
    return folder


def _cache(folder: Path, weights: Path, *, limit: int = 12) -> CompletionCache:
    model = load_model(weights, load_profile("pocket", TINY).model)
    return CompletionCache(folder, weights, model, load_tokenizer(weights), max_new_tokens=limit, batch=6)


class Counted:
    """Counts the completions written, and may stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> None:
        self.written, self.stop_after = 0, stop_after
        write = Writer.write

        def counted(writer: Writer, ids: Sequence[Sequence[int]]) -> list[Generated]:
            if self.stop_after is not None and self.written >= self.stop_after:
                raise KeyboardInterrupt
            self.written += len(ids)
            return write(writer, ids)

        monkeypatch.setattr(Writer, "write", counted)


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "sampled"])
def test_a_stopped_evaluation_ends_with_the_completions_it_would_have_had(
    frame: pd.DataFrame, weights: Path, tmp_path: Path, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, asked = list(frame["prompt"]), {"temperature": temperature, "samples": 2 if temperature else 1}
    whole = _cache(tmp_path / "whole", weights).completions(prompts, **asked)  # type: ignore[arg-type]
    counted = Counted(monkeypatch, stop_after=6)
    with pytest.raises(KeyboardInterrupt):
        _cache(tmp_path / "parts", weights).completions(prompts, **asked)  # type: ignore[arg-type]
    (file,) = (tmp_path / "parts").iterdir()
    with file.open("a") as cut_off:
        cut_off.write('{"prompt": "half a li')  # as if killed while writing
    counted.stop_after = None
    parts = _cache(tmp_path / "parts", weights).completions(prompts, **asked)  # type: ignore[arg-type]
    assert parts == whole
    assert counted.written == len(prompts) * len(whole[0])  # 6 before the stop, the rest after: none twice
    assert _cache(tmp_path / "parts", weights).completions(prompts, **asked) == whole  # type: ignore[arg-type]
    assert counted.written == len(prompts) * len(whole[0])


def test_other_weights_limits_or_seeds_find_nothing(
    frame: pd.DataFrame, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    prompts = list(frame["prompt"])[:5]
    other = tmp_path / "other"
    save_pocket(load_profile("pocket", TINY).model, frame, other, seed=1)
    for expected, cache, seed in [
        (5, _cache(tmp_path / "kept", weights), 0),
        (10, _cache(tmp_path / "kept", weights, limit=8), 0),
        (15, _cache(tmp_path / "kept", other), 0),
        (15, _cache(tmp_path / "kept", weights), 1),  # greedy: the seed decides nothing
    ]:
        cache.completions(prompts, seed=seed)
        assert counted.written == expected
    for expected, seed in [(20, 0), (25, 1), (25, 0)]:
        _cache(tmp_path / "kept", weights).completions(prompts, temperature=1.0, seed=seed)
        assert counted.written == expected


def test_equal_prompts_are_asked_once_and_no_prompt_is_no_work(
    frame: pd.DataFrame, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    first, second = list(frame["prompt"])[:2]
    cache = _cache(tmp_path, weights)
    found = cache.completions([first, second, first])
    assert counted.written == 2
    assert found[0] == found[2]
    assert cache.completions([]) == []
