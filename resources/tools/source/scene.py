"""One report in front of one tree: what all signals share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source import catalogues
from resources.tools.source.bm25 import Bm25
from resources.tools.source.catalogues import Entry
from resources.tools.source.graph import CallGraph
from resources.tools.source.languages import CODE, Role
from resources.tools.source.lexicon import STOP as GERMAN_STOP
from resources.tools.source.lexicon import is_german, translate
from resources.tools.source.reader import FileRow, SourceIndex, SymbolRow
from resources.tools.source.report import Report
from resources.tools.source.text import PROSE_STOP, WORD

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
"""An option of a command line; its parts with underscores name the setting in most programs."""
TRANSLATED = 0.6
"""Weight of each English word for a German one."""
FIELD_WEIGHTS = {"name": 4.0, "comment": 1.5, "string": 1.0, "body": 1.0}


class Scene:
    """Report and tree together, with the parts that several signals need."""

    def __init__(self, index: SourceIndex, root: Path, report: Report) -> None:
        self.index = index
        self.root = root
        self.report = report
        self.bm25 = Bm25(index, FIELD_WEIGHTS)
        self.n_units = len(index.units)
        self.n_files = len(index.files)
        self.german = is_german(" ".join([report.title, *(line for line, _ in report.prose)]))

    @cached_property
    def code_bm25(self) -> Bm25:
        """Scores of the code without its comments: long documentation marks the public face."""
        return Bm25(self.index, {**FIELD_WEIGHTS, "comment": 0.0})

    @cached_property
    def graph(self) -> CallGraph:
        """The calls of the tree."""
        return CallGraph(self.index, self.product_files)

    @cached_property
    def top_names(self) -> frozenset[str]:
        """Folders and module names that a module of this tree can begin with."""
        names: set[str] = set()
        for row in self.index.files:
            if self.product_files[row.id] > 0:
                first, *more = row.path.split("/")
                names.add(first.rsplit(".", 1)[0])
                names.update(m.rsplit(".", 1)[0] for m in more[:2])
        return frozenset(names)

    def family(self, name: str) -> frozenset[str]:
        """Return a class name with the names of its bases, as far as the tree defines them."""
        found: dict[str, None] = {}
        todo = [name]
        while todo and len(found) < 40:
            current = todo.pop(0)
            if current in found:
                continue
            found[current] = None
            for symbol in self.product_definitions(current):
                if symbol.kind == "class":
                    todo += re.findall(r"[A-Za-z_]\w*", symbol.bases)
        return frozenset(found)

    @cached_property
    def product_files(self) -> Floats:
        """1 for each file that can hold a defect."""
        return np.array(
            [
                1.0 if f.indexed and f.role is Role.PRODUCT and f.language in CODE else 0.0
                for f in self.index.files
            ]
        )

    @cached_property
    def product_units(self) -> Floats:
        """1 for each unit of a product file."""
        return self.product_files[self.index.unit_file]

    def units_with_role(self, role: Role) -> Floats:
        """Return 1 for each unit of files with a role."""
        mask = np.array([1.0 if f.indexed and f.role is role else 0.0 for f in self.index.files])
        return mask[self.index.unit_file]

    def product_definitions(self, name: str) -> list[SymbolRow]:
        """Return the definitions of a short name in product files, without variables of functions."""
        found = self._definitions.get(name)
        if found is None:
            found = [s for s in self.index.symbols_named(name) if self.product_files[s.file] > 0]
            self._definitions[name] = found
        return found

    @cached_property
    def _definitions(self) -> dict[str, list[SymbolRow]]:
        return {}

    def query(self, parts: Iterable[tuple[str, float]]) -> dict[str, float]:
        """Turn weighted texts into weighted terms; repeated words count with their logarithm."""
        totals: dict[str, float] = {}
        for text, weight in parts:
            for term, share in self._terms_of(text):
                totals[term] = totals.get(term, 0.0) + weight * share
        return {t: math.log1p(v) if v > 0 else 0.0 for t, v in totals.items()}

    def _terms_of(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield terms with their share: of words, options as settings, German words in English."""
        known = self.index.terms
        for option in OPTION.findall(text):
            yield from ((t, 1.0) for t in known.of(option.strip("-").replace("-", "_")) if t.startswith("="))
        for word in WORD.findall(text):
            if word.lower() in PROSE_STOP:
                continue
            yield from ((t, 1.0) for t in known.of(word))
            if self.german and word.lower() not in GERMAN_STOP:
                for english in translate(word) or self._own_words.get(word.lower(), ()):
                    yield from ((t, TRANSLATED) for t in known.of(english))

    @cached_property
    def catalogue(self) -> list[Entry]:
        """Texts of the tree's message catalogues, those of the report's language first."""
        return catalogues.read(self.root, catalogues.chosen(self.index.files, german=self.german))

    @cached_property
    def _own_words(self) -> dict[str, tuple[str, ...]]:
        """German words of the report that the general word list lacks, by the tree's own translations."""
        spoken = [self.report.title, *(line for line, _ in self.report.prose)]
        words = {w for line in spoken for w in WORD.findall(line)}
        return catalogues.dictionary(self.catalogue, sorted(w for w in words if not translate(w)))

    def source(self, unit: int) -> str:
        """Return the text of a unit as it lies."""
        row = self.index.units[unit]
        with (self.root / self.index.files[row.file].path).open("rb") as stream:
            stream.seek(row.start)
            return stream.read(row.end - row.start).decode("utf-8", "replace")

    def path_terms(self, path: str) -> list[str]:
        """Return the terms of the last three parts of a path."""
        return [t for p in path.rsplit(".", 1)[0].split("/")[-3:] for t in self.index.terms.of(p)]

    def module_file(self, dotted: str) -> FileRow | None:
        """Return the product file of a dotted module name, when exactly one path ends like it."""
        parts = dotted.split(".")
        if parts[0] not in self.top_names:
            return None
        for length in range(len(parts), 1, -1):
            found = self._module_paths.get("/".join(parts[:length]))
            if found is not None:
                return self.index.files[found]
        return None

    @cached_property
    def _module_paths(self) -> dict[str, int]:
        result: dict[str, int] = {}
        for row in self.index.files:
            if self.product_files[row.id] > 0:
                stem = row.path.rsplit(".", 1)[0].removesuffix("/__init__")
                segments = stem.split("/")
                for start in range(min(3, len(segments) - 1)):
                    result.setdefault("/".join(segments[start:]), row.id)
        return result

    def to_files(self, units: Floats) -> Floats:
        """Return per file the largest unit score."""
        files = np.zeros(self.n_files)
        np.maximum.at(files, self.index.unit_file, units)
        return files


def scaled(values: Floats) -> Floats:
    """Scale to at most 1; all zero stays zero."""
    top = values.max() if len(values) else 0.0
    return values / top if top > 0 else values
