"""`InputView`: the one seam through which tools, models and evidence see the raw inputs.

Raw inputs stay in the package byte for byte and are never handed out. The view extracts each role's
input once into the cache, redacted by the rules that the case pins, line for line, so that line numbers
in the view are line numbers in the raw file. The cache is derived: it may be deleted at any time, is
published by one rename, and two builders at once do no harm.

Paths in the view are POSIX, in Unicode NFC and relative to the role's root; the single common top folder
of a source archive is stripped. A member that is an archive itself, or one compressed file such as
a rotated log (diagnostics only, one level), appears as a folder named after it with `!` appended.

Binary files are copied as they are and marked: a reader that decodes them (SQLite, Parquet) passes every
value through `InputView.redactor.cell`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Protocol, TypeAlias

from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.case.archives import is_archive_name, open_role_archive, view_name
from viano_assets.case.compressed import is_compressed_name, unpacked
from viano_assets.case.inputs import ROLES, Role, is_added, role_of
from viano_assets.case.ports import ReadStore
from viano_assets.case.redaction import EARLIER_RULES, RULES, Redactor
from viano_assets.case.redaction_plain import Stream
from viano_assets.case.redaction_rules import Flavour
from viano_assets.case.redaction_stream import stream_for
from viano_assets.case.text import looks_binary, sniff_encoding
from viano_assets.errors import ContractError, InputError, PackageError
from viano_assets.package.model import Head

KEY_POINTER = "redaction_key"
"""Pointer to the package's redaction key."""

KEY_SCHEMA = "redaction-key-v1"
"""Schema of the stored key."""

_FORMAT = 3
_PIECE = 4 << 20
_LONGEST_LINE = 32 << 20
_NESTED_BYTES = 2 << 30
_NESTED_ARCHIVES = 50
_DATA_IN_SOURCE = (
    ".sql", ".env", ".ini", ".conf", ".cnf", ".properties", ".cfg", ".dist", ".log", ".dump", ".ddl",
)  # fmt: skip

Notify: TypeAlias = Callable[[str, int, int], None]
"""Progress: what is being done, how many bytes of how many."""


class _Reads(Protocol):
    """Where the bytes of a file come from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ViewFile:
    """One file of the view.

    Args:
        role: the input it belongs to.
        path: its path in the view, relative to the role's root.
        raw_path: path of the raw input in the package.
        raw_sha256: hash of that raw input.
        member: the name stored in the archive (`inner!name` in a nested one); None for a plain file.
        size: bytes in the view.
        binary: copied as it is, not redacted.
        encoding: of a text file; None for a binary one.
        redacted: lines in which something was replaced.
    """

    role: Role
    path: str
    raw_path: str
    raw_sha256: str
    member: str | None
    size: int
    binary: bool
    encoding: str | None
    redacted: int


@dataclass(frozen=True, slots=True)
class _Input:
    """One raw input as it was extracted."""

    root: Path
    files: tuple[ViewFile, ...]
    notes: tuple[str, ...]


class InputView:
    """The redacted inputs of one head. Use `InputView.open`."""

    def __init__(self, inputs: Mapping[Role, _Input], redactor: Redactor) -> None:
        self._inputs = inputs
        self.redactor = redactor

    @classmethod
    def open(cls, store: ReadStore, head: Head, cache: Path, notify: Notify | None = None) -> InputView:
        """Open the inputs of `head`, extracting into `cache` what is not there yet.

        Raises:
            InputError: an archive of the case cannot be read.
            PackageError: `redaction_key_missing`, `unknown_redaction_rules`.
        """
        pins = pins_of(store, head)
        inputs: dict[Role, _Input] = {}
        for role in ROLES:
            raw = raw_paths(head, role)
            if raw:
                inputs[role] = _extracted(store, head, raw, role, pins, cache, notify)
        return cls(inputs, pins.redactor)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that this case has."""
        return tuple(role for role in ROLES if role in self._inputs)

    def root(self, role: Role) -> Path | None:
        """Return the directory with the role's redacted files, or None. Read it; never write into it."""
        found = self._inputs.get(role)
        return None if found is None else found.root / "files"

    def files(self, role: Role) -> tuple[ViewFile, ...]:
        """Return the role's files ordered by path."""
        found = self._inputs.get(role)
        return () if found is None else found.files

    def notes(self, role: Role) -> tuple[str, ...]:
        """Return what was left out or could not be opened, as sentences."""
        found = self._inputs.get(role)
        return () if found is None else found.notes

    @cached_property
    def _by_path(self) -> dict[tuple[Role, str], ViewFile]:
        return {(file.role, file.path): file for role in self._inputs for file in self.files(role)}

    def find(self, role: Role, path: str) -> ViewFile | None:
        """Return the file at `path`, or None."""
        return self._by_path.get((role, path))

    def read(self, role: Role, path: str) -> bytes:
        """Return a file's redacted bytes.

        Raises:
            InputError: `no_such_input_file`.
        """
        root = self.root(role)
        if root is None or self.find(role, path) is None:
            raise InputError("no_such_input_file", f"the {role} holds no such file", where=path)
        return (root / path).read_bytes()

    def derived(self, role: Role) -> Path | None:
        """Return the directory in which an index over the role's files may be cached.

        It belongs to exactly these bytes and rules, so an index found there is never stale; writers
        publish into it by rename.
        """
        found = self._inputs.get(role)
        if found is None:
            return None
        folder = found.root / "derived"
        folder.mkdir(exist_ok=True)
        return folder

    def identity(self, role: Role) -> str | None:
        """Return a name for exactly these redacted bytes (hash of raw input, rules and key)."""
        found = self._inputs.get(role)
        return None if found is None else found.root.name


def raw_paths(head: Head, role: Role) -> list[str]:
    """Return the raw inputs of one role, those of the import first, then the later ones."""
    found = (path for path in head.raw_inputs() if role_of(path) == role)
    return sorted(found, key=lambda path: (is_added(path), path))


@dataclass(frozen=True, slots=True)
class Pins:
    """What a package fixed at its import: the redactor with its key and how archive names are read."""

    redactor: Redactor
    name_encoding: str | None


def pins_of(store: ReadStore, head: Head) -> Pins:
    """Return what the package fixed at its import.

    Raises:
        PackageError: `redaction_key_missing`, `unknown_redaction_rules`.
    """
    path = head.pointer(KEY_POINTER)
    if path is None:
        raise PackageError("redaction_key_missing", "the package names no redaction key", where=head.case_id)
    try:
        value = strict_loads(store.read(head, path))
        stored = value if isinstance(value, dict) and value.get("schema") == KEY_SCHEMA else {}
        key = bytes.fromhex(str(stored["key"]))
    except (ContractError, KeyError, ValueError) as error:
        raise PackageError("redaction_key_missing", "the redaction key cannot be read", where=path) from error
    _check_rules(store, head)
    encoding = stored.get("name_encoding")
    return Pins(Redactor(key), encoding if isinstance(encoding, str) else None)


def _check_rules(store: ReadStore, head: Head) -> None:
    """Refuse a revision whose canonical case pins rules that this release does not have."""
    path = head.pointer("case")
    if path is None:
        return
    value = strict_loads(store.read(head, path))
    pinned = value.get("redaction_rules") if isinstance(value, dict) else None
    if pinned != RULES and pinned not in EARLIER_RULES:
        raise PackageError(
            "unknown_redaction_rules",
            f"the case pins the redaction rules {pinned!r}",
            where=path,
            hint="open it with the release that wrote it, or reopen the case",
        )


def flavour_of(role: Role, path: str) -> Flavour:
    """Return how eager the rules are for a file."""
    if role == "report":
        return "prose"
    if role == "diagnostics" or path.lower().endswith(_DATA_IN_SOURCE):
        return "data"
    return "code"


def _extracted(
    store: ReadStore, head: Head, raw: list[str], role: Role, pins: Pins, cache: Path, notify: Notify | None
) -> _Input:
    hashes = [head.files[path].sha256 for path in raw]
    places = [_place(path) for path in raw]
    content = hashes[0] if len(raw) == 1 and not places[0] else sha256_hex(canonical_json([hashes, places]))
    form = f"{RULES}.{_FORMAT}-{pins.redactor.key_id}"
    root = (
        cache / f"{content}-{role}-{form if pins.name_encoding is None else f'{form}-{pins.name_encoding}'}"
    )
    found = _load(root)
    if found is None:
        cache.mkdir(parents=True, exist_ok=True)
        work = cache / f".building-{os.getpid()}-{secrets.token_hex(6)}"
        work.mkdir()
        try:
            _Extraction(work, role, pins, notify).run(store, head, raw)
            _publish(work, root)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        found = _load(root)
        if found is None:
            raise PackageError(
                "view_not_built", "the extracted inputs vanished", where=raw[0], hint="run it again"
            )
    # The same bytes may lie under another name in another case.
    named = dict(zip(zip(hashes, places, strict=True), raw, strict=True))
    files = (replace(file, raw_path=named[file.raw_sha256, _place(file.raw_path)]) for file in found.files)
    return replace(found, files=tuple(files))


def _place(raw: str) -> str:
    """Return where an input of a later revision hangs in the view (`r0002/name`); empty for the root."""
    return raw.split("/", 2)[2] if is_added(raw) else ""


def _publish(work: Path, root: Path) -> None:
    try:
        work.rename(root)
    except OSError:
        if _load(root) is None:
            shutil.rmtree(root, ignore_errors=True)
            work.rename(root)


def _load(root: Path) -> _Input | None:
    """Read the listing of an extracted input; None when it is not whole."""
    try:
        listing: dict[str, Any] = json.loads((root / "view.json").read_bytes())
        files = tuple(ViewFile(**entry) for entry in listing["files"])
        whole = all((root / "files" / file.path).stat().st_size == file.size for file in files)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return _Input(root, files, tuple(listing["notes"])) if whole else None


class _Extraction:
    """Copies one raw input into a folder, redacted."""

    def __init__(self, work: Path, role: Role, pins: Pins, notify: Notify | None) -> None:
        self._work = work
        self._role = role
        self._raw = ""
        self._sha256 = ""
        self._pins = pins
        self._notify = notify
        self._files: list[ViewFile] = []
        self._paths: set[str] = set()
        self._notes: list[str] = []
        self._tables: dict[str, list[str]] = {}
        self._done = self._total = 0
        self._nested_bytes = self._nested_archives = 0

    def run(self, store: ReadStore, head: Head, raw: list[str]) -> None:
        """Extract every input and write the listing last."""
        out = self._work / "files"
        out.mkdir()
        self._total = sum(head.files[path].size for path in raw)
        for path in raw:
            self._raw, self._sha256 = path, head.files[path].sha256
            place = _place(path)
            name = PurePosixPath(path).name
            with store.open(head, path) as content:
                if is_archive_name(name):
                    self._archive(content, f"{place}/" if place else "", "")
                elif self._role == "diagnostics" and is_compressed_name(name):
                    self._nested(content, place or name, name)
                else:
                    self._file(content, place or name, None)
            if self._role == "source" and not place:
                self._strip_top(out)
        self._files.sort(key=lambda file: file.path)
        listing = {"files": [asdict(file) for file in self._files], "notes": sorted(self._notes)}
        (self._work / "view.json").write_bytes(canonical_json(listing))

    def _archive(self, packed: Path | BinaryIO, prefix: str, member_prefix: str) -> None:
        with open_role_archive(packed, self._role, self._raw, self._pins.name_encoding) as archive:
            for entry, content in archive.members():
                path = prefix + view_name(entry.name)
                if path in self._paths:
                    path = prefix + entry.name
                nested = self._role == "diagnostics" and not member_prefix and _is_packed_name(entry.name)
                if nested and self._within_budget(entry.size, path):
                    self._nested(content, path, member_prefix + entry.name)
                else:
                    self._file(content, path, member_prefix + entry.name)
            self._notes += [
                f"{prefix}{skipped.name}: left out, {skipped.reason}" for skipped in archive.skipped
            ]

    def _within_budget(self, size: int, path: str) -> bool:
        self._nested_archives += 1
        self._nested_bytes += size
        if self._nested_archives <= _NESTED_ARCHIVES and self._nested_bytes <= _NESTED_BYTES:
            return True
        self._notes.append(f"{path}: archive in an archive was not opened (budget spent)")
        return False

    def _nested(self, content: IO[bytes], path: str, member: str) -> None:
        packed = self._work / "packed-inner"
        with packed.open("wb") as target:
            shutil.copyfileobj(content, target, 1 << 20)
        before = len(self._files)
        try:
            if is_archive_name(path):
                self._archive(packed, f"{path}!/", f"{member}!")
            else:
                self._compressed(packed, path, member)
        except InputError as error:
            for file in self._files[before:]:
                (self._work / "files" / file.path).unlink(missing_ok=True)
            del self._files[before:]
            self._notes.append(f"{path}: archive in an archive cannot be read: {error.message}")
            with packed.open("rb") as whole:
                self._file(whole, path, member)
        finally:
            packed.unlink(missing_ok=True)

    def _compressed(self, packed: Path, path: str, member: str) -> None:
        inner = PurePosixPath(path).stem
        with unpacked(packed, path, _NESTED_BYTES - self._nested_bytes) as content:
            try:
                self._file(content, f"{path}!/{inner}", f"{member}!{inner}")
            except InputError:
                (self._work / "files" / f"{path}!" / inner).unlink(missing_ok=True)
                (self._work / "files" / f"{path}!").rmdir()
                raise
            self._nested_bytes += content.count

    def _file(self, content: _Reads, path: str, member: str | None) -> None:
        self._paths.add(path)
        target = self._work / "files" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        piece = content.read(_PIECE)
        head = piece[:8192]
        if looks_binary(head):
            with target.open("wb") as out:
                while piece:
                    out.write(piece)
                    self._progress(path, len(piece))
                    piece = content.read(_PIECE)
            encoding, redacted = None, 0
        else:
            encoding = sniff_encoding(head if len(piece) == _PIECE else piece)
            with target.open("wb") as out:
                redacted = self._redact(content, piece, out, path, encoding)
        self._files.append(
            ViewFile(
                self._role, path, self._raw, self._sha256, member, target.stat().st_size, encoding is None,
                encoding, redacted,
            )
        )  # fmt: skip

    def _redact(self, content: _Reads, piece: bytes, out: IO[bytes], path: str, encoding: str) -> int:
        """Redact in pieces that end at line ends; return the number of changed lines."""
        wide = encoding.startswith("utf-16")
        codec = encoding if wide else "latin-1"
        newline = "\n".encode(codec)
        stream: Stream | None = None
        held = b""
        changed = 0
        for coming in _ahead(content, piece):
            self._progress(path, len(coming))
            held += coming
            cut = len(held) if len(held) > _LONGEST_LINE else _line_end(held, newline)
            if cut:
                changed += self._write(
                    out, stream := stream or self._stream(path, held, codec), held[:cut], codec
                )
                held = held[cut:]
        odd = held[-1:] if wide and len(held) % 2 else b""
        held = held.removesuffix(odd)
        if held:
            changed += self._write(out, stream := stream or self._stream(path, held, codec), held, codec)
        if stream is not None:
            out.write(_encode(stream.finish(), codec))
        out.write(odd)
        return changed

    def _stream(self, path: str, head: bytes, codec: str) -> Stream:
        first = head[:65536].decode(codec, errors="replace").split("\n", 1)[0]
        return stream_for(self._pins.redactor, path, flavour_of(self._role, path), first, self._tables)

    def _write(self, out: IO[bytes], stream: Stream, raw: bytes, codec: str) -> int:
        text = raw.decode(codec, errors="surrogatepass")
        new = stream.feed(text)
        if new == text:
            out.write(raw)
            return 0
        out.write(_encode(new, codec))
        return sum(a != b for a, b in zip(text.split("\n"), new.split("\n"), strict=False))

    def _progress(self, path: str, count: int) -> None:
        self._done += count
        if self._notify is not None:
            self._notify(path, self._done, self._total)

    def _strip_top(self, out: Path) -> None:
        """Take away the single folder that holds everything."""
        tops = {PurePosixPath(file.path).parts[0] for file in self._files}
        if len(tops) != 1 or any("/" not in file.path for file in self._files):
            return
        top = tops.pop()
        moved = self._work / "stripped"
        (out / top).rename(moved)
        shutil.rmtree(out)
        moved.rename(out)
        self._files = [replace(file, path=file.path.removeprefix(f"{top}/")) for file in self._files]


def _ahead(content: _Reads, piece: bytes) -> Iterator[bytes]:
    """Yield the first piece and the rest of a file, each next one unpacked while the last is worked on."""
    while piece and len(piece) < _PIECE:
        yield piece
        piece = content.read(_PIECE)
    with ThreadPoolExecutor(max_workers=1) as reader:
        while piece:
            coming = reader.submit(content.read, _PIECE)
            yield piece
            piece = coming.result()


def _is_packed_name(name: str) -> bool:
    return is_archive_name(name) or is_compressed_name(name)


def _line_end(data: bytes, newline: bytes) -> int:
    """Return the offset behind the last whole line end, 0 when there is none."""
    at = data.rfind(newline)
    while len(newline) == 2 and at > 0 and at % 2:
        at = data.rfind(newline, 0, at + 1)
    return at + len(newline) if at >= 0 else 0


def _encode(text: str, codec: str) -> bytes:
    return text.encode(codec, errors="surrogatepass")
