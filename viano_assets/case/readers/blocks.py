"""Cuts a passage into blocks: headings, labels, fenced code, lists, tables, quotes and paragraphs.

One reading for Markdown, Jira markup and plain text, because people mix them. Blocks are slices of the
text; nothing is rewritten, and every nonblank line belongs to exactly one block.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from viano_assets.case.readers.technical import is_trace_head
from viano_assets.case.readers.vocabulary import Section, is_placeholder, section_of

PSEUDO_LEVEL = 7
"""Level of a heading that is only a bold line or a word with a colon."""


class BlockKind(StrEnum):
    """What a block is."""

    HEADING = "heading"
    CODE = "code"
    ITEM = "item"
    PARAGRAPH = "paragraph"
    TABLE = "table"
    QUOTE = "quote"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its half-open slice of the text, without the line end."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A run of lines.

    `start` and `end` slice the content: of a heading its words, of fenced code what stands between the
    fences, of a labelled paragraph what follows the label. `section` is set for headings and labels that
    name one; `level` is a heading's depth; `ordinal` an ordered item's number; `indent` an item's column.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    section: Section | None = None
    title: str = ""
    language: str = ""
    ordinal: str = ""
    indent: int = 0
    lines: tuple[Line, ...] = field(default=(), repr=False)


_ATX = re.compile(r"\s{0,3}(#{1,6})\s++((?:[^\s#]++|[\s#]++(?=[^\s#]))*+)[\s#]*$")
_JIRA = re.compile(r"\s{0,3}h([1-6])\.\s++(\S++(?:\s++\S++)*+)\s*$")
_WIKI = re.compile(r"\s{0,3}(={2,5})\s*+([^=\s][^\n]{0,200}?)\s*\1\s*$")
_PANEL = re.compile(r"\s*\{panel(?::title=([^}|]++)[^}]*+)?\}\s*$")
_BOLD = re.compile(
    r"\s{0,3}(\*\*|__|\*|_)(?=\S)([^*_\n]{1,100}?)(?<=\S)\1\s*:?\s*$|\s{0,3}(\*\*|__)([^*\n]{1,100}?):\3\s*$"
)
_HTML_HEADING = re.compile(
    r"\s*<(h[1-6]|b|strong|summary)>\s*+([^<\s][^<]{0,99}?)\s*</\1>\s*:?\s*$", re.IGNORECASE
)
_BRACKETED = re.compile(r"\s{0,3}\[([^\]\n]{2,60})\]\s*:?\s*$")
_SETEXT = re.compile(r"\s{0,3}(=+|-{3,}|~{3,})\s*$")
_LABEL = re.compile(
    r"\s{0,3}(?:[-*•+]\s+)?(?:\*\*|__|\*|_)?(?P<label>[A-Za-zÄÖÜäöüß][^:*_`\n]{1,60}?)"
    r"(?:(?:\*\*|__|\*|_)\s*:|:\s*(?:\*\*|__|\*|_)|:)\s*(?P<rest>.*)$"
)
_ITEM = re.compile(r"(\s*)(?:([-*+•‣])|(\d{1,3})[.)]|\((\d{1,3}|[a-z])\)|([a-z])\))\s+(?=\S)|(\s*)#\s+(?=\S)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*+)[^`]*$")
_JIRA_FENCE = re.compile(r"\s*\{(code|noformat)(?::([^}|]*+))?[^}]*+\}\s*$")
_HTML_FENCE = re.compile(r"\s*<(pre|code)>\s*(?:<code>)?\s*$", re.IGNORECASE)
_RULE = re.compile(r"\s{0,3}(?:[-*_=]\s*){3,}$|\s*</?(?:details|div|p|br|hr)\b[^>]*>\s*$", re.IGNORECASE)
_TABLE = re.compile(r"\s*\|.*\|\s*$|\s*\|\|.*")
_QUOTE = re.compile(r"\s{0,3}>")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_HEADINGS = (_ATX, _JIRA, _WIKI)
_BLOCK_START = (_ATX, _JIRA, _WIKI, _PANEL, _FENCE, _JIRA_FENCE, _HTML_FENCE, _TABLE, _QUOTE)


def lines_of(text: str) -> list[Line]:
    """Return the lines of `text`."""
    result: list[Line] = []
    at = 0
    for line in text.split("\n"):
        result.append(Line(at, at + len(line), line))
        at += len(line) + 1
    return result


def blocks(text: str) -> list[Block]:
    """Cut `text` into blocks."""
    return list(_Cutter(text).run())


class _Cutter:
    def __init__(self, text: str) -> None:
        self._lines = lines_of(text)
        self._at = 0
        # In Jira markup `#` numbers an item; in Markdown it is a heading.
        jira = any(_JIRA.match(line.text) for line in self._lines)
        mixed = any(line.text.startswith("##") for line in self._lines)
        headings = (_JIRA, _WIKI) if jira and not mixed else _HEADINGS
        self._headings = headings
        self._starts = tuple(
            pattern for pattern in _BLOCK_START if pattern in headings or pattern not in _HEADINGS
        )

    def run(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.text.strip() or _RULE.match(line.text):
                if line.text.strip().startswith("<!--"):
                    yield self._comment()
                self._at += 1
                continue
            yield self._block(line)

    def _block(self, line: Line) -> Block:
        if line.text.lstrip().startswith("<!--"):
            return self._comment()
        for make in (
            self._fence,
            self._heading,
            self._label,
            self._table,
            self._quote,
            self._item,
            self._indented,
        ):
            block = make(line)
            if block is not None:
                return block
        return self._paragraph(line)

    def _take(self, count: int) -> tuple[Line, ...]:
        taken = tuple(self._lines[self._at : self._at + count])
        self._at += count
        return taken

    def _comment(self) -> Block:
        first = self._at
        while self._at < len(self._lines) and "-->" not in self._lines[self._at].text:
            self._at += 1
        last = min(self._at, len(self._lines) - 1)
        self._at = last + 1
        return self._run(BlockKind.TEMPLATE, self._lines[first : last + 1])

    @staticmethod
    def _run(kind: BlockKind, lines: list[Line] | tuple[Line, ...], **more: object) -> Block:
        start = lines[0].start + (
            len(lines[0].text) - len(lines[0].text.lstrip()) if kind != BlockKind.CODE else 0
        )
        return Block(kind, start, lines[-1].end, lines=tuple(lines), **more)  # type: ignore[arg-type]

    def _fence(self, line: Line) -> Block | None:
        match = _FENCE.match(line.text) or _JIRA_FENCE.match(line.text) or _HTML_FENCE.match(line.text)
        if match is None:
            return None
        if match.re is _FENCE:
            mark, language = match[1], match[2]
            closing = re.compile(rf"\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        elif match.re is _JIRA_FENCE:
            closing, language = re.compile(rf"\s*\{{{match[1]}\}}\s*$"), (match[2] or "")
        else:
            closing, language = re.compile(rf"\s*(?:</code>)?\s*</{match[1]}>\s*$", re.IGNORECASE), ""
        end = self._at + 1
        while end < len(self._lines) and not closing.match(self._lines[end].text):
            end += 1
        body = self._lines[self._at + 1 : end]
        self._at = end + 1
        while body and not body[0].text.strip():
            body = body[1:]
        while body and not body[-1].text.strip():
            body = body[:-1]
        if not body:
            return Block(BlockKind.CODE, line.end, line.end, language=language.lower())
        return self._run(BlockKind.CODE, body, language=language.lower())

    def _heading(self, line: Line) -> Block | None:
        for make in (self._marked_heading, self._underlined, self._named_line):
            block = make(line)
            if block is not None:
                return block
        return None

    def _marked_heading(self, line: Line) -> Block | None:
        for pattern in self._headings:
            match = pattern.match(line.text)
            if match is not None and match[2].strip():
                return self._headed(
                    line, match.span(2), int(match[1]) if pattern is _JIRA else len(match[1]), 1
                )
        if (match := _PANEL.match(line.text)) is not None:
            return self._headed(line, match.span(1) if match[1] else (0, 0), PSEUDO_LEVEL, 1)
        if (match := _BOLD.match(line.text)) is not None and not is_placeholder(line.text):
            return self._headed(line, match.span(2 if match[2] else 4), PSEUDO_LEVEL, 1)
        return None

    def _underlined(self, line: Line) -> Block | None:
        following = self._lines[self._at + 1].text if self._at + 1 < len(self._lines) else ""
        under = _SETEXT.match(following)
        if under is None or len(line.text.strip()) > 100 or _ITEM.match(line.text) or not self._opens():
            return None
        return self._headed(line, _stripped(line.text), 1 if under[1][0] == "=" else 2, 2)

    def _named_line(self, line: Line) -> Block | None:
        """A line that is a heading only because its words name a section."""
        for pattern, group in ((_HTML_HEADING, 2), (_BRACKETED, 1)):
            match = pattern.match(line.text)
            if match is not None and section_of(match[group]) is not None:
                return self._headed(line, match.span(group), PSEUDO_LEVEL, 1)
        words = line.text.strip()
        if (
            is_trace_head(line.text)
            or len(words) > 60
            or not words[:1].isalpha()
            or words[-1:] in ".,;!"
            or not self._opens()
        ):
            return None
        bare = words.rstrip(":").strip()
        if section_of(bare) is None or not (words.endswith(":") or (bare[:1].isupper() and len(bare) > 2)):
            return None
        return self._headed(line, _stripped(line.text.rstrip().rstrip(":")), PSEUDO_LEVEL, 1)

    def _opens(self) -> bool:
        """True at the start of the text, or after a blank line, a heading or a rule."""
        if self._at == 0:
            return True
        before = self._lines[self._at - 1].text
        return not before.strip() or bool(_RULE.match(before) or _ATX.match(before) or _SETEXT.match(before))

    def _headed(self, line: Line, span: tuple[int, int], level: int, count: int) -> Block:
        self._take(count)
        title = line.text[span[0] : span[1]].strip().strip("*_").strip().rstrip(":").strip()
        return Block(
            BlockKind.HEADING, line.start + span[0], line.start + span[1], level=level, section=section_of(title),
            title=title, lines=(line,),
        )  # fmt: skip

    def _label(self, line: Line) -> Block | None:
        match = _LABEL.match(line.text)
        if match is None or is_trace_head(line.text) or len(match["label"].split()) > 6:
            return None
        section = section_of(match["label"])
        if section is None or (section is Section.TECHNICAL and not match["label"][:1].isupper()):
            return None
        rest = match["rest"].strip()
        if not rest:
            return self._headed(line, match.span("label"), PSEUDO_LEVEL, 1)
        first = Line(line.start + match.start("rest"), line.end, match["rest"])
        indent = len(line.text) - len(line.text.lstrip())
        self._at += 1
        lines = [first, *self._continuation(indent, item=line.text.lstrip()[:1] in "-*•+")]
        return self._run(BlockKind.PARAGRAPH, lines, section=section, title=match["label"].strip())

    def _table(self, line: Line) -> Block | None:
        if not _TABLE.match(line.text):
            return None
        end = self._at
        while end < len(self._lines) and _TABLE.match(self._lines[end].text):
            end += 1
        return self._run(BlockKind.TABLE, self._take(end - self._at))

    def _quote(self, line: Line) -> Block | None:
        if not _QUOTE.match(line.text):
            return None
        end = self._at
        while end < len(self._lines) and _QUOTE.match(self._lines[end].text):
            end += 1
        return self._run(BlockKind.QUOTE, self._take(end - self._at))

    def _item(self, line: Line) -> Block | None:
        match = _ITEM.match(line.text)
        if match is None:
            return None
        indent = len((match[1] or match[6] or "").expandtabs(4))
        ordinal = match[3] or match[4] or match[5] or ("#" if match[6] is not None else "")
        self._at += 1
        first = Line(line.start + match.end(), line.end, line.text[match.end() :])
        lines = [first, *self._continuation(indent, item=True)]
        return self._run(BlockKind.ITEM, lines, ordinal=ordinal, indent=indent)

    def _continuation(self, indent: int, *, item: bool) -> list[Line]:
        """Take the lines that go on with a paragraph or an item."""
        taken: list[Line] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            text = line.text
            if not text.strip() or any(pattern.match(text) for pattern in self._starts):
                break
            if (
                text.lstrip().startswith("<!--")
                or _ITEM.match(text)
                or _BOLD.match(text)
                or self._is_label(text)
            ):
                break
            if item and len(text) - len(text.lstrip()) <= indent and taken and not taken[-1].text.strip():
                break
            taken.append(line)
            self._at += 1
        return taken

    @staticmethod
    def _is_label(text: str) -> bool:
        match = _LABEL.match(text)
        return match is not None and text[:1] != " " and section_of(match["label"]) is not None

    def _indented(self, line: Line) -> Block | None:
        if not _INDENTED.match(line.text) or not self._opens():
            return None
        end = self._at
        last = self._at
        while end < len(self._lines) and (
            not self._lines[end].text.strip() or _INDENTED.match(self._lines[end].text)
        ):
            if self._lines[end].text.strip():
                last = end
            end += 1
        return self._run(BlockKind.CODE, self._take(last + 1 - self._at))

    def _paragraph(self, line: Line) -> Block:
        self._at += 1
        return self._run(BlockKind.PARAGRAPH, [line, *self._continuation(0, item=False)])


def _stripped(text: str) -> tuple[int, int]:
    left = len(text) - len(text.lstrip())
    return left, max(left, len(text.rstrip()))
