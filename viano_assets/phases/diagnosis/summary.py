"""`diagnosis_result.md`: the result for people, deterministic, without a conclusion of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.diagnosis.claims import text_lines
from viano_assets.phases.diagnosis.places import Place, heading, ranked_places, shown_records
from viano_assets.phases.diagnosis.wording import GERMAN, Wording
from viano_assets.phases.markdown import escape, inline

VERSION = 4
"""Version of the Markdown (docs/reading.md says when it changes)."""

EXCERPT_LINES = 20
"""Lines of an excerpt shown in the summary; the stored record has them all."""

EXCERPT_WIDTH = 200
"""Characters of an excerpt line shown."""

_CONTROLS = (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
HARMLESS = dict.fromkeys(_CONTROLS, "\ufffd")
"""Translation that shows control and direction characters instead of obeying them; tab and newline stay."""


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
        _places(document, records),
        _evidence(document, records),
        _hypotheses(document, records),
        _limits(document),
    )
    text = "\n".join(line for block in blocks for line in block)
    return (text.rstrip() + "\n").encode()


def headline(document: Mapping[str, Any]) -> str:
    """Return the verdict in a few words."""
    diagnosis, t = document["diagnosis"], Wording.of(document)
    if diagnosis["status"] == "confirmed":
        return t("confirmed: {name}", name=diagnosis["selected_hypothesis"])
    return t("inconclusive: {kind}", kind=t.words(diagnosis["inconclusive_kind"]))


def confidence_text(document: Mapping[str, Any]) -> str:
    """Return effective and, when it differs, requested confidence, with the calibration that applied."""
    t = Wording.of(document)
    effective, requested = document["effective_confidence"], document["requested_confidence"]
    asked = t(" (requested: {level})", level=t.words(requested)) if requested != effective else ""
    return f"{t.words(effective)}{asked}; {calibration_text(document)}"


def calibration_text(document: Mapping[str, Any]) -> str:
    """Return how often results of this level were right, or that this has not been measured.

    Raw counts are the level's own; rate and interval are those of the levels it was pooled with. A
    calibration of form 1 has the interval of the level's own counts; its rate, a pooled one, is not said.
    """
    calibration, t = document["calibration"], Wording.of(document)
    level = (calibration.get("levels") or {}).get(document["effective_confidence"])
    if not level:
        status = t.words(calibration.get("status", "not measured"))
        return t("reliability of this level: {status}", status=status)
    if level.get("rate") is None:
        text = "reliability of this level: {right} of {n} known cases right"
        return t(text, right=level["right"], n=level["n"])
    rate, low, high = (f"{100 * share:.0f}" for share in (level["rate"], *level["interval"]))
    values = {"right": level["right"], "n": level["n"], "rate": rate, "low": low, "high": high}
    pooled = level.get("pooled")
    if pooled is None:
        return t(
            "reliability of this level: {right} of {n} known cases right (95 % interval {low} to {high} %)",
            **{name: values[name] for name in ("right", "n", "low", "high")},
        )
    if not pooled["with"]:
        return t(
            "reliability of this level: {right} of {n} known cases right, estimated {rate} % "
            "(95 % interval {low} to {high} %)",
            **values,
        )
    return t(
        "reliability of this level: {right} of {n} known cases right; together with {others} {all_right} of "
        "{all}: estimated {rate} % (95 % interval {low} to {high} %)",
        **values,
        others=", ".join(t.words(name) for name in pooled["with"]),
        all_right=pooled["right"],
        all=pooled["n"],
    )


def disagreement_text(document: Mapping[str, Any]) -> str | None:
    """Return what the offline analyst thinks otherwise, or None when nothing is to be said."""
    other, t = document["analyst_disagreement"], Wording.of(document)
    if other is None:
        return None
    if not other["analyst_valid"]:
        return t("The offline analyst gave no valid evaluation to compare with.")
    if other["agrees"]:
        return t("The offline analyst comes to the same result.")
    names = ", ".join(t.words(name) for name in other["differences"])
    chosen = other["analyst_selected_hypothesis"] or t.words(other["analyst_inconclusive_kind"] or "")
    status = t.words(other["analyst_status"])
    text = "The offline analyst differs in {names}: {status} {chosen}"
    return t(text, names=names, status=status, chosen=chosen).rstrip()


def robustness_text(document: Mapping[str, Any]) -> str | None:
    """Return which single records the result hangs on."""
    entries, t = document["robustness"], Wording.of(document)
    if not entries:
        return None
    fragile = [entry["evidence_id"] for entry in entries if not entry["stands"]]
    if not fragile:
        text = "The checks would pass without any single one of the {count} cited records."
        return t(text, count=len(entries))
    return t(
        "Without {names} the checks would not pass; without any other single record they would.",
        names=", ".join(fragile),
    )


def rejected_text(document: Mapping[str, Any]) -> str | None:
    """Return how many answers the checks rejected before this result, or None when there was none."""
    count = len(document["rejected_answers"])
    text = "Answers of the model that the checks rejected: {count}."
    return Wording.of(document)(text, count=count) if count else None


def places_title(document: Mapping[str, Any]) -> str:
    """Return the heading of the ranked places: a claim only when the cause is confirmed."""
    return Wording.of(document)(heading(confirmed=document["diagnosis"]["status"] == "confirmed"))


def more_lines(t: Wording, count: int) -> str:
    """Return how many lines are folded away or left out."""
    return t("1 more line") if count == 1 else t("{count} more lines", count=count)


def stored_lines(t: Wording, count: int) -> str:
    """Return how many lines only the package holds."""
    one, many = (
        "1 further line is stored in the package.",
        "{count} further lines are stored in the package.",
    )
    return t(one) if count == 1 else t(many, count=count)


def _verdict(document: Mapping[str, Any]) -> Iterator[str]:
    diagnosis, t = document["diagnosis"], Wording.of(document)
    yield from (f"# {escape(document['title'])}", "", f"**{escape(headline(document))}**", "")
    cause = diagnosis["root_cause"]
    if cause is not None:
        yield from (inline(cause["summary"]), "", inline(cause["technical_description"]), "")
    confidence = t("Confidence: {text}", text=escape(confidence_text(document)))
    yield from (inline(diagnosis["final_reason"]), "", confidence, "")
    if document["deciding_question"]:
        title = t("The question that would decide it")
        yield from (f"## {title}", "", inline(document["deciding_question"]), "")
    yield from _list(t("What a person should do next"), diagnosis["review_actions"])


def document_places(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> list[Place]:
    """Return the places of a result document in the order in which people are shown them."""
    shown = shown_records(records[name] for name in document["shown_evidence"] if name in records)
    return ranked_places(document["localisation"], document["diagnosis"], shown)


def _places(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> Iterator[str]:
    places = document_places(document, records)
    if not places:
        return
    t = Wording.of(document)
    yield from (f"## {places_title(document)}", "")
    for kind, place in places:
        yield f"- {t.words(kind)}: {escape(location_text(place))} ({t.words(place['basis'])})"
    yield ""


def _evidence(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> Iterator[str]:
    ids = [name for name in document["shown_evidence"] if name in records]
    if not ids:
        return
    t = Wording.of(document)
    yield from (f"## {t('Evidence')}", "")
    for name in ids:
        record = records[name]
        completeness = t.words(record.completeness.value)
        yield f"**{name}** {escape(place_text(record))} — {completeness}, {escape(record.tool)}"
        yield ""
        lines, more = excerpt_lines(record)
        yield from (f"    {line}" for line in lines)
        if more:
            yield f"    … {more_lines(t, more)}"
        yield ""


def _hypotheses(document: Mapping[str, Any], records: Mapping[str, EvidenceRecord]) -> Iterator[str]:
    t = Wording.of(document)
    yield from (f"## {t('Hypotheses')}", "")
    for item in document["hypotheses"]:
        evaluation = item["evaluation"]
        yield f"### {item['id']}: {escape(item['title'])}"
        yield ""
        yield f"{t.words(evaluation['verdict'])}. {inline(evaluation['reason'])}"
        yield ""
        for side, title in (("support", t("For")), ("against", t("Against"))):
            if evaluation[side]:
                yield f"- {title}: {escape('; '.join(_cite(name, records) for name in evaluation[side]))}"
        for entry in evaluation["contradictions"]:
            yield f"- {t('Contradiction')} {entry['evidence_id']}: {inline(entry['explanation'])}"
        check = evaluation["countercheck"]
        found = " ".join(check["evidence_ids"])
        yield f"- {tested_text(t, check)}: {inline(check['reason'])} {found}".rstrip()
        yield f"- {end_text(t, item)}"
        yield from (
            f"- {t('Open question')}: {inline(text)}"
            for text in (*item.get("open_questions", ()), *item["questions"])
        )
        yield ""


def tested_text(t: Wording, countercheck: Mapping[str, Any]) -> str:
    """Return whether an alternative was really tested."""
    return t("Countercheck adequate") if countercheck["adequate"] else t("Countercheck not adequate")


def end_text(t: Wording, hypothesis: Mapping[str, Any]) -> str:
    """Return how the investigation left a hypothesis."""
    return t(
        "End of the investigation: {status}, {reason}, confidence {level}",
        status=t.words(hypothesis["status"]),
        reason=t.words(hypothesis["terminal_reason"]),
        level=t.words(hypothesis["effective_confidence"]),
    )


def _cite(name: str, records: Mapping[str, EvidenceRecord]) -> str:
    record = records.get(name)
    return name if record is None else f"{name} ({place_text(record)})"


def _limits(document: Mapping[str, Any]) -> Iterator[str]:
    t = Wording.of(document)
    yield from _list(t("Remaining uncertainty"), document["diagnosis"]["remaining_uncertainty"])
    yield from _list(t("Not examined"), limits_shown(document["not_examined"], document["hypotheses"]))
    yield from _list(t("How firm it is"), firmness(document))


def limits_shown(limits: Sequence[str], hypotheses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was not examined, said so that it agrees with the final evaluation.

    A hypothesis the investigation never judged may still be judged at the end: then both is said.
    `hypotheses` are those of a result document or of a case view.
    """
    cited = {str(item["id"]): _evaluated(item) for item in hypotheses}
    return [_agreeing(text, cited) for text in limits]


def _evaluated(item: Mapping[str, Any]) -> list[str]:
    evaluation = item["evaluation"] if "evaluation" in item else item if item.get("verdict") else None
    if not evaluation:
        return []
    tested = (evaluation.get("countercheck") or {}).get("evidence_ids") or ()
    return list(dict.fromkeys([*evaluation["support"], *evaluation["against"], *tested]))


def _agreeing(text: str, cited: Mapping[str, Sequence[str]]) -> str:
    said = "{hypothesis} was never judged by evidence"
    for language, template in (("en", said), ("de", GERMAN[said])):
        name = text.removesuffix(template.removeprefix("{hypothesis}"))
        if name != text and cited.get(name):
            return Wording(language)(
                "{hypothesis} was never judged in the investigation; the final evaluation cites {names}",
                hypothesis=name,
                names=", ".join(cited[name]),
            )
    return text


def firmness(document: Mapping[str, Any]) -> list[str]:
    """Return what is known of how firm a result is."""
    texts = (robustness_text(document), disagreement_text(document), rejected_text(document))
    return [text for text in texts if text]


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from (f"## {title}", "", *(f"- {inline(text)}" for text in items), "")
