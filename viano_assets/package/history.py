"""The checkpoint history: one append-only logical artifact, stored as sealed segments plus recent records.

A sealed segment is JSON Lines, one entry per generation; its hash stands in every later snapshot record and
its bytes are hashed at every lookup. Decoding waits until an entry is asked for, so a lookup does not parse
thousands of old entries. The entries after the newest snapshot are those of the records themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from viano_assets.canonical import canonical_json
from viano_assets.errors import PackageError
from viano_assets.package.model import Checkpoint

_KEYS = frozenset({"at", "declares", "detail", "event", "gen", "phase", "revision"})


def encode_entry(entry: Checkpoint) -> bytes:
    """Return one history line without its newline."""
    return canonical_json(
        {
            "at": entry.at,
            "declares": dict(entry.declares),
            "detail": dict(entry.detail),
            "event": entry.event,
            "gen": entry.generation,
            "phase": entry.phase,
            "revision": entry.revision,
        }
    )


def seal(entries: Sequence[Checkpoint]) -> bytes:
    """Return the bytes of the segment that holds `entries`."""
    return b"".join(encode_entry(entry) + b"\n" for entry in entries)


def _decode_entry(line: bytes, generation: int) -> Checkpoint:
    fields: dict[str, Any] = json.loads(line)
    if (
        type(fields) is not dict
        or fields.keys() != _KEYS
        or fields["gen"] != generation
        or canonical_json(fields) != line
        or type(fields["declares"]) is not dict
        or type(fields["detail"]) is not dict
        or type(fields["revision"]) is not int
        or type(fields["event"]) is not str
        or type(fields["at"]) is not str
        or not isinstance(fields["phase"], str | None)
    ):
        raise ValueError("an entry does not have its form")
    return Checkpoint(
        generation=generation,
        revision=fields["revision"],
        event=fields["event"],
        phase=fields["phase"],
        declares=fields["declares"],
        detail=fields["detail"],
        at=fields["at"],
    )


class SealedSegment:
    """One segment whose bytes were verified; entries are decoded at the first use.

    Raises:
        PackageError: `history_invalid` when the number of lines or an entry is not what the range says.
    """

    def __init__(self, data: bytes, first: int, last: int, where: str) -> None:
        self.first = first
        self.last = last
        self._data = data
        self._where = where
        if data.count(b"\n") != last - first + 1 or not data.endswith(b"\n"):
            raise PackageError("history_invalid", "a history segment lacks entries", where=where)

    @cached_property
    def entries(self) -> tuple[Checkpoint, ...]:
        """The decoded entries in order."""
        try:
            lines = self._data.split(b"\n")[:-1]
            return tuple(_decode_entry(line, self.first + i) for i, line in enumerate(lines))
        except (ValueError, KeyError, RecursionError) as error:
            raise PackageError(
                "history_invalid", f"a history entry is not valid: {error}", where=self._where
            ) from error


class History(Sequence[Checkpoint]):
    """All checkpoints of a package in order, index 0 for generation 1."""

    def __init__(self, sealed: tuple[SealedSegment, ...], tail: tuple[Checkpoint, ...]) -> None:
        self.sealed = sealed
        self.tail = tail
        self._sealed_count = sealed[-1].last if sealed else 0

    def __len__(self) -> int:
        return self._sealed_count + len(self.tail)

    def __iter__(self) -> Iterator[Checkpoint]:
        for segment in self.sealed:
            yield from segment.entries
        yield from self.tail

    def __reversed__(self) -> Iterator[Checkpoint]:
        yield from reversed(self.tail)
        for segment in reversed(self.sealed):
            yield from reversed(segment.entries)

    @overload
    def __getitem__(self, index: int) -> Checkpoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Checkpoint]: ...
    def __getitem__(self, index: int | slice) -> Checkpoint | Sequence[Checkpoint]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(index)
        if position >= self._sealed_count:
            return self.tail[position - self._sealed_count]
        segment = next(s for s in self.sealed if s.last > position)
        return segment.entries[position + 1 - segment.first]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]
