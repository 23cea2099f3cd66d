"""Commands in hints, completed with what the user gave: the home and the provider."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viano_assets.errors import VianoError

DEFAULT_HOME = ".viano"


def flags(home: Path | None, provider: str | None) -> str:
    """Return ` --provider P --home H` as far as they differ from what a command takes by itself."""
    parts = ["--provider", provider] if provider else []
    parts += ["--home", str(home)] if home is not None and str(home) != DEFAULT_HOME else []
    return "".join(f" {shlex.quote(part)}" for part in parts)


def addressed(text: str, case_id: str, home: Path, provider: str | None = None) -> str:
    """Complete every `viano run CASE` and `viano case … CASE` in a text, so that it can be copied."""
    text = text.replace(f"viano run {case_id}", f"viano run {case_id}{flags(home, provider)}")
    for name in ("resume", "reopen", "show", "verify", "egress"):
        text = text.replace(f"viano case {name} {case_id}", f"viano case {name} {case_id}{flags(home, None)}")
    return text


@contextmanager
def addressing(case_id: str, home: Path, provider: str | None = None) -> Iterator[None]:
    """Complete the commands in the hint of an error that passes."""
    try:
        yield
    except VianoError as error:
        error.hint = addressed(error.hint, case_id, home, provider)
        raise
