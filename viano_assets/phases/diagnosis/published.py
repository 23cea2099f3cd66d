"""Writes the result once and verifies it whenever it is read again (seed 000: replays).

A result that was published is never rebuilt: what is missing or inconsistent is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import ContractError, InputError, NewerFormatError
from viano_assets.package.model import Change, Head
from viano_assets.phases.calls import SavedCall, check_request, read_call
from viano_assets.phases.common import (
    Binding,
    FrozenContext,
    artifact_path,
    check_pointers,
    declared_by,
    decode,
    events,
    feedback,
    frozen_context,
    place,
    read_json,
)
from viano_assets.phases.diagnosis.config import DiagnosisLimits
from viano_assets.phases.diagnosis.context import check_context, frozen_request, with_feedback
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.derive import invalid_answers
from viano_assets.phases.diagnosis.html import VERSION as REPORT_VERSION
from viano_assets.phases.diagnosis.html import diagnosis_html
from viano_assets.phases.diagnosis.inputs import Inputs, load_inputs
from viano_assets.phases.diagnosis.result import (
    CONTROLLER,
    EARLIER_CONTROLLERS,
    failure_document,
    result_document,
)
from viano_assets.phases.diagnosis.rules import check
from viano_assets.phases.diagnosis.summary import VERSION as SUMMARY_VERSION
from viano_assets.phases.diagnosis.summary import diagnosis_markdown
from viano_assets.phases.protocols import ModelRequest, Phase, Store
from viano_assets.phases.rendering import FIELD, Renderer, as_json, rendered, verified

PHASE = Phase.DIAGNOSIS
RESULT = "diagnosis_result.json"
SUMMARY = "diagnosis_result.md"
REPORT = "diagnosis.html"
FAILURE = "failure_report.json"


@dataclass(frozen=True, slots=True)
class AcceptedDiagnosis:
    """A published diagnosis, verified, with what it stands on."""

    document: dict[str, Any]
    binding: Binding
    answer: DiagnosisAnswer
    inputs: Inputs


def rejections(head: Head) -> list[Binding]:
    """Return the rejection records of the current revision in order."""
    found = []
    for checkpoint in events(head, PHASE, "answer_rejected"):
        found += [Binding(path, digest) for path, digest in sorted(checkpoint.declares.items())]
    return found


def request_at(store: Store, head: Head, context: FrozenContext, before: int | None = None) -> ModelRequest:
    """Return the request of the next attempt, or of the one recorded in generation `before`."""
    return with_feedback(frozen_request(context), feedback(store, head, PHASE, before))


def publication(
    head: Head,
    context: FrozenContext,
    inputs: Inputs,
    answer: DiagnosisAnswer,
    *,
    call: SavedCall | None,
    analyst_disagreement: Mapping[str, Any] | None,
    limits: DiagnosisLimits,
) -> Change:
    """Return the one atomic change that publishes a result.

    Raises:
        InputError: `artifact_too_large`.
    """
    document = result_document(
        head,
        context,
        inputs,
        answer,
        call=call,
        rejections=rejections(head),
        analyst_disagreement=analyst_disagreement,
    )
    texts = rendered(_renderers(document, inputs))
    document[FIELD] = as_json(texts.bindings)
    put = _artifacts(head, document)
    put |= {artifact_path(PHASE, head.revision, name): data for name, data in texts.contents.items()}
    for path, data in put.items():
        if len(data) > limits.artifact_bytes:
            raise InputError(
                "artifact_too_large",
                f"the artifact has {len(data)} bytes, the limit is {limits.artifact_bytes}",
                where=place(head, path),
                hint="raise limits.artifact_bytes in config/diagnosis.local.toml",
            )
    confirmed = answer.status == "confirmed"
    return Change(
        event="diagnosis_published",
        phase=PHASE.value,
        put=put,
        pointers=_pointers(head, confirmed=confirmed),
        lifecycle="BUILDING_DIAGNOSIS" if confirmed else "FAILED_TO_ANALYZE",
        routing="keep" if confirmed else "review",
        overlay=None,
        detail={
            "context_sha256": context.binding.sha256,
            "status": answer.status,
            "call": None if call is None else call.as_json(),
        },
    )


def _renderers(document: Mapping[str, Any], inputs: Inputs) -> tuple[Renderer, ...]:
    return (
        Renderer(SUMMARY, SUMMARY_VERSION, lambda: diagnosis_markdown(document, inputs.records)),
        Renderer(REPORT, REPORT_VERSION, lambda: diagnosis_html(document, inputs.records)),
    )


def _artifacts(head: Head, document: Mapping[str, Any]) -> dict[str, bytes]:
    def path(name: str) -> str:
        return artifact_path(PHASE, head.revision, name)

    data = canonical_json(document)
    put = {path(RESULT): data}
    if document["diagnosis"]["status"] == "inconclusive":
        put[path(FAILURE)] = canonical_json(failure_document(document, sha256_hex(data), path(RESULT)))
    return put


def _pointers(head: Head, *, confirmed: bool) -> dict[str, str | None]:
    pointers: dict[str, str | None] = {
        "diagnosis": artifact_path(PHASE, head.revision, RESULT),
        "diagnosis_summary": artifact_path(PHASE, head.revision, SUMMARY),
    }
    if not confirmed:
        pointers["failure_report"] = artifact_path(PHASE, head.revision, FAILURE)
    return pointers


def load_diagnosis(store: Store, head: Head) -> AcceptedDiagnosis:
    """Return the published diagnosis of the current revision after verifying all it is made of.

    Verified: pointers and declarations, context hash against the start checkpoint, identity, every bound
    artifact and raw input, the recorded call against the exact request it answered, the answer against
    contract and gates, every derived part, summary, report and failure report byte for byte; what an older
    controller derived and an older renderer wrote is held by its hashes.

    Raises:
        ContractError: `diagnosis_broken` or what else no longer holds.
        InputError: `stale_input`.
    """
    published = events(head, PHASE, "published")
    if len(published) != 1:
        raise _broken(head, "it was published more than once" if published else "it was not published")
    path = artifact_path(PHASE, head.revision, RESULT)
    document = read_json(store, head, path)
    confirmed = document.get("diagnosis", {}).get("status") == "confirmed"
    pointers = {**_pointers(head, confirmed=confirmed)}
    context = frozen_context(store, head, PHASE)
    if context is None:
        raise _broken(head, "it has no start")
    pointers["diagnosis_context"] = context.binding.path
    check_pointers(head, published[0], sorted(pointers))
    if any(head.pointer(name) != target for name, target in pointers.items()):
        raise _broken(head, "a pointer names another artifact")
    inputs = load_inputs(store, head)
    check_context(head, context, inputs)
    call, answer = _judged(store, head, context, inputs, document)
    _check_bytes(store, head, context, inputs, document, call, answer)
    return AcceptedDiagnosis(document, Binding(path, head.files[path].sha256), answer, inputs)


def _judged(
    store: Store, head: Head, context: FrozenContext, inputs: Inputs, document: Mapping[str, Any]
) -> tuple[SavedCall | None, DiagnosisAnswer]:
    if document.get("call") is None:
        count = context.data["policy"]["max_invalid_responses"]
        if len(rejections(head)) < count:
            raise _broken(head, "it names no call and not enough answers were rejected")
        language = EARLIER_CONTROLLERS.get(str(document.get("controller")))
        return None, invalid_answers(inputs, count, language)
    call = read_call(store, head, document["call"], PHASE)
    recorded = declared_by(head, call.binding.path)[0].generation
    check_request(head, call, request_at(store, head, context, before=recorded))
    answer = decode(DiagnosisAnswer, call.answer)
    if not isinstance(answer, DiagnosisAnswer) or check(answer, inputs.ground()):
        raise _broken(head, "the recorded answer does not pass the gates")
    return call, answer


def _check_bytes(
    store: Store,
    head: Head,
    context: FrozenContext,
    inputs: Inputs,
    document: dict[str, Any],
    call: SavedCall | None,
    answer: DiagnosisAnswer,
) -> None:
    if document.get("diagnosis") != answer.model_dump(mode="json"):
        raise _broken(head, "the payload is not the accepted answer")
    derived = {name: value for name, value in document.items() if name != FIELD}
    current = _is_current(head, document)
    if current:
        derived = result_document(
            head,
            context,
            inputs,
            answer,
            call=call,
            rejections=rejections(head),
            analyst_disagreement=document.get("analyst_disagreement"),
        )
    texts = verified(
        store,
        head,
        artifact_path(PHASE, head.revision, RESULT),
        document.get(FIELD),
        _renderers(derived, inputs),
        lambda why: _broken(head, why),
    )
    derived[FIELD] = as_json(texts)
    for path, data in _artifacts(head, derived).items() if current else ():
        if path not in head.files or store.read(head, path) != data:
            raise _broken(head, f"{path.rsplit('/', 1)[-1]} is not what its call leads to")


def _is_current(head: Head, document: Mapping[str, Any]) -> bool:
    controller = document.get("controller")
    if controller != CONTROLLER and controller not in EARLIER_CONTROLLERS:
        raise NewerFormatError(
            "newer_format",
            f"derived by {str(controller)[:80]!r}, this release knows {CONTROLLER!r}",
            where=place(head, artifact_path(PHASE, head.revision, RESULT)),
            hint="use the release that wrote it, or a newer one",
        )
    return bool(controller == CONTROLLER)


def _broken(head: Head, why: str) -> ContractError:
    return ContractError(
        "diagnosis_broken",
        f"the published diagnosis cannot be trusted: {why}",
        where=place(head, artifact_path(PHASE, head.revision, RESULT)),
        hint="run `viano case verify`; restore the package or reopen the case",
    )
