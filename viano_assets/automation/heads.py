"""The newest heads of a home for sensors that look every few seconds.

A store validates a head by hashing every live byte. A generation never changes once it has its name, so
here a case is read again only when it has a newer one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from viano_assets.errors import VianoError
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore


class _Mark(NamedTuple):
    """What changes when a case gets a generation, or is replaced by another of its name."""

    generations: int
    newest: str
    inode: int
    modified_ns: int


_guard = threading.Lock()
_seen: dict[tuple[str, str], tuple[_Mark, Head]] = {}


def newest_heads(store: CheckpointStore) -> Iterator[Head]:
    """Yield the heads of the cases that can be read, by case id; a damaged one stops nobody else."""
    for case_id in store.case_ids():
        head = _newest(store, case_id)
        if head is not None:
            yield head


def _newest(store: CheckpointStore, case_id: str) -> Head | None:
    place = (os.path.realpath(store.home), case_id)
    mark = _mark(Path(store.paths(case_id).generations))
    with _guard:
        seen = _seen.get(place)
    if seen is not None and seen[0] == mark:
        return seen[1]
    try:
        head = store.latest(case_id)
    except VianoError:
        return None
    if mark is not None:
        with _guard:
            _seen[place] = (mark, head)
    return head


def _mark(folder: Path) -> _Mark | None:
    try:
        names = sorted(path.name for path in folder.iterdir())
        facts = (folder / names[-1]).stat()
    except (OSError, IndexError):
        return None
    return _Mark(len(names), names[-1], facts.st_ino, facts.st_mtime_ns)
