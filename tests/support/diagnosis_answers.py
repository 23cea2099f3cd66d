"""Final evaluations of the small harbour case, right and deliberately wrong ones."""

from __future__ import annotations

import copy
from typing import Any

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.package.model import Head
from viano_assets.phases.diagnosis.inputs import Inputs, load_inputs
from viano_assets.phases.protocols import Store

Json = dict[str, Any]


def ids_by_place(records: dict[str, EvidenceRecord]) -> dict[str, str]:
    """Return the ids of the default world's records under short names."""
    names: dict[str, str] = {}
    for record in records.values():
        location = record.provenance.location
        kind = record.provenance.kind
        if kind in {"source", "config"}:
            names[location.symbol or str(location.path)] = record.evidence_id
        elif kind == "row":
            names[f"stage {(location.key or {}).get('stage')}"] = record.evidence_id
        elif kind == "log":
            names[f"log {location.line_start}"] = record.evidence_id
        elif kind == "absence" and not record.tool.startswith("db."):
            names[f"absence {record.tool}"] = record.evidence_id
        else:
            names[kind] = record.evidence_id
    return names


def evaluation(
    hypothesis: str, verdict: str, support: list[str], against: list[str], *, tested: bool = False
) -> Json:
    """One final evaluation."""
    return {
        "hypothesis_id": hypothesis,
        "verdict": verdict,
        "reason": "What was read says so.",
        "support": support,
        "against": against,
        "scope_limits": [],
        "contradictions": [],
        "countercheck": {
            "adequate": tested,
            "reason": "The records that it predicts were read.",
            "evidence_ids": list(against) if tested else [],
        },
    }


def confirmed(names: dict[str, str]) -> Json:
    """The right confirmed answer of the default world."""
    release, free = names["Berth::release"], names["Berth::isFree"]
    return {
        "status": "confirmed",
        "inconclusive_kind": None,
        "selected_hypothesis": "H1",
        "root_cause": {
            "summary": "Releasing a berth never wakes the queue.",
            "technical_description": (
                "`moored_ = false;` at src/berth.cpp:13 frees the berth, "
                "then only `pilot_->dismiss(shipId);` runs."
            ),
            "evidence_ids": [release],
        },
        "confidence": "supported",
        "evaluations": [
            evaluation("H1", "supported", [release, names["log 3"]], []),
            evaluation("H2", "weakened", [], [names["stage 1"], names["stage 2"]], tested=True),
            evaluation("H3", "undetermined", [], [free]),
        ],
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": ["Callers outside the source were not seen."],
        "final_reason": f"`moored_ = false;` is the only change of state in {release}.",
        "review_actions": [],
    }


def inconclusive(names: dict[str, str]) -> Json:
    """A right inconclusive answer of the default world."""
    return {
        "status": "inconclusive",
        "inconclusive_kind": "undecided",
        "selected_hypothesis": None,
        "root_cause": None,
        "confidence": "plausible",
        "evaluations": [
            evaluation("H1", "undetermined", [names["Berth::release"]], []),
            evaluation("H2", "undetermined", [names["absence"]], []),
            evaluation("H3", "weakened", [], [names["conf/harbour.ini"]]),
        ],
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": ["Two mechanisms remain."],
        "final_reason": "Neither the code nor the step table decides it.",
        "review_actions": ["Log whether the queue is called when a ship leaves."],
    }


def changed(answer: Json, path: str, value: Any) -> Json:
    """Return a copy of an answer with one place replaced, for example `root_cause.summary`."""
    result = copy.deepcopy(answer)
    target: Any = result
    *parents, last = path.split(".")
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target[part]
    if isinstance(target, list):
        target[int(last)] = value
    else:
        target[last] = value
    return result


def inputs_of(store: Store, head: Head) -> tuple[Inputs, dict[str, str]]:
    """Return the verified inputs of a head and the short names of its records."""
    inputs = load_inputs(store, head)
    return inputs, ids_by_place(dict(inputs.records))
