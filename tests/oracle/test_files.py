"""A file appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.files import write_atomically


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path):
    target = tmp_path / "plan.json"
    target.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically(target, fail)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_the_writer_sees_the_final_name_and_missing_folders_are_made(tmp_path: Path):
    target = tmp_path / "runs" / "one" / "labels.gpkg"
    seen: list[Path] = []

    def write(path: Path) -> None:
        seen.append(path)
        path.write_text("new")

    write_atomically(target, write)
    assert seen[0].name == "labels.gpkg"
    assert seen[0] != target
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


def test_an_existing_file_is_replaced(tmp_path: Path):
    target = tmp_path / "a.txt"
    for content in ("one", "two"):
        write_atomically(target, lambda p, content=content: p.write_text(content))
    assert target.read_text() == "two"
