"""Forgers: a store whose live bytes change with their declaration, and packages written anew with an edit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.memory_store import MemoryStore
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.package.model import Change, Head


class Forger(MemoryStore):
    """Lets a test change live bytes together with their declaration, as a careful forger would."""

    def replace(self, path: str, data: bytes, *, declared: bool = True) -> None:
        head = self._heads["BUG-1"][-1]
        blobs = {**head.blobs, path: data}
        entry = type(head.files[path])(sha256_hex(data), len(data))
        checkpoints = [
            type(c)(
                c.generation,
                c.revision,
                c.event,
                c.phase,
                {**c.declares, path: entry.sha256} if declared and path in c.declares else c.declares,
                c.detail,
                c.at,
            )
            for c in head.checkpoints
        ]
        self._heads["BUG-1"][-1] = type(head)(
            head.manifest,
            {**head.files, path: entry},
            tuple(checkpoints),
            head.record_sha256,
            blobs,
            head.raw,
        )


def edited(store: MemoryStore, head: Head, path: str, old: bytes, new: bytes) -> bytes:
    data = store.read(head, path)
    assert old in data
    return data.replace(old, new, 1)


Edit = Callable[[Change], Change]


def history(store: Any, case_id: str) -> list[Change]:
    """Return the changes that lead to the head of a case, one per generation."""
    changes: list[Change] = []
    old: Head | None = None
    for number in range(1, store.latest(case_id).generation + 1):
        head: Head = store.at_generation(case_id, number)
        checkpoint = head.checkpoints[-1]
        pointers: dict[str, str | None] = dict(head.manifest.pointers)
        files = head.files if old is None else set(checkpoint.declares) | (head.files.keys() - old.files)
        if old is not None:
            pointers |= {name: None for name in old.manifest.pointers if name not in pointers}
        changes.append(
            Change(
                event=checkpoint.event,
                phase=checkpoint.phase,
                put={path: store.read(head, path) for path in sorted(files)},
                raw=frozenset(files) - set(checkpoint.declares),
                pointers=pointers,
                lifecycle=head.manifest.lifecycle,
                overlay=head.manifest.overlay,
                routing=head.manifest.routing,
                revision="keep" if old is None else head.revision,
                detail=checkpoint.detail,
            )
        )
        old = head
    return changes


def recast(store: Any, source: Head, changes: Sequence[Change], edit: Edit, *, follow: bool) -> Head:
    """Write a package anew with something edited: every container and record hash is right again.

    Args:
        store: an empty store.
        source: the head it is forged after; its names are kept.
        changes: its history.
        edit: changes what it wants in each change.
        follow: also replace every hash of an edited artifact that later artifacts and facts name, and so
            on, as a forger does who knows the bindings.
    """
    known: dict[bytes, bytes] = {}
    head: Head | None = None
    for change in changes:
        moved = _following(change, edit, known) if follow else edit(change)
        if head is None:
            head = store.create(source.case_id, moved, package_id=source.manifest.package_id)
        else:
            head = store.commit(head, moved)
    assert head is not None
    return head


def _following(change: Change, edit: Edit, known: dict[bytes, bytes]) -> Change:
    """Edit a change and replace the hashes of what was edited, within it until nothing moves any more."""
    edited_change = edit(change)
    put = dict(edited_change.put)
    for _ in range(len(put) + 1):
        before = dict(put)
        put = {path: _replaced(_content(data), known) for path, data in put.items()}
        for path, data in put.items():
            old, new = (sha256_hex(_content(d)).encode() for d in (change.put[path], data))
            if old != new:
                known[old] = new
        if put == before:
            break
    detail = json.loads(_replaced(canonical_json(dict(edited_change.detail)), known))
    return replace(edited_change, put=put, detail=detail)


def _content(data: bytes | Path) -> bytes:
    assert isinstance(data, bytes)
    return data


def _replaced(data: bytes, known: Mapping[bytes, bytes]) -> bytes:
    for old, new in known.items():
        data = data.replace(old, new)
    return data


def leaves(value: Any, pointer: str = "") -> Iterator[str]:
    """Yield the JSON pointer of every leaf of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for name, inner in items:
        found = True
        yield from leaves(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    if not found:
        yield pointer


def flipped(value: Any, pointer: str) -> Any:
    """Return a document with one leaf changed into another value of its kind."""
    if not pointer:
        return _other(value)
    first, _, rest = pointer[1:].partition("/")
    name = first.replace("~1", "/").replace("~0", "~")
    rest = f"/{rest}" if rest else ""
    if isinstance(value, list):
        return [flipped(inner, rest) if str(i) == name else inner for i, inner in enumerate(value)]
    return {key: flipped(inner, rest) if key == name else inner for key, inner in value.items()}


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        if re.fullmatch(r"[0-9a-f]{64}", value):
            return ("1" if value[0] == "0" else "0") + value[1:]
        return value + "x"
    return "flipped" if value is None else [0] if value == [] else {"flipped": 0}


def flip_leaf(path: str, pointer: str) -> Edit:
    """Return the edit that flips one leaf of one JSON artifact, or the bytes of another artifact."""

    def edit(change: Change) -> Change:
        if path not in change.put:
            return change
        data = _content(change.put[path])
        new = canonical_json(flipped(json.loads(data), pointer)) if path.endswith(".json") else data + b"x"
        return replace(change, put={**change.put, path: new})

    return edit


def flip_detail(event: str, name: str) -> Edit:
    """Return the edit that flips one fact of the checkpoints of an event."""

    def edit(change: Change) -> Change:
        if change.event != event:
            return change
        return replace(change, detail=flipped(change.detail, f"/{name}"))

    return edit


def bend_pointer(name: str, target: str | None) -> Edit:
    """Return the edit that makes a pointer name something else as soon as that is there, or nothing."""

    def edit(change: Change) -> Change:
        if change.pointers.get(name) is None:
            return change
        return replace(change, pointers={**change.pointers, name: target})

    return edit
