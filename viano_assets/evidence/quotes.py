"""Does this quote stand in this evidence?

An excerpt is anchored by what it says; its line number is a hint. A quote therefore stands when its
characters stand in the record, in order and unchanged. Free are only: runs of white space (a quote may
be re-wrapped or re-indented), the composed or decomposed form of a letter, and, inside the compact JSON
of a row, query or schema, the white space between the parts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from viano_assets.evidence.model import EvidenceRecord

_COMPACT = frozenset({"row", "query", "schema", "ranking"})


class LineSpan(NamedTuple):
    """Lines of a text, 1-based and inclusive."""

    start: int
    end: int


def normalise(text: str) -> str:
    """Return `text` composed (NFC), with every run of white space as one space and none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def quote_in(content: str, quote: str, *, compact: bool = False) -> bool:
    """Say whether `quote` stands in `content`; `compact` ignores white space altogether."""
    wanted = normalise(quote)
    if not wanted:
        return False
    have = normalise(content)
    if wanted in have:
        return True
    return compact and wanted.replace(" ", "") in have.replace(" ", "")


def quote_stands(record: EvidenceRecord, quote: str) -> bool:
    """Say whether `quote` stands in the stored content of `record`; a blank quote never does."""
    return quote_in(record.content, quote, compact=record.provenance.kind in _COMPACT)


def find_quote(lines: Sequence[str], quote: str, hint: int | None = None) -> LineSpan | None:
    """Find where `quote` stands in a file, nearest to line `hint` when it stands more than once.

    The span is the smallest run of whole lines that holds the quote, so that an excerpt is found again
    after lines were inserted above it.
    """
    wanted = normalise(quote)
    if not wanted:
        return None
    folded = [normalise(line) for line in lines]
    joined, starts = [], []
    length = 0
    for text in folded:
        starts.append(length)
        if text:
            joined.append(text)
            length += len(text) + 1
    whole = " ".join(joined)
    best: LineSpan | None = None
    position = whole.find(wanted)
    while position >= 0:
        span = _span(folded, starts, position, position + len(wanted))
        if best is None or (hint is not None and abs(span.start - hint) < abs(best.start - hint)):
            best = span
        if hint is None:
            break
        position = whole.find(wanted, position + 1)
    return best


def _span(folded: Sequence[str], starts: Sequence[int], begin: int, end: int) -> LineSpan:
    first = last = 0
    for index, text in enumerate(folded):
        if not text:
            continue
        if starts[index] <= begin:
            first = index
        if starts[index] < end:
            last = index
    return LineSpan(first + 1, last + 1)
