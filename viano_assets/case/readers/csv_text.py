"""CSV exports of trackers: each cell a text that knows its place."""

from __future__ import annotations

from array import array

from viano_assets.case.model import SourceType
from viano_assets.case.readers.model import Passage, Reading
from viano_assets.case.readers.vocabulary import Section, section_of
from viano_assets.case.text import Text


def rows(text: Text) -> list[list[Text]]:
    """Return the records; a quoted cell may hold line ends, and doubled quotes count once."""
    chars = text.text.lstrip("\ufeff")
    offset = len(text.text) - len(chars)
    first = chars.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    result: list[list[Text]] = []
    row: list[Text] = []
    at = 0
    while at < len(chars):
        cell, at = _cell(text, chars, at, offset, delimiter)
        row.append(cell)
        if at >= len(chars) or chars[at] == "\n":
            if any(item.text.strip() for item in row):
                result.append(row)
            row = []
        at += 1
    if row and any(item.text.strip() for item in row):
        result.append(row)
    return result


def _cell(text: Text, chars: str, at: int, offset: int, delimiter: str) -> tuple[Text, int]:
    if chars[at : at + 1] != '"':
        end = at
        while end < len(chars) and chars[end] not in {delimiter, "\n"}:
            end += 1
        return text.cut(at + offset, end + offset), end
    parts: list[str] = []
    starts, ends = array("q"), array("q")
    at += 1
    while at < len(chars):
        if chars[at] == '"':
            if chars[at + 1 : at + 2] != '"':
                at += 1
                break
            at += 1
        parts.append(chars[at])
        starts.append(text.starts[at + offset])
        ends.append(text.ends[at + offset])
        at += 1
    while at < len(chars) and chars[at] not in {delimiter, "\n"}:
        at += 1
    return Text("".join(parts), starts, ends, text.line_starts, text.encoding), at


def read_csv(text: Text, reading: Reading) -> bool:
    """Add the passages of a tracker's CSV; False when the table is none."""
    table = rows(text)
    if len(table) < 2:
        return False
    header = [cell.text.strip() for cell in table[0]]
    sections = [_column(name) for name in header]
    if not any(isinstance(section, Section) for section in sections):
        return False
    for number, row in enumerate(table[1:], start=1):
        defect = number if len(table) > 2 else 0
        order = sorted(
            range(len(row)),
            key=lambda at: (sections[at] is not Section.TITLE if at < len(sections) else True, at),
        )
        for at in order:
            if row[at].text.strip():
                name = header[at] if at < len(header) else ""
                section = _at(sections, at)
                reading.passages.append(_passage(row[at], name, section, defect, first=number == 1))
    return True


def _at(sections: list[Section | None], at: int) -> Section | None:
    return sections[at] if at < len(sections) else None


def _column(name: str) -> Section | None:
    lowered = name.casefold().strip()
    if lowered in {"summary", "title", "zusammenfassung", "titel", "subject", "betreff"}:
        return Section.TITLE
    return section_of(name.replace("_", " "))


def _passage(cell: Text, name: str, section: Section | None, defect: int, *, first: bool) -> Passage:
    if section is Section.TITLE:
        return Passage(cell, is_title=first, whole=True, kind="title", defect=defect)
    if section is Section.COMMENT:
        return Passage(cell, base=SourceType.COMMENT, attributes={"field": name}, defect=defect)
    if section is not None:
        own = None if section is Section.REPORT else section
        return Passage(cell, section=own, attributes={"section": name}, defect=defect)
    if len(cell.text.split()) > 6:
        return Passage(cell, attributes={"field": name}, defect=defect)
    return Passage(
        cell, base=SourceType.ENVIRONMENT, whole=True, kind="field", attributes={"field": name}, defect=defect
    )
