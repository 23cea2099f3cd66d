"""The published interpretation: how it is written, and how it is verified whenever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import canonical_json
from viano_assets.case.freshness import check_fresh
from viano_assets.case.model import CaseDocument
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall, check_request, read_call
from viano_assets.phases.common import (
    Binding,
    FrozenContext,
    artifact_path,
    check_binding,
    declared_by,
    frozen_context,
    place,
    read_json,
    require_published,
)
from viano_assets.phases.interpretation.attempts import Attempts
from viano_assets.phases.interpretation.context import load_case
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import AliasedStatement, aliases
from viano_assets.phases.interpretation.summary import VERSION, interpretation_markdown
from viano_assets.phases.planning.chain import Chain
from viano_assets.phases.protocols import Phase, Store
from viano_assets.phases.rendering import FIELD, Renderer, as_json, verified

SCHEMA = "interpretation-v1"
SUMMARY = "interpretation.md"
POINTERS = ("interpretation_context", "interpretation", "interpretation_summary")
_PHASE = Phase.INTERPRETATION


@dataclass(frozen=True, slots=True)
class AcceptedInterpretation:
    """A verified interpretation with everything later phases bind to."""

    document: dict[str, Any]
    binding: Binding
    answer: InterpretationAnswer
    statements: tuple[AliasedStatement, ...]
    case: CaseDocument
    case_binding: Binding
    context: FrozenContext
    calls: tuple[SavedCall, ...]
    plan: Chain | None
    """The joint plan it came with; None in separate mode."""

    def section(self) -> dict[str, Any]:
        """Return the `interpretation` section of later requests."""
        payload = self.document["interpretation"]
        return {
            "summary": payload["summary"],
            "statements": self.document["statements"],
            "failure_stage": self.document["failure_stage"],
            "first_known_divergence": self.document["first_known_divergence"],
            "entities": payload["entities"],
            "lookups": payload["lookups"],
            "missing_information": payload["missing_information"],
        }


def _alias(statements: Sequence[AliasedStatement], pointer: str) -> str | None:
    return next((statement.id for statement in statements if statement.pointer == pointer), None)


def interpretation_document(
    head: Head, context: FrozenContext, answer: InterpretationAnswer, calls: Sequence[SavedCall]
) -> dict[str, Any]:
    """Return the content of `interpretation.json`, without the bindings of its renderings."""
    statements = aliases(answer)
    return {
        "schema": SCHEMA,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "case": context.data["case"],
        "context": context.binding.as_json(),
        "calls": [call.as_json() for call in calls],
        "interpretation": answer.model_dump(mode="json"),
        "statements": [statement.as_json() for statement in statements],
        "failure_stage": _alias(statements, "/failure_stage"),
        "first_known_divergence": _alias(statements, "/first_known_divergence"),
    }


def renderers(document: Mapping[str, Any], case: CaseDocument) -> tuple[Renderer, ...]:
    """Return how an interpretation document is rendered."""
    return (Renderer(SUMMARY, VERSION, lambda: interpretation_markdown(document, case)),)


def load_interpretation(store: Store, head: Head, waiting: Phase) -> AcceptedInterpretation:
    """Return the interpretation of the current revision after verifying all it is made of.

    Verified: pointers and declarations, context against the start checkpoint, case and raw inputs
    against the context, every recorded call against the request the context leads to, the answer
    against contract and rules, document and summary byte for byte.

    Raises:
        BlockedError: `phase_missing`.
        InputError: `stale_input`.
        ContractError: what no longer holds.
    """
    require_published(head, _PHASE, POINTERS, waiting)
    context = frozen_context(store, head, _PHASE)
    if context is None:
        raise _broken(head, "published without a start")
    check_fresh(head, context.data["raw_inputs"])
    case, case_binding = load_case(store, head)
    if check_binding(head, context.data["case"]) != case_binding:
        raise _broken(head, "the case pointer names another case than the one interpreted")
    path = artifact_path(_PHASE, head.revision, "interpretation.json")
    if (
        head.pointer("interpretation") != path
        or head.pointer("interpretation_context") != context.binding.path
    ):
        raise _broken(head, "a pointer names another artifact")
    document = read_json(store, head, path)
    calls = document.get("calls")
    if not isinstance(calls, list) or not calls:
        raise _broken(head, "no call is named")
    call = read_call(store, head, calls[-1], _PHASE)
    recorded = declared_by(head, call.binding.path)[0].generation
    attempts = Attempts(store, head, context, case)
    attempt = attempts.at(recorded)
    check_request(head, call, attempt.request)
    judgement = attempts.judge(attempt, call)
    if judgement.answer is None:
        raise _broken(head, f"the recorded answer is not acceptable: {judgement.issues[0].message}")
    rebuilt = interpretation_document(head, context, judgement.answer, judgement.calls)
    texts = verified(
        store, head, path, document.get(FIELD), renderers(rebuilt, case), lambda why: _broken(head, why)
    )
    rebuilt[FIELD] = as_json(texts)
    if store.read(head, path) != canonical_json(rebuilt):
        raise _broken(head, "the document is not what its call leads to")
    if head.pointer("interpretation_summary") != artifact_path(_PHASE, head.revision, SUMMARY):
        raise _broken(head, "the summary pointer names another artifact")
    return AcceptedInterpretation(
        rebuilt,
        Binding(path, head.files[path].sha256),
        judgement.answer,
        aliases(judgement.answer),
        case,
        case_binding,
        context,
        judgement.calls,
        judgement.plan,
    )


def _broken(head: Head, why: str) -> ContractError:
    return ContractError(
        "interpretation_broken",
        f"the published interpretation cannot be trusted: {why}",
        where=place(head, artifact_path(_PHASE, head.revision, "interpretation.json")),
        hint="run `viano case verify`; restore the package or reopen the case",
    )
