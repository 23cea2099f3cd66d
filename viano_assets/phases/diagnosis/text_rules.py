"""The gate over every literal claim in the free texts of an answer: quotes, places, ids, row values.

A text of the root cause may quote only the records that carry it; every other text may quote any stored
record and the case itself. Names (a path, symbol, table or column of stored evidence) are no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.diagnosis.claims import (
    Claims,
    Span,
    claims_of,
    find_quote,
    overlaps,
    pair_of,
    place_of,
    same_path,
)
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer, RootCause
from viano_assets.phases.diagnosis.ground import Ground, locations, quoted_at
from viano_assets.phases.wire import ValidationIssue

_CHANGE = re.compile(
    r"^\s*(?:@@ -\d|(?:---|\+\+\+) [ab]/|diff --git )"
    r"|\b(?:INSERT\s+INTO|DELETE\s+FROM|REPLACE\s+INTO|ALTER\s+TABLE|DROP\s+TABLE|TRUNCATE\s+TABLE)\s+[`\w]"
    r"|\bUPDATE\s+[`\w.]+\s+SET\s+[`\w.]+\s*=",
    re.MULTILINE | re.IGNORECASE,
)
_CELLS = frozenset({"row", "query", "config"})
_TICKED = re.compile(r"`+[^`]+`+")


@dataclass(frozen=True, slots=True)
class _Names:
    paths: frozenset[str]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    key_columns: frozenset[str]


def texts_of(answer: DiagnosisAnswer) -> Iterator[tuple[str, str]]:
    """Return every free text of an answer with its place in it."""
    if answer.root_cause is not None:
        yield "/root_cause/summary", answer.root_cause.summary
        yield "/root_cause/technical_description", answer.root_cause.technical_description
    for position, evaluation in enumerate(answer.evaluations):
        path = f"/evaluations/{position}"
        yield f"{path}/reason", evaluation.reason
        yield f"{path}/countercheck/reason", evaluation.countercheck.reason
        for number, limit in enumerate(evaluation.scope_limits):
            yield f"{path}/scope_limits/{number}", limit
        for number, contradiction in enumerate(evaluation.contradictions):
            yield f"{path}/contradictions/{number}/explanation", contradiction.explanation
    for number, text in enumerate(answer.remaining_uncertainty):
        yield f"/remaining_uncertainty/{number}", text
    yield "/final_reason", answer.final_reason
    for number, text in enumerate(answer.review_actions):
        yield f"/review_actions/{number}", text


def text_issues(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    """Return the issues of every literal claim that stored evidence does not carry."""
    names = _names(ground.records.values())
    cause = set(answer.root_cause.evidence_ids) if answer.root_cause is not None else set()
    carrying = {name: record for name, record in ground.records.items() if name in cause}
    for path, text in texts_of(answer):
        of_cause = path.startswith("/root_cause/")
        records = carrying if of_cause else ground.records
        yield from _text(path, text, records, ground, names, of_cause=of_cause)


def proposes_change(text: str) -> bool:
    """Say whether a text holds a patch or a data change outside its quotes."""
    return _CHANGE.search(_TICKED.sub(" ", text)) is not None


def schema_is_quoted(cause: RootCause, schemas: Sequence[EvidenceRecord]) -> bool:
    """Say whether the cause quotes a definition, not just a name, out of one of the schema records."""
    quotes = [q for text in (cause.summary, cause.technical_description) for q in claims_of(text).quotes]
    return any(
        len(re.findall(r"[^\W\d]\w*", quote)) > 1 and quoted_at(record, quote) is not None
        for quote in quotes
        for record in schemas
    )


def _text(
    path: str,
    text: str,
    records: Mapping[str, EvidenceRecord],
    ground: Ground,
    names: _Names,
    *,
    of_cause: bool,
) -> Iterator[ValidationIssue]:
    claims = claims_of(text)
    if not claims.balanced:
        yield _issue(path, "unbalanced_quote", "a backtick has no partner", "close every quote")
    if proposes_change(text):
        yield _issue(
            path, "change_in_text", "the text holds a patch or a data change", "describe it in words"
        )
    anchors: list[EvidenceRecord] = []
    spans = list(claims.places)
    for quote in claims.quotes:
        place = place_of(quote)
        if place is not None:
            spans.append(place)
            continue
        found = [record for record in records.values() if _quoted(record, quote)]
        anchors += found
        if not found and not _is_name(quote, ground, names) and (of_cause or not _in_case(quote, ground)):
            yield _issue(
                path,
                "quote_not_in_evidence",
                f"no record{' that carries the cause' if of_cause else ''} holds this quote: {quote[:120]}",
                "quote exact characters of a cited record, or write it without quotation",
            )
    for span in spans:
        yield from _place(path, span, anchors, ground, names)
    yield from _ids_and_pairs(path, claims, ground, names)


def _quoted(record: EvidenceRecord, quote: str) -> bool:
    if quoted_at(record, quote) is not None:
        return True
    pair = pair_of(quote)
    return pair is not None and record.provenance.kind in _CELLS and _pair_stands(*pair, record.content)


def _issue(path: str, category: str, message: str, hint: str) -> ValidationIssue:
    return ValidationIssue(path=path, category=category, message=message, hint=hint)


def _names(records: Iterable[EvidenceRecord]) -> _Names:
    paths: set[str] = set()
    words: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for record in records:
        for location in locations(record):
            if location.path is not None:
                paths.add(location.path)
            if location.symbol is not None:
                words.add(location.symbol)
            if location.table is not None:
                words.add(location.table)
                if location.column is not None:
                    words.add(f"{location.table}.{location.column}")
            if location.column is not None:
                words.add(location.column)
            pairs.update((location.key or {}).items())
    columns = frozenset(name for name, _ in pairs)
    return _Names(frozenset(paths), frozenset(words) | columns, frozenset(pairs), columns)


def _is_name(quote: str, ground: Ground, names: _Names) -> bool:
    bare = quote.removesuffix("()")
    if bare in names.words or bare in ground.records or bare in ground.hypotheses:
        return True
    if any(word.endswith(("." + bare, "::" + bare)) for word in names.words):
        return True
    pair = pair_of(bare)
    if pair is not None and pair in names.pairs:
        return True
    return any(same_path(bare, path) for path in names.paths)


def _in_case(quote: str, ground: Ground) -> bool:
    return any(find_quote(text, quote) is not None for text in ground.case_texts)


def _place(
    path: str, span: Span, anchors: Sequence[EvidenceRecord], ground: Ground, names: _Names
) -> Iterator[ValidationIssue]:
    label = f"{span.path or 'line'}:{span.line_start}-{span.line_end}"
    known = [stored for stored in sorted(names.paths) if span.path is None or same_path(span.path, stored)]
    if _place_in_case(span, ground):
        return
    if not known:
        yield _issue(
            path, "place_not_in_evidence", f"{label} was never read or found", "name only places in evidence"
        )
        return
    if any(record.provenance.location.path in known for record in anchors):
        return
    if not any(_covers(record, known, span) for record in ground.records.values()):
        yield _issue(
            path,
            "line_range_unseen",
            f"{label} lies outside everything that was read there",
            "quote the line itself, or name a range within the cited record",
        )


def _place_in_case(span: Span, ground: Ground) -> bool:
    if span.path is None:
        wanted = re.compile(rf"\bline\s+{span.line_start}\b", re.IGNORECASE)
        return any(wanted.search(text) for text in ground.case_texts)
    name = re.escape(span.path.rsplit("/", 1)[-1])
    wanted = re.compile(rf"{name}\W{{1,3}}(?:[a-z]+\s+)?{span.line_start}\b", re.IGNORECASE)
    return span.line_start == span.line_end and any(wanted.search(text) for text in ground.case_texts)


def _covers(record: EvidenceRecord, known: Sequence[str], span: Span) -> bool:
    for location in locations(record):
        if location.path in known and location.line_start is not None:
            end = location.line_start if location.line_end is None else location.line_end
            if overlaps(span, location.line_start, end):
                return True
    return False


def _ids_and_pairs(path: str, claims: Claims, ground: Ground, names: _Names) -> Iterator[ValidationIssue]:
    contents = [record.content for record in ground.records.values()]
    for name in claims.evidence_ids:
        if name in ground.records or any(_stands(name, text) for text in (*contents, *ground.case_texts)):
            continue
        yield _issue(
            path, "unknown_evidence", f"{name} is not stored evidence", "name only ids that were shown"
        )
    for column, value in claims.pairs:
        if column not in names.key_columns or (column, value) in names.pairs:
            continue
        if not any(_pair_stands(column, value, text) for text in (*contents, *ground.case_texts)):
            yield _issue(
                path,
                "row_not_in_evidence",
                f"no stored row has {column} = {value}",
                "name only rows that were read",
            )


def _stands(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _pair_stands(column: str, value: str, text: str) -> bool:
    pattern = rf"(?<!\w){re.escape(column)}[\"'\s:=|]{{1,6}}{re.escape(value)}(?![\w-]|\.\d)"
    return re.search(pattern, text) is not None
