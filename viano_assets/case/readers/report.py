"""Reads a whole report: one file or an archive mixing several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from viano_assets.case.archives import is_archive_name, open_role_archive, view_name
from viano_assets.case.model import CaseSource, Origin, SourceType
from viano_assets.case.readers.defects import DefectSplitter
from viano_assets.case.readers.embedded import without_data
from viano_assets.case.readers.formats import read_format
from viano_assets.case.readers.language import language_of
from viano_assets.case.readers.model import Passage, Piece, Reading
from viano_assets.case.readers.prose import read_passage
from viano_assets.case.readers.vocabulary import Section, section_of
from viano_assets.case.redaction import Redactor
from viano_assets.case.text import decode, looks_binary, mojibake
from viano_assets.errors import InputError

MAX_REPORT_BYTES = 4 << 20
"""Largest report text that is read; logs and dumps belong into the diagnostics."""

_MAX_FILES = 200
_TEXT_SUFFIXES = frozenset(
    """.md .markdown .txt .text .rst .adoc .eml .msg .json .csv .tsv .log .html .htm .xml .yaml .yml .sql
    .diff .patch""".split()  # noqa: SIM905 - words read better than a list of strings
)

_OBSERVING = frozenset({SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT})
_OTHER_SECTIONS = frozenset(
    {Section.ASSUMPTION, Section.EXPECTED, Section.EXTERNAL, Section.STEPS, Section.ENVIRONMENT}
)
_ERROR_LEVELS = frozenset({"ERROR", "ERR", "FATAL", "CRITICAL", "SEVERE", "PANIC"})
_TELLS_ERROR = re.compile(
    r"\b(?:\w{0,60}(?:error|exception)|fail(?:s|ed|ure)?|fatal|panic|abort(?:s|ed)?|crash(?:es|ed)?|fehler\w{0,30}"
    r"|fehlgeschlagen|abgebrochen|absturz|abgestürzt)\b",
    re.IGNORECASE,
)


class ReportText(NamedTuple):
    """One text file of a report: its member name in the archive (None for a plain file) and its bytes."""

    member: str | None
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReportReading:
    """What was read: title, language, sources in order (ids from S1), notes, number of defects."""

    title: str
    language: str
    sources: tuple[CaseSource, ...]
    notes: tuple[str, ...]
    defects: int


def report_texts(path: Path, name: str, where: str, name_encoding: str | None = None) -> list[ReportText]:
    """Return the text files of a report, the one that most looks like the report itself first.

    Raises:
        InputError: `report_too_large`, and what the archive reader refuses.
    """
    if not is_archive_name(name):
        _check_size(path.stat().st_size, where)
        return [ReportText(None, name, path.read_bytes())]
    found: list[ReportText] = []
    total = 0
    with open_role_archive(path, "report", where, name_encoding) as archive:
        for entry, content in archive.members():
            suffix = PurePosixPath(entry.name).suffix.lower()
            if suffix not in _TEXT_SUFFIXES and suffix:
                continue
            if entry.size > MAX_REPORT_BYTES or (suffix == ".log" and entry.size > 1 << 16):
                continue
            data = content.read()
            total += len(data)
            _check_size(total, where)
            if not looks_binary(data[:8192]):
                found.append(ReportText(entry.name, view_name(entry.name), data))
    return sorted(found, key=_order)[:_MAX_FILES]


def _order(text: ReportText) -> tuple[int, str]:
    """The main report first, then notes and comments, then attachments."""
    stem = PurePosixPath(text.name).stem.lower()
    suffix = PurePosixPath(text.name).suffix.lower()
    if re.search(r"report|bericht|issue|bug|ticket|fehler", stem):
        rank = 0
    elif suffix in {".md", ".markdown", ".txt", ".text", ".eml", ".rst", ".json"}:
        rank = 2 if re.search(r"comment|kommentar|note|notiz|reply|antwort", stem) else 1
    else:
        rank = 3
    return rank, text.name


def _check_size(size: int, where: str) -> None:
    if size > MAX_REPORT_BYTES:
        raise InputError(
            "report_too_large",
            f"the report has {size} bytes of text, at most {MAX_REPORT_BYTES} are read",
            where=where,
            hint="put logs and dumps into --diagnostics",
        )


def check_report(path: Path, name: str, *, where: str, name_encoding: str | None = None) -> None:
    """Refuse a report that cannot be read or says nothing, before anything is written.

    Raises:
        InputError: `empty_report`, `binary_report`, `report_too_large`, or what the archive reader refuses.
    """
    texts = report_texts(path, name, where, name_encoding)
    if any(looks_binary(text.data[:8192]) for text in texts):
        raise InputError(
            "binary_report",
            "the report is not text",
            where=where,
            hint="give the report as text, JSON or CSV",
        )
    if not any(decode(text.data).text.strip("\ufeff \t\r\n\u2400") for text in texts):
        raise InputError(
            "empty_report",
            "the report holds no text",
            where=where,
            hint="name the file that holds the report",
        )


class _Typed(NamedTuple):
    passage: Passage
    piece: Piece


def read_report(
    path: Path,
    *,
    input_path: str,
    input_sha256: str,
    redactor: Redactor,
    name_encoding: str | None = None,
    comment: bool = False,
) -> ReportReading:
    """Read a report that `check_report` has let through.

    Args:
        path: the raw bytes on disk.
        input_path: their path in the package.
        input_sha256: their hash.
        redactor: applied before anything is recognised.
        name_encoding: of unmarked archive names.
        comment: the text came later, as a remark: its unmarked prose is a comment.
    """
    texts = report_texts(path, PurePosixPath(input_path).name, input_path, name_encoding)
    typed: list[_Typed] = []
    notes: list[str] = []
    title = ""
    splitter = DefectSplitter()
    for text in texts:
        reading = _read_file(text, notes, alone=len(texts) == 1)
        for passage in reading.passages:
            if comment and passage.base is SourceType.REPORT:
                passage = replace(passage, base=SourceType.COMMENT)  # noqa: PLW2901 - a later remark
            clean = passage.text.replace(redactor.replacements(passage.text.text, "prose"))
            clean = clean.replace(without_data(clean.text))
            attributes = _redacted(passage.attributes, redactor)
            passage = replace(passage, text=clean, attributes=attributes)  # noqa: PLW2901 - redacted from here on
            read = read_passage(passage, clean.text)
            notes += read.notes
            marked = splitter.mark(passage, read.pieces, read.headings)
            typed += [_Typed(passage, piece) for piece in marked]
            title = title or next((" ".join(p.text.split()) for p in read.pieces if p.kind == "title"), "")
    notes += splitter.notes()
    typed = _observed(typed)
    sources = _sources(typed, input_path, input_sha256, notes)
    title = title or _title(typed)
    prose = " ".join(item.piece.text for item in typed if item.piece.kind is None)
    return ReportReading(
        title[:300], language_of(prose), sources, tuple(dict.fromkeys(notes)), splitter.count
    )


def _redacted(attributes: dict[str, str], redactor: Redactor) -> dict[str, str]:
    """Redact what a format knows of a passage; an author is an account."""
    return {
        key: redactor.placeholder("ACCOUNT", value)
        if key == "author" and value
        else redactor.redact(value, "prose")
        for key, value in attributes.items()
    }


def _read_file(text: ReportText, notes: list[str], *, alone: bool) -> Reading:
    decoded = decode(text.data)
    shown = text.member or text.name
    if decoded.encoding not in {"utf-8", "utf-8-sig"}:
        notes.append(f"encoding: {shown} was read as {decoded.encoding}")
    if decoded.damaged_lines:
        listed = ", ".join(str(line) for line in decoded.damaged_lines[:10])
        notes.append(f"encoding: {shown} has lines that are not UTF-8, read as cp1252: {listed}")
    reading = read_format(text.name, decoded, alone=alone)
    notes += reading.notes
    if text.member is not None:
        reading.passages = [replace(passage, member=text.member) for passage in reading.passages]
    return reading


def _sources(
    typed: list[_Typed], input_path: str, input_sha256: str, notes: list[str]
) -> tuple[CaseSource, ...]:
    """Give ids in order; of equal mentions only the first is kept, with their number."""
    result: list[CaseSource] = []
    first: dict[tuple[str, str, str], int] = {}
    for passage, piece in typed:
        attributes = {k: v for k, v in piece.attributes.items() if v}
        if attributes.pop("mention", None) is not None:
            key = (piece.type.value, piece.kind or "", piece.text)
            if key in first:
                known = result[first[key]]
                count = int(known.attributes.get("count", "1")) + 1
                result[first[key]] = known.model_copy(
                    update={"attributes": {**known.attributes, "count": str(count)}}
                )
                continue
            first[key] = len(result)
        span = passage.text.span(piece.start, piece.end)
        repaired = mojibake(piece.text)
        if repaired is not None:
            attributes["mojibake"] = repaired
            notes.append(f"mojibake: a text near line {span.line_start} is encoded twice")
        origin = Origin(
            input_path=input_path,
            input_sha256=input_sha256,
            member=passage.member,
            line_start=span.line_start,
            line_end=span.line_end,
            byte_start=span.byte_start,
            byte_end=span.byte_end,
        )
        result.append(
            CaseSource(
                id=f"S{len(result) + 1}",
                type=piece.type,
                text=piece.text,
                origin=origin,
                kind=piece.kind,
                attributes=dict(sorted(attributes.items())),
            )
        )
    return tuple(result)


def _observed(typed: list[_Typed]) -> list[_Typed]:
    """Of a report without a word of a person, the failure that the program itself printed is what was seen.

    The first kind that stands there counts: error lines, log lines that tell of an error, where a trace
    stopped, program output. What stands under an assumption stays one.
    """
    own = [item.piece for item in typed if "mention" not in item.piece.attributes]
    if any(piece.type in _OBSERVING for piece in own):
        return typed
    for tells in _PRINTED_FAILURES:
        seen = {id(piece) for piece in own if _unclaimed(piece) and tells(piece)}
        if seen:
            return [
                item._replace(piece=replace(item.piece, type=SourceType.OBSERVATION))
                if id(item.piece) in seen
                else item
                for item in typed
            ]
    return typed


def _unclaimed(piece: Piece) -> bool:
    """True for a fact that no heading puts among guesses, expectations, steps or the environment."""
    section = section_of(piece.attributes.get("section", "").replace("_", " "))
    return piece.type is SourceType.TECHNICAL_FACT and section not in _OTHER_SECTIONS


def _logs_an_error(piece: Piece) -> bool:
    level = piece.attributes.get("level", "").upper()
    told = piece.kind == "log_line" and _TELLS_ERROR.search(piece.attributes.get("message", "")) is not None
    return level in _ERROR_LEVELS or (not level and told)


_PRINTED_FAILURES: tuple[Callable[[Piece], bool], ...] = (
    lambda piece: piece.kind == "error",
    _logs_an_error,
    lambda piece: piece.kind == "stack_frame" and piece.attributes.get("depth") == "0",
    lambda piece: piece.kind == "output",
)


def _title(typed: list[_Typed]) -> str:
    """Take the first heading or sentence when the format names no title."""
    for item in _prose_first(typed):
        line = " ".join(item.piece.text.split())
        printed = item.piece.kind in {"error", "log_line"}
        sentence = line if printed else re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0]
        return sentence if len(sentence) <= 140 else sentence[:137].rstrip() + "…"
    return ""


def _prose_first(typed: list[_Typed]) -> Iterator[_Typed]:
    yield from (item for item in typed if item.piece.kind == "heading")
    yield from (item for item in typed if item.piece.type in _OBSERVING and item.piece.kind is None)
    yield from (item for item in typed if item.piece.type in _OBSERVING)
    yield from typed
