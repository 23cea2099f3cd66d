"""Proposing competing mechanisms: families chosen by what can be examined, grounded in the case's words."""

from __future__ import annotations

from typing import Any

from resources.llm.providers.offline.mechanisms import Mechanism, candidates
from resources.llm.providers.offline.view import Case, Json, case_of, clip, one
from resources.llm.providers.offline.wording import subject
from viano_assets.phases.protocols import ModelRequest

DEFAULT_COUNT = 4


def _focus_text(case: Case, interpretation: Json) -> str:
    by_id = {item["id"]: item for item in interpretation.get("statements", [])}
    for name in ("first_known_divergence", "failure_stage"):
        reference = interpretation.get(name)
        if reference in by_id:
            return clip(by_id[reference]["text"], 260)
    observed = [s for s in interpretation.get("statements", []) if "observed" in s["category"]]
    return clip(observed[0]["text"] if observed else case.title, 260)


def _grounding(interpretation: Json) -> tuple[list[str], list[str]]:
    """Return the case sources and interpretation aliases every candidate rests on."""
    statements = interpretation.get("statements", [])
    by_id = {item["id"]: item for item in statements}
    observed = [s for s in statements if "observed" in s["category"]]
    focus = next(
        (
            interpretation[name]
            for name in ("first_known_divergence", "failure_stage")
            if interpretation.get(name) in by_id
        ),
        observed[0]["id"] if observed else None,
    )
    aliases = [focus] if focus else []
    if observed and observed[0]["id"] not in aliases:
        aliases.append(observed[0]["id"])
    sources: list[str] = []
    for alias in aliases:
        for source in by_id[alias]["source_ids"]:
            if source not in sources:
                sources.append(source)
    return sources, aliases


def propose(case: Case, interpretation: Json, policy: Json) -> list[Json]:
    """Return the candidates in registry order; the first is the primary one."""
    lowest, highest = int(policy.get("min_hypotheses", 3)), int(policy.get("max_hypotheses", 5))
    count = min(max(DEFAULT_COUNT, lowest), highest)
    sources, aliases = _grounding(interpretation)
    focus = _focus_text(case, interpretation).rstrip(".")
    facts = [s.id for s in case.of("technical_fact")][:3]
    grounded = sources + [f for f in facts if f not in sources]
    return [
        _candidate(case, mechanism, focus, grounded, aliases) for mechanism in candidates(case.roles, count)
    ]


def _candidate(case: Case, mechanism: Mechanism, focus: str, sources: list[str], aliases: list[str]) -> Json:
    words = mechanism.words(german=case.german)
    return {
        "title": f"{words.label}: {words.title.format(subject=subject(case.title, 80) or words.label)}",
        "mechanism": words.mechanism.format(focus=focus),
        "rationale": words.rationale,
        "distinction": words.distinction,
        "source_ids": sources,
        "interpretation_ids": aliases,
        "expected_evidence": [words.expected],
        "falsifying_evidence": [words.falsifying],
        "open_questions": [words.question],
    }


def around(locked: Json, proposals: list[Json]) -> list[Json]:
    """Return a batch that repeats the locked candidates at their positions and fills the others anew."""
    kept = {item["position"]: item["candidate"] for item in locked["retained"]}
    taken = {candidate[name].casefold() for candidate in kept.values() for name in ("title", "mechanism")}
    fresh = [
        proposal
        for proposal in proposals
        if proposal["title"].casefold() not in taken and proposal["mechanism"].casefold() not in taken
    ]
    free = iter(fresh)
    positions = range(1, locked["positions"] + 1)
    return [kept[number] if number in kept else next(free, proposals[0]) for number in positions]


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `hypotheses-output-v1`."""
    case, interpretation, policy = case_of(request), one(request, "interpretation"), one(request, "policy")
    locked = one(request, "joint_retained")
    if not locked or not locked["positions"]:
        return {"candidates": propose(case, interpretation, policy)}
    every = propose(case, interpretation, {**policy, "min_hypotheses": policy["max_hypotheses"]})
    return {"candidates": around(locked, every)}
