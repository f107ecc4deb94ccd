"""The command that writes a dataset as the files of another trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.terminal import DatasetArgument, JsonOption, refusals, show
from prompts.exports.export import Target, export

export_app = typer.Typer()


@export_app.command("export")
def export_command(
    dataset: DatasetArgument,
    target: Annotated[Target, typer.Option("--to", help="Whose files are written.")],
    to: Annotated[Path, typer.Option("--out", help="Folder: new, empty, or an earlier export, which is replaced.")],
    prefill: Annotated[
        str,
        typer.Option(
            help="What the chat template of the model to be trained opens after the prompt, with \\n for a new line; "
            "'<think>\\n' for the R1 distillations."
        ),
    ] = "",
    ceiling: Annotated[
        Path | None, typer.Option(help="Measured ceiling, for the card; DATASET/ceiling.json by default.")
    ] = None,
    licence: Annotated[str, typer.Option(help="SPDX identifier of the licence, for the card.")] = "other",
    as_json: JsonOption = False,
) -> None:
    """Write a dataset as files that TRL, open-r1, verl, OpenRLHF or verifiers load as they are.

    Rewards (`reward.py`), a dataset card and a manifest of SHA-256 lie beside them.

    Example: `landoracle export dataset --to verl --out for-verl`
    """
    from prompts.config import Style
    from prompts.dataset import PromptDataset
    from prompts.exports.card import read_ceiling
    from training.reward_file import reward_file

    with refusals():
        loaded = PromptDataset.load(dataset)
        thinks = loaded.manifest.prompts.style is Style.THINK
        manifest = export(
            loaded,
            target,
            to,
            rewards=reward_file(prefill=prefill.replace("\\n", "\n"), thinks=thinks),
            ceiling=read_ceiling(ceiling) if ceiling else read_ceiling(dataset / "ceiling.json", loaded.sha256),
            licence=licence,
        )
    values = {"for": target.value, "rows": manifest["rows"], "files": sorted(manifest["files"]), "written": str(to)}
    show(values, as_json, "Export")
