"""Ending a run on Ctrl-C or a termination signal: between two dispatches, with everything published kept."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def run_until_stopped(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end; SIGTERM asks for the same as Ctrl-C.

    The first signal ends it at its next suspension, a second one at once. A signal that comes after the last
    piece of work loses nothing: the result is returned.

    Raises:
        KeyboardInterrupt: it was stopped before its end.
    """
    finished: list[T] = []

    async def whole() -> None:
        finished.append(await work())

    try:
        with _termination_as_interrupt():
            asyncio.run(whole())
    except KeyboardInterrupt:
        if not finished:
            raise
    return finished[0]


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)
