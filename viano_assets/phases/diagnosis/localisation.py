"""The ranked places of a result, derived from stored evidence (docs/contracts.md, section 9).

Order: evidence of the root cause in cited order, support of the selected or else the strongest hypothesis,
that of the others by effective confidence, what shows why nothing is concluded, then uncited retrieval hits.
For an inconclusive result this is a ranking and not a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from viano_assets.canonical import canonical_json
from viano_assets.evidence.model import EvidenceRecord, Location
from viano_assets.phases.diagnosis.claims import claims_of
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer, FinalEvaluation, Verdict
from viano_assets.phases.diagnosis.ground import quoted_at
from viano_assets.phases.wire import Confidence

MAX_PLACES = 25
"""Longest list of one kind; what ranks lower helps nobody."""

MAX_CITED_HITS = 5
"""A cited search with more hits than this cites none of them in particular."""

MAX_INNER_SYMBOLS = 3
"""How many symbols inside a read span are named when none encloses it."""

Basis = Literal["cited", "retrieved"]

_NO_FAULT_PLACE = frozenset({"case", "log"})
_RETRIEVAL = frozenset({"ranking", "search"})
_VERDICTS = (Verdict.SUPPORTED, Verdict.UNDETERMINED, Verdict.WEAKENED, Verdict.REJECTED)


class Standing(NamedTuple):
    """How a hypothesis left the investigation: its status and effective level."""

    hypothesis_id: str
    status: str
    effective: Confidence


class _Hit(NamedTuple):
    location: Location
    basis: Basis
    evidence_id: str


class _Symbol(NamedTuple):
    name: str
    start: int
    end: int


def strength_order(answer: DiagnosisAnswer, standings: Sequence[Standing]) -> list[FinalEvaluation]:
    """Return the evaluations, strongest first: selected, not rejected, effective level, verdict, position."""
    by_id = {standing.hypothesis_id: (number, standing) for number, standing in enumerate(standings)}

    def key(evaluation: FinalEvaluation) -> tuple[int, int, int, int, int]:
        number, standing = by_id[evaluation.hypothesis_id]
        return (
            0 if evaluation.hypothesis_id == answer.selected_hypothesis else 1,
            1 if standing.status == "rejected" else 0,
            -standing.effective.rank,
            _VERDICTS.index(evaluation.verdict),
            number,
        )

    return sorted((e for e in answer.evaluations if e.hypothesis_id in by_id), key=key)


def cited_order(answer: DiagnosisAnswer, standings: Sequence[Standing]) -> list[str]:
    """Return every cited evidence id once, in the order in which places rank."""
    claim = answer.root_cause.evidence_ids if answer.root_cause else answer.inconclusive_evidence_ids
    ordered = strength_order(answer, standings)
    ids: list[str] = [*claim, *(ordered[0].support if ordered else ())]
    for evaluation in ordered[1:]:
        ids += [*evaluation.support, *evaluation.against, *evaluation.countercheck.evidence_ids]
    for evaluation in ordered[:1]:
        ids += [*evaluation.against, *evaluation.countercheck.evidence_ids]
    for evaluation in ordered:
        ids += [contradiction.evidence_id for contradiction in evaluation.contradictions]
    return list(dict.fromkeys(ids))


def place_order(answer: DiagnosisAnswer, standings: Sequence[Standing]) -> list[str]:
    """Return the evidence ids whose places are cited as places of the fault, best first.

    Evidence against a hypothesis refutes it where it was read; it does not say that the fault is there.
    Nor does what shows why nothing can be concluded, a passage that calls the behaviour intended, say: it
    comes last.
    """
    cause = answer.root_cause.evidence_ids if answer.root_cause else ()
    support = [name for evaluation in strength_order(answer, standings) for name in evaluation.support]
    return list(dict.fromkeys([*cause, *support, *answer.inconclusive_evidence_ids]))


def localise(
    answer: DiagnosisAnswer,
    standings: Sequence[Standing],
    records: Mapping[str, EvidenceRecord],
    extra_order: Sequence[str] = (),
) -> dict[str, list[dict[str, Any]]]:
    """Return the ranked files, symbols and rows.

    Args:
        answer: the accepted or deterministic evaluation.
        standings: the hypotheses' end states in registry order.
        records: the revision's evidence by id, in order.
        extra_order: evidence that counts as cited after the answer's own (the support of the last
            reviews of the investigation, when the final evaluation cites nothing).
    """
    symbols = _known_symbols(records.values())
    quotes = _quotes(answer)
    order = list(dict.fromkeys([*place_order(answer, standings), *extra_order]))
    cited = [records[name] for name in order if name in records]
    hits = [*_cited_hits(cited, quotes), *_retrieved_hits(records.values(), {r.evidence_id for r in cited})]
    places = [_resolved(hit, symbols) for hit in hits]
    flat = [hit for group in places for hit in group]
    return {"files": _files(flat), "symbols": _symbols(flat, symbols), "rows": _rows(flat)}


def _quotes(answer: DiagnosisAnswer) -> tuple[str, ...]:
    if answer.root_cause is None:
        return ()
    texts = (answer.root_cause.summary, answer.root_cause.technical_description)
    return tuple(quote for text in texts for quote in claims_of(text).quotes)


def _cited_hits(records: Iterable[EvidenceRecord], quotes: Sequence[str]) -> Iterator[_Hit]:
    for record in records:
        kind = record.provenance.kind
        if kind in _NO_FAULT_PLACE or kind == "ranking":
            continue
        if kind != "search":
            for location in _narrowed(record, quotes):
                yield _Hit(location, "cited", record.evidence_id)
        if kind != "search" or len(record.places) <= MAX_CITED_HITS:
            for location in record.places:
                yield _Hit(location, "cited", record.evidence_id)


def _narrowed(record: EvidenceRecord, quotes: Sequence[str]) -> list[Location]:
    """Return the record's location, preceded by the lines that the cause quotes out of it."""
    whole = record.provenance.location
    if whole.path is None or whole.line_start is None:
        return [whole]
    found: list[Location] = []
    for quote in quotes:
        position = quoted_at(record, quote)
        if position is not None:
            first = whole.line_start + position.line
            update = {"line_start": first, "line_end": first + position.lines - 1, "symbol": None}
            found.append(whole.model_copy(update=update))
    return [*found, whole]


def _retrieved_hits(records: Iterable[EvidenceRecord], cited: set[str]) -> Iterator[_Hit]:
    stored = list(records)
    for wanted in ("ranking", "search"):
        for record in stored:
            if record.provenance.kind == wanted:
                for location in record.places:
                    yield _Hit(location, "retrieved", record.evidence_id)
    for record in stored:
        kind = record.provenance.kind
        if record.evidence_id not in cited and kind not in _NO_FAULT_PLACE | _RETRIEVAL:
            for location in (record.provenance.location, *record.places):
                yield _Hit(location, "retrieved", record.evidence_id)


def _known_symbols(records: Iterable[EvidenceRecord]) -> dict[str, list[_Symbol]]:
    known: dict[str, dict[_Symbol, None]] = {}
    for record in records:
        for location in (record.provenance.location, *record.places):
            if location.path and location.symbol and location.line_start is not None:
                end = location.line_start if location.line_end is None else location.line_end
                symbol = _Symbol(location.symbol, location.line_start, end)
                known.setdefault(location.path, {})[symbol] = None
    return {path: list(symbols) for path, symbols in known.items()}


def _resolved(hit: _Hit, known: Mapping[str, Sequence[_Symbol]]) -> list[_Hit]:
    """Add the enclosing symbol to a place that has lines and no symbol."""
    location = hit.location
    if location.path is None or location.symbol is not None or location.line_start is None:
        return [hit]
    start = location.line_start
    end = start if location.line_end is None else location.line_end
    symbols = known.get(location.path, ())
    around = sorted(
        (s for s in symbols if s.start <= start and end <= s.end), key=lambda s: (s.end - s.start, s)
    )
    inside = sorted((s for s in symbols if start <= s.start and s.end <= end), key=lambda s: (s.start, s))
    chosen = around[:1] or inside[:MAX_INNER_SYMBOLS]
    found = [
        _Hit(
            location.model_copy(update={"symbol": s.name, "line_start": s.start, "line_end": s.end}),
            hit.basis,
            hit.evidence_id,
        )
        for s in chosen
    ]
    return found or [hit]


def _files(hits: Iterable[_Hit]) -> list[dict[str, Any]]:
    """Return the files; the dump a row was loaded from is no file to look at."""
    found: dict[str, dict[str, Any]] = {}
    for hit in hits:
        if hit.location.path is not None and hit.location.table is None:
            entry = found.setdefault(
                hit.location.path, {"path": hit.location.path, "basis": hit.basis, "evidence_ids": []}
            )
            if hit.evidence_id not in entry["evidence_ids"]:
                entry["evidence_ids"].append(hit.evidence_id)
    return list(found.values())[:MAX_PLACES]


def _symbols(hits: Iterable[_Hit], known: Mapping[str, Sequence[_Symbol]]) -> list[dict[str, Any]]:
    """Return the symbols, each with the widest span that any record gives it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for hit in hits:
        location = hit.location
        if location.path is not None and location.symbol is not None:
            spans = [s for s in known.get(location.path, ()) if s.name == location.symbol]
            widest = max(spans, key=lambda s: (s.end - s.start, -s.start), default=None)
            found.setdefault(
                (location.path, location.symbol),
                {
                    "path": location.path,
                    "symbol": location.symbol,
                    "line_start": location.line_start if widest is None else widest.start,
                    "line_end": location.line_end if widest is None else widest.end,
                    "basis": hit.basis,
                },
            )
    return list(found.values())[:MAX_PLACES]


def _rows(hits: Iterable[_Hit]) -> list[dict[str, Any]]:
    found: dict[bytes, dict[str, Any]] = {}
    for hit in hits:
        location = hit.location
        if location.table is not None:
            identity = canonical_json([location.table, location.key, location.column])
            found.setdefault(
                identity,
                {
                    "table": location.table,
                    "key": location.key,
                    "column": location.column,
                    "basis": hit.basis,
                },
            )
    return list(found.values())[:MAX_PLACES]
