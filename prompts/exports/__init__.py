"""Exports: a prompt dataset as folders that other trainers load as they are, one file per trainer."""
