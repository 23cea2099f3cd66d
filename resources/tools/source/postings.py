"""Collects the words of units field by field and turns them into postings with few, large array steps.

Words are numbered as they come; a batch of occurrences is reduced to (unit, word, count) by sorting
packed integers, and the words become index terms only once per distinct pair.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING

from resources.tools.source.text import WORD, Terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    Longs = npt.NDArray[np.int64]

FIELDS = ("name", "comment", "string", "body")
"""Fields of the postings, in the order of their arrays."""

_BATCH = 4_000_000
_COUNT_BITS = 16
_CODE_WORD = re.compile(r"[^\W\d]\w*\(?")
_COMPOUND = re.compile(r"_*(?:[A-Z][a-z0-9]+[A-Z]|[A-Za-z][a-z0-9]*_[a-z]|[a-z]+[A-Z])")


class _Words(dict[str, int]):
    """Numbers words in the order they come and notes the index terms of each."""

    def __init__(self) -> None:
        super().__init__()
        self._terms = Terms()
        self.vocabulary: dict[str, int] = {}
        self.term_starts = array("i", [0])
        self.term_ids = array("i")
        self.referring: list[str] = []
        """Per word the name it calls or refers to, or an empty string."""

    def __missing__(self, word: str) -> int:
        ids = self.term_ids
        if word[-1] == "(":
            name = word[:-1]
            plain = self[name]
            ids.extend(ids[self.term_starts[plain] : self.term_starts[plain + 1]])
        else:
            vocabulary = self.vocabulary
            ids.extend([vocabulary.setdefault(t, len(vocabulary)) for t in self._terms.of(word)])
            name = word if _COMPOUND.match(word) else ""
        number = self[word] = len(self.referring)
        self.term_starts.append(len(ids))
        self.referring.append(name)
        return number


class Collector:
    """Takes the texts of units in ascending order of their numbers."""

    def __init__(self) -> None:
        self._words = _Words()
        self._open = {name: array("i") for name in FIELDS}
        self._marks: dict[str, list[tuple[int, int]]] = {name: [] for name in FIELDS}
        self._reduced: dict[str, list[tuple[Longs, Longs, Longs]]] = {name: [] for name in FIELDS}
        self._pending = 0

    def add(self, field: str, unit: int, text: str) -> None:
        """Add the words of `text` to a field of a unit."""
        found = (_CODE_WORD if field == "body" else WORD).findall(text)
        if found:
            self._open[field].extend(map(self._words.__getitem__, found))
            self._marks[field].append((unit, len(found)))
            self._pending += len(found)
            if self._pending > _BATCH:
                self._reduce()

    def _reduce(self) -> None:
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        for name in FIELDS:
            if not self._marks[name]:
                continue
            marks = np.array(self._marks[name], dtype=np.int64)
            keys = np.repeat(marks[:, 0], marks[:, 1]) << 32
            keys |= np.frombuffer(self._open[name], dtype=np.int32)
            distinct, counts = np.unique(keys, return_counts=True)
            self._reduced[name].append((distinct >> 32, distinct & 0xFFFFFFFF, counts.astype(np.int64)))
            self._open[name] = array("i")
            self._marks[name] = []
        self._pending = 0

    def blobs(self, units: int, defined: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the named arrays of the index; `defined` are the names of functions and classes."""
        self._reduce()
        yield "vocabulary", "\n".join(self._words.vocabulary).encode()
        yield from self._calls(defined)
        for name in FIELDS:
            yield from self._field(name, units)

    def _field(self, name: str, units: int) -> Iterator[tuple[str, bytes]]:
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        size = len(self._words.vocabulary)
        packed = [self._packed(*part, units) for part in self._reduced[name]]
        keys = np.concatenate(packed) if packed else np.zeros(0, np.int64)
        keys.sort()
        pairs, counts = keys >> _COUNT_BITS, keys & ((1 << _COUNT_BITS) - 1)
        first = np.flatnonzero(np.diff(pairs, prepend=-1)) if len(pairs) else np.zeros(0, np.int64)
        sums = np.add.reduceat(counts, first) if len(first) else np.zeros(0, np.int64)
        pairs = pairs[first]
        terms, places = pairs // max(1, units), pairs % max(1, units)
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(terms, minlength=size), out=starts[1:])
        lengths = np.bincount(places, weights=sums, minlength=units)
        yield f"{name}.starts", starts.tobytes()
        yield f"{name}.units", places.astype(np.int32).tobytes()
        yield f"{name}.counts", np.minimum(sums, 65_535).astype(np.uint16).tobytes()
        yield f"{name}.lengths", lengths.astype(np.int32).tobytes()

    def _packed(self, places: Longs, words: Longs, counts: Longs, units: int) -> Longs:
        """Turn words into terms: one integer per (term, unit, count)."""
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        starts = np.frombuffer(self._words.term_starts, dtype=np.int32).astype(np.int64)
        ids = np.frombuffer(self._words.term_ids, dtype=np.int32) if self._words.term_ids else starts
        sizes = starts[words + 1] - starts[words]
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        terms = ids[np.repeat(starts[words], sizes) + offsets].astype(np.int64)
        pairs = terms * units + np.repeat(places, sizes)
        packed: Longs = (pairs << _COUNT_BITS) | np.repeat(np.minimum(counts, 65_535), sizes)
        return packed

    def _calls(self, defined: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield who calls or refers to what, only for names that the tree defines."""
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        numbers = {name: i for i, name in enumerate(defined)}
        meaning = np.array([numbers.get(n, -1) for n in self._words.referring] or [-1], dtype=np.int64)
        keys = [
            (places << 32 | callees)[callees >= 0]
            for places, words, _ in self._reduced["body"]
            for callees in (meaning[words],)
        ]
        distinct = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
        yield "calls.names", "\n".join(defined).encode()
        yield "calls.units", (distinct >> 32).astype(np.int32).tobytes()
        yield "calls.callees", (distinct & 0xFFFFFFFF).astype(np.int32).tobytes()
