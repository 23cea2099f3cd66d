"""The final evaluation: the best supported family, its rivals tested by what was found, or why not."""

from __future__ import annotations

from typing import Any

from resources.llm.providers.offline.families import FAMILIES, judge_all
from resources.llm.providers.offline.findings import Record, from_evidence, ids
from resources.llm.providers.offline.scene import Judgement, Scene
from resources.llm.providers.offline.view import Json, case_of, one
from viano_assets.phases.protocols import ModelRequest
from viano_assets.phases.wire import Confidence

CAUSE_RECORDS = 5
CAUSE_LINES = 60


def scene_of(request: ModelRequest) -> Scene:
    """Read a diagnosis request."""
    return Scene(
        case=case_of(request),
        interpretation=one(request, "interpretation"),
        hypotheses=list(one(request, "hypotheses") or []),
        findings=from_evidence(request),
    )


def _usable(records: tuple[Record, ...]) -> list[str]:
    return ids(record for record in records if record.usable)


def _evaluation(hypothesis: Json, judgement: Judgement, *, selected: bool) -> Json:
    support, against = _usable(judgement.support), _usable(judgement.against)
    against = [item for item in against if item not in support]
    verdict = "undetermined"
    if hypothesis.get("status") == "rejected" and against:
        verdict = "rejected"
    elif selected:
        verdict = "supported"
    elif judgement.effect == "contradicts" and against:
        verdict = "weakened"
    elif judgement.effect == "supports" and support and judgement.level.rank >= Confidence.SUPPORTED.rank:
        verdict = "undetermined"
    tested = _usable(judgement.tested)
    return {
        "hypothesis_id": hypothesis["id"],
        "verdict": verdict,
        "reason": judgement.reason or "Nothing was found that decides it.",
        "support": support,
        "against": against,
        "scope_limits": list(judgement.limits),
        "contradictions": [
            {"evidence_id": item, "explanation": "It speaks for a rival and was weighed against the support."}
            for item in against
            if selected
        ],
        "countercheck": {
            "adequate": bool(tested) and not selected,
            "reason": judgement.reason if tested else "No look tested it.",
            "evidence_ids": tested,
        },
    }


def _selected(scene: Scene, judged: dict[str, Judgement]) -> str | None:
    """Return the hypothesis to confirm: supported, with a short cause and at least one tested rival."""
    ends = {str(entry["id"]): entry for entry in scene.hypotheses}
    order = list(FAMILIES)

    def key(identifier: str) -> tuple[int, int]:
        return (-judged[identifier].level.rank, order.index(scene.family(identifier)))

    for identifier in sorted(judged, key=key):
        judgement = judged[identifier]
        confirms = (
            judgement.level.rank >= Confidence.SUPPORTED.rank
            and judgement.effect == "supports"
            and scene.family(identifier) != "Intended"
            and ends[identifier].get("status") != "rejected"
            and bool(_cause(judgement))
        )
        rival = any(_usable(other.tested) for name, other in judged.items() if name != identifier)
        if confirms and rival:
            return identifier
    return None


def _cause(judgement: Judgement) -> list[str]:
    short = tuple(r for r in judgement.cause if r.usable and len(r.content.splitlines()) <= CAUSE_LINES)
    return ids(short, CAUSE_RECORDS)


def _kind(scene: Scene, judged: dict[str, Judgement]) -> tuple[str, list[str]]:
    for identifier, judgement in judged.items():
        strong = judgement.level.rank >= Confidence.SUPPORTED.rank and judgement.effect == "supports"
        if scene.family(identifier) == "Intended" and strong:
            premise = all(record.empty for record in judgement.support)
            return ("premise_contradicted" if premise else "intended_behaviour", _usable(judgement.support))
    read = scene.findings.of_kind("source", "config", "row", "query", "log")
    if not read or not scene.findings.rankings("symbols") or _poor(scene):
        return "insufficient_information", []
    return "undecided", []


def _poor(scene: Scene) -> bool:
    """Tell whether the report gives nothing to hold on to: no step, no fact, no named thing."""
    facts = scene.case.of("technical_fact", "implementation_reference", "reproduction_step")
    concrete = [
        s
        for s in facts
        if s.kind
        in {"stack_frame", "error", "code_block", "log_line", "identifier", "path", "command", "id", "sql"}
    ]
    return not concrete


REQUESTS = {
    "en": (
        "Send the log of the affected run, from its start to the failure, with the configuration in force.",
        "Send the stored records or the smallest input with which it fails, and one with which it works.",
    ),
    "de": (
        "Bitte das Log des betroffenen Laufs vom Start bis zum Fehler und die geltende Konfiguration senden.",
        "Bitte die gespeicherten Datensätze oder die kleinste Eingabe senden, mit der es fehlschlägt.",
    ),
}


def _inconclusive(scene: Scene, judged: dict[str, Judgement]) -> Json:
    kind, evidence = _kind(scene, judged)
    language = "de" if scene.case.german else "en"
    missing = [str(item) for item in scene.interpretation.get("missing_information", [])]
    uncertainty = [f"Not given: {item}." for item in missing[:4]]
    best = max(judged.values(), key=lambda judgement: judgement.level.rank)
    top = max((j.level for j in judged.values()), key=lambda level: level.rank)
    return {
        "status": "inconclusive",
        "inconclusive_kind": kind,
        "selected_hypothesis": None,
        "root_cause": None,
        "confidence": min(top, Confidence.PLAUSIBLE, key=lambda level: level.rank).value,
        "inconclusive_evidence_ids": evidence,
        "remaining_uncertainty": uncertainty or [best.reason or "No look decided between the mechanisms."],
        "final_reason": _why(kind, best),
        "review_actions": list(REQUESTS[language]),
    }


def _why(kind: str, best: Judgement) -> str:
    if kind == "premise_contradicted":
        return best.summary or best.reason
    if kind == "insufficient_information":
        return "The report and its inputs give too little to tell the mechanisms apart."
    return f"No mechanism is shown clearly enough. The strongest lead: {best.reason}"


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `diagnosis-output-v1`."""
    scene = scene_of(request)
    judged = judge_all(scene)
    selected = _selected(scene, judged)
    evaluations = [
        _evaluation(entry, judged[str(entry["id"])], selected=str(entry["id"]) == selected)
        for entry in scene.hypotheses
    ]
    if selected is None:
        return _inconclusive(scene, judged) | {"evaluations": evaluations}
    chosen = judged[selected]
    return {
        "status": "confirmed",
        "inconclusive_kind": None,
        "selected_hypothesis": selected,
        "root_cause": {
            "summary": chosen.summary,
            "technical_description": chosen.description or chosen.reason,
            "evidence_ids": _cause(chosen),
        },
        "confidence": chosen.level.value,
        "evaluations": evaluations,
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": list(chosen.limits),
        "final_reason": chosen.reason,
        "review_actions": ["Confirm the place with a test that fails before the change and passes after it."],
    }
