"""The register of hypotheses for people: what each predicts, what would falsify it, what it stands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viano_assets.case.model import CaseDocument
from viano_assets.phases.markdown import escape, plain, shorten

VERSION = 1
"""Version of the Markdown (docs/reading.md says when it changes)."""

_LISTS = (
    ("expected_evidence", "Would support it"),
    ("falsifying_evidence", "Would falsify it"),
    ("open_questions", "Open questions"),
)
QUOTE_WIDTH = 120
"""Longest quotation, in characters."""


def _grounds(item: Mapping[str, Any], statements: Mapping[str, str], case: CaseDocument) -> Iterator[str]:
    sources = {source.id: source for source in case.sources}
    for name in item["interpretation_ids"]:
        yield f"{name}: “{shorten(statements[name], QUOTE_WIDTH)}”"
    for name in item["source_ids"]:
        source = sources[name]
        yield f"{name} ({source.type.value}): “{shorten(source.text, QUOTE_WIDTH)}”"


def hypotheses_markdown(
    document: Mapping[str, Any], statements: Mapping[str, str], case: CaseDocument
) -> bytes:
    """Return the deterministic, escaped `hypotheses.md`.

    `statements` maps interpretation ids to their texts.
    """
    lines = [
        f"# Hypotheses for {escape(case.title)}",
        "",
        "Possible causes, untested. None of them is a confirmed root cause.",
        "",
    ]
    for item in document["hypotheses"]:
        budget = item["budget_allocation"]
        lines += [
            f"## {item['id']} {escape(item['title'])}",
            "",
            f"{item['role']}, {item['status']}, {item['confidence']}, {budget['initial']} {budget['unit']}",
            "",
            f"- Mechanism: {escape(item['mechanism'])}",
            f"- Rationale: {escape(item['rationale'])}",
            f"- Differs from the others: {escape(item['distinction'])}",
        ]
        for name, title in _LISTS:
            lines += [f"- {title}: {escape(text)}" for text in item[name]]
        lines += ["- Stands on:", *(f"  - {escape(line)}" for line in _grounds(item, statements, case)), ""]
    return ("\n".join(lines).rstrip() + "\n").encode()


def hypotheses_text(document: Mapping[str, Any], statements: Mapping[str, str], case: CaseDocument) -> str:
    """Return the register as plain text for a terminal."""
    lines: list[str] = []
    for item in document["hypotheses"]:
        lines += [f"{item['id']}  {plain(item['title'])}", f"    {plain(item['mechanism'])}"]
        for name, title in _LISTS:
            lines += [f"    {title}: {plain(text)}" for text in item[name]]
        lines += [f"    stands on {line}" for line in _grounds(item, statements, case)]
        lines.append("")
    return "\n".join(lines)
