"""A store that dies at a chosen commit: just before it, or just after it was acknowledged."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, Literal

from viano_assets.package.model import Change, Head
from viano_assets.phases.protocols import Store


class Crash(BaseException):
    """The process is gone; nothing may catch this and go on."""


class CrashingStore:
    """Delegates to a real store and crashes once.

    Args:
        inner: the store that keeps the data.
        at: which commit, from 1; a larger number than there are commits never crashes.
        when: before the commit takes place, or after it and before the caller learns of it.
    """

    def __init__(self, inner: Store, at: int, when: Literal["before", "after"]) -> None:
        self.inner = inner
        self.commits = 0
        self._at = at
        self._when = when

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        return self.inner.latest(case_id, package_id, audit_history)

    def read(self, head: Head, path: str) -> bytes:
        return self.inner.read(head, path)

    def open(self, head: Head, path: str) -> BinaryIO:
        return self.inner.open(head, path)

    def lock(self, case_id: str) -> AbstractContextManager[None]:
        return self.inner.lock(case_id)

    def commit(self, head: Head, change: Change) -> Head:
        self.commits += 1
        if self.commits == self._at and self._when == "before":
            raise Crash(change.event)
        result = self.inner.commit(head, change)
        if self.commits == self._at:
            raise Crash(change.event)
        return result
