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

DEMO = _DATA / "demo" if _DATA.is_dir() else _ROOT / "tests" / "corpus" / "bundled" / "P5-B-101"
"""Folder of the case that `viano demo` imports: report.md, diagnostics.zip, source.zip."""


def prompt(name: str) -> str:
    """Return the text of one prompt version, for example `hypotheses_v1`."""
    return (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
