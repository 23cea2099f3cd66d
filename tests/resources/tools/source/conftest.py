"""A small tree of several languages and a way to open it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from resources.tools.source import SourceTree

Open = Callable[[Mapping[str, bytes | str]], SourceTree]


@pytest.fixture
def open_tree(tmp_path: Path) -> Open:
    """Write files and open them as a source tree."""

    def opened(files: Mapping[str, bytes | str]) -> SourceTree:
        root = tmp_path / "tree"
        for path, content in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return SourceTree(root, "inputs/source/tree.zip", "ab" * 32, tmp_path / "cache")

    return opened
