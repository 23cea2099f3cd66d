"""The final evaluation: the best supported family, its rivals tested by what was found, or why not.

Before it is given, the answer passes the same gates that will judge it; a text with a quote that does not
verify loses the quote, and a claim that still does not stand is withdrawn.
"""

from __future__ import annotations

import re
from typing import Any

from resources.llm.providers.offline.crash import stacks
from resources.llm.providers.offline.families import judge_all, outdone, precedence
from resources.llm.providers.offline.findings import Record, from_evidence, ids
from resources.llm.providers.offline.printing import about
from resources.llm.providers.offline.requests import requests
from resources.llm.providers.offline.scene import Judgement, Scene, quoted
from resources.llm.providers.offline.view import Json, case_of, clip, one
from resources.llm.providers.offline.wording import say
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.ground import Ground
from viano_assets.phases.diagnosis.rules import check
from viano_assets.phases.protocols import ModelRequest
from viano_assets.phases.wire import Confidence

CAUSE_RECORDS = 5
CAUSE_LINES = 60

_CONCRETE = frozenset(
    {"stack_frame", "error", "code_block", "log_line", "identifier", "path", "command", "id", "sql"}
)


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


def _evaluation(scene: Scene, hypothesis: Json, judgement: Judgement, *, selected: bool) -> Json:
    support, against = _usable(judgement.support), _usable(judgement.against)
    against = [item for item in against if item not in support]
    verdict = "undetermined"
    if hypothesis.get("status") == "rejected" and against:
        verdict = "rejected"
    elif selected:
        verdict = "supported"
    elif judgement.effect == "contradicts" and against:
        verdict = "weakened"
    tested = _usable(judgement.tested)
    untested = say(scene, "No look tested it.", "Kein Blick hat sie geprüft.")
    explained = say(
        scene,
        "It speaks for a rival and was weighed against the support.",
        "Es spricht für eine andere Hypothese und wurde gegen die Belege abgewogen.",
    )
    return {
        "hypothesis_id": hypothesis["id"],
        "verdict": verdict,
        "reason": judgement.reason or say(scene, "Nothing decides it.", "Nichts entscheidet es."),
        "support": support,
        "against": against,
        "scope_limits": list(judgement.limits),
        "contradictions": [{"evidence_id": item, "explanation": explained} for item in against if selected],
        "countercheck": {
            "adequate": bool(tested) and not selected,
            "reason": judgement.reason if tested else untested,
            "evidence_ids": tested,
        },
    }


def _selected(scene: Scene, judged: dict[str, Judgement]) -> str | None:
    """Return the hypothesis to confirm: supported, with a short cause and at least one tested rival."""
    ends = {str(entry["id"]): entry for entry in scene.hypotheses}
    for identifier in sorted(judged, key=lambda name: precedence(scene, name, judged[name])):
        judgement = judged[identifier]
        if judgement.level.rank < Confidence.SUPPORTED.rank or judgement.effect != "supports":
            continue
        if scene.family(identifier) == "Intended":
            return None
        confirms = ends[identifier].get("status") != "rejected" and bool(_cause(judgement))
        rival = any(_usable(other.tested) for name, other in judged.items() if name != identifier)
        if confirms and rival:
            return identifier
    return None


def _cause(judgement: Judgement) -> list[str]:
    short = tuple(r for r in judgement.cause if r.usable and len(r.content.splitlines()) <= CAUSE_LINES)
    return ids(short, CAUSE_RECORDS)


def _kind(scene: Scene, judged: dict[str, Judgement]) -> tuple[str, list[str]]:
    for identifier, judgement in judged.items():
        if scene.family(identifier) != "Intended" or judgement.effect != "supports":
            continue
        records = tuple(record for record in judgement.support if record.usable)
        if records and all(record.empty for record in records):
            return "premise_contradicted", _usable(records)
        if records:
            return "intended_behaviour", _usable(records)
    return ("insufficient_information" if _poor(scene) else "undecided"), []


def _poor(scene: Scene) -> bool:
    """Tell whether the inputs give too little to hold on to: nothing concrete, or nothing of the attempt."""
    concrete = [source for source in scene.case.sources if source.kind in _CONCRETE]
    if not concrete or not scene.findings.rankings("symbols"):
        return True
    if "diagnostics" not in scene.case.roles:
        return False
    return not about(scene) and not stacks(scene)


def _inconclusive(scene: Scene, judged: dict[str, Judgement]) -> Json:
    kind, evidence = _kind(scene, judged)
    missing = [str(item) for item in scene.interpretation.get("missing_information", [])]
    label = say(scene, "Not given", "Nicht angegeben")
    uncertainty = [f"{label}: {item}." for item in missing[:4]]
    ranked = sorted(judged, key=lambda name: -judged[name].level.rank)
    best = judged[ranked[0]]
    return {
        "status": "inconclusive",
        "inconclusive_kind": kind,
        "selected_hypothesis": None,
        "root_cause": None,
        "confidence": min(best.level, Confidence.PLAUSIBLE, key=lambda level: level.rank).value,
        "inconclusive_evidence_ids": evidence,
        "remaining_uncertainty": uncertainty or [best.reason or label],
        "final_reason": _why(scene, kind, ranked[0], judged),
        "review_actions": requests(scene),
    }


def _why(scene: Scene, kind: str, best: str, judged: dict[str, Judgement]) -> str:
    intended = next((j for name, j in judged.items() if scene.family(name) == "Intended"), None)
    if kind in {"premise_contradicted", "intended_behaviour"} and intended is not None:
        return intended.summary or intended.reason
    lead = judged[best]
    strongest = f" {best}: {lead.reason}" if lead.level.rank >= Confidence.PLAUSIBLE.rank else ""
    out = [name for name, judgement in judged.items() if judgement.effect == "contradicts"]
    excluded = say(scene, f" Weakened: {', '.join(out)}.", f" Geschwächt: {', '.join(out)}.") if out else ""
    if kind == "insufficient_information":
        first = say(
            scene,
            "Report and inputs hold too little to tell the explanations apart.",
            "Bericht und Eingaben enthalten zu wenig, um die Erklärungen zu unterscheiden.",
        )
    else:
        first = say(
            scene,
            "No explanation is shown clearly enough to be confirmed.",
            "Keine Erklärung ist deutlich genug belegt, um bestätigt zu werden.",
        )
    lead_word = say(scene, " Strongest lead", " Stärkste Spur")
    return first + (f"{lead_word}{strongest}" if strongest else "") + excluded


def _ruled_out(scene: Scene, judged: dict[str, Judgement], selected: str) -> str:
    """Return why the others fall; that one is shown better is said once for all of them."""
    ruled: list[str] = []
    outdone_ones: dict[str, None] = {}
    sentences = [outdone(scene, name) for name in judged]
    for name, judgement in judged.items():
        if name == selected or judgement.effect not in {"contradicts", "mixed"}:
            continue
        reason = judgement.reason
        for sentence in sentences:
            if reason.endswith(sentence):
                reason = reason.removesuffix(sentence).rstrip()
                outdone_ones[sentence] = None
        ruled.append(f"{name}: {reason}" if reason else f"{name}.")
    if not ruled:
        return ""
    out = say(scene, " Ruled out or weakened: ", " Ausgeschlossen oder geschwächt: ")
    return out + " ".join([*ruled, *outdone_ones])


def _confirmed(scene: Scene, judged: dict[str, Judgement], selected: str) -> Json:
    chosen = judged[selected]
    place = next((r for r in chosen.cause if r.location.path or r.location.table), None)
    where = place and (place.location.symbol or place.location.table or place.location.path)
    named = quoted(where) if where else say(scene, "this place", "diese Stelle")
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
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": list(chosen.limits),
        "final_reason": chosen.reason + _ruled_out(scene, judged, selected),
        "review_actions": [
            chosen.action
            or say(
                scene,
                f"Confirm {named} with a test that fails before the change and passes after it.",
                f"{named} mit einem Test bestätigen, der vor der Änderung fehlschlägt und danach besteht.",
            )
        ],
    }


def _composed(scene: Scene, judged: dict[str, Judgement], selected: str | None) -> Json:
    evaluations = [
        _evaluation(scene, entry, judged[str(entry["id"])], selected=str(entry["id"]) == selected)
        for entry in scene.hypotheses
    ]
    body = _inconclusive(scene, judged) if selected is None else _confirmed(scene, judged, selected)
    return body | {"evaluations": evaluations}


def _ground(request: ModelRequest, scene: Scene) -> Ground:
    records = [EvidenceRecord.model_validate(item) for item in one(request, "evidence") or []]
    return Ground(
        hypotheses={str(entry["id"]): str(entry.get("status")) for entry in scene.hypotheses},
        records={record.evidence_id: record for record in records},
        case_texts=tuple(source.text for source in scene.case.sources),
    )


def _without_claims(document: Any, pointer: list[str]) -> None:
    """Take the quotation out of the text a pointer names."""
    node = document
    for part in pointer[:-1]:
        node = node[int(part)] if isinstance(node, list) else node[part]
    last: Any = int(pointer[-1]) if isinstance(node, list) else pointer[-1]
    if isinstance(node[last], str):
        bare = re.sub(r"(\w)\s*(?:=|:(?=\d))\s*", r"\1 ", node[last])
        node[last] = clip(re.sub(r"`+|[\"“”„«»]", "", bare), 2000) or "-"


def _passes(answer: Json, ground: Ground) -> bool:
    """Check an answer; texts whose claims do not verify lose their quotation on the way."""
    for _ in range(3):
        decoded = decode(DiagnosisAnswer, answer)
        if not isinstance(decoded, DiagnosisAnswer):
            return False
        issues = check(decoded, ground)
        if not issues:
            return True
        for path in dict.fromkeys(issue.path for issue in issues):
            _without_claims(answer, path.strip("/").split("/"))
    return False


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `diagnosis-output-v1`."""
    scene = scene_of(request)
    judged = judge_all(scene)
    selected = _selected(scene, judged)
    composed, ground = _composed(scene, judged, selected), _ground(request, scene)
    if not _passes(composed, ground) and selected is not None:
        composed = _composed(scene, judged, None)
        _passes(composed, ground)
    return composed
