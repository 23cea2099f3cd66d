"""Field-weighted BM25 over units and over files, with damped counts in the query.

A report repeats its subject; the logarithm keeps a word that stands ten times from drowning the
others. Fields are joined before saturation (BM25F), so that a word in a name and in a body is one
match of one word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.postings import FIELDS
from resources.tools.source.reader import SourceIndex

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats, Ints

K1 = 1.2
LENGTH = {"name": 0.0, "comment": 0.5, "string": 0.5, "body": 0.75}
"""How much the length of each field counts (BM25's b)."""


class Bm25:
    """Scores units and files of one index for weighted terms."""

    def __init__(self, index: SourceIndex, weights: Mapping[str, float]) -> None:
        self._index = index
        self._weights = weights
        self._units = len(index.units)
        self._files = len(index.files)
        self._norms = {}
        for name in FIELDS:
            lengths = index.fields[name].lengths.astype(np.float64)
            present = lengths > 0
            mean = lengths[present].mean() if present.any() else 1.0
            b = LENGTH[name]
            self._norms[name] = 1.0 - b + b * lengths / mean
        file_lengths = np.bincount(
            index.unit_file,
            weights=index.fields["body"].lengths + index.fields["comment"].lengths,
            minlength=self._files,
        )
        used = file_lengths[file_lengths > 0]
        mean = used.mean() if len(used) else 1.0
        self._file_norm = 0.4 + 0.6 * np.sqrt(file_lengths / mean)

    def document_frequency(self, term: str) -> int:
        """Return in how many units a term stands."""
        number = self._index.vocabulary.get(term)
        if number is None:
            return 0
        return len(self._frequency(number)[0])

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term over the units; 0 for an unknown one."""
        df = self.document_frequency(term)
        return math.log(1 + (self._units - df + 0.5) / (df + 0.5)) if df else 0.0

    def _frequency(self, number: int) -> tuple[Ints, Floats, Floats]:
        """Return units, weighted normalised frequency, and weighted raw frequency of a term."""
        units_of, values, raw = [], [], []
        for name in FIELDS:
            units, counts = self._index.fields[name].posting(number)
            if len(units):
                weight = self._weights[name]
                units_of.append(units)
                raw.append(weight * counts.astype(np.float64))
                values.append(raw[-1] / self._norms[name][units])
        if not units_of:
            return np.zeros(0, np.int32), np.zeros(0), np.zeros(0)
        units = np.concatenate(units_of)
        distinct, inverse = np.unique(units, return_inverse=True)
        return (
            distinct,
            np.bincount(inverse, weights=np.concatenate(values)).astype(np.float64),
            np.bincount(inverse, weights=np.concatenate(raw)).astype(np.float64),
        )

    def score(self, query: Mapping[str, float]) -> tuple[Floats, Floats]:
        """Return the scores of all units and of all files for weighted terms."""
        units = np.zeros(self._units)
        files = np.zeros(self._files)
        for term in sorted(query):
            number = self._index.vocabulary.get(term)
            if number is None or query[term] <= 0:
                continue
            where, value, raw = self._frequency(number)
            if not len(where):
                continue
            idf = math.log(1 + (self._units - len(where) + 0.5) / (len(where) + 0.5))
            units[where] += query[term] * idf * value * (K1 + 1) / (value + K1)
            per_file: Floats = np.bincount(
                self._index.unit_file[where], weights=raw, minlength=self._files
            ).astype(np.float64)
            found = int((per_file > 0).sum())
            file_idf = math.log(1 + (self._files - found + 0.5) / (found + 0.5))
            per_file = per_file / self._file_norm
            files += query[term] * file_idf * per_file * (K1 + 1) / (per_file + K1 * 2)
        return units, files
