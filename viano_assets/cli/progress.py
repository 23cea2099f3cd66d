"""Live progress on standard error: one growing line per phase, never on standard output."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from viano_assets.cli.options import one_line
from viano_assets.phases.protocols import Progress

QUIET_S = 1.0
"""Seconds between two printed lines of a phase that names every file it reads."""

CHATTY = frozenset({"tools"})


class LiveProgress:
    """Prints progress events with the seconds since the start; one a second where every file is named."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False, quiet=quiet)
        self._started = time.monotonic()
        self._printed = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def report(self, event: Progress) -> None:
        """Print one event."""
        now = time.monotonic()
        if event.phase in CHATTY and now - self._printed < QUIET_S:
            return
        self._printed = now
        seconds = now - self._started
        line = Text(f"{seconds:6.1f} s  ", style="dim")
        line.append(f"{event.phase:<15}", style="bold")
        line.append(one_line(event.text))
        self._console.print(line, soft_wrap=True)
