"""Reading the report: statements by source type, entities that stand literally in it, what is missing.

The analyst invents no words: every statement is the source's own text, shortened. What a source may
ground is decided by the enums the request carries.
"""

from __future__ import annotations

import re
from typing import Any

from resources.llm.providers.offline.view import Case, Json, Source, case_of, clip, one
from viano_assets.phases.protocols import ModelRequest

STATEMENT_CHARS = 900
MAX_STATEMENTS = 40
MAX_ENTITIES = 40

CATEGORY_TYPES = {
    "observed_behavior": ("observation", "report", "comment"),
    "expected_behavior": ("expectation", "external_expectation"),
    "reproduction_steps": ("reproduction_step",),
    "technical_facts": ("technical_fact", "environment"),
    "tester_assumptions": ("tester_assumption",),
}

ENTITY_KINDS = {
    "id": "id",
    "identifier": "identifier",
    "path": "file",
    "error": "error message",
    "version": "version",
    "commit": "commit",
    "command": "command",
    "stack_frame": "stack frame",
    "log_line": "log line",
}

_FAILURE = re.compile(
    r"\b(error|exception|traceback|fail(?:s|ed|ure)?|crash(?:es|ed)?|abort(?:s|ed)?|refus(?:es|ed)|"
    r"wrong|missing|never|nothing|not|fehler\w*|absturz\w*|falsch\w*|fehlt|nie|nichts|nicht|kein\w*)\b",
    re.IGNORECASE,
)

MISSING = {
    "observation": ("what exactly was seen", "was genau beobachtet wurde"),
    "expectation": ("what should have happened instead", "was stattdessen geschehen sollte"),
    "reproduction_step": ("the steps that lead there", "die Schritte, die dorthin führen"),
    "environment": ("version and environment of the test", "Version und Umgebung des Tests"),
    "diagnostics": (
        "logs, configuration and data of the affected run",
        "Logs, Konfiguration und Daten des betroffenen Laufs",
    ),
    "source": ("the source of the tested version", "der Quelltext der getesteten Version"),
}


def _statement(source: Source) -> Json:
    return {"text": clip(source.text, STATEMENT_CHARS), "source_ids": [source.id]}


def statements(case: Case, enums: dict[str, list[str]], category: str) -> list[Json]:
    """Return one statement per source that the category's enum allows and whose type belongs there."""
    allowed = set(enums.get(category, []))
    types = CATEGORY_TYPES[category]
    chosen = [s for s in case.of(*types) if s.id in allowed and s.text.strip()]
    return [_statement(source) for source in chosen[:MAX_STATEMENTS]]


def _completeness(source: Source) -> str:
    words = len(source.text.split())
    if words >= 8:
        return "complete"
    return "partial" if words >= 3 else "unknown"


def _expected(case: Case, enums: dict[str, list[str]]) -> list[Json]:
    allowed = set(enums.get("expected_behavior", []))
    return [
        _statement(source) | {"expectation_completeness": _completeness(source)}
        for source in case.of(*CATEGORY_TYPES["expected_behavior"])
        if source.id in allowed and source.text.strip()
    ][:MAX_STATEMENTS]


def _focus(case: Case, enums: dict[str, list[str]], category: str) -> Source | None:
    """Return the first source that names a failure, else the first allowed one."""
    allowed = set(enums.get(category, []))
    candidates = [
        s for s in case.of("observation", "report", "comment") if s.id in allowed and s.text.strip()
    ]
    failing = [source for source in candidates if _FAILURE.search(source.text)]
    chosen = failing or candidates
    return chosen[0] if chosen else None


def entities(case: Case) -> list[Json]:
    """Return the named things of the case; each value stands literally in the cited source."""
    found: dict[tuple[str, str], Json] = {}
    for source in case.sources:
        if source.kind not in ENTITY_KINDS:
            continue
        for label, value in _values(source):
            if value not in source.text or len(value) > 300 or not value.strip():
                continue
            key = (ENTITY_KINDS[source.kind], value)
            entry = found.setdefault(key, {"kind": key[0], "value": value, "label": label, "source_ids": []})
            if source.id not in entry["source_ids"]:
                entry["source_ids"].append(source.id)
    return list(found.values())[:MAX_ENTITIES]


def _values(source: Source) -> list[tuple[str, str]]:
    if source.kind in {"stack_frame", "id", "version", "path", "identifier", "commit"} and source.attributes:
        return [(name, value) for name, value in sorted(source.attributes.items()) if value in source.text]
    first = next((line.strip() for line in source.text.splitlines() if line.strip()), "")
    return [(source.kind or "text", first[:300])]


def missing_information(case: Case) -> list[str]:
    """Name the parts a useful report has and this one lacks, in the report's language."""
    index = 1 if case.german else 0
    have = {source.type for source in case.sources}
    if "report" in have or "comment" in have:
        have.add("observation")
    lacking = [
        MISSING[name][index]
        for name in ("observation", "expectation", "reproduction_step")
        if name not in have
    ]
    if "environment" not in have and not any(s.kind == "version" for s in case.sources):
        lacking.append(MISSING["environment"][index])
    lacking += [MISSING[role][index] for role in ("diagnostics", "source") if role not in case.roles]
    return lacking


def interpret(case: Case, enums: dict[str, list[str]]) -> dict[str, Any]:
    """Return the interpretation of `case` under the given source enums."""
    observed = statements(case, enums, "observed_behavior")
    failure = _focus(case, enums, "failure_stage")
    divergence = _focus(case, enums, "first_known_divergence")
    named = entities(case)
    lookups = [
        {
            "question": clip(f"Where does {entity['value']} occur in the inputs?", 300),
            "entity": entity["value"],
            "certainty": "uncertain",
        }
        for entity in named[:8]
    ]
    summary = case.title or (observed[0]["text"] if observed else "No observation is reported.")
    return {
        "summary": clip(summary, 400),
        "observed_behavior": observed,
        "expected_behavior": _expected(case, enums),
        "reproduction_steps": statements(case, enums, "reproduction_steps"),
        "technical_facts": statements(case, enums, "technical_facts"),
        "tester_assumptions": statements(case, enums, "tester_assumptions"),
        "failure_stage": _statement(failure) if failure else None,
        "first_known_divergence": _statement(divergence) if divergence else None,
        "entities": named,
        "lookups": lookups,
        "missing_information": missing_information(case),
        "open_questions": [],
    }


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `interpretation-output-v1`."""
    return interpret(case_of(request), one(request, "source_enums"))
