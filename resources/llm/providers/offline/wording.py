"""Putting findings into words: quotes that verify, the subject of a case, both report languages."""

from __future__ import annotations

import re

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene, quoted
from resources.llm.providers.offline.view import clip
from viano_assets.phases.diagnosis.claims import claims_of

_MARKS = re.compile(r"[\"“”„«»`]")
_PREFIX = re.compile(r"^\s*(?:\[[^\]]{1,40}\]|(?:bug|issue|fehler)[ -]?#?\d+\s*[:\-–])\s*", re.IGNORECASE)


def say(scene: Scene, english: str, german: str) -> str:
    """Return the sentence in the report's language."""
    return german if scene.case.german else english


def plain(text: str, limit: int = 160) -> str:
    """Return a text without quotation marks; empty if it still claims exact characters or places."""
    bare = clip(_MARKS.sub("", text), limit)
    claims = claims_of(bare)
    return "" if claims.quotes or claims.places or claims.evidence_ids or claims.pairs else bare


def subject(title: str, limit: int = 90) -> str:
    """Return what a case is about: its title without number and marks."""
    return clip(_MARKS.sub("", _PREFIX.sub("", title)), limit).rstrip(".")


def line_quote(record: Record, line: str) -> str:
    """Return a whole line of a record as a quote that verifies, or nothing when it would not."""
    text = line.strip()
    if not text or len(text) > 240 or text not in record.content or text.endswith("`") or text[0] == "`":
        return ""
    return quoted(text)


def place(record: Record) -> str:
    """Return where a record stands: symbol and path, or table."""
    location = record.location
    if location.table is not None:
        return location.table
    if location.symbol is not None:
        return f"{quoted(location.symbol)} ({location.path})"
    return str(location.path or record.tool)
