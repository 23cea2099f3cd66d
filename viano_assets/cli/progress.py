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


class LiveProgress:
    """Prints each progress event with the seconds since the start."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False, quiet=quiet)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def report(self, event: Progress) -> None:
        """Print one event."""
        seconds = time.monotonic() - self._started
        line = Text(f"{seconds:6.1f} s  ", style="dim")
        line.append(f"{event.phase:<15}", style="bold")
        line.append(one_line(event.text))
        self._console.print(line, soft_wrap=True)
