"""Damage that a test or a measurement does to a case on purpose."""

from __future__ import annotations

from pathlib import Path


def cut_largest(home: Path, case_id: str) -> None:
    """Cut the largest file of a case's package to its first hundred bytes."""
    files = [path for path in (home / "cases" / case_id).rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.chmod(0o600)
    largest.write_bytes(largest.read_bytes()[:100])
