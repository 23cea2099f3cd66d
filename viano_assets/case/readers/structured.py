"""Reports out of trackers: GitHub issue JSON, Jira JSON and CSV, and JSON or CSV of any other shape.

Fields are found by what they are called, in English or German. A field that no rule knows is still read:
nothing that was written is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from viano_assets.case.model import SourceType
from viano_assets.case.readers.json_text import Value, Word
from viano_assets.case.readers.model import Passage, Reading
from viano_assets.case.readers.vocabulary import Section, section_of
from viano_assets.case.text import Text

_TITLE = frozenset(("title", "summary", "subject", "headline", "titel", "betreff", "zusammenfassung"))
_BODY = frozenset(("body", "description", "text", "content", "beschreibung", "message", "renderedbody"))
_COMMENTS = frozenset(
    ("comments", "comment", "kommentare", "kommentar", "replies", "notes", "timeline", "worklog")
)
_AUTHOR = ("author", "user", "creator", "reporter", "from", "name", "autor", "verfasser", "melder")
_TIME = ("created_at", "created", "createdat", "date", "time", "timestamp", "datum", "erstellt", "updated")
_PERSON = ("login", "displayname", "name", "emailaddress")
_MACHINERY = re.compile(
    r"^(?:self|id|node_id|.*_url|url|href|avatar.*|gravatar.*|expand|iconurl|accountid|key|number|locked|events|type"
    r"|performed_via.*|reactions|etag|author_association|active_lock_reason|statuscategory|timezone|watches|votes"
    r"|position|lastviewed|workratio|.*progress|accounttype|active|draft|state_reason)$",
    re.IGNORECASE,
)


def read_json(value: Value, reading: Reading) -> None:
    """Add the passages of a tracker's JSON."""
    if isinstance(value, list):
        _read_list(value, reading)
        return
    if not isinstance(value, dict):
        reading.passages.append(Passage(value if isinstance(value, Text) else value.text))
        return
    for wrapper in ("issue", "bug", "ticket", "report", "pull_request"):
        inner = value.get(wrapper)
        if isinstance(inner, dict) and ("comments" in value or len(value) <= 3):
            value = {**value, **inner}
            value.pop(wrapper, None)
    fields = value.get("fields")
    if isinstance(fields, dict):
        value = {**{k: v for k, v in value.items() if k != "fields"}, **fields}
    _read_issue(value, reading, SourceType.REPORT)


def _read_list(items: list[Value], reading: Reading) -> None:
    """A list is an issue with its comments, several issues, or a thread."""
    issues = [item for item in items if isinstance(item, dict) and _names(item) & _TITLE]
    others = [item for item in items if not (isinstance(item, dict) and _names(item) & _TITLE)]
    for number, issue in enumerate(issues, start=1):
        start = len(reading.passages)
        read_json(issue, reading)
        if len(issues) > 1:
            _mark_defect(reading, start, number)
    for number, item in enumerate(others):
        base = SourceType.REPORT if not issues and number == 0 else SourceType.COMMENT
        if isinstance(item, dict):
            _read_issue(item, reading, base)
        else:
            reading.passages.extend(Passage(text, base=base) for text in _texts(item))


def _mark_defect(reading: Reading, start: int, number: int) -> None:
    reading.passages[start:] = [
        replace(passage, is_title=passage.is_title and number == 1, defect=number)
        for passage in reading.passages[start:]
    ]


def _names(item: Mapping[str, Value]) -> set[str]:
    return {key.lower() for key in item}


def _read_issue(item: Mapping[str, Value], reading: Reading, base: SourceType) -> None:
    who = _who(item)
    later: list[Value] = []
    rest: list[tuple[str, Value]] = []
    ordered = sorted(item.items(), key=lambda pair: _rank(pair[0]))
    for key, value in ordered:
        name = key.lower()
        if name in _COMMENTS and not (isinstance(value, Text) and base is SourceType.COMMENT):
            later.append(value)
        elif name in _TITLE and base is SourceType.REPORT and isinstance(value, Text):
            reading.passages.append(Passage(value, is_title=True, whole=True, kind="title", attributes=who))
        elif name in _BODY:
            reading.passages.extend(Passage(text, base=base, attributes=who) for text in _document(value))
        elif name not in _AUTHOR and name not in _TIME:
            rest.append((key, value))
    for key, value in rest:
        _read_field(key, value, reading, base, who)
    for value in later:
        _read_comments(value, reading)


def _rank(key: str) -> int:
    name = key.lower()
    return 0 if name in _TITLE else 1 if name in _BODY else 2


def _who(item: Mapping[str, Value]) -> dict[str, str]:
    found: dict[str, str] = {}
    lowered = {key.lower(): value for key, value in item.items()}
    for name, keys in (("author", _AUTHOR), ("time", _TIME)):
        for key in keys:
            value = lowered.get(key)
            if isinstance(value, dict):
                inner = {k.lower(): v for k, v in value.items()}
                value = next(
                    (inner[k] for k in ("login", "displayname", "name", "emailaddress") if k in inner), None
                )
            if isinstance(value, Text) and value.text.strip():
                found[name] = value.text.strip()
                break
    return found


def _read_comments(value: Value, reading: Reading) -> None:
    if isinstance(value, dict) and _names(value) & _COMMENTS and not _names(value) & _BODY:
        for key, inner in value.items():
            if key.lower() in _COMMENTS:
                _read_comments(inner, reading)
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            _read_issue(item, reading, SourceType.COMMENT)
        elif isinstance(item, Text):
            reading.passages.append(Passage(item, base=SourceType.COMMENT))


def _read_field(key: str, value: Value, reading: Reading, base: SourceType, who: dict[str, str]) -> None:
    """A field beyond title, body and comments: a section by its name, or a fact under its name."""
    if _MACHINERY.match(key):
        return
    section = section_of(key.replace("_", " ")) if base is SourceType.REPORT else None
    if section is not None and section is not Section.TITLE:
        for text in _document(value):
            reading.passages.append(Passage(text, section=section, attributes={**who, "section": key}))
        return
    for path, text in _leaves(key, value):
        if _MACHINERY.match(path.rsplit(".", 1)[-1]) or not text.text.strip():
            continue
        prose = len(text.text.split()) > 6
        if prose:
            reading.passages.append(Passage(text, base=base, attributes={**who, "field": path}))
        else:
            reading.passages.append(
                Passage(
                    text, base=SourceType.ENVIRONMENT, whole=True, kind="field", attributes={"field": path}
                )
            )


def _leaves(path: str, value: Value) -> Iterator[tuple[str, Text]]:
    if isinstance(value, Text):
        yield path, value
    elif isinstance(value, Word):
        if value.text.text not in {"null", "false", "true"}:
            yield path, value.text
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(path, item)
    else:
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)


def _texts(value: Value) -> Iterator[Text]:
    for _, text in _leaves("", value):
        yield text


def _document(value: Value) -> Iterator[Text]:
    """Yield the texts of a body: one string, or the paragraphs of a document tree (Jira's ADF)."""
    if isinstance(value, dict) and "content" in value:
        for block in value["content"] if isinstance(value["content"], list) else []:
            yield from _document_block(block)
    else:
        yield from (text for text in _texts(value) if text.text.strip())


def _document_block(block: Value) -> Iterator[Text]:
    if not isinstance(block, dict):
        return
    kind = block.get("type")
    leaf = isinstance(kind, Text) and kind.text == "text"
    inner = block.get("text")
    if leaf and isinstance(inner, Text):
        yield inner
    content = block.get("content")
    for item in content if isinstance(content, list) else []:
        yield from _document_block(item)
