"""Operational durations of the store, by operation name.

Operations nest (`commit` holds `lock`), so their durations overlap and are never added up: `wall_seconds`
counts only operations that no other timed operation contains.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from viano_assets.package.clock import Clock


@dataclass(frozen=True, slots=True)
class OperationTime:
    """What one operation took: calls, seconds of all calls, seconds of the calls inside another operation."""

    calls: int = 0
    seconds: float = 0.0
    nested_seconds: float = 0.0
    longest: float = 0.0


class Telemetry:
    """Collects durations; safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._local = threading.local()
        self._times: dict[str, OperationTime] = {}
        self._wall = 0.0

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time the block as one call of operation `name`."""
        depth: int = getattr(self._local, "depth", 0)
        self._local.depth = depth + 1
        start = self._clock.monotonic()
        try:
            yield
        finally:
            self._local.depth = depth
            self._add(name, max(0.0, self._clock.monotonic() - start), nested=depth > 0)

    def _add(self, name: str, seconds: float, *, nested: bool) -> None:
        with self._lock:
            old = self._times.get(name, OperationTime())
            self._times[name] = OperationTime(
                old.calls + 1,
                old.seconds + seconds,
                old.nested_seconds + (seconds if nested else 0.0),
                max(old.longest, seconds),
            )
            if not nested:
                self._wall += seconds

    def operations(self) -> dict[str, OperationTime]:
        """Return the durations so far, by operation name in sorted order."""
        with self._lock:
            return dict(sorted(self._times.items()))

    @property
    def wall_seconds(self) -> float:
        """Seconds spent in timed operations, each instant counted once per thread."""
        return self._wall
