"""Publishing one generation. The order of operations is the one in the docstring of `store`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from viano_assets.canonical import sha256_hex
from viano_assets.errors import ContractError, PackageError, StaleHeadError
from viano_assets.package import container
from viano_assets.package.changes import check_paths, check_totals, next_manifest
from viano_assets.package.container import Member, member_overhead
from viano_assets.package.files import (
    hash_file,
    remove_quietly,
    source_chunks,
    sync_directory,
    write_durably,
    write_hashed,
)
from viano_assets.package.filesystem import FileSystem, storage_error
from viano_assets.package.history import History, SealedSegment, seal
from viano_assets.package.layout import CasePaths
from viano_assets.package.limits import BLOB_IN_CONTAINER, SNAPSHOT_EVERY, PackageLimits
from viano_assets.package.model import Change, Checkpoint, Manifest
from viano_assets.package.names import NameIndex
from viano_assets.package.reader import Files, Link, PackageReader, StoredHead
from viano_assets.package.record import Segment, Snapshot, Stored, encode, located, located_segment

ProgressHook = Callable[[str, int], None]
"""Called with a path and the bytes of it stored so far."""


class _Staged(NamedTuple):
    """The content of a change: new places, members of the container, whether objects are newly referenced."""

    put: dict[str, Stored]
    members: list[Member]
    objects: bool


class _Grown(NamedTuple):
    """What a snapshot generation adds, and the live bytes after the change."""

    snapshot: Snapshot | None
    sealed: SealedSegment | None
    total_bytes: int = 0


@dataclass(slots=True)
class _Index:
    """What is derived from a head and needed at the next commit: names and content by hash."""

    record_sha256: str
    names: NameIndex
    by_hash: dict[str, Stored]


class PackageWriter:
    """Writes generations below one file system; used under the case lock."""

    def __init__(
        self,
        filesystem: FileSystem,
        reader: PackageReader,
        limits: PackageLimits,
        key: bytes | None,
        token: Callable[[], str],
        progress: ProgressHook | None,
    ) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._limits = limits
        self._key = key
        self._token = token
        self._progress = progress
        self._index: dict[str, _Index] = {}

    def publish(self, paths: CasePaths, head: StoredHead, change: Change, at: str) -> StoredHead:
        """Write and link the generation after `head`; returns when it is durable.

        Raises:
            StaleHeadError: the number is taken.
            ContractError: the change breaks a rule of the package.
            StorageError: the disk refused.
        """
        where = f"{head.case_id} generation {head.generation + 1}"
        index = self._index_of(paths, head)
        raw_of = {path: head.entries[path].raw for path in change.put if path in head.entries}
        check_paths(change, index.names, raw_of, where)
        files = len(head.entries) + sum(path not in head.entries for path in change.put)
        named = head.entries.keys() | change.put.keys() if change.pointers else ()
        manifest = next_manifest(head.manifest, change, named, self._limits)
        check_totals(files, head.total_bytes, self._limits, where)
        self._filesystem.point("commit.begun")
        staged = self._stage(paths, index, head, change)
        total = head.total_bytes + sum(
            new.size - (head.entries[path].size if path in head.entries else 0)
            for path, new in staged.put.items()
        )
        check_totals(files, total, self._limits, where)
        if staged.objects:
            sync_directory(self._filesystem, paths.objects)
        self._filesystem.point("commit.staged")
        checkpoint = Checkpoint(
            generation=manifest.generation,
            revision=manifest.analysis_revision,
            event=change.event,
            phase=change.phase,
            declares={path: stored.sha256 for path, stored in staged.put.items() if not stored.raw},
            detail=dict(change.detail),
            at=at,
        )
        grown = self._snapshot(head, manifest.generation, staged)._replace(total_bytes=total)
        record = encode(manifest, head.record_sha256 or None, staged.put, checkpoint, grown.snapshot)
        self._link(paths, manifest.generation, self._container(record, staged.members, where))
        new = _advanced(head, manifest, checkpoint, staged, record, grown)
        self._advance_index(paths, index, head, new, staged)
        return new

    def _advance_index(
        self, paths: CasePaths, index: _Index, old: StoredHead, new: StoredHead, staged: _Staged
    ) -> None:
        for path in staged.put:
            if path not in old.entries:
                index.names.add(path)
            index.by_hash[new.entries[path].sha256] = new.entries[path]
        index.record_sha256 = new.record_sha256
        self._index[paths.root] = index

    def _index_of(self, paths: CasePaths, head: StoredHead) -> _Index:
        known = self._index.get(paths.root)
        if known is not None and known.record_sha256 == head.record_sha256:
            return known
        by_hash = {stored.sha256: stored for stored in head.entries.values()}
        index = _Index(head.record_sha256, NameIndex(head.entries), by_hash)
        self._index[paths.root] = index
        return index

    def _stage(self, paths: CasePaths, index: _Index, head: StoredHead, change: Change) -> _Staged:
        """Store large content as objects and lay small content out for the container."""
        put: dict[str, Stored] = {}
        members: list[Member] = []
        here: dict[str, Stored] = {}
        position = 0
        objects = False
        for path, value in sorted(change.put.items()):
            raw = path in change.raw
            data = self._small(value)
            if data is None:
                stored = self._object(paths, path, value, raw=raw)
                known = index.by_hash.get(stored.sha256)
                objects = objects or known is None or known.generation != 0
            else:
                sha256 = sha256_hex(data)
                found = here.get(sha256) or self._reusable(paths, index, sha256, len(data))
                if found is None:
                    name = f"files/{path}"
                    position += member_overhead(name)
                    found = Stored(sha256, len(data), head.generation + 1, position, raw)
                    members.append(Member(name, data))
                    here[sha256] = found
                    position += len(data)
                stored = found._replace(raw=raw)
            put[path] = stored
        return _Staged(put, members, objects)

    def _small(self, value: bytes | Path) -> bytes | None:
        """Return the content when it belongs into the container, None when it is an object."""
        if isinstance(value, bytes):
            return value if len(value) < BLOB_IN_CONTAINER else None
        chunks = list(islice(source_chunks(value, self._limits.file_bytes, None), 1))
        data = b"".join(chunks)
        return data if len(data) < BLOB_IN_CONTAINER else None

    def _reusable(self, paths: CasePaths, index: _Index, sha256: str, size: int) -> Stored | None:
        """Return where the same content already lies, after hashing it there."""
        known = index.by_hash.get(sha256)
        if known is None or known.size != size:
            return None
        try:
            self._reader.content(paths, known, sha256)
        except PackageError:
            return None
        return known

    def _object(self, paths: CasePaths, path: str, value: bytes | Path, *, raw: bool) -> Stored:
        """Write content as an object unless the same object is there and has its hash."""
        temporary = f"{paths.temporary}/t-{self._token()}"
        hook = self._progress
        report = None if hook is None else (lambda done: hook(path, done))
        limit = self._limits.file_bytes
        if isinstance(value, bytes):
            if len(value) > limit:
                raise ContractError("package_too_big", f"{path!r} is larger than {limit} bytes")
            sha256 = sha256_hex(value)
            if self._object_intact(paths, sha256, len(value)):
                return Stored(sha256, len(value), 0, 0, raw)
        chunks = [value] if isinstance(value, bytes) else source_chunks(value, limit, report)
        digest = write_hashed(self._filesystem, temporary, chunks)
        target = paths.object(digest.sha256)
        self._filesystem.point("commit.object_written")
        if isinstance(value, Path) and self._object_intact(paths, *digest):
            remove_quietly(self._filesystem, temporary)
        else:
            try:
                self._filesystem.rename(temporary, target)
            except OSError as error:
                remove_quietly(self._filesystem, temporary)
                raise storage_error(error, target) from error
        return Stored(digest.sha256, digest.size, 0, 0, raw)

    def _object_intact(self, paths: CasePaths, sha256: str, size: int) -> bool:
        target = paths.object(sha256)
        try:
            return self._filesystem.kind(target) == "file" and hash_file(self._filesystem, target) == (
                sha256,
                size,
            )
        except PackageError:
            return False

    def _snapshot(self, head: StoredHead, generation: int, staged: _Staged) -> _Grown:
        """Return the full listing and the newly sealed history when this generation is a snapshot."""
        if generation > 1 and generation % SNAPSHOT_EVERY:
            return _Grown(None, None)
        entries = {**head.entries, **staged.put}
        history = head.checkpoints
        tail = history.tail if isinstance(history, History) else ()
        if not tail:
            return _Grown(Snapshot(entries, head.segments), None)
        data = seal(tail)
        first, last = tail[0].generation, tail[-1].generation
        name = f"history/{first}-{last}.jsonl"
        position = sum(member_overhead(m.name) + len(m.data) for m in staged.members) + member_overhead(name)
        staged.members.append(Member(name, data))
        segment = Segment(sha256_hex(data), len(data), generation, position, first, last)
        return _Grown(Snapshot(entries, (*head.segments, segment)), SealedSegment(data, first, last, name))

    def _container(self, record: bytes, members: list[Member], where: str) -> bytes:
        size = sum(len(member.data) for member in members) + len(record)
        if len(record) > self._limits.record_bytes or size > self._limits.container_bytes - (64 << 20):
            raise ContractError("generation_too_big", "one generation would hold too many bytes", where=where)
        if len(members) > self._limits.container_members:
            raise ContractError("generation_too_big", "one generation would hold too many files", where=where)
        return container.build(record, members, self._key)

    def _link(self, paths: CasePaths, generation: int, data: bytes) -> None:
        temporary = f"{paths.temporary}/t-{self._token()}"
        target = paths.generation(generation)
        write_durably(self._filesystem, temporary, [data])
        self._filesystem.point("commit.container_synced")
        try:
            self._filesystem.publish(temporary, target)
        except FileExistsError as error:
            remove_quietly(self._filesystem, temporary)
            raise stale(target) from error
        except OSError as error:
            remove_quietly(self._filesystem, temporary)
            raise storage_error(error, target) from error
        self._filesystem.point("commit.linked")
        sync_directory(self._filesystem, paths.generations)
        self._filesystem.point("commit.published")


def _advanced(
    head: StoredHead,
    manifest: Manifest,
    checkpoint: Checkpoint,
    staged: _Staged,
    record: bytes,
    grown: _Grown,
) -> StoredHead:
    """Return the head that the published record makes, without reading it back."""
    sha256 = sha256_hex(record)
    put = located(staged.put, manifest.generation, len(record))
    link = Link(manifest.generation, sha256)
    history = head.checkpoints
    sealed, tail = (history.sealed, history.tail) if isinstance(history, History) else ((), ())
    segments = head.segments
    chain = (*head.chain, link)
    if grown.snapshot is not None:
        tail, chain = (), (link,)
        segments = tuple(
            located_segment(s, manifest.generation, len(record)) for s in grown.snapshot.segments
        )
        sealed = sealed if grown.sealed is None else (*sealed, grown.sealed)
    entries = {**head.entries, **put}
    return StoredHead(
        manifest=manifest,
        files=Files(entries),
        checkpoints=History(sealed, (*tail, checkpoint)),
        record_sha256=sha256,
        entries=entries,
        segments=segments,
        chain=chain,
        total_bytes=grown.total_bytes,
    )


def stale(where: str) -> StaleHeadError:
    """Return the error of a writer that came second."""
    return StaleHeadError(
        "stale_head",
        "another writer committed this generation first",
        where=where,
        hint="read the case again and repeat the step",
    )
