"""`diagnosis_result.md`: the result for people, deterministic, without a conclusion of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.diagnosis.claims import text_lines
from viano_assets.phases.markdown import escape

VERSION = 1
"""Version of the Markdown (docs/reading.md says when it changes)."""

EXCERPT_LINES = 20
"""Lines of an excerpt shown in the summary; the stored record has them all."""

EXCERPT_WIDTH = 200
"""Characters of an excerpt line shown."""

_CONTROLS = (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
HARMLESS = dict.fromkeys(_CONTROLS, "\ufffd")
"""Translation that shows control and direction characters instead of obeying them; tab and newline stay."""


def words(value: str) -> str:
    """Return a level or kind as words."""
    return value.replace("_", " ")


def place_text(record: EvidenceRecord) -> str:
    """Return where a record stands, for people."""
    return location_text(record.provenance.location.model_dump()) or record.tool


def location_text(place: Mapping[str, Any]) -> str:
    """Return a file, symbol or row location for people; empty when it names none."""
    parts: list[str] = []
    if place.get("path"):
        start, end = place.get("line_start"), place.get("line_end")
        span = "" if start is None else f":{start}" + (f"-{end}" if end not in {None, start} else "")
        parts.append(f"{place['path']}{span}")
    if place.get("symbol"):
        parts.append(str(place["symbol"]))
    if place.get("table"):
        key = ", ".join(f"{name}={value}" for name, value in sorted((place.get("key") or {}).items()))
        column = f".{place['column']}" if place.get("column") else ""
        parts.append(f"{place['table']}{column}" + (f" [{key}]" if key else ""))
    return "  ".join(parts)


def excerpt_lines(record: EvidenceRecord) -> tuple[list[str], int]:
    """Return the shown lines of a record, made harmless for a terminal, and how many are left out."""
    lines = [line.translate(HARMLESS) for line in text_lines(record.content)]
    shown = [
        line if len(line) <= EXCERPT_WIDTH else line[: EXCERPT_WIDTH - 1] + "…"
        for line in lines[:EXCERPT_LINES]
    ]
    return shown, len(lines) - len(shown)


def diagnosis_markdown(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> bytes:
    """Return the deterministic, escaped summary of a result document."""
    blocks = (
        _verdict(document),
        _places(document),
        _evidence(document, records),
        _hypotheses(document, records),
        _limits(document),
    )
    text = "\n".join(line for block in blocks for line in block)
    return (text.rstrip() + "\n").encode()


def headline(document: Mapping[str, Any]) -> str:
    """Return the verdict in a few words."""
    diagnosis = document["diagnosis"]
    if diagnosis["status"] == "confirmed":
        return f"confirmed: {diagnosis['selected_hypothesis']}"
    return f"inconclusive: {words(diagnosis['inconclusive_kind'])}"


def confidence_text(document: Mapping[str, Any]) -> str:
    """Return effective and, when it differs, requested confidence, with the calibration that applied."""
    effective, requested = document["effective_confidence"], document["requested_confidence"]
    asked = f" (requested: {words(requested)})" if requested != effective else ""
    return f"{words(effective)}{asked}; {calibration_text(document)}"


def calibration_text(document: Mapping[str, Any]) -> str:
    """Return how often results of this level were right, or that this has not been measured."""
    calibration = document["calibration"]
    level = (calibration.get("levels") or {}).get(document["effective_confidence"])
    if not level:
        return f"reliability of this level: {calibration.get('status', 'not measured')}"
    if level.get("rate") is None:
        return f"reliability of this level: {level['right']} of {level['n']} known cases right"
    low, high = level["interval"]
    return (
        f"reliability of this level: {100 * level['rate']:.0f} % of {level['n']} known cases right "
        f"(95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
    )


def disagreement_text(document: Mapping[str, Any]) -> str | None:
    """Return what the offline analyst thinks otherwise, or None when nothing is to be said."""
    other = document["analyst_disagreement"]
    if other is None:
        return None
    if not other["analyst_valid"]:
        return "The offline analyst gave no valid evaluation to compare with."
    if other["agrees"]:
        return "The offline analyst comes to the same result."
    names = ", ".join(words(name) for name in other["differences"])
    chosen = other["analyst_selected_hypothesis"] or words(other["analyst_inconclusive_kind"] or "")
    return f"The offline analyst differs in {names}: {other['analyst_status']} {chosen}".rstrip()


def robustness_text(document: Mapping[str, Any]) -> str | None:
    """Return which single records the result hangs on."""
    entries = document["robustness"]
    if not entries:
        return None
    fragile = [entry["evidence_id"] for entry in entries if not entry["stands"]]
    if not fragile:
        return f"The checks would pass without any single one of the {len(entries)} cited records."
    return (
        f"Without {', '.join(fragile)} the checks would not pass; without any other single record they would."
    )


def _verdict(document: Mapping[str, Any]) -> Iterator[str]:
    diagnosis = document["diagnosis"]
    yield from (f"# {escape(document['title'])}", "", f"**{escape(headline(document))}**", "")
    cause = diagnosis["root_cause"]
    if cause is not None:
        yield from (escape(cause["summary"]), "", escape(cause["technical_description"]), "")
    yield from (escape(diagnosis["final_reason"]), "", f"Confidence: {escape(confidence_text(document))}", "")
    if document["deciding_question"]:
        yield from ("## The question that would decide it", "", escape(document["deciding_question"]), "")
    yield from _list("What a person should do next", diagnosis["review_actions"])


def ranked_places(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the five best places of each kind; the kind of the best cited evidence comes first."""
    ranked = document["localisation"]
    best = (document["cited_kinds"] or ["symbols"])[0]
    kinds = ("rows", "symbols", "files") if best == "rows" else ("symbols", "files", "rows")
    return [(kind[:-1], place) for kind in kinds for place in ranked[kind][:5]]


def _places(document: Mapping[str, Any]) -> Iterator[str]:
    ranked = document["localisation"]
    if not any(ranked.values()):
        return
    claim = document["diagnosis"]["status"] == "confirmed"
    yield from ("## Where" if claim else "## Where to look first (a ranking, not a claim)", "")
    for kind, place in ranked_places(document):
        yield f"- {kind}: {escape(location_text(place))} ({place['basis']})"
    yield ""


def _evidence(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> Iterator[str]:
    ids = [name for name in document["shown_evidence"] if name in records]
    if not ids:
        return
    yield from ("## Evidence", "")
    for name in ids:
        record = records[name]
        yield f"**{name}** {escape(place_text(record))} — {record.completeness.value}, {escape(record.tool)}"
        yield ""
        lines, more = excerpt_lines(record)
        yield from (f"    {line}" for line in lines)
        if more:
            yield f"    … {more} more lines"
        yield ""


def _hypotheses(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> Iterator[str]:
    yield from ("## Hypotheses", "")
    for item in document["hypotheses"]:
        evaluation = item["evaluation"]
        yield f"### {item['id']}: {escape(item['title'])}"
        yield ""
        yield f"{words(evaluation['verdict'])}. {escape(evaluation['reason'])}"
        yield ""
        for side, title in (("support", "For"), ("against", "Against")):
            if evaluation[side]:
                yield f"- {title}: {escape('; '.join(_cite(name, records) for name in evaluation[side]))}"
        for contradiction in evaluation["contradictions"]:
            yield f"- Contradiction {contradiction['evidence_id']}: {escape(contradiction['explanation'])}"
        check = evaluation["countercheck"]
        tested = "adequate" if check["adequate"] else "not adequate"
        found = " ".join(check["evidence_ids"])
        yield f"- Countercheck {tested}: {escape(check['reason'])} {found}".rstrip()
        yield (
            f"- End of the investigation: {words(item['status'])}, {words(item['terminal_reason'])}, "
            f"confidence {words(item['effective_confidence'])}"
        )
        yield from (
            f"- Open question: {escape(text)}"
            for text in (*item.get("open_questions", ()), *item["questions"])
        )
        yield ""


def _cite(name: str, records: Mapping[str, EvidenceRecord]) -> str:
    record = records.get(name)
    return name if record is None else f"{name} ({place_text(record)})"


def _limits(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _list("Remaining uncertainty", document["diagnosis"]["remaining_uncertainty"])
    yield from _list("Not examined", document["not_examined"])
    checks = [robustness_text(document), disagreement_text(document)]
    if document["rejected_answers"]:
        checks.append(
            f"{len(document['rejected_answers'])} answers of the model were rejected by the checks."
        )
    yield from _list("How firm it is", [text for text in checks if text])


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from (f"## {title}", "", *(f"- {escape(text)}" for text in items), "")
