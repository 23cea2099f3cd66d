"""The interpretation for people: every statement with the words of the report it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viano_assets.case.model import CaseDocument, CaseSource
from viano_assets.phases.interpretation.rules import ARRAYS, SINGLES
from viano_assets.phases.markdown import escape, plain, shorten

VERSION = 1
"""Version of the Markdown (docs/reading.md says when it changes)."""

TITLES: Mapping[str, str] = {
    "observed_behavior": "Observed behaviour",
    "expected_behavior": "Expected behaviour",
    "reproduction_steps": "Steps to reproduce",
    "technical_facts": "Technical facts",
    "tester_assumptions": "Assumptions of the tester (not observations)",
    "failure_stage": "Failure stage",
    "first_known_divergence": "First known divergence",
}
"""Heading of each category."""

QUOTE_WIDTH = 160
"""Longest quotation of a source, in characters."""


def _quotes(ids: Sequence[str], sources: Mapping[str, CaseSource]) -> Iterator[str]:
    for source_id in ids:
        source = sources[source_id]
        lines = f"lines {source.origin.line_start}–{source.origin.line_end}"
        if source.origin.line_start == source.origin.line_end:
            lines = f"line {source.origin.line_start}"
        name = source.origin.input_path.rsplit("/", 1)[-1]
        yield f"{source_id} ({source.type.value}, {name} {lines}): “{shorten(source.text, QUOTE_WIDTH)}”"


def _grouped(statements: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for category in (*ARRAYS, *SINGLES):
        found = [statement for statement in statements if statement["category"] == category]
        if found:
            yield category, found


def interpretation_markdown(document: Mapping[str, Any], case: CaseDocument) -> bytes:
    """Return the deterministic, escaped `interpretation.md` of an interpretation document."""
    sources = {source.id: source for source in case.sources}
    payload = document["interpretation"]
    lines = [f"# Interpretation of {escape(case.title)}", "", escape(payload["summary"]), ""]
    expected = payload["expected_behavior"]
    for category, found in _grouped(document["statements"]):
        lines += [f"## {TITLES[category]}", ""]
        for index, statement in enumerate(found):
            note = ""
            if category == "expected_behavior":
                note = f" ({expected[index]['expectation_completeness']} expectation)"
            lines.append(f"- **{statement['id']}** {escape(statement['text'])}{note}")
            lines += [f"  - {escape(quote)}" for quote in _quotes(statement["source_ids"], sources)]
        lines.append("")
    lines += _rest(payload)
    lines += _notes(case)
    return ("\n".join(lines).rstrip() + "\n").encode()


def _rest(payload: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    if payload["entities"]:
        lines += ["## Named in the case", ""]
        lines += [
            f"- {escape(item['kind'])}: {escape(item['value'])} — {escape(item['label'])} "
            f"({', '.join(item['source_ids'])})"
            for item in payload["entities"]
        ]
        lines.append("")
    if payload["lookups"]:
        lines += ["## To be looked up (not done yet)", ""]
        lines += [f"- {escape(item['question'])} ({escape(item['entity'])})" for item in payload["lookups"]]
        lines.append("")
    for name, title in (("missing_information", "Missing information"), ("open_questions", "Open questions")):
        if payload[name]:
            lines += [f"## {title}", "", *(f"- {escape(item)}" for item in payload[name]), ""]
    return lines


def _notes(case: CaseDocument) -> list[str]:
    if not case.notes:
        return []
    return ["## Notes of the intake", "", *(f"- {escape(note)}" for note in case.notes), ""]


def interpretation_text(document: Mapping[str, Any], case: CaseDocument) -> str:
    """Return the interpretation as plain text for a terminal, each statement above its quotations."""
    sources = {source.id: source for source in case.sources}
    payload = document["interpretation"]
    lines = [plain(payload["summary"])]
    for category, found in _grouped(document["statements"]):
        lines += ["", TITLES[category]]
        for statement in found:
            lines.append(f"  {statement['id']:>4}  {plain(statement['text'])}")
            lines += [f"        {quote}" for quote in _quotes(statement["source_ids"], sources)]
    named = (("missing_information", "Missing information"), ("open_questions", "Open questions"))
    for name, title in named:
        if payload[name]:
            lines += ["", title, *(f"  - {plain(item)}" for item in payload[name])]
    if case.notes:
        lines += ["", "Notes of the intake", *(f"  - {plain(note)}" for note in case.notes)]
    return "\n".join(lines) + "\n"
