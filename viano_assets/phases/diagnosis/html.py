"""`diagnosis.html`: one self-contained page for a tester; no script, no request, deterministic.

Everything from a case is escaped by the template engine; a content-security policy in the page forbids
scripts and remote content even so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.diagnosis.claims import split_quotes, text_lines
from viano_assets.phases.diagnosis.ground import quoted_at
from viano_assets.phases.diagnosis.summary import (
    HARMLESS,
    confidence_text,
    document_places,
    end_text,
    firmness,
    limits_shown,
    location_text,
    more_lines,
    place_text,
    places_title,
    stored_lines,
    tested_text,
)
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.markdown import plain

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

VERSION = 4
"""Version of the page (docs/reading.md says when it changes)."""

TEMPLATE = Path(__file__).with_name("report.html.j2")
SHORT_LINES = 8
"""Lines of a quote shown unfolded."""

GIST_LINES = 2
"""Lines of a quote shown where a hypothesis cites it."""

LONG_LINES = 200
"""Lines of a quote shown when unfolded; the stored record has them all."""


def _shown(value: object) -> object:
    return value.translate(HARMLESS) if isinstance(value, str) else value


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  # keeps the command line quick

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["place"] = location_text
    environment.filters["marked"] = _marked
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _marked(text: str) -> Markup:
    """Return a text escaped, its quotes set as code."""
    from markupsafe import Markup  # noqa: PLC0415

    parts: list[Markup] = []
    for number, piece in enumerate(split_quotes(text.translate(HARMLESS))):
        parts.append(Markup("<code>{}</code>").format(piece) if number % 2 else Markup("{}").format(piece))
    return Markup("").join(parts)


def _gist(record: EvidenceRecord, lines: list[str], quotes: Sequence[str]) -> list[str]:
    """Return the lines the diagnosis quotes, else the first that say something."""
    found = [quoted_at(record, quote) for quote in quotes]
    quoted = [lines[at.line] for at in found if at is not None and at.line < len(lines)]
    telling = [line for line in lines if any(char.isalnum() for char in line)]
    return list(dict.fromkeys(quoted or telling))[:GIST_LINES]


def _card(record: EvidenceRecord, cause: set[str], quotes: Sequence[str]) -> dict[str, Any]:
    lines = [line.translate(HARMLESS) for line in text_lines(record.content)]
    start = record.provenance.location.line_start
    numbered = start is not None and record.provenance.kind in {"source", "config", "log"}
    first = 1 if start is None else start
    shown = [(first + i if numbered else None, line) for i, line in enumerate(lines[:LONG_LINES])]
    return {
        "id": record.evidence_id,
        "place": place_text(record),
        "tool": record.tool,
        "completeness": record.completeness.value,
        "cause": record.evidence_id in cause,
        "cut": record.cause,
        "gist": _gist(record, [line for _, line in shown], quotes),
        "short": shown[:SHORT_LINES],
        "long": shown[SHORT_LINES:],
        "more": len(lines) - len(shown),
        "total": len(lines),
        "scope": [f"{name}: {plain(str(value))}" for name, value in sorted(record.scope.items())],
    }


def _texts(diagnosis: Mapping[str, Any]) -> list[str]:
    cause = diagnosis["root_cause"]
    texts = [cause["summary"], cause["technical_description"]] if cause else []
    return [*texts, diagnosis["final_reason"], *(e["reason"] for e in diagnosis["evaluations"])]


def diagnosis_html(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> bytes:
    """Return the report page of a result document."""
    diagnosis = document["diagnosis"]
    cause = set(diagnosis["root_cause"]["evidence_ids"]) if diagnosis["root_cause"] else set()
    ids = [name for name in document["shown_evidence"] if name in records]
    quotes = [quote for text in _texts(diagnosis) for quote in split_quotes(text)[1::2]]
    cards = {name: _card(records[name], cause, quotes) for name in ids}
    selected = diagnosis["selected_hypothesis"]
    t = Wording.of(document)
    hypotheses = sorted(document["hypotheses"], key=lambda item: item["id"] != selected)
    page = _template().render(
        document=document,
        diagnosis=diagnosis,
        hypotheses=hypotheses,
        cards=cards,
        places=document_places(document, records),
        limits=limits_shown(document["not_examined"], document["hypotheses"]),
        places_title=places_title(document),
        confidence=confidence_text(document),
        firmness=firmness(document),
        t=t,
        more_lines=more_lines,
        stored_lines=stored_lines,
        words=t.words,
        tested=[tested_text(t, item["evaluation"]["countercheck"]) for item in hypotheses],
        ends=[end_text(t, item) for item in hypotheses],
    )
    return page.rstrip().encode() + b"\n"
