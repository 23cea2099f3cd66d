"""What the gates judge an answer against: the registry's end states and the stored evidence, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viano_assets.evidence.model import Completeness, EvidenceRecord, Location
from viano_assets.phases.diagnosis.claims import Position, find_quote, text_lines

ROOT_CAUSE_LINES = 60
"""Most lines a record may have that carries a root cause (docs/contracts.md, section 9)."""

_COMPACT = frozenset({"row", "query", "schema"})
_MECHANISM = frozenset({"source", "config", "row", "query"})


@dataclass(frozen=True, slots=True)
class Ground:
    """The frozen facts of one revision.

    Args:
        hypotheses: hypothesis id to its end status, in registry order.
        records: evidence id to record, in the order of the ids.
        case_texts: the texts of the case sources, which a reason may quote.
    """

    hypotheses: Mapping[str, str]
    records: Mapping[str, EvidenceRecord]
    case_texts: tuple[str, ...] = ()

    def without(self, evidence_id: str) -> Ground:
        """Return the same facts as if one record had never been found."""
        kept = {name: record for name, record in self.records.items() if name != evidence_id}
        return Ground(self.hypotheses, kept, self.case_texts)


def void_absence(record: EvidenceRecord) -> bool:
    """Say whether a record is an empty look that was not complete: it proves nothing."""
    return record.empty and record.completeness is not Completeness.COMPLETE


def is_query(record: EvidenceRecord) -> bool:
    """Say whether a record comes from the database snapshot."""
    return record.tool.startswith("db.") or record.provenance.location.table is not None


def reads_mechanism(record: EvidenceRecord) -> bool:
    """Say whether a record shows how something works: read source, configuration, rows, or missing rows."""
    if record.provenance.kind in _MECHANISM:
        return True
    return record.empty and record.completeness is Completeness.COMPLETE and is_query(record)


def line_count(record: EvidenceRecord) -> int:
    """Return the number of lines of a record's content."""
    return len(text_lines(record.content))


def locations(record: EvidenceRecord) -> tuple[Location, ...]:
    """Return the record's own location and the places it names, best first."""
    return (record.provenance.location, *record.places)


def quoted_at(record: EvidenceRecord, quote: str) -> Position | None:
    """Return where a quote stands in a record's content, or None when it does not."""
    return find_quote(record.content, quote, compact=record.provenance.kind in _COMPACT)
