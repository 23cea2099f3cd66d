"""One report in front of one tree: what all signals share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.bm25 import Bm25
from resources.tools.source.languages import CODE, Role
from resources.tools.source.reader import SourceIndex, SymbolRow
from resources.tools.source.report import Report
from resources.tools.source.text import WORD

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats

FIELD_WEIGHTS = {"name": 4.0, "comment": 1.5, "string": 1.0, "body": 1.0}


class Scene:
    """Report and tree together, with the parts that several signals need."""

    def __init__(self, index: SourceIndex, report: Report) -> None:
        self.index = index
        self.report = report
        self.bm25 = Bm25(index, FIELD_WEIGHTS)
        self.n_units = len(index.units)
        self.n_files = len(index.files)

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
        totals: Counter[str] = Counter()
        for text, weight in parts:
            for word in WORD.findall(text):
                for term in self.index.terms.of(word):
                    totals[term] += weight  # type: ignore[assignment]
        return {t: math.log1p(v) if v > 0 else 0.0 for t, v in totals.items()}

    def to_files(self, units: Floats) -> Floats:
        """Return per file the largest unit score."""
        files = np.zeros(self.n_files)
        np.maximum.at(files, self.index.unit_file, units)
        return files


def scaled(values: Floats) -> Floats:
    """Scale to at most 1; all zero stays zero."""
    top = values.max() if len(values) else 0.0
    return values / top if top > 0 else values
