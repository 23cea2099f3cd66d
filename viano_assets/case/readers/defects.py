"""Splits a report that tells of several defects.

Only what the report itself sets apart is split: numbered headings ("Bug 2"), a second set of sections, a
paragraph that announces another problem, several rows of an export. Sources of a split report carry the
attribute `defect`; what stands before the first defect is shared and carries none.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from viano_assets.case.readers.blocks import Block
from viano_assets.case.readers.model import Passage, Piece
from viano_assets.case.readers.vocabulary import Section

_NUMBERED = re.compile(
    r"(?:bug|problem|issue|defect|error|fault|fehler|defekt|fall|case|punkt)\s*(?:#|nr\.?|no\.?|nummer|number)?\s*"
    r"(?P<number>\d{1,2}|[a-d]|one|two|three|eins|zwei|drei)\b(?![./]\d)"
    r"|(?:the\s+)?(?P<word>first|second|third|erste[rs]?|zweite[rs]?|dritte[rs]?)\s+(?:bug|problem|issue|defect|fehler|defekt)\b",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    r"\W*(?:(?:and\s+|also[,:]?\s+)?(?:there\s+is\s+(?:also\s+)?|i\s+(?:also\s+)?(?:found|noticed|have)\s+)?(?:a\s+second|another|a\s+separate"
    r"|an?\s+unrelated|one\s+more|a\s+different)\s+(?:and\s+\w+\s+)?(?:bug|problem|issue|defect|fault|error)\b|second(?:ly)?\s*[,:]"
    r"|unrelated(?:\s+to\s+(?:this|that|the\s+above))?\s*[,:]|separately\s*[,:]|zweitens\s*[,:]"
    r"|(?:außerdem\s+|noch\s+)?(?:gibt\s+es\s+)?(?:noch\s+)?(?:ein\s+)?(?:zweite[rs]?|weitere[rs]?|andere[rs]?|unabhängige[rs]?)\s+"
    r"(?:fehler|problem|bug|defekt)\b)",
    re.IGNORECASE,
)
_ORDER = {
    "one": 1, "two": 2, "three": 3, "eins": 1, "zwei": 2, "drei": 3, "a": 1, "b": 2, "c": 3, "d": 4,
    "first": 1, "second": 2, "third": 3, "erst": 1, "zweit": 2, "dritt": 3,
}  # fmt: skip


_IN_TEXT = "announced in the text"


class DefectSplitter:
    """Counts the defects of one report while its passages come in."""

    def __init__(self) -> None:
        self.count = 1
        self._why = ""

    def mark(self, passage: Passage, pieces: list[Piece], headings: Sequence[Block]) -> list[Piece]:
        """Return the pieces, each with its defect when the report sets several apart."""
        current = passage.defect
        starts = {} if passage.whole else self._starts(pieces, headings)
        order = sorted(starts)
        if current > self.count:
            self.count, self._why = current, "several rows"
        result: list[Piece] = []
        for piece in pieces:
            passed = bisect_right(order, piece.start)
            if passed:
                current, self._why = starts[order[passed - 1]]
                self.count = max(self.count, current)
            attributes = {**piece.attributes, "defect": str(current)} if current else piece.attributes
            result.append(replace(piece, attributes=attributes))
        return result

    def notes(self) -> list[str]:
        """Return the note for people; empty for the ordinary report of one defect."""
        if self.count < 2:
            return []
        return [
            f"defects: the report tells of {self.count} separate defects ({self._why}); its sources are marked"
        ]

    def _starts(self, pieces: list[Piece], headings: Sequence[Block]) -> dict[int, tuple[int, str]]:
        """Return where in the passage each defect begins, with its number and what set it apart."""
        numbered = _numbered(headings)
        if len({number for number, _ in numbered.values()}) >= 2:
            return numbered
        repeated = _repeated(headings)
        if len(repeated) >= 2:
            return repeated
        announced = [
            piece.start
            for piece in pieces
            if "mention" not in piece.attributes
            and piece.kind in {None, "heading"}
            and _ANNOUNCED.match(piece.text)
        ]
        if not announced or announced[0] == (pieces[0].start if pieces else 0):
            return {}
        starts = {0: (1, _IN_TEXT)}
        starts |= {start: (number, _IN_TEXT) for number, start in enumerate(announced, start=2)}
        return starts


def _numbered(headings: Sequence[Block]) -> dict[int, tuple[int, str]]:
    found: dict[int, tuple[int, str]] = {}
    for heading in headings:
        match = _NUMBERED.match(heading.title)
        if match is None:
            continue
        word = (match["number"] or match["word"]).lower()
        stem = re.sub(r"e[rs]?$", "", word)
        number = int(word) if word.isdigit() else _ORDER.get(word, _ORDER.get(stem, 0))
        if number:
            found[heading.start] = (number, "numbered headings")
    return found


def _repeated(headings: Sequence[Block]) -> dict[int, tuple[int, str]]:
    """A second `Observed` after an `Expected` or `Steps` begins another defect."""
    starts: dict[int, tuple[int, str]] = {}
    other = False
    for heading in headings:
        if heading.section is Section.OBSERVED and (other or not starts):
            starts[heading.start] = (len(starts) + 1, "repeated sections")
            other = False
        elif heading.section in {Section.EXPECTED, Section.STEPS}:
            other = True
    return starts
