"""Finds out what form a text has and cuts it into passages by author and field."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from viano_assets.case.model import SourceType
from viano_assets.case.readers.blocks import BlockKind, blocks
from viano_assets.case.readers.csv_text import read_csv
from viano_assets.case.readers.json_text import JsonError, parse
from viano_assets.case.readers.messages import is_chat, is_mail, read_chat, read_mail
from viano_assets.case.readers.model import Passage, Reading
from viano_assets.case.readers.structured import read_json
from viano_assets.case.text import Text

_COMMENT_FILE = re.compile(r"comment|kommentar|reply|antwort|notiz|tester[_-]?notes?", re.IGNORECASE)
_ATTACHED = frozenset({".log", ".sql", ".diff", ".patch", ".xml", ".yaml", ".yml", ".csv", ".tsv"})


def read_format(name: str, text: Text, *, alone: bool = False) -> Reading:
    """Return the passages of one file; a log that is `alone` is the report and no attachment to it."""
    reading = Reading()
    suffix = PurePosixPath(name).suffix.lower()
    if _structured(name, text, reading):
        return reading
    if is_mail(text.text):
        read_mail(text, reading)
    elif is_chat(text.text):
        read_chat(text, reading)
    elif suffix in _ATTACHED and not (alone and suffix == ".log"):
        kind = "patch" if suffix in {".diff", ".patch"} else "attachment"
        base = SourceType.TESTER_ASSUMPTION if kind == "patch" else SourceType.TECHNICAL_FACT
        reading.passages.append(Passage(text, base=base, whole=True, kind=kind, attributes={"file": name}))
    else:
        comment = _COMMENT_FILE.search(PurePosixPath(name).stem) is not None
        read_text(text, reading, SourceType.COMMENT if comment else SourceType.REPORT)
    return reading


def _structured(name: str, text: Text, reading: Reading) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    begins = text.text.lstrip("\ufeff \t\n")[:1]
    if suffix == ".json" or (begins in {"{", "["} and suffix in {"", ".txt"}):
        try:
            read_json(parse(text), reading)
        except JsonError as error:
            reading.passages.clear()
            if suffix != ".json":
                return False
            reading.notes.append(f"json: {name} is no JSON ({error}); read as text")
        else:
            return bool(reading.passages)
    return suffix in {".csv", ".tsv"} and read_csv(text, reading)


def read_text(text: Text, reading: Reading, base: SourceType) -> None:
    """Markdown or plain text of one author; the first heading that names no section is the title."""
    body = text.text
    start = len(body) - len(body.lstrip("\ufeff"))
    front = re.match(r"---[ \t]*\n(?:[^\n]*\n){0,40}?---[ \t]*(?:\n|$)", body[start:])
    if front is not None:
        reading.passages.append(
            Passage(
                text.cut(start, start + front.end()),
                base=SourceType.ENVIRONMENT,
                whole=True,
                kind="front_matter",
            )
        )
        start += front.end()
    first = next(iter(blocks(body[start:])), None)
    titled = (
        first is not None and first.kind is BlockKind.HEADING and first.section is None and first.level <= 2
    )
    if first is not None and titled and base is SourceType.REPORT:
        reading.passages.append(
            Passage(text.cut(start + first.start, start + first.end), is_title=True, whole=True, kind="title")
        )
        line_end = body.find("\n", start + first.end)
        start = len(body) if line_end < 0 else line_end + 1
        under = re.match(r"[ \t]*[=~-]{3,}[ \t]*(?:\n|$)", body[start:])
        start += under.end() if under is not None else 0
    if body[start:].strip():
        reading.passages.append(Passage(text.cut(start, len(body)), base=base))
