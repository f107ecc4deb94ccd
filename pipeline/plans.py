"""Solved landscapes on disk, as ``landoracle solve`` and the asset ``oracle_plan`` leave them."""

from prompts.plan_folder import read_plan

__all__ = ["read_plan"]
