"""`ChangeRequestBuilder`: a confirmed diagnosis becomes a ready output, announced exactly once.

No model is asked. Two generations: the request is written (`change_request_built`), then everything the
package says is validated, and only then one generation makes the case `OUTPUT_READY` and holds the outbox
entry (`change_request_published`).
"""

from __future__ import annotations

from viano_assets.canonical import canonical_json
from viano_assets.case.outbox import entry_path, outbox_entry
from viano_assets.errors import BlockedError, ContractError, NewerFormatError
from viano_assets.package.model import Change, Head
from viano_assets.phases.change_request.contract import ChangeRequest
from viano_assets.phases.change_request.policy import LANGUAGES, POLICY, build_request, wording
from viano_assets.phases.change_request.rules import check_output, check_request
from viano_assets.phases.change_request.summary import VERSION, request_markdown
from viano_assets.phases.common import (
    artifact_path,
    blocked,
    check_attempt_id,
    events,
    place,
    read_json,
    standing_block,
)
from viano_assets.phases.diagnosis.published import AcceptedDiagnosis, load_diagnosis
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult, Store
from viano_assets.phases.rendering import FIELD, Renderer, rendered, verified
from viano_assets.phases.wire import ValidationIssue

PHASE = Phase.CHANGE_REQUEST
KIND = "change_request"
REQUEST = "change_request.json"
SUMMARY = "change_request.md"


class ChangeRequestBuilder:
    """Builds the change request of a confirmed diagnosis.

    Args:
        store: the case store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Build, validate and announce, or verify what is ready.

        `attempt_id` and `retry_id` are accepted like those of every phase; no model operation uses them.

        Raises:
            BlockedError: `phase_missing` without a diagnosis, `diagnosis_not_confirmed` after an
                inconclusive one.
            ContractError: `change_request_broken` or what else no longer holds.
        """
        check_attempt_id(attempt_id)
        del retry_id
        with self._store.lock(case_id):
            head = self._store.latest(case_id, package_id)
            halted = standing_block(head, PHASE)
            if halted is not None:
                return halted
            diagnosis = self._confirmed(head)
            request = self._request(head, diagnosis)
            words = wording(request.policy, diagnosis)
            issues = check_request(request, diagnosis)
            if issues:
                return self._refuse(head, issues)
            if not events(head, PHASE, "built"):
                head = self._store.commit(head, _built(head, request, words))
            self._check(head, request, words)
            if events(head, PHASE, "published"):
                self._check_entry(head)
                return PhaseResult(PHASE, DispatchStatus.COMPLETED, head, replayed=True)
            issues = check_output(self._store, head)
            if issues:
                return self._refuse(head, issues)
            return PhaseResult(PHASE, DispatchStatus.COMPLETED, self._store.commit(head, self._ready(head)))

    def _confirmed(self, head: Head) -> AcceptedDiagnosis:
        if not events(head, Phase.DIAGNOSIS, "published"):
            raise BlockedError(
                "phase_missing",
                f"change_request needs a completed diagnosis of analysis revision {head.revision}",
                where=place(head),
                hint=f"run `viano run {head.case_id} --until diagnosis` first",
            )
        diagnosis = load_diagnosis(self._store, head)
        if diagnosis.answer.status != "confirmed":
            raise BlockedError(
                "diagnosis_not_confirmed",
                "an inconclusive diagnosis leads to review, never to a change request",
                where=place(head),
                hint=f"`viano case show {head.case_id}` says what would decide it",
            )
        return diagnosis

    def _request(self, head: Head, diagnosis: AcceptedDiagnosis) -> ChangeRequest:
        cause = diagnosis.answer.root_cause
        if cause is None:
            raise ContractError(
                "change_request_broken", "a confirmed diagnosis without a cause", where=place(head)
            )
        return build_request(head, diagnosis, cause, self._policy(head))

    def _policy(self, head: Head) -> str:
        """Return the version of the policy that built the request, or the present one before that."""
        if not events(head, PHASE, "built"):
            return POLICY
        path = artifact_path(PHASE, head.revision, REQUEST)
        stored = str(read_json(self._store, head, path).get("policy"))
        if stored not in LANGUAGES:
            raise NewerFormatError(
                "newer_format",
                f"built by {stored}, this release knows {', '.join(sorted(LANGUAGES))}",
                where=place(head, path),
                hint="use the release that wrote it, or a newer one",
            )
        return stored

    def _check(self, head: Head, request: ChangeRequest, words: Wording) -> None:
        path = artifact_path(PHASE, head.revision, REQUEST)
        if any(head.pointer(name) != target for name, target in _pointers(head).items()):
            raise _broken(head, "a pointer was lost")
        stored = read_json(self._store, head, path).get(FIELD)
        texts = verified(
            self._store, head, path, stored, _renderers(request, words), lambda why: _broken(head, why)
        )
        expected = _json(request.model_copy(update={FIELD: texts}))
        if len(events(head, PHASE, "built")) != 1 or self._store.read(head, path) != expected:
            raise _broken(head, "it is not what the diagnosis leads to")

    def _entry(self, head: Head) -> tuple[str, bytes]:
        path = artifact_path(PHASE, head.revision, REQUEST)
        return entry_path(head.revision), outbox_entry(head, KIND, path, head.files[path].sha256)

    def _ready(self, head: Head) -> Change:
        path, entry = self._entry(head)
        return Change(
            event="change_request_published",
            phase=PHASE.value,
            put={path: entry},
            pointers={"outbox": path},
            lifecycle="OUTPUT_READY",
            overlay=None,
            detail={"outbox": path},
        )

    def _check_entry(self, head: Head) -> None:
        path, entry = self._entry(head)
        if path not in head.files or self._store.read(head, path) != entry or head.pointer("outbox") != path:
            raise ContractError(
                "change_request_broken",
                "the outbox entry is not that of the change request",
                where=place(head, path),
                hint="run `viano case verify`; restore the package",
            )

    def _refuse(self, head: Head, issues: tuple[ValidationIssue, ...]) -> PhaseResult:
        first = issues[0]
        return blocked(
            self._store,
            head,
            PHASE,
            "output_invalid",
            f"the output does not pass validation: {first.category} at {first.path}: {first.message}",
            hint="a person has to look at the diagnosis; reopen the case if it was wrong",
            routing="review",
        )


def _pointers(head: Head) -> dict[str, str | None]:
    return {
        "change_request": artifact_path(PHASE, head.revision, REQUEST),
        "change_request_summary": artifact_path(PHASE, head.revision, SUMMARY),
    }


def _renderers(request: ChangeRequest, words: Wording) -> tuple[Renderer, ...]:
    return (Renderer(SUMMARY, VERSION, lambda: request_markdown(request, words)),)


def _json(request: ChangeRequest) -> bytes:
    return canonical_json(request.model_dump(mode="json", by_alias=True))


def _built(head: Head, request: ChangeRequest, words: Wording) -> Change:
    texts = rendered(_renderers(request, words))
    put = {artifact_path(PHASE, head.revision, name): data for name, data in texts.contents.items()}
    document = request.model_copy(update={FIELD: texts.bindings})
    put[artifact_path(PHASE, head.revision, REQUEST)] = _json(document)
    return Change(
        event="change_request_built",
        phase=PHASE.value,
        put=put,
        pointers=_pointers(head),
        lifecycle="BUILDING_CHANGE_REQUEST",
    )


def _broken(head: Head, why: str) -> ContractError:
    return ContractError(
        "change_request_broken",
        f"the published change request cannot be trusted: {why}",
        where=place(head, artifact_path(PHASE, head.revision, REQUEST)),
        hint="run `viano case verify`; restore the package or reopen the case",
    )
