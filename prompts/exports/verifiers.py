"""verifiers and prime-rl: an installable package whose taskset yields one task per prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prompts.dataset import PromptDataset
from prompts.exports.tables import ID_COLUMNS, accepted, jsonl, rows_by_split

USE = """\
`pip install ./FOLDER`, then `vf-validate landoracle-land-use --only-gold True --runtime.type subprocess` (every gold
answer must score 1) and `vf-eval landoracle-land-use`; the split is `--env.taskset.split held_out_block`, train by
default. Written for verifiers 0.4 (`verifiers.v1`)."""

PACKAGE = "landoracle_land_use"
TEMPLATES = Path(__file__).parent / "verifiers_package"


def files(dataset: PromptDataset) -> dict[str, bytes]:
    """``pyproject.toml`` and a package with a JSON lines file per split, yet without its ``reward.py``."""
    written = {
        "pyproject.toml": (TEMPLATES / "pyproject.toml").read_bytes(),
        f"{PACKAGE}/__init__.py": (TEMPLATES / "__init__.py.txt").read_bytes(),
        f"{PACKAGE}/taskset.py": (TEMPLATES / "taskset.py.txt").read_bytes(),
    }
    for split, rows in rows_by_split(dataset):
        written[f"{PACKAGE}/{split}.jsonl"] = jsonl([_row(row) for row in rows])
    return written


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """``system`` is None where the prompt has no system message."""
    by_role = {role: [m["content"] for m in row["prompt"] if m["role"] == role] for role in ("system", "user")}
    return {
        "system": "\n\n".join(by_role["system"]) or None,
        "user": "\n\n".join(by_role["user"]),
        "answer": row["answer"],
        "classes": row["classes"],
        "accepted": accepted(row),
        "status": row["status"],
        **{name: row[name] for name in ID_COLUMNS},
    }
