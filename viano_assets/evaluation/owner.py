"""One owner at a time for the runs of a corpus: an `flock` beside them, gone with its process.

Whoever starts, continues or judges a run owns it alone. The runs of the Dagster graph that carry its cases
hold the lock together, so that no command takes the run over while they work. Where the file system has no
locks nobody is kept out; the locks of the cases still keep two workers apart.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from viano_assets.errors import BusyError
from viano_assets.evaluation.stored import CorpusFolder

LOCK = "owner.lock"


class Owner:
    """The ownership of one corpus' runs, as one user of it has it; entered again by the same user.

    Args:
        folder: the corpus.
        shared: hold it together with others that share it.
    """

    def __init__(self, folder: CorpusFolder, *, shared: bool = False) -> None:
        self._folder = folder
        self._how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Own the runs for the block.

        Raises:
            BusyError: `corpus_busy`.
        """
        if self._depth:
            yield
            return
        self._folder.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(descriptor)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, self._how | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BusyError(
                    "corpus_busy",
                    "another process works on the runs of the corpus",
                    where=self._folder.corpus,
                    hint="wait for it, then run the same command again",
                ) from error
