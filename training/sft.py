"""Supervised fine-tuning (SFT): the model learns to write each prompt's ``target``, reasoning and answer.

TRL's ``SFTTrainer`` on token ids of our own making (:func:`training.encode.sft_examples`), the loss on the target
only. No row is cut: a prompt + target longer than ``model.max_length`` is refused by :mod:`training.preflight`.

With ``sft.packing: true`` rows share sequences of up to ``model.max_length`` tokens, none of which sees another: no
padding is computed. A step then takes ``per_device_train_batch_size`` sequences, not rows. TRL takes log-probabilities
in tiles, packed or not: the logits of a large vocabulary never stand in memory at once.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from training.config import Stage, TrainingConfig, trainer_arguments
from training.curriculum import in_order, reading_in_order
from training.encode import packed, sft_examples
from training.models import load_model, load_tokenizer, lora, start_weights
from training.run import StopRequest, open_run
from training.trainer import run_callback, train_to_the_end, training_rows, use_threads


def run_sft(
    frame: pd.DataFrame,
    config: TrainingConfig,
    out: Path,
    *,
    dataset_sha256: str = "",
    start: str | Path | None = None,
    stop: StopRequest | None = None,
    cache: Path | None = None,
) -> Path:
    """Fine-tune on the split ``train`` and leave a complete run in ``out``.

    Parameters
    ----------
    frame : DataFrame
        A prompt dataset's rows: ``prompt``, ``target``, ``classes``, ``split``.
    config : TrainingConfig
        Its ``model`` and ``sft`` sections.
    out : Path
        The run's folder (:mod:`training.run`).
    dataset_sha256 : str
        Hash of the dataset, kept in ``run.json``.
    start : str or Path, optional
        Weights to start from instead of those that the ``model`` section names.
    stop : StopRequest, optional
        Asked after every step.
    cache : Path, optional
        Where unpacked weights are kept between runs; by default beside ``out``.

    Returns
    -------
    Path
        ``out``.

    Raises
    ------
    TrainingError
        Where the run cannot start or its weights are not finite; :class:`~training.run.RunInterrupted` on request.
    """
    use_threads(config.threads)
    from datasets import Dataset
    from transformers import set_seed
    from trl import SFTTrainer

    stop = stop or StopRequest()
    rows = training_rows(frame, config)
    with open_run(out, Stage.SFT, config, dataset_sha256, start) as run:
        if run.finished:
            return run.out
        args = trainer_arguments(
            config,
            Stage.SFT,
            run.trainer_dir,
            run_name=run.name,
            max_length=None,
            dataset_kwargs={"skip_prepare_dataset": True},
            **reading_in_order(config, Stage.SFT),
        )
        with args.main_process_first(local=False):
            weights = start or start_weights(config, rows, run.partial / "start", cache or run.out.parent / "cache")
        tokenizer = load_tokenizer(weights)
        set_seed(config.seed)  # adapters start with random weights
        dataset = in_order(Dataset.from_dict(sft_examples(tokenizer, rows)), rows, config, Stage.SFT)
        trainer = SFTTrainer(
            model=load_model(weights, config.model),
            args=args,
            train_dataset=packed(dataset, config.model.max_length) if args.packing else dataset,
            processing_class=tokenizer,
            peft_config=lora(config.model),
            callbacks=[run_callback(run, stop)],
        )
        return train_to_the_end(trainer, run, stop, tokenizer)
