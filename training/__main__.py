"""The child process of a run: ``python -m training sft|grpo|evaluate|check --dataset DIR --config PROFILE --out DIR``.

Exit status: 0 done, 2 refused with a reason, 75 stopped after a checkpoint (the same command goes on from there).
SIGTERM or SIGINT, or the end of the parent process, lets the current step finish and a checkpoint be written.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from oracle.errors import ConfigurationError, LandoracleError
from prompts.dataset import PromptDataset
from training.config import Stage, TrainingConfig, load_profile
from training.devices import claimed, devices_of
from training.launch import INTERRUPTED, REFUSED, end_with_parent, environment
from training.run import RunInterrupted, StopRequest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; see this module's docstring."""
    asked = _parser().parse_args(arguments)
    end_with_parent()
    os.environ.update(environment(asked.out))  # before torch reads it
    try:
        config = load_profile(asked.config, asked.set)
        dataset = PromptDataset.load(asked.dataset)
        with claimed(_wanted(asked.command, config), asked.out):
            if asked.command == "evaluate":
                _evaluate(asked, config, dataset)
            else:
                _train(asked, config, dataset)
    except RunInterrupted as stopped:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
    except LandoracleError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:  # while waiting for a device; an evaluation keeps every batch that it has written
        return INTERRUPTED
    return 0


def _wanted(command: str, config: TrainingConfig) -> tuple[str, ...]:
    """The devices to claim; of several processes the first claims them for all."""
    if command == "check" or os.environ.get("RANK", "0") != "0":
        return ()
    return devices_of(config, Stage.SFT if command == Stage.SFT else Stage.GRPO)


def _train(asked: argparse.Namespace, config: TrainingConfig, dataset: PromptDataset) -> None:
    from training.grpo import run_grpo
    from training.preflight import preflight
    from training.sft import run_sft

    stop = stop_on_signals() if asked.command != "check" else StopRequest()
    stage = Stage(asked.stage if asked.command == "check" else asked.command)
    cache = asked.out.absolute().parent / "cache"
    if os.environ.get("RANK", "0") == "0":
        cpu = asked.command == "check"
        made = dataset.manifest.prompts
        preflight(dataset.frame, config, stage, start=asked.start, cache=cache, cpu=cpu, prompts=made)
    if asked.command == "check":
        return
    if stage is Stage.SFT:
        run_sft(
            dataset.frame,
            config,
            asked.out,
            dataset_sha256=dataset.sha256,
            start=asked.start,
            stop=stop,
            cache=cache,
        )
    else:
        run_grpo(dataset.frame, config, asked.out, asked.start, dataset_sha256=dataset.sha256, stop=stop)


def _evaluate(asked: argparse.Namespace, config: TrainingConfig, dataset: PromptDataset) -> None:
    import pandas as pd

    from training.evaluate import evaluate
    from training.held_out_plans import held_out_plans, optima

    models = {}
    for text in asked.model:
        name, equals, folder = text.partition("=")
        if not equals or not name or not folder:
            raise ConfigurationError(f"--model {text!r}: write NAME=FOLDER, e.g. sft=runs/sft")
        models[name] = Path(folder)
    evaluate(
        dataset.frame,
        models,
        config,
        asked.out,
        dataset_sha256=dataset.sha256,
        prompts=dataset.manifest.prompts,
        plans=held_out_plans(asked.plans, dataset.manifest, config.evaluation.plan_landscapes),
        optimum=optima(asked.plans, dataset.manifest),
        pairs=pd.read_parquet(asked.pairs) if asked.pairs else None,
    )


def stop_on_signals() -> StopRequest:
    """A request that SIGTERM or SIGINT sets; a second signal ends the process at once."""
    stop = StopRequest()

    def request(number: int, frame: FrameType | None) -> None:
        stop.requested = True
        signal.signal(number, signal.SIG_DFL)
        print("stopping after this step and its checkpoint", file=sys.stderr)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request)
    return stop


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training", description="train or evaluate in this process")
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "sft": "supervised fine-tuning on the split train",
        "grpo": "GRPO on the split train, from a finished SFT run",
        "evaluate": "decide the held-out rows with models and baselines",
        "check": "say everything that would stop a run, and train nothing",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--dataset", type=Path, required=True, help="folder of a prompt dataset")
        command.add_argument("--config", default="pocket", help="profile name or YAML file")
        command.add_argument("--out", type=Path, default=Path("runs/check"), required=name != "check", help="folder")
        command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override, repeatable")
        if name == "evaluate":
            command.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="finished run")
            command.add_argument("--plans", action="append", default=[], type=Path, help="plan, or folder of plans")
            command.add_argument("--pairs", type=Path, help="counterfactuals.parquet")
        else:
            command.add_argument(
                "--start",
                required=name == "grpo",
                help="start weights: a run's folder (of easier prompts, for a curriculum) or a hub name",
            )
        if name == "check":
            command.add_argument("--stage", choices=[s.value for s in Stage], default=Stage.SFT.value)
    return parser


if __name__ == "__main__":
    sys.exit(main())
