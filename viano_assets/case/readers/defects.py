"""Splits a report that tells of several defects.

Only what the report itself sets apart is split: numbered headings ("Bug 2"), a second set of sections, a
paragraph that announces another problem, several rows of an export. Sources of a split report carry the
attribute `defect`; what stands before the first defect is shared and carries none.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re

from viano_assets.case.readers.model import Passage, Piece
from viano_assets.case.readers.vocabulary import Section, section_of

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


class DefectSplitter:
    """Counts the defects of one report while its passages come in."""

    def __init__(self) -> None:
        self.count = 1
        self._numbers: set[int] = set()
        self._why = ""

    def mark(self, passage: Passage, pieces: list[Piece]) -> list[Piece]:
        """Return the pieces, each with its defect when the report sets several apart."""
        current = passage.defect
        starts = {} if passage.whole else self._starts(pieces)
        if current > self.count:
            self.count, self._why = current, "several rows"
        result: list[Piece] = []
        for at, piece in enumerate(pieces):
            if at in starts:
                current, self._why = starts[at]
                self.count = max(self.count, current)
            attributes = {**piece.attributes, "defect": str(current)} if current else piece.attributes
            result.append(Piece(piece.type, piece.text, piece.start, piece.end, piece.kind, attributes))
        return result

    def notes(self) -> list[str]:
        """Return the note for people; empty for the ordinary report of one defect."""
        if self.count < 2:
            return []
        return [
            f"defects: the report tells of {self.count} separate defects ({self._why}); its sources are marked"
        ]

    def _starts(self, pieces: list[Piece]) -> dict[int, tuple[int, str]]:
        numbered = self._numbered(pieces)
        if len({number for number, _ in numbered.values()}) >= 2:
            return numbered
        repeated = self._repeated(pieces)
        if repeated:
            return repeated
        announced = [
            at
            for at, piece in enumerate(pieces)
            if "mention" not in piece.attributes
            and piece.kind in {None, "heading"}
            and _ANNOUNCED.match(piece.text)
        ]
        if not announced or announced[0] == 0:
            return {}
        starts = {0: (1, "announced in the text")}
        starts |= {at: (number, "announced in the text") for number, at in enumerate(announced, start=2)}
        return starts

    @staticmethod
    def _numbered(pieces: list[Piece]) -> dict[int, tuple[int, str]]:
        found: dict[int, tuple[int, str]] = {}
        for at, piece in enumerate(pieces):
            match = _NUMBERED.match(piece.text) if piece.kind == "heading" else None
            if match is None:
                continue
            word = (match["number"] or match["word"]).lower()
            number = (
                int(word) if word.isdigit() else _ORDER.get(word, _ORDER.get(re.sub(r"e[rs]?$", "", word), 0))
            )
            if number:
                found[at] = (number, "numbered headings")
        return found

    @staticmethod
    def _repeated(pieces: list[Piece]) -> dict[int, tuple[int, str]]:
        """A second `Observed` after an `Expected` or `Steps` begins another defect."""
        starts: dict[int, tuple[int, str]] = {}
        number = 0
        other = False
        last = ""
        for at, piece in enumerate(pieces):
            title = piece.attributes.get("section", "")
            if title == last:
                continue
            last = title
            section = section_of(title) if title else None
            if section is Section.OBSERVED and (other or not number):
                number += 1
                other = False
                starts[at] = (number, "repeated sections")
            elif section in {Section.EXPECTED, Section.STEPS}:
                other = True
        return starts if number > 1 else {}
