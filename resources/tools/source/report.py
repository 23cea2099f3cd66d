"""Takes a bug report apart: frames, code blocks, code spans, messages, identifiers, words by weight.

Nothing here knows a project; the shapes are those of tracebacks, Markdown and error texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from resources.tools.source.languages import CODE, language_of
from resources.tools.source.text import WORD, without_pseudonyms


class Frame(NamedTuple):
    """One stack frame as it was written; `line` is 0 when there is none."""

    path: str
    line: int
    function: str


@dataclass
class Report:
    """What a report offers for localisation."""

    title: str = ""
    prose: list[tuple[str, float]] = field(default_factory=list)
    """Paragraphs with their weight."""
    blocks: list[str] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    """Outermost first."""
    errors: list[str] = field(default_factory=list)
    """Texts of exceptions."""
    messages: list[str] = field(default_factory=list)
    """Other texts that a program may have written."""
    paths: list[str] = field(default_factory=list)


_FENCE = re.compile(r"^(`{3,12}|~{3,12})[^\n]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)``(?!`)([^`\n]{1,400})``(?!`)|`([^`\n]{1,400})`")
_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*|\*\*|__)?\s*([A-Za-zÄÖÜäöüß][\wÄÖÜäöüß /-]{1,40}?)\s*:?\s*(?:\*\*|__)?\s*:?\s*$"
)
_SECTION_WEIGHT = (
    (re.compile(r"environment|umgebung|version|system|setup|platform|plattform", re.IGNORECASE), 0.1),
    (re.compile(r"expect|erwart|soll", re.IGNORECASE), 0.7),
    (re.compile(r"steps|schritte|reprodu", re.IGNORECASE), 0.6),
    (re.compile(r"observ|actual|beobacht|ist\b|problem|descri|beschreib|fehler|error", re.IGNORECASE), 1.0),
)
_PY_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in ([^\s]+))?')
_JAVA_FRAME = re.compile(r"\bat ([\w.$<>]+)\(([\w$]+\.\w+):(\d+)\)")
_GDB_FRAME = re.compile(r"#\d+\s+(?:0x[0-9a-f]+ in )?([\w:~<>]+)\s*\(.*?\)\s+at ([\w./\\-]+):(\d+)")
_PLACE = re.compile(
    r"(?<![\w/])((?:[A-Za-z]:)?[\w.@+\\/-]{0,200}\w\.(?:[A-Za-z]{1,4}\+{0,2}))(?::(\d+))?(?![\w/])"
)
_AFTER = re.compile(r"^[`'\"]?(?::\d+)?[`'\"]?,?\s*(?:in\s+)?[`'\"]?([A-Za-z_~][\w:.<>~]*)[`'\"(]?")
_ERROR = re.compile(
    r"\b((?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Warning|Exit|Interrupt|Failure))\b[^:\n`]{0,12}:\s*([^\n`]+)"
)
_QUOTED = re.compile(r"[\"“„»]([^\"“”„«»\n]{6,200})[\"”“«»]|(?<!\w)'([^'\n]{8,200})'(?!\w)")


_THREAD = re.compile(
    r"""(\b(?:exception in )?thread) ["'][^"'\n]{1,80}["'](?= panicked| [\w.$]+(?:Error|Exception)|:|$)""",
    re.IGNORECASE | re.MULTILINE,
)
"""A thread's name is no word of the report: most programs call theirs `main`."""


def read_report(text: str) -> Report:
    """Take `text` apart; any text will do, an empty one gives an empty report."""
    report = Report()
    text = without_pseudonyms(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _THREAD.sub(r"\1", text)
    report.frames = _frames(text)

    def block(match: re.Match[str]) -> str:
        report.blocks.append(match.group(2))
        return "\n"

    rest = _FENCE.sub(block, text)
    weight = 1.0
    lines: list[tuple[str, float]] = []
    for line in rest.split("\n"):
        if _is_frame(line):
            lines.append((line, FRAME_WEIGHT))
            continue
        heading = _HEADING.match(line)
        if heading and len(line) < 60:
            found = [w for pattern, w in _SECTION_WEIGHT if pattern.search(heading.group(1))]
            if found:
                weight = found[0]
                continue
        if line.strip():
            if not report.title:
                report.title = line.strip().lstrip("#").strip()
                continue
            lines.append((line, weight))
    report.prose = lines
    for line, line_weight in [(report.title, 1.0), *lines]:
        if line_weight > FRAME_WEIGHT:
            report.spans += [a or b for a, b in _SPAN.findall(line)]
    report.errors = list(dict.fromkeys(m.group(2).strip() for m in _ERROR.finditer(text)))
    report.messages = _messages(text, report)
    report.paths = [m.group(1) for m in _PLACE.finditer(text) if _is_path(m.group(1))]
    return report


FRAME_WEIGHT = 0.3
"""Weight of the words of a stack frame; the frame itself is a signal of its own."""


def _is_frame(line: str) -> bool:
    return any(p.search(line) for p in (_PY_FRAME, _JAVA_FRAME, _GDB_FRAME)) or _loose_frame(line) is not None


def _is_path(text: str) -> bool:
    language = language_of(text)
    return language in CODE or language == "config"


def _messages(text: str, report: Report) -> list[str]:
    found = [a or b for a, b in _QUOTED.findall(text)]
    found += [s for s in report.spans if " " in s.strip()]
    for item in report.blocks:
        found += [line.strip() for line in item.split("\n") if len(line.split()) >= 3]
    return [m for m in dict.fromkeys(found) if m not in report.errors]


def _frames(text: str) -> list[Frame]:
    """Return the stack frames, outermost first, whatever the order they were written in."""
    frames: list[Frame] = []
    for line in text.split("\n"):
        for pattern in (_PY_FRAME, _JAVA_FRAME, _GDB_FRAME):
            match = pattern.search(line)
            if match:
                frames.append(_frame(pattern, match))
                break
        else:
            found = _loose_frame(line)
            if found:
                frames.append(found)
    if _innermost_first(text, frames):
        frames.reverse()
    return frames


def _frame(pattern: re.Pattern[str], match: re.Match[str]) -> Frame:
    if pattern is _PY_FRAME:
        return Frame(match.group(1), int(match.group(2)), match.group(3) or "")
    if pattern is _JAVA_FRAME:
        function = match.group(1)
        folder = "/".join(function.split(".")[:-2])
        return Frame(
            f"{folder}/{match.group(2)}" if folder else match.group(2),
            int(match.group(3)),
            function.rsplit(".", 1)[-1],
        )
    return Frame(match.group(2), int(match.group(3)), match.group(1))


def _loose_frame(line: str) -> Frame | None:
    """Read `path:line, function`, `path:line` or ``path`, `function`` as it stands in lists and logs."""
    for match in _PLACE.finditer(line):
        if not _is_path(match.group(1)):
            continue
        after = _AFTER.match(line[match.end() :].replace("` ", "`")) if match.end() < len(line) else None
        listed = re.match(
            r"^\s*(?:[-*>#]|\d+[.)])?\s*[`'\"\[(]?(?:at\s+)?(?:File:?\s*)?$", line[: match.start()]
        )
        if match.group(2) or (listed and after and "," in line[match.end() : match.end() + 3]):
            function = (
                after.group(1)
                if after and re.match(r"^[`'\"]?,?\s*(?:in\s+)?[`'\"]", line[match.end() :])
                else ""
            )
            return Frame(match.group(1), int(match.group(2) or 0), function)
    return None


_LAST = re.compile(r"most recent call last|innermost last|innerste[rs]? zuletzt", re.IGNORECASE)
_FIRST = re.compile(r"most recent call first|innermost first|innerste[rs]? zuerst", re.IGNORECASE)


def _innermost_first(text: str, frames: list[Frame]) -> bool:
    if _LAST.search(text):
        return False
    if _FIRST.search(text):
        return True
    python = sum(f.path.endswith((".py", ".pyx")) for f in frames)
    return bool(frames) and python * 2 < len(frames)


IDENTIFIER = re.compile(r"[A-Za-z_][\w]*(?:(?:\.|::|->)[A-Za-z_]\w*)*")
_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|_|\.|::|->|^[A-Z][a-z]+[A-Z]")


def code_like(word: str) -> bool:
    """Say whether a word looks like an identifier rather than prose."""
    return bool(_CODE_LIKE.search(word)) and not re.fullmatch(r"[A-Z]?[a-z]+\.?|(?:\w\.)+\w?", word)


def words_of(text: str) -> list[str]:
    """Return the words and identifiers of prose."""
    return WORD.findall(text)
