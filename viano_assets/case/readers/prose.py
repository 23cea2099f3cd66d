"""Reads one passage: blocks become typed sources.

The section decides the type of unmarked prose; the words decide what is a guess, wherever it stands; the
form decides what is a stack frame, a log line, a command. Nothing nonblank is lost: what no rule
recognises is prose of its section.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from viano_assets.case.model import SourceType
from viano_assets.case.readers.blocks import Block, BlockKind, blocks, lines_of
from viano_assets.case.readers.frames import with_depths
from viano_assets.case.readers.hedges import classify, is_fix, is_guess, sentences
from viano_assets.case.readers.instructions import is_instruction_like
from viano_assets.case.readers.mentions import IMPLEMENTATION_KINDS, classify_code, mentions
from viano_assets.case.readers.model import Passage, Piece
from viano_assets.case.readers.technical import command_of, is_patch, is_sql, looks_like_command, technical
from viano_assets.case.readers.vocabulary import Section, is_placeholder

_TYPES: dict[Section, SourceType] = {
    Section.OBSERVED: SourceType.OBSERVATION,
    Section.STAGE: SourceType.OBSERVATION,
    Section.EXPECTED: SourceType.EXPECTATION,
    Section.EXTERNAL: SourceType.EXTERNAL_EXPECTATION,
    Section.STEPS: SourceType.REPRODUCTION_STEP,
    Section.ENVIRONMENT: SourceType.ENVIRONMENT,
    Section.ASSUMPTION: SourceType.TESTER_ASSUMPTION,
    Section.TECHNICAL: SourceType.OBSERVATION,
    Section.COMMENT: SourceType.COMMENT,
    Section.REPORT: SourceType.REPORT,
    Section.TITLE: SourceType.REPORT,
}
_EXPECTATION = re.compile(
    r"\b(?:i|we|one)\s+(?:would\s+|['’]d\s+)?(?:have\s+)?expect(?:ed|s)?\b|\bexpected\s+(?:behaviou?r|result|that|is|was|to)\b"
    r"|\b(?<!\byou )(?<!\bi )(?<!\bwe )(?<!\bone )(?<!body )(?:should|ought\s+to)\s+\w+|\b(?:is|are)\s+supposed\s+to\b"
    r"|\b(?:erwarte(?:t|n)?|erwartet\s+(?:wird|habe|hätte))\b|\bhätte\b[^.\n]{0,60}\berwartet\b"
    r"|\b(?:sollte|müsste|soll)(?:n)?\b(?!\s+(?:man|ich|wir|jemand))[^.\n]{0,120}\b(?:werden|sein|haben|bleiben|kommen|erscheinen|stehen"
    r"|anzeigen|liefern|geben|starten|gehen|passieren|funktionieren|laufen)\b",
    re.IGNORECASE,
)
_EXTERNAL = re.compile(
    r"\b(?:the\s+)?(?:original|official|retail|reference)\s+(?:game|server|client|program|tool|implementation|version|behaviou?r)\b"
    r"|\b(?:documentation|docs|manual|help\s+text|specification|spec|standard|rfc|readme|guide)\b[^.\n]{0,40}"
    r"\b(?:says?|said|states?|promises?|describes?|specif(?:y|ies)|requires?|demands?|defines?)\b|\baccording\s+to\s+the\b"
    r"|\banother\s+(?:\w+\s+)?(?:tool|checker|client|implementation|program|library|browser|compiler|database|parser|server)\b"
    r"|\bim\s+original\b|\boffiziell\w*\b|\blaut\s+(?:der\s+|dem\s+)?(?:doku|handbuch|spezifikation|anleitung|hilfe|norm|rfc)\w*\b"
    r"|\b(?:dokumentation|handbuch|spezifikation|hilfetext)\b[^.\n]{0,40}\b(?:sagt|verspricht|beschreibt|verlangt|steht)\b",
    re.IGNORECASE,
)
_ENVIRONMENT_LINE = re.compile(
    r"\s*(?:os|operating system|betriebssystem|version|versions?|build|commit|revision|core|client|server|platform|plattform"
    r"|python|java|node|compiler|database|datenbank|browser|patch)\b[^.\n]{0,30}[:=]\s*\S",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _State:
    """Where in the passage's sections the reader stands."""

    section: Section | None
    level: int = 0
    title: str = ""
    place: tuple[int, int] = (0, 0)
    used: bool = True
    offers_fix: bool = False


_CODE_TYPES: dict[Section | None, SourceType] = {
    Section.EXPECTED: SourceType.EXPECTATION,
    Section.EXTERNAL: SourceType.EXTERNAL_EXPECTATION,
    Section.STEPS: SourceType.REPRODUCTION_STEP,
    Section.ENVIRONMENT: SourceType.ENVIRONMENT,
}


class PassageReading(NamedTuple):
    """The pieces of a passage in order, the headings between them, and notes for people."""

    pieces: list[Piece]
    headings: list[Block]
    notes: list[str]


def read_passage(passage: Passage, text: str) -> PassageReading:
    """Read a passage; `text` is its redacted text."""
    reader = _Reader(passage, text)
    if passage.whole:
        return PassageReading(reader.whole(), [], [])
    return PassageReading(with_depths(reader.run(), text), reader.headings, reader.notes)


def _piece(
    kind_of: SourceType, text: str, start: int, end: int, kind: str | None, attributes: dict[str, str]
) -> Piece:
    while start < end and text[start].isspace() and text[start] != " ":
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Piece(kind_of, text[start:end], start, end, kind, attributes)


class _Reader:
    def __init__(self, passage: Passage, text: str) -> None:
        self._passage = passage
        self._text = text
        self._state = _State(passage.section)
        self._trace = self._order = self._step = 0
        self.notes: list[str] = []
        self.headings: list[Block] = []
        self._pieces: list[Piece] = []

    def whole(self) -> list[Piece]:
        """Return one source, and of a title also what it names."""
        kind_of = self._passage.base
        if self._passage.is_title and is_guess(self._text):
            kind_of = SourceType.TESTER_ASSUMPTION
        self._add(kind_of, 0, len(self._text), self._passage.kind)
        if self._passage.is_title:
            self._mentions(0, len(self._text), kind_of)
        return self._pieces

    def run(self) -> list[Piece]:
        for block in blocks(self._text):
            if block.kind is BlockKind.HEADING:
                self._heading(block)
                continue
            if block.kind is BlockKind.TEMPLATE or is_placeholder(self._text[block.start : block.end]):
                self._add(SourceType.TECHNICAL_FACT, block.start, block.end, "template")
                continue
            self._state.used = True
            if block.kind is BlockKind.CODE:
                self._code(block)
            elif block.kind is BlockKind.TABLE:
                self._add(self._type(block), block.start, block.end, "table")
                self._mentions(block.start, block.end, self._type(block))
            elif block.kind is BlockKind.QUOTE:
                self._quote(block)
            else:
                self._lines(block)
        self._close()
        return self._pieces

    def _heading(self, block: Block) -> None:
        state = self._state
        if block.level <= state.level or not state.level:
            self._close()
        elif not state.used and state.section is not None:
            self._add(SourceType.REPORT, *state.place, "heading")
        self._trace_ends()
        self.headings.append(block)
        if block.section is None and block.level > state.level and state.section is not None and state.level:
            self._add(self._type(block), block.start, block.end, "heading")
            return
        self._state = _State(
            block.section or self._passage.section,
            block.level,
            block.title,
            (block.start, block.end),
            used=False,
        )
        if block.section is None and block.title:
            self._state.used = True
            self._prose(block.start, block.end, SourceType.REPORT, "heading")

    def _close(self) -> None:
        if not self._state.used and self._state.title:
            self.notes.append(f"empty_section: {self._state.title!r} has no text")

    def _section(self, block: Block | None = None) -> Section | None:
        return block.section if block is not None and block.section is not None else self._state.section

    def _type(self, block: Block | None = None) -> SourceType:
        section = self._section(block)
        if section is None or (section is Section.REPORT and self._passage.base is SourceType.COMMENT):
            return self._passage.base
        return _TYPES[section]

    def _add(self, kind_of: SourceType, start: int, end: int, kind: str | None = None, **more: str) -> None:
        piece = _piece(kind_of, self._text, start, end, kind, {**self._passage.attributes, **more})
        if not piece.text:
            return
        if self._state.title:
            piece.attributes["section"] = self._state.title
        self._pieces.append(piece)

    def _quote(self, block: Block) -> None:
        """A quoted earlier message: the prose of the one who quotes stands around it."""
        plain = re.sub(r"^\s{0,3}(?:>\s?)+", "", self._text[block.start : block.end], flags=re.MULTILINE)
        kind_of = SourceType.TESTER_ASSUMPTION if is_guess(plain) else self._type(block)
        self._add(kind_of, block.start, block.end, "quote")
        self._mentions(block.start, block.end, kind_of)

    # Code

    def _code(self, block: Block) -> None:
        body = self._text[block.start : block.end]
        if not body.strip():
            return
        section = self._section(block)
        more = {"language": block.language} if block.language else {}
        if self._step:
            more["step"] = str(self._step)
        if is_patch(body) or block.language in {"diff", "patch"}:
            self._add(SourceType.TESTER_ASSUMPTION, block.start, block.end, "patch", **more)
            return
        assumed = section is Section.ASSUMPTION or self._state.offers_fix
        self._state.offers_fix = False
        kind_of = (
            SourceType.TESTER_ASSUMPTION if assumed else _CODE_TYPES.get(section, SourceType.TECHNICAL_FACT)
        )
        for start, end, found in self._runs(block.start, block.end, block.language):
            if found is None:
                kind = _code_kind(self._text[start:end], block.language)
                if kind == "code_block" and kind_of is SourceType.TECHNICAL_FACT and not block.language:
                    kind = "output"
                self._add(kind_of, start, end, kind, **more)
            else:
                self._technical(start, end, *found)

    def _runs(
        self, start: int, end: int, language: str = ""
    ) -> Iterator[tuple[int, int, tuple[str, dict[str, str]] | None]]:
        """Cut a slice into technical runs and the rest."""
        lines = lines_of(self._text[start:end])
        texts = [line.text for line in lines]
        at = rest = 0
        program = language in {
            "python",
            "py",
            "cpp",
            "c++",
            "c",
            "java",
            "js",
            "javascript",
            "go",
            "rust",
            "csharp",
            "sql",
            "rst",
        }
        while at < len(lines):
            found = None if program else technical(texts, at)
            if found is None:
                at += 1
                continue
            if rest < at:
                yield start + lines[rest].start, start + lines[at - 1].end, None
            last = at + found.lines - 1
            yield start + lines[at].start, start + lines[last].end, (found.kind, found.attributes)
            at = rest = last + 1
        if rest < len(lines):
            yield start + lines[rest].start, start + lines[-1].end, None

    def _technical(self, start: int, end: int, kind: str, attributes: dict[str, str]) -> None:
        if kind == "trace_head":
            self._trace_ends()
            self._add(SourceType.TECHNICAL_FACT, start, end, "trace_head")
            return
        more = dict(attributes)
        if kind == "stack_frame":
            self._order += 1
            if self._order == 1:
                self._trace += 1
            more |= {"trace": str(self._trace), "order": str(self._order)}
        self._add(SourceType.TECHNICAL_FACT, start, end, kind, **more)
        if kind == "error":
            self._trace_ends()

    def _trace_ends(self) -> None:
        self._order = 0

    # Prose

    def _lines(self, block: Block) -> None:
        """A paragraph or list item, from which technical lines are taken out."""
        kind_of = self._type(block)
        section = self._section(block)
        ordered = bool(block.ordinal)
        if ordered and section is None and self._passage.base is SourceType.REPORT:
            kind_of = SourceType.REPRODUCTION_STEP
        steps = kind_of is SourceType.REPRODUCTION_STEP
        if block.kind is BlockKind.ITEM and steps and not block.indent:
            self._step += 1
        elif block.kind is BlockKind.PARAGRAPH:
            self._step = 0
        for start, end, found in self._item_runs(block):
            if found is not None:
                self._technical(start, end, *found)
            elif block.kind is BlockKind.ITEM and steps:
                self._prose(start, end, kind_of, None, step=str(self._step) if self._step else "")
            else:
                self._prose(start, end, kind_of, "title" if section is Section.TITLE else None)

    def _item_runs(self, block: Block) -> Iterator[tuple[int, int, tuple[str, dict[str, str]] | None]]:
        """As `_runs`; a list item is looked at with its bullet, which some frame forms need."""
        if block.kind is BlockKind.ITEM and len(block.lines) == 1:
            found = technical([f"- {self._text[block.start : block.end]}"], 0)
            if found is not None:
                yield block.start, block.end, (found.kind, found.attributes)
                return
            yield block.start, block.end, None
            return
        yield from self._runs(block.start, block.end)

    def _prose(self, start: int, end: int, kind_of: SourceType, kind: str | None, **more: str) -> None:
        body = self._text[start:end]
        self._state.offers_fix = is_fix(body) and body.rstrip().endswith((":", "…"))
        if is_instruction_like(body):
            self._instructions(start, end, kind_of, kind, more)
            return
        whole = self._code_only(body)
        if whole is not None and kind_of in {SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT}:
            first, last, name, found = whole
            found_type = (
                SourceType.IMPLEMENTATION_REFERENCE
                if name in IMPLEMENTATION_KINDS
                else SourceType.TECHNICAL_FACT
            )
            self._add(found_type, start + first, start + last, name, **found, **more)
            return
        if kind_of is SourceType.ENVIRONMENT and not is_guess(body):
            self._add(kind_of, start, end, kind, **more)
            self._mentions(start, end, kind_of)
            return
        for first, last, sentence_type in self._typed(body, kind_of):
            self._add(
                sentence_type, start + first, start + last, kind, **{k: v for k, v in more.items() if v}
            )
            self._mentions(start + first, start + last, sentence_type)

    def _instructions(
        self, start: int, end: int, kind_of: SourceType, kind: str | None, more: dict[str, str]
    ) -> None:
        """Keep what tries to steer a reader apart from what is reported (data, never an instruction)."""
        line = self._passage.text.line_at(self._passage.text.starts[0]) + self._text.count("\n", 0, start)
        self.notes.append(
            f"instruction_like: text near line {line} addresses a reader program; kept as data only"
        )
        for first, last in sentences(self._text[start:end]):
            if is_instruction_like(self._text[start + first : start + last]):
                self._add(SourceType.TECHNICAL_FACT, start + first, start + last, "instruction_like", **more)
            else:
                self._add(kind_of, start + first, start + last, kind, **more)

    @staticmethod
    def _code_only(body: str) -> tuple[int, int, str, dict[str, str]] | None:
        """A paragraph that is nothing but one code mark: program output, an error, a command."""
        match = re.fullmatch(r"\s*(`{1,2})(?!`)([^`\n]+)\1\s*(?:[.,:;]\s*)?", body)
        if match is None:
            return None
        return (*match.span(2), *classify_code(match[2]))

    def _typed(self, body: str, kind_of: SourceType) -> list[tuple[int, int, SourceType]]:
        """Type each sentence and join neighbours of one type."""
        expectation = kind_of in {SourceType.EXPECTATION, SourceType.EXTERNAL_EXPECTATION}
        joined: list[tuple[int, int, SourceType]] = []
        for sentence in classify(body, expectation=expectation):
            found = self._sentence_type(body[sentence.start : sentence.end], kind_of, guess=sentence.guess)
            if joined and joined[-1][2] is found:
                joined[-1] = (joined[-1][0], sentence.end, found)
            else:
                joined.append((sentence.start, sentence.end, found))
        if not joined and body.strip():
            joined.append((0, len(body), kind_of))
        return joined

    def _sentence_type(self, sentence: str, kind_of: SourceType, *, guess: bool) -> SourceType:
        if guess:
            return SourceType.TESTER_ASSUMPTION
        if kind_of is SourceType.EXPECTATION and _EXTERNAL.search(sentence):
            return SourceType.EXTERNAL_EXPECTATION
        unsectioned = kind_of is SourceType.REPORT and self._state.section in {None, Section.REPORT}
        if unsectioned and _EXPECTATION.search(sentence):
            return SourceType.EXTERNAL_EXPECTATION if _EXTERNAL.search(sentence) else SourceType.EXPECTATION
        if unsectioned and _ENVIRONMENT_LINE.match(sentence):
            return SourceType.ENVIRONMENT
        return kind_of

    def _mentions(self, start: int, end: int, context: SourceType) -> None:
        assumed = context is SourceType.TESTER_ASSUMPTION
        listed = context is SourceType.ENVIRONMENT
        for mention in mentions(self._text[start:end], environment=listed):
            more = dict(mention.attributes)
            if mention.kind in IMPLEMENTATION_KINDS:
                found = SourceType.IMPLEMENTATION_REFERENCE
            elif assumed:
                found = SourceType.TESTER_ASSUMPTION
            elif context in {SourceType.ENVIRONMENT, SourceType.EXPECTATION, SourceType.EXTERNAL_EXPECTATION}:
                found = context
            else:
                found = SourceType.TECHNICAL_FACT
            if assumed:
                more["assumed"] = "true"
            self._add(found, start + mention.start, start + mention.end, mention.kind, mention="true", **more)


def _code_kind(body: str, language: str) -> str:
    first = body.lstrip().split("\n", 1)[0]
    if language == "sql" or is_sql(body):
        return "sql"
    if (
        language in {"console", "shell", "sh", "bash", "powershell", "cmd", "bat"}
        or command_of(first) is not None
    ):
        return "command"
    if not language and "\n" not in body.strip() and looks_like_command(first):
        return "command"
    return "code_block"
