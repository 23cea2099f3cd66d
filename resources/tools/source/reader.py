"""Reads an index made by `index.build`: files, symbols, units and postings as arrays."""

from __future__ import annotations

import sqlite3
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from resources.tools.source import index, postings
from resources.tools.source.languages import Role
from resources.tools.source.text import Terms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int32]


class FileRow(NamedTuple):
    """One file of the tree."""

    id: int
    path: str
    language: str
    role: Role
    bytes: int
    lines: int
    indexed: bool


class SymbolRow(NamedTuple):
    """One definition; lines are 1-based and inclusive, `start` and `end` bytes in the file."""

    id: int
    file: int
    name: str
    qualname: str
    kind: str
    start: int
    end: int
    line_start: int
    line_end: int
    bases: str
    unit: int


class UnitRow(NamedTuple):
    """One ranked piece: `kind` is function, stub, class or module; `symbol` is -1 for a module."""

    id: int
    file: int
    symbol: int
    kind: str
    start: int
    end: int


class Field:
    """Postings of one field: for a term the units that hold it and how often."""

    def __init__(
        self, starts: npt.NDArray[np.int64], units: Ints, counts: npt.NDArray[np.uint16], lengths: Ints
    ) -> None:
        self._starts = starts
        self._units = units
        self._counts = counts
        self.lengths = lengths

    def posting(self, term: int) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return the units and the counts of a term, in the order of the units."""
        a, b = self._starts[term], self._starts[term + 1]
        return self._units[a:b], self._counts[a:b]

    def forward(self) -> tuple[Ints, Ints]:
        """Return every (term, unit) pair of the field as two arrays, ordered by term."""
        import numpy as np  # noqa: PLC0415 - numpy is not needed to look up symbols

        sizes = np.diff(self._starts)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), self._units


class SourceIndex:
    """An open index. Everything is loaded when first asked for."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        self.terms = Terms()

    @classmethod
    def open(cls, root: Path, cache: Path, identity: str) -> SourceIndex:
        """Open the index of the tree with the hash `identity`, built in `cache` when it is not there."""
        path = cache / f"{index.FORMAT}-{identity[:32]}.sqlite"
        if not path.exists():
            index.build(root, path)
        return cls(path)

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    @cached_property
    def files(self) -> list[FileRow]:
        """Every file of the tree by id."""
        rows = self._db.execute("SELECT * FROM files ORDER BY id")
        return [FileRow(i, p, g, Role(r), b, n, bool(x)) for i, p, g, r, b, n, x in rows]

    @cached_property
    def by_path(self) -> dict[str, FileRow]:
        """Files by path."""
        return {f.path: f for f in self.files}

    @cached_property
    def symbols(self) -> list[SymbolRow]:
        """Every definition by id."""
        return [SymbolRow(*row) for row in self._db.execute("SELECT * FROM symbols ORDER BY id")]

    def symbol_count(self) -> int:
        """Return how many definitions there are."""
        return int(self._db.execute("SELECT count(*) FROM symbols").fetchone()[0])

    def indexed_files(self) -> int:
        """Return how many files are indexed."""
        return int(self._db.execute("SELECT count(*) FROM files WHERE indexed").fetchone()[0])

    @cached_property
    def by_name(self) -> dict[str, list[SymbolRow]]:
        """Definitions by short name."""
        result: dict[str, list[SymbolRow]] = {}
        for s in self.symbols:
            result.setdefault(s.name, []).append(s)
        return result

    def symbols_named(self, name: str) -> list[SymbolRow]:
        """Return the definitions of one short name without loading the others."""
        return [
            SymbolRow(*r) for r in self._db.execute("SELECT * FROM symbols WHERE name=? ORDER BY id", (name,))
        ]

    def symbols_of(self, file: int) -> list[SymbolRow]:
        """Return the definitions of one file in the order they stand."""
        return [
            SymbolRow(*r) for r in self._db.execute("SELECT * FROM symbols WHERE file=? ORDER BY id", (file,))
        ]

    @cached_property
    def units(self) -> list[UnitRow]:
        """Every unit by id."""
        return [UnitRow(*row) for row in self._db.execute("SELECT * FROM units ORDER BY id")]

    @cached_property
    def unit_file(self) -> Ints:
        """The file of each unit."""
        import numpy as np  # noqa: PLC0415 - numpy is not needed to look up symbols

        return np.array([u.file for u in self.units], dtype=np.int32)

    def literals(self, unit: int) -> list[str]:
        """Return the longer string literals of a unit, quotes included."""
        return [
            r[0] for r in self._db.execute("SELECT text FROM literals WHERE unit=? ORDER BY rowid", (unit,))
        ]

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Index terms and their numbers."""
        text = bytes(self._blob("vocabulary")).decode()
        return {t: i for i, t in enumerate(text.split("\n"))} if text else {}

    def _blob(self, name: str) -> bytes:
        return bytes(self._db.execute("SELECT data FROM blobs WHERE name=?", (name,)).fetchone()[0])

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Postings by field name."""
        import numpy as np  # noqa: PLC0415 - numpy is not needed to look up symbols

        return {
            name: Field(
                np.frombuffer(self._blob(f"{name}.starts"), np.int64),
                np.frombuffer(self._blob(f"{name}.units"), np.int32),
                np.frombuffer(self._blob(f"{name}.counts"), np.uint16),
                np.frombuffer(self._blob(f"{name}.lengths"), np.int32),
            )
            for name in postings.FIELDS
        }

    @cached_property
    def call_edges(self) -> tuple[Ints, Ints, list[str]]:
        """Who calls what: units, numbers of callee names, and the names."""
        import numpy as np  # noqa: PLC0415 - numpy is not needed to look up symbols

        names = self._blob("calls.names").decode().split("\n")
        return (
            np.frombuffer(self._blob("calls.units"), np.int32),
            np.frombuffer(self._blob("calls.callees"), np.int32),
            names,
        )
