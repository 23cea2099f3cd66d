"""Safe reading of archives that somebody else made: ZIP and TAR (plain, gzip, bzip2, xz).

Everything is checked before a byte of content is handed out, and nothing is repaired: a name or structure
that two programs could read differently is refused with a reason (rules: docs/package.md, "Archives").
Content is streamed, its length and checksum are checked at the end, nothing is ever written under a
member's own name, and archives inside archives are plain files.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, Protocol

from viano_assets.errors import InputError
from viano_assets.package.names import NameIndex, name_problem

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Ceilings of one archive; sizes in bytes, ratios are unpacked to packed size.

    The ratios apply to what is larger than `ratio_floor` unpacked, because small files may repeat a lot.
    """

    archive_bytes: int = 8 << 30
    entries: int = 200_000
    file_bytes: int = 8 << 30
    total_bytes: int = 32 << 30
    ratio: int = 500
    ratio_floor: int = 16 << 20


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """How strictly an archive is read.

    Args:
        limits: the ceilings.
        portable_names: refuse names that only other systems cannot hold, and names that differ only in
            letter case or Unicode form; off for source trees, which are indexed and never unpacked by name.
        colons: accept ':' in portable names (`2024-05-01T10:00:00.log`), except after one first letter.
        skip_special: list links, devices and sparse files as skipped instead of refusing the archive.
        name_encoding: encoding of names that the archive does not mark as UTF-8; None means UTF-8 when
            the bytes are that, else the format's own rule (ZIP: cp437, TAR: latin-1).
    """

    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    portable_names: bool = True
    colons: bool = False
    skip_special: bool = False
    name_encoding: str | None = None


class Entry(NamedTuple):
    """One file of an archive: decoded name, the name's bytes as stored, how they were decoded, size."""

    name: str
    raw_name: bytes
    encoding: str
    size: int


class Skipped(NamedTuple):
    """Something in the archive that is not a file, and what it is."""

    name: str
    reason: str


class Archive(Protocol):
    """An archive whose structure was checked."""

    @property
    def format(self) -> str:
        """`zip` or `tar`."""
        ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files in the archive's own order."""
        ...

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out under `skip_special`, in order."""
        ...

    def members(self) -> Iterator[tuple[Entry, BinaryIO]]:
        """Yield every file with its open content in order; a stream is closed when the next one comes.

        Reading a stream to its end checks its length and checksum.
        """
        ...

    def open(self, entry: Entry) -> BinaryIO:
        """Open one file; for a compressed TAR this unpacks from the start."""
        ...


class ArchiveError(InputError):
    """An archive breaks a rule; `code` names it."""


def refuse(code: str, message: str, where: str = "", hint: str = "") -> NoReturn:
    """Raise the refusal of an archive."""
    raise ArchiveError(
        code, message, where=where, hint=hint or "pack the files anew with an ordinary archiver"
    )


def is_archive_name(name: str) -> bool:
    """Say whether a file name ends like one of the archives that are read."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


class EntryCheck:
    """Checks names, kinds, counts and sizes while a format reader lists its entries."""

    def __init__(self, policy: ArchivePolicy, where: str) -> None:
        self.policy = policy
        self.where = where
        self.entries: list[Entry] = []
        self.skipped: list[Skipped] = []
        self._names = NameIndex() if policy.portable_names else NameIndex(form=_same_text)
        self._total = 0
        self._packed = 0

    def name(self, raw: bytes, encoding: str, fallback: str) -> tuple[str, str]:
        """Decode a name and return it with the encoding used.

        Args:
            raw: the bytes.
            encoding: `utf-8` when the archive says so, else empty.
            fallback: the format's own encoding.
        """
        tried = (encoding,) if encoding else (self.policy.name_encoding or "utf-8", fallback)
        if not encoding and raw.isascii():
            tried = ("ascii",)
        for candidate in tried:
            try:
                return raw.decode(candidate), candidate
            except UnicodeDecodeError:
                if self.policy.name_encoding is not None:
                    break
            except LookupError:
                refuse("unknown_encoding", f"there is no encoding {candidate!r}", self.where)
        refuse(
            "archive_name_encoding",
            f"the name {raw!r} is not {tried[0]}",
            self.where,
            "name the right encoding with --name-encoding",
        )

    def clean(self, name: str) -> str:
        """Check a file's or folder's name and return it; a leading `./` is how TAR says nothing."""
        clean = name
        while clean.startswith("./") and len(clean) > 2:
            clean = clean[2:]
        problem = name_problem(clean, portable=self.policy.portable_names, colons=self.policy.colons)
        if problem is not None:
            hint = "rename it and pack the files anew"
            if not name.isascii():
                hint += "; or, when it looks garbled, name the right encoding with --name-encoding"
            refuse("archive_name", f"the name {name!r} has {problem}", self.where, hint)
        return clean

    def special(self, name: str, reason: str) -> None:
        """Take note of something that is not a file.

        Raises:
            ArchiveError: `archive_special_file` unless the policy skips it.
        """
        if not self.policy.skip_special:
            refuse("archive_special_file", f"{name!r} is {reason}", self.where)
        self.skipped.append(Skipped(name, reason))
        self._count()

    def _count(self) -> None:
        if len(self.entries) + len(self.skipped) > self.policy.limits.entries:
            refuse(
                "archive_too_many_entries",
                f"the archive has more than {self.policy.limits.entries} entries",
                self.where,
            )

    def add(self, entry: Entry, packed: int | None) -> None:
        """Take in one file; `packed` is its packed size where the format has one."""
        limits = self.policy.limits
        problem = self._names.problem(entry.name)
        if problem is None and self._names.has(entry.name):
            problem = "twice there"
        if problem is not None:
            refuse(
                "archive_name_collision",
                f"{entry.name!r} is {problem}",
                self.where,
                "rename one of them and pack the files anew",
            )
        self._names.add(entry.name)
        self.entries.append(entry)
        self._count()
        self._total += entry.size
        if entry.size > limits.file_bytes or self._total > limits.total_bytes:
            refuse("archive_too_big", f"{entry.name!r} exceeds the size limits when unpacked", self.where)
        if packed is not None:
            self._packed += packed
            self.check_ratio(entry.size, packed, entry.name)
            self.check_ratio(self._total, self._packed, "the archive")

    def check_ratio(self, unpacked: int, packed: int, what: str) -> None:
        """Refuse what unpacks to far more than it holds."""
        limits = self.policy.limits
        if unpacked > limits.ratio_floor and unpacked > limits.ratio * max(packed, 1):
            refuse("archive_ratio", f"{what} unpacks to {unpacked} bytes from {packed}", self.where)


def _same_text(name: str) -> str:
    return name


@contextmanager
def open_archive(
    source: Path | BinaryIO, policy: ArchivePolicy | None = None, *, where: str = ""
) -> Iterator[Archive]:
    """Open and check an archive; the format is found from its bytes, not its name.

    Args:
        source: a file, or an open seekable stream such as a package's artifact.
        policy: how strictly; the default is the strictest.
        where: the name that errors show.

    Raises:
        ArchiveError: with the code of the rule that was broken.
        InputError: `unreadable_input`.
    """
    rules = policy or ArchivePolicy()
    place = where or (str(source) if isinstance(source, Path) else "")
    with contextlib.ExitStack() as stack:
        if isinstance(source, Path):
            try:
                stream: BinaryIO = stack.enter_context(source.open("rb"))
            except OSError as error:
                raise InputError(
                    "unreadable_input", f"the file cannot be read: {error.strerror}", where=place,
                    hint="check the path and its permissions",
                ) from error  # fmt: skip
        else:
            stream = source
        yield _opened(stream, rules, place)


def _opened(stream: BinaryIO, policy: ArchivePolicy, where: str) -> Archive:
    from viano_assets.package.tar_format import TarArchive, tar_compression  # noqa: PLC0415 - cycle
    from viano_assets.package.zip_format import ZipArchive  # noqa: PLC0415 - cycle

    size = stream.seek(0, io.SEEK_END)
    if size > policy.limits.archive_bytes:
        refuse("archive_too_big", f"the archive has {size} bytes", where)
    stream.seek(0)
    start = stream.read(512)
    stream.seek(0)
    check = EntryCheck(policy, where)
    if start[:4] in {b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06"}:
        return ZipArchive(stream, size, check)
    compression = tar_compression(start)
    if compression is None:
        refuse("not_an_archive", "the file is neither a ZIP nor a TAR archive", where)
    return TarArchive(stream, size, compression, check)
