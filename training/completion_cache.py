"""Completions that are written once: an evaluation that was stopped, or is asked again, goes on from what it has.

A file per model and sampling settings, ``<hash>.jsonl``, holds a line per completion under the hash of its prompt as
the model sees it (after the chat template). The name's hash covers the weights, the tokenizer, the length limit and the
temperature; so other weights, settings or prompts find nothing, and nothing has to be invalidated.

Lines are added batch by batch. Samples draw from a seed that follows from the seed asked for and the batch's prompts: a
run that was stopped between two batches ends with the completions that it would have had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.encode import prompt_texts
from training.generate import Generated, Writer, by_length
from training.progress import Progress
from training.run import weights_sha256

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class CompletionCache:
    """The completions of one model, kept in a folder.

    Parameters
    ----------
    folder : Path
        Of the files; made where it does not exist.
    weights : Path
        The model's folder, hashed.
    model, tokenizer : PreTrainedModel, PreTrainedTokenizerBase
        Loaded from it.
    max_new_tokens, batch : int
        As for :func:`training.generate.generate`.
    """

    def __init__(
        self,
        folder: Path,
        weights: Path,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_new_tokens: int,
        batch: int,
    ) -> None:
        self._folder, self._model, self._tokenizer = folder, model, tokenizer
        self._max_new_tokens, self._batch = max_new_tokens, batch
        self._identity = {
            "weights": weights_sha256(weights),
            "tokenizer": _files_sha256(weights, "tokenizer*", "chat_template*"),
            "max_new_tokens": max_new_tokens,
        }

    def completions(
        self,
        prompts: Sequence[Sequence[Mapping[str, Any]]],
        *,
        temperature: float = 0.0,
        samples: int = 1,
        seed: int = 0,
        label: str = "generate",
    ) -> list[list[Generated]]:
        """``samples`` completions of each prompt, in the order of ``prompts``; kept ones are not written anew.

        Parameters
        ----------
        prompts : sequence of chat messages
            n conversations up to the model's turn.
        temperature : float
            0 = greedy.
        samples : int
            Of each prompt.
        seed : int
            Of the sampling.
        label : str
            Of the progress line, which counts completions, kept ones included.
        """
        import torch

        texts = prompt_texts(self._tokenizer, prompts) if len(prompts) else []
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        asked = [(key, sample) for key in dict.fromkeys(keys) for sample in range(samples)]
        text_of = dict(zip(keys, texts, strict=True))
        path = self._path(temperature, seed)
        kept = _read(path)
        writer = Writer(self._model, self._tokenizer, max_new_tokens=self._max_new_tokens, temperature=temperature)
        shown = [text_of[key] for key, _ in asked]
        ids = self._tokenizer(shown, add_special_tokens=False)["input_ids"] if shown else []
        missing = len(asked) - sum(one in kept for one in asked)
        progress = Progress(label, len(asked), done=len(asked) - missing)
        done = len(asked) - missing
        for batch in by_length(ids, self._batch):
            todo = [i for i in batch.tolist() if asked[i] not in kept]
            if not todo:
                continue
            torch.manual_seed(_seed_of([asked[i] for i in todo], seed))
            written = dict(zip([asked[i] for i in todo], writer.write([ids[i] for i in todo]), strict=True))
            _append(path, written)
            kept |= written
            done += len(todo)
            progress.update(done)
        return [[kept[key, sample] for sample in range(samples)] for key in keys]

    def _path(self, temperature: float, seed: int) -> Path:
        settings = self._identity | {"temperature": temperature}
        if temperature > 0:
            settings |= {"seed": seed, "batch": self._batch}  # on which samples depend
        return self._folder / f"{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:32]}.jsonl"


def _read(path: Path) -> dict[tuple[str, int], Generated]:
    """What a file keeps; a last line that was cut off when its writer was killed is taken away."""
    if not path.is_file():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("rb+") as file:
            file.truncate(len(whole))
    kept = {}
    for line in whole.splitlines():
        row = json.loads(line)
        key = row.pop("prompt"), row.pop("sample")
        kept[key] = Generated(**row)
    return kept


def _append(path: Path, written: Mapping[tuple[str, int], Generated]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"prompt": key, "sample": sample} | asdict(one)) for (key, sample), one in written.items()]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def _seed_of(asked: Sequence[tuple[str, int]], seed: int) -> int:
    digest = hashlib.sha256(json.dumps([seed, *asked]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _files_sha256(folder: Path, *patterns: str) -> str:
    digest = hashlib.sha256()
    for path in sorted({p for pattern in patterns for p in folder.glob(pattern)}):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
