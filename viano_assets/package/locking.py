"""The case lock: `flock` on `lock`, never waited for, held by one thread and entered again by the same.

`flock` ends with its owner, so a dead owner, a reused process id or a half-written lock file cannot block
(the file's content means nothing). The file is never deleted. The lock only saves work: two writers cannot
both commit a generation without it. It is given back explicitly and not by closing: a program that another
thread is just starting holds a copy of every descriptor until it has started, and would keep the case busy.
Where the file system has no locks, `held` reports False and the store leaves alone everything that could
disturb another writer. A forked child does not own its parent's lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from viano_assets.errors import BusyError, StorageError
from viano_assets.package.filesystem import FileSystem, storage_error


@dataclass(slots=True)
class _Held:
    owner: tuple[int, int]
    descriptor: int
    real: bool
    depth: int = 1


class CaseLocks:
    """The locks of one store instance."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._guard = threading.Lock()
        self._held: dict[str, _Held] = {}

    @contextmanager
    def hold(self, name: str, path: str, on_acquired: Callable[[bool], None]) -> Iterator[bool]:
        """Hold the lock for the block; yields whether the file system really locks.

        Args:
            name: the case, also the key of re-entry.
            path: the lock file.
            on_acquired: called once when the lock was newly taken, with whether it is real.

        Raises:
            BusyError: `case_busy`.
            StorageError: the lock file cannot be opened.
        """
        owner = (os.getpid(), threading.get_ident())
        held = self._enter(name, path, owner)
        try:
            if held.depth == 1:
                on_acquired(held.real)
            yield held.real
        finally:
            self._leave(name, held)

    def taken(self, name: str, path: str) -> bool:
        """Say whether anybody holds the lock; also True where that cannot be found out.

        It is found out by taking the lock for an instant, so ask only when the answer matters.
        """
        with self._guard:
            held = self._held.get(name)
            if held is not None and held.owner[0] == os.getpid():
                return True
            try:
                descriptor, real = self._take(name, path)
            except (BusyError, StorageError):
                return True
            self._filesystem.unlock(descriptor)
            self._filesystem.close(descriptor)
            return not real

    def _enter(self, name: str, path: str, owner: tuple[int, int]) -> _Held:
        with self._guard:
            held = self._held.get(name)
            if held is not None and held.owner == owner:
                held.depth += 1
                return held
            if held is not None and held.owner[0] == owner[0]:
                raise _busy(name)
            descriptor, real = self._take(name, path)
            held = _Held(owner, descriptor, real)
            self._held[name] = held
            return held

    def _take(self, name: str, path: str) -> tuple[int, bool]:
        try:
            descriptor = self._filesystem.open_lock(path)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            return descriptor, self._filesystem.try_lock(descriptor)
        except BlockingIOError as error:
            self._filesystem.close(descriptor)
            raise _busy(name) from error
        except OSError as error:
            self._filesystem.close(descriptor)
            raise storage_error(error, path) from error

    def _leave(self, name: str, held: _Held) -> None:
        with self._guard:
            held.depth -= 1
            if held.depth == 0:
                if self._held.get(name) is held:
                    del self._held[name]
                if held.owner[0] == os.getpid():
                    self._filesystem.unlock(held.descriptor)
                self._filesystem.close(held.descriptor)


def _busy(name: str) -> BusyError:
    return BusyError(
        "case_busy",
        "another process or thread works on the case",
        where=name,
        hint="wait until it is done, then run the same command again",
    )
