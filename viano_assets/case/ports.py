"""What intake and the input view need of a store; `viano_assets.package.store.CheckpointStore` has it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from viano_assets.package.model import Change, Head


class ReadStore(Protocol):
    """Reading one head."""

    def read(self, head: Head, path: str) -> bytes:
        """Return one artifact's bytes, hashed at the read."""
        ...

    def open(self, head: Head, path: str) -> BinaryIO:
        """Open one artifact for streaming."""
        ...


class CommitStore(ReadStore, Protocol):
    """Continuing a case."""

    def commit(self, head: Head, change: Change) -> Head:
        """Publish the next generation."""
        ...


class CaseStore(CommitStore, Protocol):
    """Creating and continuing a case."""

    def case_ids(self) -> list[str]:
        """Return the ids of all cases in this home."""
        ...

    def create(self, case_id: str, change: Change) -> Head:
        """Publish generation 1."""
        ...

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        """Return the validated head."""
        ...

    def lock(self, case_id: str) -> AbstractContextManager[None]:
        """Take the non-blocking case lock."""
        ...
