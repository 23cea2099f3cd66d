"""Joint planning: interpretation and candidates in one answer, and local repairs of it.

The plan is the analyst's own reading with its own proposals over it, referring by path. A repair says a
disputed statement with the words of an allowed source, or removes it; a candidate that shares words with
a disputed statement is called uncertain, because that may be a hidden dependence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from resources.llm.providers.offline.proposing import propose
from resources.llm.providers.offline.reading import CATEGORY_TYPES, STATEMENT_CHARS, interpret
from resources.llm.providers.offline.view import Json, case_of, clip, one
from viano_assets.phases.planning.compression import expand
from viano_assets.phases.protocols import ModelRequest

SINGLES = ("failure_stage", "first_known_divergence")
SHARED_WORDS = 3
"""Words a candidate may not share with a disputed statement without being asked for again."""

_WORD = re.compile(r"\w{4,}")


def _by_path(interpretation: Json) -> Json:
    """Return the interpretation as `propose` reads it, with each statement named by its path."""
    statements = [
        {"id": f"/{category}/{index}", "category": category, **statement}
        for category in CATEGORY_TYPES
        for index, statement in enumerate(interpretation[category])
    ]
    statements += [
        {"id": f"/{name}", "category": name, **interpretation[name]}
        for name in SINGLES
        if interpretation[name]
    ]
    return {
        "statements": statements,
        **{name: f"/{name}" if interpretation[name] else None for name in SINGLES},
    }


def _planned(candidate: Json, *, german: bool) -> Json:
    planned = {name: value for name, value in candidate.items() if name != "interpretation_ids"}
    paths = candidate["interpretation_ids"]
    seen = "Der Bericht beschreibt dieses Verhalten." if german else "The report describes this behaviour."
    unseen = (
        "Der Mechanismus ist noch nicht in Quelltext, Daten oder Protokollen angesehen worden."
        if german
        else "The mechanism has not been looked at in source, data or logs."
    )
    planned["interpretation_paths"] = paths
    planned["premises"] = [
        {"kind": "grounded", "text": seen, "source_ids": [], "interpretation_paths": paths[:1]},
        {"kind": "unverified", "text": unseen, "source_ids": [], "interpretation_paths": []},
    ]
    return planned


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `case_plan_v2`."""
    case = case_of(request)
    interpretation = interpret(case, one(request, "source_enums"))
    if not interpretation["observed_behavior"]:
        return {"interpretation": interpretation, "hypotheses": []}
    candidates = propose(case, _by_path(interpretation), one(request, "policy"))
    return {
        "interpretation": interpretation,
        "hypotheses": [_planned(candidate, german=case.german) for candidate in candidates],
    }


def repair(request: ModelRequest) -> dict[str, Any]:
    """Answer `case_plan_statement_repair_v2`."""
    data = expand(one(request, "repair"))
    sources = {source["id"]: source for source in data["sources"]}
    patches = [{"path": place["path"], "value": _patched(place, sources)} for place in data["places"]]
    disputed = [_words(place["current"]) for place in data["places"]]
    return {"patches": patches, "reviews": [_review(item, disputed) for item in data["hypotheses"]]}


def _words(value: object) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(str(value)))


def _patched(place: Json, sources: Mapping[str, Json]) -> Any:
    field, *entry = place["path"].strip("/").split("/")
    allowed = [sources[name] for name in place["allowed_source_ids"] if name in sources]
    if field == "summary":
        return clip(allowed[0]["text"], 400) if allowed else "-"
    if not entry and field not in SINGLES:
        return [_said(source, field) for source in allowed] if field in CATEGORY_TYPES else []
    if field not in (*CATEGORY_TYPES, *SINGLES) or not allowed:
        return None
    wanted = _words(place["current"])
    shared = [len(wanted & _words(source["text"])) for source in allowed]
    return _said(allowed[shared.index(max(shared))], field) if max(shared) else None


def _said(source: Json, field: str) -> Json:
    statement: Json = {"text": clip(source["text"], STATEMENT_CHARS), "source_ids": [source["id"]]}
    if field == "expected_behavior":
        statement["expectation_completeness"] = "unknown"
    return statement


def _review(item: Json, disputed: Sequence[frozenset[str]]) -> Json:
    own = _words([item["proposal"], item["declared"]])
    touched = any(len(own & words) >= SHARED_WORDS for words in disputed)
    return {
        "position": item["position"],
        "decision": "uncertain" if touched else "retain",
        "reason": "It shares words with a corrected statement."
        if touched
        else "It names nothing of the corrected statements and rests on other ones.",
        "replacement": None,
    }
