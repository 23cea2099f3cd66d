"""The index of one source tree: files, symbols and field-wise postings in one SQLite file.

It is derived from the tree alone, named after the input's hash and the format, written beside its
final name and moved into place, so that a killed build leaves nothing and two builders agree.

A *unit* is what is ranked: an outermost function with its decorators and the comment above it, a
class without its functions, or what is left of a file. A *stub*, the signature of an overload beside the
definition, is a unit that is not ranked. Postings of each unit are kept per field
(name, comment, string, body), because a word in a name says more than one in a body.
"""

from __future__ import annotations

import gc
import os
import re
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from resources.tools.source.languages import CODE, Role, is_generated, language_of, role_of
from resources.tools.source.lines import LineMap
from resources.tools.source.parse import FUNCTION_KINDS, Symbol, symbols_of
from resources.tools.source.postings import Collector
from resources.tools.source.text import split_code, without_pseudonyms_in

FORMAT = "source-index-v10"
_MAX_CODE = 3_000_000
_MAX_TEXT = 200_000
_MAX_GENERATED = 100_000
"""Bytes from which on code that a program wrote is left out."""
_DOC_LINES = 60

_FAST = (
    "PRAGMA page_size=65536; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
)
"""Few large writes and no journal: a build that does not finish is thrown away whole."""
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT UNIQUE, language TEXT, role TEXT, bytes INTEGER,
                   lines INTEGER, indexed INTEGER);
CREATE TABLE symbols(id INTEGER PRIMARY KEY, file INTEGER, name TEXT, qualname TEXT, kind TEXT,
                     start INTEGER, end INTEGER, line_start INTEGER, line_end INTEGER, bases TEXT,
                     unit INTEGER);
CREATE TABLE units(id INTEGER PRIMARY KEY, file INTEGER, symbol INTEGER, kind TEXT, start INTEGER,
                   end INTEGER);
CREATE TABLE literals(unit INTEGER, text TEXT);
CREATE TABLE blobs(name TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID;
"""
_SYMBOL_INDICES = """
CREATE INDEX symbols_name ON symbols(name);
CREATE INDEX symbols_file ON symbols(file);
"""
_LITERAL_INDICES = "CREATE INDEX literals_unit ON literals(unit);"


class BuildCost(NamedTuple):
    """CPU seconds of the building thread."""

    symbols_s: float
    """Reading the files and the table of their symbols with lines, as it is stored."""
    ranking_s: float
    """What ranking needs beyond that: units, literals, postings and calls."""


class _Meter:
    """Charges the time since the last charge to one of two shares."""

    def __init__(self) -> None:
        self.spent = {"symbols": 0.0, "ranking": 0.0}
        self._at = time.thread_time()

    def charge(self, share: Literal["symbols", "ranking"]) -> None:
        now = time.thread_time()
        self.spent[share] += now - self._at
        self._at = now


class _Unit(NamedTuple):
    kind: str
    symbol: int
    """Position in the file's symbols, or -1."""
    start: int
    end: int
    holes: tuple[tuple[int, int], ...]


class _File(NamedTuple):
    path: str
    language: str
    role: Role
    data: bytes


def walk(root: Path) -> Iterator[str]:
    """Yield the regular files under `root` as POSIX paths, sorted; links are never followed.

    What Git keeps in a folder or a file `.git` is no source.
    """
    stack = [""]
    found: list[str] = []
    while stack:
        folder = stack.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    stack.append(path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(path)
    yield from sorted(found)


def build(root: Path, target: Path) -> BuildCost:
    """Index the tree under `root`, move the finished index to `target` and return what it cost."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.executescript(_FAST + _SCHEMA)
            connection.execute("BEGIN")
            builder = _Builder(connection)
            with _cycles_uncollected():
                builder.run(root)
        finally:
            connection.close()
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return BuildCost(builder.meter.spent["symbols"], builder.meter.spent["ranking"])


@contextmanager
def _cycles_uncollected() -> Iterator[None]:
    """Hold the collector of reference cycles: hundreds of thousands of rows would be walked for none."""
    held = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if held:
            gc.enable()


_COMMENT_LEAD = re.compile(rb"\s*(//|/\*|\*|--|#)")


class _Builder:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._words = Collector()
        self._files: list[tuple[object, ...]] = []
        self._symbols: list[tuple[object, ...]] = []
        self._units: list[tuple[object, ...]] = []
        self._literals: list[tuple[int, str]] = []
        self.meter = _Meter()

    def run(self, root: Path) -> None:
        for path in walk(root):
            self._file(root, path)
            self.meter.charge("ranking")
        self._db.executemany("INSERT INTO files VALUES(?,?,?,?,?,?,?)", self._files)
        self._db.executemany("INSERT INTO symbols VALUES(?,?,?,?,?,?,?,?,?,?,?)", self._symbols)
        self.meter.charge("symbols")
        self._db.executemany("INSERT INTO units VALUES(?,?,?,?,?,?)", self._units)
        self._db.executemany("INSERT INTO literals VALUES(?,?)", self._literals)
        self._store_postings()
        self._db.execute("INSERT INTO meta VALUES('format', ?)", (FORMAT,))
        self._db.execute("COMMIT")
        self.meter.charge("ranking")
        self._db.executescript(_SYMBOL_INDICES)
        self.meter.charge("symbols")
        self._db.executescript(_LITERAL_INDICES)
        self.meter.charge("ranking")

    def _file(self, root: Path, path: str) -> None:
        language = language_of(path)
        role = role_of(path, language)
        identity = len(self._files)
        limit = _MAX_CODE if language in CODE else _MAX_TEXT
        wanted = language in CODE or (language is not None and role is not Role.TEST)
        size, data = _content(f"{root}/{path}", limit if wanted and not path.endswith(".po") else -1)
        if data is None or language is None:
            self._files.append((identity, path, language or "", role.value, size, 0, 0))
            return
        if b"\x00" in data[:4096]:
            self._files.append((identity, path, "", role.value, size, 0, 0))
            return
        if role is Role.PRODUCT and language in CODE and is_generated(data):
            role = Role.GENERATED
            if size > _MAX_GENERATED:
                self._files.append((identity, path, language, role.value, size, 0, 0))
                return
        lines = LineMap(without_pseudonyms_in(data))
        data = lines.data
        self._files.append((identity, path, language, role.value, size, len(lines), 1))
        symbols = symbols_of(data, language, quick=role is Role.TEST)
        self.meter.charge("symbols")
        units = _units(symbols, data) if language in CODE else _chunks(data, lines, role)
        first_symbol, first_unit = len(self._symbols), len(self._units)
        owner = _owners(symbols, units)
        self.meter.charge("ranking")
        for position, s in enumerate(symbols):
            self._symbols.append(
                (
                    first_symbol + position,
                    identity,
                    s.name,
                    s.qualname,
                    s.kind,
                    s.start,
                    s.end,
                    lines.line_at(s.start),
                    lines.line_at(max(s.start, s.end - 1)),
                    s.bases,
                    first_unit + owner[position],
                )
            )
        self.meter.charge("symbols")
        for offset, unit in enumerate(units):
            symbol = first_symbol + unit.symbol if unit.symbol >= 0 else -1
            number = first_unit + offset
            self._units.append((number, identity, symbol, unit.kind, unit.start, unit.end))
            name = symbols[unit.symbol].qualname if unit.symbol >= 0 else ""
            self._unit(number, name, _slice(data, unit, lines.codec), language)

    def _unit(self, number: int, name: str, text: str, language: str) -> None:
        parts = split_code(text, language)
        if name:
            self._words.add("name", number, name)
        if parts.comments:
            self._words.add("comment", number, "\n".join(parts.comments))
        if parts.strings:
            self._words.add("string", number, "\n".join(parts.strings))
            self._literals.extend((number, s[:400]) for s in parts.strings if len(s) > 12 and " " in s)
        if parts.code:
            self._words.add("body", number, parts.code)

    def _store_postings(self) -> None:
        defined = dict.fromkeys(str(row[2]) for row in self._symbols if row[4] != "variable")
        blobs = self._words.blobs(len(self._units), list(defined))
        self._db.executemany("INSERT INTO blobs VALUES(?,?)", blobs)


def _content(path: str, limit: int) -> tuple[int, bytes | None]:
    """Return the size of a file and, when that is at most `limit`, its bytes."""
    if limit < 0:
        return Path(path).stat().st_size, None
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        return size, os.read(handle, size) if size <= limit else None
    finally:
        os.close(handle)


def _slice(data: bytes, unit: _Unit, encoding: str) -> str:
    if not unit.holes:
        return data[unit.start : unit.end].decode(encoding, "replace")
    pieces = []
    at = unit.start
    for start, end in unit.holes:
        pieces.append(data[at:start])
        at = max(at, end)
    pieces.append(data[at : unit.end])
    return b"\n".join(pieces).decode(encoding, "replace")


def _units(symbols: list[Symbol], data: bytes) -> list[_Unit]:
    """Cut a file into outermost functions, classes without functions, and the rest."""
    units: list[_Unit] = []
    done = 0
    holes: list[tuple[int, int]] = []
    counts = Counter(s.qualname for s in symbols if s.kind in FUNCTION_KINDS)
    for position, s in enumerate(symbols):
        if s.start < done or s.kind == "scope":
            continue
        if s.kind in FUNCTION_KINDS:
            start = max(_with_comment(data, s.lead, done), done)
            kind = "stub" if counts[s.qualname] > 1 and _is_stub(data, s) else "function"
            units.append(_Unit(kind, position, start, s.end, ()))
            holes.append((start, s.end))
            done = s.end
        elif s.kind in {"class", "enum", "table", "view", "type", "index", "event"}:
            holes.append((s.start, s.end))
            units.append(_Unit("class", position, s.start, s.end, ()))
    return [
        _Unit("module", -1, 0, len(data), _outermost(holes)),
        *(_without_functions(u, holes) for u in units),
    ]


def _is_stub(data: bytes, symbol: Symbol) -> bool:
    """Say whether one of several definitions of a name only declares a signature, as overloads do."""
    return data[max(symbol.start, symbol.end - 40) : symbol.end].rstrip().endswith(b"...")


def _outermost(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    result: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
        if not result or start >= result[-1][1]:
            result.append((start, end))
    return tuple(result)


def _without_functions(unit: _Unit, holes: list[tuple[int, int]]) -> _Unit:
    if unit.kind != "class":
        return unit
    inner = [h for h in holes if unit.start <= h[0] and h[1] <= unit.end and h != (unit.start, unit.end)]
    return unit._replace(holes=_outermost(inner))


def _with_comment(data: bytes, start: int, floor: int) -> int:
    """Take the comment that stands right above a definition with it."""
    begin = max(floor, start - 2000)
    gap = data[begin:start]
    cut = max(gap.rfind(b"\n\n"), gap.rfind(b"\n\r\n"), gap.rfind(b"}\n"), gap.rfind(b"{\n"))
    block = gap[cut + 2 :] if cut >= 0 else gap
    return start - len(block) if _COMMENT_LEAD.match(block) else start


def _chunks(data: bytes, lines: LineMap, role: Role) -> list[_Unit]:
    """Cut documentation at its headings, at most `_DOC_LINES` lines a piece; other text stays whole."""
    if role is not Role.DOCS or len(lines) <= _DOC_LINES:
        return [_Unit("module", -1, 0, len(data), ())]
    starts = [lines.span(n, n)[0] for n in range(1, len(lines) + 1, _DOC_LINES)]
    return [_Unit("module", -1, a, b, ()) for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]


def _owners(symbols: list[Symbol], units: list[_Unit]) -> list[int]:
    """Return for each symbol the unit that holds it: its own, or the one around it, or the module."""
    own = {u.symbol: i for i, u in enumerate(units) if u.symbol >= 0}
    result = []
    around: list[tuple[int, int]] = []
    for position, s in enumerate(symbols):
        while around and around[-1][0] <= s.start:
            around.pop()
        unit = own.get(position)
        if unit is None:
            unit = around[-1][1] if around else 0
        else:
            around.append((s.end, unit))
        result.append(unit)
    return result
