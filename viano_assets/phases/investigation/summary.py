"""The investigation for people: Markdown, and the numbers behind the plot of the budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from viano_assets.budget.model import LedgerEntry
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.investigation.artifacts import ActionEnd, HypothesisEnd, InvestigationDocument
from viano_assets.phases.markdown import escape, shorten

VERSION = 1
"""Version of the Markdown (docs/reading.md says when it changes)."""

EXCERPT = 160
"""Characters of an evidence excerpt in the table."""


class BalancePoint(NamedTuple):
    """A hypothesis' balance in units after a dispatch (0 is the start)."""

    dispatch: int
    hypothesis_id: str
    balance: int


def balance_series(entries: Iterable[LedgerEntry]) -> list[BalancePoint]:
    """Return the balance of every account after each dispatch that moved it, in ledger order."""
    points: dict[tuple[int, str], int] = {}
    for entry in entries:
        points[entry.dispatch, entry.hypothesis_id] = entry.balance
    return [BalancePoint(dispatch, name, balance) for (dispatch, name), balance in sorted(points.items())]


class EvidenceRow(NamedTuple):
    """One line of the evidence table."""

    evidence_id: str
    tool: str
    place: str
    completeness: str
    excerpt: str


def place_of(record: EvidenceRecord) -> str:
    """Return where the record stands, for people: path with lines, or table with key."""
    where = record.provenance.location
    if where.table is not None:
        key = ", ".join(f"{name}={value}" for name, value in sorted((where.key or {}).items()))
        return f"{where.table}[{key}]" if key else where.table
    path = where.path or record.provenance.input_path or ""
    if where.line_start is None:
        return path
    end = where.line_end if where.line_end not in {None, where.line_start} else None
    return f"{path}:{where.line_start}" + (f"-{end}" if end else "")


def evidence_rows(records: Sequence[EvidenceRecord]) -> list[EvidenceRow]:
    """Return the evidence table."""
    return [
        EvidenceRow(
            record.evidence_id,
            record.tool,
            place_of(record),
            record.completeness.value + (", empty" if record.empty else ""),
            shorten(record.content, EXCERPT),
        )
        for record in records
    ]


def render(document: InvestigationDocument, records: Sequence[EvidenceRecord]) -> str:
    """Return the Markdown summary; it adds no conclusion of its own."""
    lines = [
        f"# Investigation of {escape(document.case_id)}, revision {document.analysis_revision}",
        "",
        _outcome(document),
        "",
        "## Hypotheses",
        "",
        "| id | title | effective | requested | end | spent | rewarded | left |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_hypothesis(document, item) for item in document.hypotheses),
        "",
        "## Causal reviews",
        "",
        *(line for item in document.hypotheses for line in _review(item)),
        "## Looks",
        "",
        "| id | for | tool | purpose | result | evidence |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_look(action) for action in document.actions),
        "",
        "## Evidence",
        "",
        "| id | tool | place | completeness | excerpt |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {row.evidence_id} | {escape(row.tool)} | {escape(row.place)} | {row.completeness} "
            f"| {escape(row.excerpt)} |"
            for row in evidence_rows(records)
        ),
        "",
        "## Not examined",
        "",
        *([f"- {escape(item.text)}" for item in document.not_examined] or ["Nothing was left out."]),
        "",
    ]
    return "\n".join(lines)


def _outcome(document: InvestigationDocument) -> str:
    dispatches = f"Ended as `{document.reason}` after {document.dispatches} dispatches"
    return (
        f"{dispatches}; {document.evidence_count} evidence records; {document.budget.net_spent} units spent."
    )


def _hypothesis(document: InvestigationDocument, item: HypothesisEnd) -> str:
    account = document.budget.accounts[item.hypothesis_id]
    return (
        f"| {item.hypothesis_id} | {escape(str(item.entry.get('title', '')))} "
        f"| {item.effective_confidence.value} | {item.requested_confidence.value} "
        f"| {item.terminal_reason} | {account.spent} | {account.rewarded} | {account.balance} |"
    )


def _review(item: HypothesisEnd) -> list[str]:
    review = item.last_review
    if review is None:
        return [f"- **{item.hypothesis_id}** was never judged.", ""]
    effect = review.effect.value if review.effect else "not declared"
    sides = f"for: {', '.join(review.support) or 'none'}; against: {', '.join(review.against) or 'none'}"
    lines = [f"- **{item.hypothesis_id}**: {effect}; {sides}. {escape(review.reason)}"]
    lines.extend(f"  - {escape(note)}" for note in item.notes)
    lines.extend(f"  - open question: {escape(question)}" for question in item.questions)
    return [*lines, ""]


def _look(item: ActionEnd) -> str:
    result = item.result
    state = f"{result.status}, {result.completeness.value}" + (", empty" if result.empty else "")
    return (
        f"| {item.action.action_id} | {item.action.hypothesis_id} | {escape(item.action.tool)} "
        f"| {escape(item.action.purpose)} | {state} | {', '.join(result.evidence_ids) or 'none'} |"
    )
