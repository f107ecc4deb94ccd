"""The rewards as one Python file that needs no Landoracle: ``reward.py`` in every export.

The file is the text of :mod:`training.turn` and :mod:`training.other_trainers`, so that an exported reward cannot
drift from the one trained with here. Three things are taken out: the import of the former by the latter, the modules'
``__future__`` imports (trainers load the file without registering it, and dataclasses then fail on annotations that
are text), and the two settings below, which are written in.
"""

from __future__ import annotations

import ast
from pathlib import Path

PARTS = (Path(__file__).with_name("turn.py"), Path(__file__).with_name("other_trainers.py"))

HEAD = '''"""Rewards for land-use decisions: one file, standard library only (and torch in the function for OpenRLHF).

{parts}
"""
'''


def reward_file(*, prefill: str = "", thinks: bool = True) -> str:
    """Text of the file.

    Parameters
    ----------
    prefill : str
        What the chat template of the model to be trained opens after the prompt, e.g. ``"<think>\\n"``.
    thinks : bool
        The prompts ask for a think block.
    """
    sources = [path.read_text(encoding="utf-8") for path in PARTS]
    settings = {"PREFILL": prefill, "THINKS": thinks}
    told = "\n\n".join(ast.get_docstring(ast.parse(source)) or "" for source in sources)
    bodies = [_body(source, settings) for source in sources]
    return HEAD.format(parts=told.replace("\\", "\\\\")) + "\n" + "\n\n\n".join(bodies) + "\n"


def _body(source: str, settings: dict[str, object]) -> str:
    """The module without docstring and without what the docstring above says is taken out."""
    lines = source.splitlines()
    module = ast.parse(source)
    for node in module.body:
        span = slice(node.lineno - 1, node.end_lineno)
        if node is module.body[0] or _is_taken_out(node):
            lines[span] = [""] * len(lines[span])
        elif isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name) and name.id in settings:
            lines[span] = [f"{name.id} = {settings[name.id]!r}"]
    return "\n".join(lines).strip("\n")


def _is_taken_out(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module in ("__future__", "training.turn")
