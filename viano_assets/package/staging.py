"""How a case gets its name: built whole in a staging directory, then renamed in one step.

A dead builder leaves only its staging directory; the next one removes it, which the lock inside tells apart
from a living builder's. A refused or interrupted import leaves nothing under `cases/`.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from viano_assets.errors import BusyError, InputError
from viano_assets.package.clock import Clock
from viano_assets.package.files import sync_directory
from viano_assets.package.filesystem import FileSystem, storage_error
from viano_assets.package.layout import STAGING_NAME, CasePaths
from viano_assets.partitions import check_case_id

_FOLDERS = ("gens", "objects", "tmp")
_NAMING_WAITS = 600
_NAMING_WAIT_S = 0.05


class Nursery:
    """Creates and names the case directories of one home."""

    def __init__(self, filesystem: FileSystem, clock: Clock, home: Path, token: Callable[[], str]) -> None:
        self._filesystem = filesystem
        self._clock = clock
        self._home = home
        self._token = token
        self._cases = f"{home}/cases"

    def case_ids(self) -> list[str]:
        """Return the names of all case directories, sorted."""
        if self._filesystem.kind(self._cases) is None:
            return []
        found = []
        for name, kind in self._filesystem.scan(self._cases):
            if kind == "directory":
                with contextlib.suppress(InputError):
                    found.append(check_case_id(name))
        return sorted(found)

    @contextmanager
    def staged(self, case_id: str) -> Iterator[CasePaths]:
        """Make an empty case directory under a staging name; removed unless it is adopted.

        Raises:
            InputError: `case_exists`, also for the same name in other letter case.
            StorageError: the disk refused.
        """
        self._refuse_taken(case_id)
        self._make_home()
        paths = CasePaths(f"{self._cases}/.new-{self._token()}")
        descriptor = -1
        try:
            with self._naming():
                self._sweep()
                self._filesystem.mkdir(paths.root)
                descriptor = self._filesystem.open_lock(paths.lock)
                self._filesystem.try_lock(descriptor)
            for folder in _FOLDERS:
                self._filesystem.mkdir(f"{paths.root}/{folder}")
            yield paths
        except OSError as error:
            raise storage_error(error, paths.root) from error
        finally:
            with contextlib.suppress(OSError):
                self._remove(paths)
            if descriptor >= 0:
                self._filesystem.close(descriptor)

    def adopt(self, staging: CasePaths, case_id: str, before: Callable[[], None]) -> None:
        """Give the staged case its name; `before` runs when the name is known to be free.

        Raises:
            InputError: `case_exists`.
            StorageError: the disk refused.
        """
        for folder in (staging.objects, staging.generations, staging.root):
            sync_directory(self._filesystem, folder)
        self._filesystem.point("create.staged")
        target = f"{self._cases}/{case_id}"
        with self._naming():
            self._refuse_taken(case_id)
            before()
            try:
                self._filesystem.rename(staging.root, target)
            except OSError as error:
                if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise _taken(case_id, case_id) from error
                raise storage_error(error, target) from error
        self._filesystem.point("create.named")
        sync_directory(self._filesystem, self._cases)

    def _refuse_taken(self, case_id: str) -> None:
        for other in self.case_ids():
            if other.lower() == case_id.lower():
                raise _taken(case_id, other)

    def _make_home(self) -> None:
        missing = []
        folder = self._cases
        while self._filesystem.kind(folder) is None:
            missing.append(folder)
            parent = str(Path(folder).parent)
            if parent == folder:
                break
            folder = parent
        for path in reversed(missing):
            try:
                with contextlib.suppress(FileExistsError):
                    self._filesystem.mkdir(path)
            except OSError as error:
                raise storage_error(error, path) from error
            sync_directory(self._filesystem, str(Path(path).parent))

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Hold the home's lock for an instant: to name a case, or to make and lock a staging directory.

        Making and locking are one step for the sweep, which otherwise would take a directory that is not
        locked yet for a dead builder's.
        """
        path = f"{self._cases}/.lock"
        try:
            descriptor = self._filesystem.open_lock(path)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            for attempt in range(_NAMING_WAITS):
                try:
                    self._filesystem.try_lock(descriptor)
                    break
                except BlockingIOError as error:
                    if attempt == _NAMING_WAITS - 1:
                        raise BusyError("home_busy", "another process names a case", where=path) from error
                    self._clock.sleep(_NAMING_WAIT_S)
            yield
        finally:
            self._filesystem.close(descriptor)

    def _sweep(self) -> None:
        """Remove staging directories whose builder is dead."""
        with contextlib.suppress(OSError):
            for name, kind in self._filesystem.scan(self._cases):
                if kind == "directory" and STAGING_NAME.fullmatch(name):
                    self._sweep_one(CasePaths(f"{self._cases}/{name}"))

    def _sweep_one(self, paths: CasePaths) -> None:
        descriptor = self._filesystem.open_lock(paths.lock)
        try:
            if self._filesystem.try_lock(descriptor):
                self._remove(paths)
        except BlockingIOError:
            return
        finally:
            self._filesystem.close(descriptor)

    def _remove(self, paths: CasePaths) -> None:
        if self._filesystem.kind(paths.root) is None:
            return
        for folder in _FOLDERS:
            path = f"{paths.root}/{folder}"
            if self._filesystem.kind(path) == "directory":
                for name, _ in self._filesystem.scan(path):
                    self._filesystem.unlink(f"{path}/{name}")
                self._filesystem.rmdir(path)
        self._filesystem.unlink(paths.lock)
        self._filesystem.rmdir(paths.root)


def _taken(case_id: str, other: str) -> InputError:
    return InputError(
        "case_exists",
        f"the case {other!r} is already there",
        where=case_id,
        hint="choose another --case-id, or `viano case reopen` to add information",
    )
