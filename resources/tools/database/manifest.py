"""What lies beside an extract and says how much of the table it is.

Manifests have no standard form, so this reads any JSON, CSV or text that names a table (or its file)
together with a predicate, a row count or the word complete, in English or German. The most cautious claim
about a table wins.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from resources.tools.database.catalog import Extent

_PREDICATE = re.compile(
    r"where|filter|predicate|condition|query|sql|criteria|bedingung|abfrage|auswahl|limit", re.IGNORECASE
)
_NAME = re.compile(r"table|tabelle|file|datei|path|name|extract|dataset|source", re.IGNORECASE)
_ROWS = re.compile(r"rows?|count|records|zeilen|anzahl|total|gesamt|sätze", re.IGNORECASE)
_SOURCE = re.compile(r"source|total|gesamt|origin|quelle|server|live|full|before|table", re.IGNORECASE)
_WHOLE = re.compile(r"\b(?:is_?)?(?:complete|full|whole|vollst(?:ä|ae)ndig|komplett)", re.IGNORECASE)
_PART = re.compile(
    r"\b(?:in|not |nicht |un)(?:complete|vollst(?:ä|ae)ndig)|\bpartial|\bfiltered|\btruncated|\bsubset|"
    r"\bexcerpt|\bauszug|\bgefiltert|\bteilweise|\bgek(?:ü|ue)rzt|\bonly\b|\bnur\b|\bsample",
    re.IGNORECASE,
)
_STATE = re.compile(r"complet|extent|status|kind|type|vollst|umfang", re.IGNORECASE)
_UNSTATED = "not stated"
_OF = re.compile(r"\b(\d[\d.,']*)\s*(?:of|von|/|out of)\s*(\d[\d.,']*)\b", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b\s*:?\s*(.+)", re.IGNORECASE | re.DOTALL)
_LIMIT = re.compile(r"\b(LIMIT\s+\d+|TOP\s+\d+)\b", re.IGNORECASE)


class Claim(NamedTuple):
    """One statement about one table; `whole` is None when it says nothing about completeness."""

    name: str
    predicate: str | None = None
    rows: int | None = None
    rows_at_source: int | None = None
    whole: bool | None = None
    basis: str = ""


def claims_in_text(text: str, path: str, names: Iterable[str]) -> list[Claim]:
    """Read the claims of one manifest-like file about `names` (tables and file names)."""
    known = {name.casefold(): name for name in names}
    value = _as_json(text)
    found: list[Claim] = []
    if value is not None:
        found.extend(_walk(value, path, known))
    elif _looks_like_csv(text):
        for row in csv.DictReader(io.StringIO(text)):
            plain = {str(key): cell for key, cell in row.items() if key is not None}
            found.extend(_from_mapping(plain, path, known))
    else:
        for number, line in enumerate(text.splitlines(), 1):
            found.extend(_from_line(line, f"{path}:{number}", known))
    return found


def claims_in_comment(comment: str, place: str, table: str) -> list[Claim]:
    """Read what a comment just above the rows of `table` says about them."""
    claims = []
    for line in comment.splitlines():
        text = line.strip().lstrip("-#/* ").rstrip("*/ ")
        where = _WHERE.search(text)
        if where:
            predicate = where.group(1).strip()[:300]
            claims.append(Claim(table, predicate, whole=False, basis=f"comment at {place}"))
        elif _OF.search(text) or (_PART.search(text) and re.search(re.escape(table), text, re.IGNORECASE)):
            claims.extend(_from_line(f"{table}: {text}", place, {table.casefold(): table}))
    return claims


def judge(claims: Iterable[Claim], rows: int, default: Extent) -> Extent:
    """Settle on one extent for a table with `rows` loaded rows; `default` is the carrier's own word."""
    claims = list(claims)
    source = next((claim.rows_at_source for claim in claims if claim.rows_at_source is not None), None)
    larger = next((c.rows for c in claims if c.rows is not None and c.rows > rows), None)
    source = source if source is not None else larger
    partial = [c for c in claims if c.whole is False or (c.predicate and c.whole is not True)]
    if partial:
        predicate = next((c.predicate for c in partial if c.predicate), None)
        basis = partial[0].basis
        return Extent(kind="filtered", predicate=predicate or _UNSTATED, rows_at_source=source, basis=basis)
    if source is not None and source != rows:
        return Extent(
            kind="filtered", predicate=_UNSTATED, rows_at_source=source, basis="row count at source"
        )
    if source is not None:
        return Extent(kind="full", rows_at_source=source, basis="row count at source")
    whole = [c for c in claims if c.whole]
    if whole:
        return Extent(kind="full", basis=whole[0].basis)
    return default


def _as_json(text: str) -> Any:
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _looks_like_csv(text: str) -> bool:
    first = text.split("\n", 1)[0]
    says = bool(_PREDICATE.search(first) or _ROWS.search(first))
    return "," in first and bool(_NAME.search(first)) and says


def _walk(value: Any, path: str, known: Mapping[str, str], depth: int = 0) -> Iterator[Claim]:
    if depth > 6:
        return
    if isinstance(value, dict):
        yield from _from_mapping(value, path, known)
        for key, child in value.items():
            name = _match(str(key), known)
            if name is not None and isinstance(child, dict):
                yield from _from_mapping({**child, "table": name}, path, known)
            elif name is not None and isinstance(child, str):
                yield from _from_line(f"{name}: {child}", path, known)
            elif isinstance(child, dict | list):
                yield from _walk(child, path, known, depth + 1)
    elif isinstance(value, list):
        for child in value[:5000]:
            if isinstance(child, dict):
                yield from _walk(child, path, known, depth + 1)


def _match(text: str, known: Mapping[str, str]) -> str | None:
    folded = text.casefold().replace("\\", "/").rsplit("/", 1)[-1]
    if folded in known:
        return known[folded]
    return known.get(folded.split(".", 1)[0])


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    digits = re.sub(r"[.,'\s]", "", value) if isinstance(value, str) else ""
    return int(digits) if digits.isdigit() and len(digits) < 16 else None


def _from_mapping(value: Mapping[str, Any], path: str, known: Mapping[str, str]) -> Iterator[Claim]:
    names = {
        name: None
        for key, cell in value.items()
        if isinstance(cell, str) and _NAME.search(key) and (name := _match(cell, known)) is not None
    }
    if not names:
        return
    predicate, whole, rows, source = None, None, None, None
    no_predicate = False
    for key, cell in value.items():
        if _PREDICATE.search(key):
            text = cell.strip() if isinstance(cell, str) else ""
            predicate = _predicate(text) or predicate
            no_predicate = no_predicate or _predicate(text) is None
        elif (number := _integer(cell)) is not None and _ROWS.search(key):
            if _SOURCE.search(key):
                source = number
            else:
                rows = number
        elif (judged := _whole(key, cell)) is not None:
            whole = judged
    if whole is None and no_predicate and predicate is None:
        whole = True
    if predicate is None and whole is None and rows is None and source is None:
        return
    for name in names:
        yield Claim(name, predicate, rows, source, whole, f"manifest {path}")


def _predicate(text: str) -> str | None:
    where = _WHERE.search(text)
    if where:
        return where.group(1).strip().rstrip(";")[:300]
    limit = _LIMIT.search(text)
    if limit:
        return limit.group(1)
    if text[:6].upper() == "SELECT" or text.casefold() in {"", "none", "null", "-", "keine", "all", "alle"}:
        return None
    return text[:300]


def _whole(key: str, value: Any) -> bool | None:
    if isinstance(value, bool):
        if _PART.search(key):
            return not value
        return value if _WHOLE.search(key) else None
    if isinstance(value, str) and _STATE.search(key):
        if _PART.search(value) or value.casefold() in {"no", "false", "nein"}:
            return False
        return True if _WHOLE.search(value) or value.casefold() in {"yes", "true", "ja"} else None
    return None


def _from_line(line: str, place: str, known: Mapping[str, str]) -> Iterator[Claim]:
    words = {word.casefold() for word in re.findall(r"[\w$.-]+", line)}
    names = sorted({name for word in words if (name := _match(word, known)) is not None})
    if not names:
        return
    where = _WHERE.search(line)
    counts = _OF.search(line)
    partial, full = bool(_PART.search(line)), bool(_WHOLE.search(line))
    predicate = where.group(1).strip().rstrip(";`")[:300] if where else None
    if predicate is None and partial:
        predicate = line.strip()[:300]
    if where is None and counts is None and not partial and not (full and len(line) < 200):
        return
    source = _integer(counts.group(2)) if counts else None
    whole = False if (where or partial) else True if full and counts is None else None
    for name in names:
        yield Claim(name, predicate, None, source, whole, f"manifest {place}")
