"""The record of one generation (schema `package-v1`): typed form, canonical bytes, strict reading.

A record holds what changed; every `SNAPSHOT_EVERY` generations it also holds the full listing and the list
of sealed history segments. `prev` is the SHA-256 of the previous record's raw bytes, and every record names
the hash of all content it adds, so the chain of records covers the whole package.

Places: content lies in a container (`generation`, `offset`) or, with generation 0, in `objects/<sha256>`.
In the stored form an offset into the record's own container counts from the end of its record; decoded
records and all references to older containers count from the container's first byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import ContractError, NewerFormatError, PackageError
from viano_assets.package.container import RECORD_START
from viano_assets.package.model import Checkpoint, Manifest, Overlay
from viano_assets.package.names import name_problem

SCHEMA = "package-v1"
_SCHEMA = re.compile(r"package-v([0-9]{1,6})", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
_IDENTITY_KEYS = ("schema", "case", "package", "gen", "prev", "revision")
_MANIFEST_KEYS = ("lifecycle", "pointers", "overlay", "routing")
_ENTRY_KEYS = ("event", "phase", "detail", "at", "put", "raw", "snapshot")
_KEYS = frozenset(_IDENTITY_KEYS + _MANIFEST_KEYS + _ENTRY_KEYS)


class Stored(NamedTuple):
    """Where one live file's content lies; `raw` marks an input that no checkpoint declares."""

    sha256: str
    size: int
    generation: int
    offset: int
    raw: bool


class Segment(NamedTuple):
    """A sealed run of history entries, one per generation from `first` to `last`."""

    sha256: str
    size: int
    generation: int
    offset: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The full listing and history segments as of a snapshot generation."""

    files: Mapping[str, Stored]
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record."""

    sha256: str
    size: int
    manifest: Manifest
    previous: str | None
    put: Mapping[str, Stored]
    checkpoint: Checkpoint
    snapshot: Snapshot | None


def encode(
    manifest: Manifest,
    previous: str | None,
    put: Mapping[str, Stored],
    checkpoint: Checkpoint,
    snapshot: Snapshot | None,
) -> bytes:
    """Return the canonical bytes; offsets into the own container are relative to the record's end."""
    overlay = manifest.overlay
    return canonical_json(
        {
            "schema": SCHEMA,
            "case": manifest.case_id,
            "package": manifest.package_id,
            "gen": manifest.generation,
            "prev": previous,
            "revision": manifest.analysis_revision,
            "lifecycle": manifest.lifecycle,
            "pointers": dict(manifest.pointers),
            "overlay": None
            if overlay is None
            else [overlay.kind, overlay.phase, overlay.code, overlay.message, overlay.not_before],
            "routing": manifest.routing,
            "event": checkpoint.event,
            "phase": checkpoint.phase,
            "detail": dict(checkpoint.detail),
            "at": checkpoint.at,
            "put": {path: list(stored[:4]) for path, stored in put.items()},
            "raw": sorted(path for path, stored in put.items() if stored.raw),
            "snapshot": None
            if snapshot is None
            else {
                "files": {path: [*stored[:4], int(stored.raw)] for path, stored in snapshot.files.items()},
                "segments": [list(segment) for segment in snapshot.segments],
            },
        }
    )


def located(put: Mapping[str, Stored], generation: int, record_bytes: int) -> dict[str, Stored]:
    """Turn offsets into the own container from record-relative into absolute ones."""
    base = RECORD_START + record_bytes
    return {
        path: stored._replace(offset=stored.offset + base) if stored.generation == generation else stored
        for path, stored in put.items()
    }


def located_segment(segment: Segment, generation: int, record_bytes: int) -> Segment:
    """Turn a segment's offset into the own container into an absolute one."""
    if segment.generation != generation:
        return segment
    return segment._replace(offset=segment.offset + RECORD_START + record_bytes)


class _Own(NamedTuple):
    """The container a record lies in: its generation, and the offset of the first byte after the record."""

    generation: int
    base: int


class _Bad(Exception):  # noqa: N818 - private signal, translated before it leaves the module
    """A field does not have its form."""


def _need(condition: object, what: str) -> None:
    if not condition:
        raise _Bad(what)


def _count(value: Any, what: str, least: int = 0) -> int:
    _need(type(value) is int and value >= least, what)
    return int(value)


def _hash(value: Any) -> str:
    _need(type(value) is str and _HASH.fullmatch(value), "hash")
    return str(value)


def _text(value: Any, what: str) -> str:
    _need(type(value) is str and value, what)
    return str(value)


def _optional_text(value: Any, what: str) -> str | None:
    return None if value is None else _text(value, what)


def _stored(path: str, value: Any, own: _Own, *, raw: bool) -> Stored:
    """Read one place; an offset into the own container becomes absolute."""
    if type(value) is not list or len(value) != 4:
        raise _Bad(f"place of {path!r}")
    digest, size, place, offset = value
    if (
        type(digest) is not str
        or not _HASH.fullmatch(digest)
        or type(size) is not int
        or type(place) is not int
        or type(offset) is not int
        or not 0 <= place <= own.generation
        or size < 0
        or offset < 0
        or (place == 0 and offset)
    ):
        raise _Bad(f"place of {path!r}")
    problem = name_problem(path)
    if problem is not None:
        raise _Bad(f"path {path!r} has {problem}")
    return Stored(digest, size, place, offset + own.base if place == own.generation else offset, raw)


def _put(fields: dict[str, Any], own: _Own) -> dict[str, Stored]:
    raw_list = fields["raw"]
    _need(type(fields["put"]) is dict and type(raw_list) is list, "put")
    raw = set(raw_list)
    _need(sorted(raw) == raw_list and raw <= fields["put"].keys(), "raw")
    return {path: _stored(path, value, own, raw=path in raw) for path, value in fields["put"].items()}


def _snapshot(value: Any, own: _Own) -> Snapshot | None:
    if value is None:
        return None
    _need(type(value) is dict and value.keys() == {"files", "segments"}, "snapshot")
    _need(type(value["files"]) is dict and type(value["segments"]) is list, "snapshot")
    files = {}
    for path, item in value["files"].items():
        _need(type(item) is list and len(item) == 5 and type(item[4]) is int and item[4] in {0, 1}, "listing")
        files[path] = _stored(path, item[:4], own, raw=bool(item[4]))
    segments = []
    expected = 1
    for item in value["segments"]:
        _need(type(item) is list and len(item) == 6, "segment")
        digest, size, place, offset, first, last = item
        segment = Segment(
            _hash(digest), _count(size, "segment"), _count(place, "segment", 1), _count(offset, "segment"),
            _count(first, "segment", 1), _count(last, "segment", 1),
        )  # fmt: skip
        _need(segment.first == expected and first <= last < own.generation, "segment range")
        _need(place <= own.generation, "segment place")
        expected = last + 1
        segments.append(located_segment(segment, own.generation, own.base - RECORD_START))
    _need(expected == own.generation, "history does not reach the snapshot")
    return Snapshot(files, tuple(segments))


def _overlay(value: Any) -> Overlay | None:
    if value is None:
        return None
    _need(type(value) is list and len(value) == 5 and value[0] in {"blocked", "deferred"}, "overlay")
    kind, phase, code, message, not_before = value
    return Overlay(
        kind,
        _text(phase, "overlay"),
        _text(code, "overlay"),
        str(message),
        _optional_text(not_before, "overlay"),
    )


def _manifest(fields: dict[str, Any], generation: int) -> Manifest:
    pointers = fields["pointers"]
    _need(type(pointers) is dict and all(type(path) is str for path in pointers.values()), "pointers")
    return Manifest(
        case_id=_text(fields["case"], "case"),
        package_id=_text(fields["package"], "package"),
        generation=generation,
        analysis_revision=_count(fields["revision"], "revision", 1),
        lifecycle=_text(fields["lifecycle"], "lifecycle"),
        pointers=pointers,
        overlay=_overlay(fields["overlay"]),
        routing=_optional_text(fields["routing"], "routing"),
    )


def _decode(raw: bytes, fields: dict[str, Any]) -> Record:
    _need(fields.keys() == _KEYS, "fields")
    generation = _count(fields["gen"], "gen", 1)
    own = _Own(generation, RECORD_START + len(raw))
    put = _put(fields, own)
    manifest = _manifest(fields, generation)
    _need(type(fields["detail"]) is dict, "detail")
    checkpoint = Checkpoint(
        generation=generation,
        revision=manifest.analysis_revision,
        event=_text(fields["event"], "event"),
        phase=_optional_text(fields["phase"], "phase"),
        declares={path: stored.sha256 for path, stored in put.items() if not stored.raw},
        detail=fields["detail"],
        at=_text(fields["at"], "at"),
    )
    previous = None if fields["prev"] is None else _hash(fields["prev"])
    _need((previous is None) == (generation == 1), "prev")
    snapshot = _snapshot(fields["snapshot"], own)
    _need(generation > 1 or snapshot is not None, "the first generation is a snapshot")
    _need(snapshot is None or put.items() <= snapshot.files.items(), "listing lacks new files")
    return Record(sha256_hex(raw), len(raw), manifest, previous, put, checkpoint, snapshot)


def decode(raw: bytes, where: str) -> Record:
    """Read a record's raw bytes strictly; unknown fields, odd types and other spellings are refused.

    Raises:
        NewerFormatError: `newer_format` for a later schema.
        PackageError: `record_invalid`.
    """
    try:
        fields = json.loads(raw)
        if type(fields) is not dict or type(fields.get("schema")) is not str:
            raise _Bad("schema")  # noqa: TRY301
        if fields["schema"] != SCHEMA:
            match = _SCHEMA.fullmatch(fields["schema"])
            if match is not None and int(match[1]) > 1:
                raise NewerFormatError(
                    "newer_format",
                    f"the package has schema {fields['schema']}, this release reads {SCHEMA}",
                    where=where,
                    hint="use the release that wrote it, or a newer one",
                )
            raise _Bad("schema")  # noqa: TRY301
        if _CANONICAL.encode(fields).encode() != raw:
            raise _Bad("not in canonical form")  # noqa: TRY301
        return _decode(raw, fields)
    except (_Bad, ValueError, RecursionError, ContractError, TypeError) as error:
        reason = error.message if isinstance(error, ContractError) else str(error)
        raise PackageError("record_invalid", f"the record is not valid: {reason}", where=where) from error
