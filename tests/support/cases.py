"""Small real packages for tests of the store and of what stands on it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore

PACKAGE_ID = "0b9f8c1e-5d0a-4c53-9a55-3f2f7f3f9a01"
BIG = hashlib.shake_256(b"big input").digest((1 << 20) + 17)


class ManualClock:
    """A clock that moves when it is told to, in either direction."""

    def __init__(self, now: datetime = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)) -> None:
        self.moment = now
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.step(seconds)

    def step(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.seconds += max(0.0, seconds)


def counted_tokens() -> object:
    """Return a source of names that is the same in every run."""
    count = 0

    def token() -> str:
        nonlocal count
        count += 1
        return f"{count:016x}"

    return token


def first_change(big: bytes = BIG) -> Change:
    put: dict[str, bytes | Path] = {
        "inputs/report/report.md": b"# It breaks\n",
        "inputs/source/source.zip": big,
    }
    return Change("case_received", put=put, raw=frozenset(put), lifecycle="RECEIVED")


def next_change(number: int) -> Change:
    """One artifact of its own, one rewritten, a pointer and a fact."""
    return Change(
        "published",
        "interpretation",
        put={f"analysis/{number:04d}.json": b'{"n":%d}' % number, "analysis/latest.json": b"[%d]" % number},
        pointers={"latest": "analysis/latest.json"},
        lifecycle="ASSEMBLED",
        detail={"number": number},
    )


def grown(store: CheckpointStore, case_id: str, generations: int = 4) -> Head:
    """Create a case and commit up to `generations`."""
    head = store.create(case_id, first_change(), package_id=PACKAGE_ID)
    with store.lock(case_id):
        while head.generation < generations:
            head = store.commit(head, next_change(head.generation + 1))
    return head
