"""A store that keeps everything in memory, held to the same conformance suite as the real one."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import BusyError, InputError, PackageError, StaleHeadError
from viano_assets.package.changes import (
    check_paths,
    check_totals,
    content,
    first_manifest,
    next_manifest,
)
from viano_assets.package.clock import Clock, SystemClock, iso
from viano_assets.package.limits import PackageLimits
from viano_assets.package.model import Change, Checkpoint, FileEntry, Head
from viano_assets.package.names import NameIndex
from viano_assets.partitions import check_case_id

_PACKAGE_ID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class MemoryHead(Head):
    """A head that holds its content and which paths are raw."""

    blobs: dict[str, bytes] = field(repr=False, compare=False)
    raw: dict[str, bool] = field(repr=False, compare=False)

    def raw_inputs(self) -> dict[str, str]:
        return {path: self.files[path].sha256 for path, is_raw in self.raw.items() if is_raw}


class MemoryStore:
    """Cases in memory; `lock` is per thread and never waits."""

    def __init__(self, clock: Clock | None = None, limits: PackageLimits | None = None) -> None:
        self.clock = clock or SystemClock()
        self.limits = limits or PackageLimits()
        self._heads: dict[str, list[MemoryHead]] = {}
        self._holders: dict[str, tuple[int, int]] = {}
        self._guard = threading.Lock()

    def case_ids(self) -> list[str]:
        return sorted(self._heads)

    def exists(self, case_id: str) -> bool:
        return check_case_id(case_id) in self._heads

    def create(self, case_id: str, change: Change, *, package_id: str | None = None) -> Head:
        check_case_id(case_id)
        if case_id.lower() in {other.lower() for other in self._heads}:
            raise InputError("case_exists", f"the case {case_id!r} is already there")
        manifest = first_manifest(case_id, package_id or _PACKAGE_ID, change)
        head = self._advance(MemoryHead(manifest, {}, (), "", {}, {}), change)
        self._heads[case_id] = [head]
        return head

    def _advance(self, old: MemoryHead, change: Change) -> MemoryHead:
        check_paths(change, NameIndex(old.files), old.raw, old.case_id)
        live = old.files.keys() | change.put.keys()
        manifest = next_manifest(old.manifest, change, live, self.limits)
        put = {path: _read(value) for path, value in sorted(change.put.items())}
        entries = {path: FileEntry(sha256_hex(data), len(data)) for path, data in put.items()}
        files = {**old.files, **entries}
        check_totals(len(files), sum(entry.size for entry in files.values()), self.limits, old.case_id)
        declared = {path: entry.sha256 for path, entry in entries.items() if path not in change.raw}
        checkpoint = Checkpoint(
            generation=manifest.generation,
            revision=manifest.analysis_revision,
            event=change.event,
            phase=change.phase,
            declares=declared,
            detail=dict(change.detail),
            at=iso(self.clock.now()),
        )
        identity = [old.record_sha256, manifest.generation, change.event, declared, dict(manifest.pointers)]
        return MemoryHead(
            manifest,
            files,
            (*old.checkpoints, checkpoint),
            sha256_hex(canonical_json(identity)),
            {**old.blobs, **put},
            {**old.raw, **{path: path in change.raw for path in put}},
        )

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        if check_case_id(case_id) not in self._heads:
            raise InputError("case_not_found", f"there is no case {case_id!r}")
        head = self._heads[case_id][-1]
        if package_id is not None and package_id != head.manifest.package_id:
            raise PackageError("wrong_package", "the case has another package")
        if audit_history and len(self._heads[case_id]) != head.generation:
            raise PackageError("generation_missing", "a generation is missing")
        return head

    def at_generation(self, case_id: str, generation: int) -> Head:
        return self._heads[case_id][generation - 1]

    def read(self, head: Head, path: str) -> bytes:
        assert isinstance(head, MemoryHead)
        if path not in head.blobs:
            raise PackageError("artifact_unknown", f"no file {path!r}")
        return head.blobs[path]

    def open(self, head: Head, path: str) -> BinaryIO:
        return io.BytesIO(self.read(head, path))

    def commit(self, head: Head, change: Change) -> Head:
        assert isinstance(head, MemoryHead)
        with self.lock(head.case_id):
            heads = self._heads[head.case_id]
            if heads[-1].generation != head.generation:
                raise StaleHeadError("stale_head", "another writer committed this generation first")
            heads.append(self._advance(head, change))
            return heads[-1]

    @contextmanager
    def lock(self, case_id: str) -> Iterator[None]:
        if not self.exists(case_id):
            raise InputError("case_not_found", f"there is no case {case_id!r}")
        me = threading.get_ident()
        with self._guard:
            holder, depth = self._holders.get(case_id, (me, 0))
            if holder != me:
                raise BusyError("case_busy", "another thread works on the case", where=case_id)
            self._holders[case_id] = (me, depth + 1)
        try:
            yield
        finally:
            with self._guard:
                depth = self._holders[case_id][1] - 1
                if depth:
                    self._holders[case_id] = (me, depth)
                else:
                    del self._holders[case_id]


def _read(value: bytes | Path) -> bytes:
    if isinstance(value, Path) and not value.is_file():
        raise InputError("unreadable_input", "the file cannot be read", where=str(value))
    return content(value)
