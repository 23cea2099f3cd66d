"""Collects the words of units field by field and turns them into postings with few, large array steps.

Texts are gathered in batches and cut into words as arrays of bytes; a dictionary encoding numbers the
words, and they become index terms only once per distinct word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from resources.tools.source.text import WORD, BulkTerms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int32]
    Longs = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

FIELDS = ("name", "comment", "string", "body")
"""Fields of the postings, in the order of their arrays."""

_BATCH = 250_000
"""Characters of one field that are cut into words at once."""
_COUNT_BITS = 16
_MOST = (1 << _COUNT_BITS) - 1
_CODE_WORD = re.compile(r"[^\W\d]\w*\(?")
_COMPOUND = re.compile(r"_*(?:[A-Z][a-z0-9]+[A-Z]|[A-Za-z][a-z0-9]*_[a-z]|[a-z]+[A-Z])")
_BREAK, _CALL = 10, 40
_DIGIT = 2
_SHORT_NUMBER = 12
"""Digits in front of words that are taken off one by one for all words together."""
_KINDS = bytes(
    _DIGIT if c < 128 and chr(c).isdigit() else c > 127 or c == 95 or chr(c).isalpha() for c in range(256)
)
"""What a byte is to a word: nothing, a part of it, or a part it cannot begin with."""


class _Pairs(NamedTuple):
    """Distinct (unit, word) pairs with their counts."""

    units: Longs
    words: Longs
    counts: Longs


class _Gathered:
    """Texts of one field that wait to be cut."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.units: list[int] = []
        self.size = 0


class _Cut(NamedTuple):
    """The words of one batch, each with its unit."""

    field: str
    units: Ints
    words: pa.BinaryArray


class Collector:
    """Takes the texts of units in ascending order of their numbers."""

    def __init__(self) -> None:
        self._gathered = {name: _Gathered() for name in FIELDS}
        self._batches: list[_Cut] = []

    def add(self, field: str, unit: int, text: str) -> None:
        """Add the words of `text` to a field of a unit."""
        if not text.isascii():
            text = " ".join((_CODE_WORD if field == "body" else WORD).findall(text))
        gathered = self._gathered[field]
        gathered.texts.append(text.encode())
        gathered.units.append(unit)
        gathered.size += len(text)
        if gathered.size > _BATCH:
            self._close_batch(field)

    def _close_batch(self, field: str) -> None:
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        gathered = self._gathered[field]
        if not gathered.texts:
            return
        self._gathered[field] = _Gathered()
        starts, words = _cut(b"\n" + b"\n".join(gathered.texts) + b"\n", called=field == "body")
        if not len(starts):
            return
        ends = np.cumsum(np.fromiter(map(len, gathered.texts), np.int64, len(gathered.texts)) + 1)
        units = np.array(gathered.units, dtype=np.int32)
        self._batches.append(_Cut(field, units[np.searchsorted(ends, starts)], words))

    def _reduced(self) -> tuple[list[str], dict[str, list[_Pairs]]]:
        """Return the distinct words, a called one with its parenthesis, and the pairs of each field."""
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built
        import pyarrow as pa  # noqa: PLC0415

        for name in FIELDS:
            self._close_batch(name)
        batches, self._batches = self._batches, []
        encoded = pa.chunked_array([b.words for b in batches], pa.binary()).dictionary_encode()
        pairs: dict[str, list[_Pairs]] = {name: [] for name in FIELDS}
        for (field, units, _), codes in zip(batches, encoded.chunks, strict=True):
            keys = units.astype(np.int64) << 32 | codes.indices.to_numpy()
            distinct, counts = np.unique(keys, return_counts=True)
            pairs[field].append(_Pairs(distinct >> 32, distinct & 0xFFFFFFFF, counts.astype(np.int64)))
        if not batches:
            return [], pairs
        distinct_words = b"".join(encoded.chunks[-1].dictionary.to_pylist()).decode()
        return distinct_words.replace("(", "(\n").split("\n")[:-1], pairs

    def blobs(self, units: int, defined: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the named arrays of the index; `defined` are the names of functions and classes."""
        words, pairs = self._reduced()
        terms = BulkTerms([w.removesuffix("(") for w in words])
        yield "vocabulary", "\n".join(terms.vocabulary).encode()
        yield from _calls(words, pairs["body"], defined)
        for name in FIELDS:
            yield from _field(name, units, terms, pairs[name])


def _field(name: str, units: int, terms: BulkTerms, reduced: list[_Pairs]) -> Iterator[tuple[str, bytes]]:
    import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

    bits = units.bit_length()
    packed = [_packed(pairs, terms, bits) for pairs in reduced]
    keys = np.concatenate(packed) if packed else np.zeros(0, np.int64)
    packed.clear()
    keys.sort()
    pairs, counts = keys >> _COUNT_BITS, keys & _MOST
    first = _changes(pairs)
    sums = np.add.reduceat(counts, first) if len(first) else np.zeros(0, np.int64)
    pairs = pairs[first]
    places = pairs & ((1 << bits) - 1)
    size = len(terms.vocabulary)
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs >> bits, minlength=size), out=starts[1:])
    lengths = np.bincount(places, weights=sums, minlength=units)
    yield f"{name}.starts", starts.tobytes()
    yield f"{name}.units", places.astype(np.int32).tobytes()
    yield f"{name}.counts", np.minimum(sums, _MOST).astype(np.uint16).tobytes()
    yield f"{name}.lengths", lengths.astype(np.int32).tobytes()


def _changes(ordered: Longs) -> Longs:
    """Return where each run of equal values begins."""
    import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

    begins = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def _calls(words: list[str], body: list[_Pairs], defined: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield who calls or refers to what, only for names that the tree defines."""
    import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

    known = {name: i for i, name in enumerate(defined)}
    meant = [
        known.get(w[:-1], -1) if w[-1] == "(" else known[w] if w in known and _COMPOUND.match(w) else -1
        for w in words
    ]
    meaning = np.array(meant or [-1], dtype=np.int64)
    keys = [
        (pairs.units << 32 | callees)[callees >= 0] for pairs in body for callees in (meaning[pairs.words],)
    ]
    distinct = np.concatenate(keys) if keys else np.zeros(0, np.int64)
    distinct.sort()
    distinct = distinct[_changes(distinct)]
    yield "calls.names", "\n".join(defined).encode()
    yield "calls.units", (distinct >> 32).astype(np.int32).tobytes()
    yield "calls.callees", (distinct & 0xFFFFFFFF).astype(np.int32).tobytes()


def _cut(text: bytes, *, called: bool) -> tuple[Longs, pa.BinaryArray]:
    """Cut text into words that begin with no digit; returns their starts and the words.

    Single letters are left out unless they are called; no term comes of them. A word ends with a line
    break, or with the parenthesis right behind it when `called`.

    Args:
        text: UTF-8 between two line breaks; every byte above 127 belongs to a word.
        called: keep apart what is called.
    """
    import numpy as np  # noqa: PLC0415 - heavy, only where an index is built
    import pyarrow as pa  # noqa: PLC0415

    data = np.frombuffer(text, dtype=np.uint8).copy()
    kinds = np.frombuffer(text.translate(_KINDS), dtype=np.uint8)
    inside: Flags = kinds > 0
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    numeric = np.flatnonzero(kinds[starts] == _DIGIT)
    for _ in range(_SHORT_NUMBER):
        inside[starts[numeric]] = False
        starts[numeric] += 1
        numeric = numeric[kinds[starts[numeric]] == _DIGIT]
    for number in numeric.tolist():
        begin, end = int(starts[number]), int(ends[number])
        starts[number] = end - len(text[begin:end].lstrip(b"0123456789"))
        inside[begin : starts[number]] = False
    calls = data[ends] == _CALL if called else np.zeros(len(ends), dtype=np.bool_)
    used = ends - starts > np.where(calls, 0, 1)
    inside[starts[~used]] = False
    starts, ends, calls = starts[used], ends[used], calls[used]
    data[ends[~calls]] = _BREAK
    inside[ends] = True
    offsets = np.zeros(len(starts) + 1, dtype=np.int32)
    np.cumsum(ends - starts + 1, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[inside])]
    return starts, pa.Array.from_buffers(pa.binary(), len(starts), buffers)


def _packed(pairs: _Pairs, terms: BulkTerms, bits: int) -> Longs:
    """Turn words into terms: one integer per (term, unit, count)."""
    import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

    begin = terms.starts[pairs.words]
    sizes = terms.starts[pairs.words + 1] - begin
    ends = np.cumsum(sizes)
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - ends + sizes, sizes)
    packed: Longs = ((terms.ids[at] << bits) | np.repeat(pairs.units, sizes)) << _COUNT_BITS
    packed |= np.repeat(np.minimum(pairs.counts, _MOST), sizes)
    return packed
