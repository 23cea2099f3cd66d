"""Finds the prompt and configuration files that ship with Viano, wherever it is installed from."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"
_ROOT = _DATA if _DATA.is_dir() else _PACKAGE.parent

PROMPTS = _ROOT / "prompts"
"""Folder of the versioned prompts."""

CONFIG = _ROOT / "config"
"""Folder of the example configuration and the corpora."""


def prompt(name: str) -> str:
    """Return the text of one prompt version, for example `hypotheses_v1`."""
    return (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
