"""What the builders of all phases share: artifact paths, bindings, attempts, rejections and halts.

Conventions every phase follows (docs/reading.md, "How a phase is published"):

- a phase starts with event `<phase>_started`, whose checkpoint declares the frozen `context.json` and
  repeats its hash in `detail["context_sha256"]`;
- a rejected answer is one generation with event `<phase>_answer_rejected` that declares
  `errors/<attempt-hash>.json`; counting those events counts the invalid answers of the revision;
- a refusal that no answer can cure (missing predecessor, changed policy, stale inputs, damaged
  artifacts) is raised as a `VianoError`; a `PhaseResult` is the outcome of a real dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from viano_assets.canonical import JsonValue, canonical_json, sha256_hex, strict_loads
from viano_assets.errors import BlockedError, ContractError, InputError
from viano_assets.package.model import KEEP, Change, Checkpoint, Head, Overlay
from viano_assets.phases.protocols import (
    CallOutcome,
    DispatchStatus,
    ModelRequest,
    Phase,
    PhaseResult,
    Store,
)
from viano_assets.phases.remedies import NEEDS_RETRY_ID, remedy, run_command
from viano_assets.phases.wire import ValidationIssue

DEFAULT_ATTEMPT = "attempt-1"
"""The attempt id of a dispatch that names none; `drive` derives `attempt-2`, … after rejections."""

MAX_ATTEMPT_ID = 200
"""Longest attempt id in characters."""

M = TypeVar("M", bound=BaseModel)


class Binding(NamedTuple):
    """An artifact named by path and content hash."""

    path: str
    sha256: str

    def as_json(self) -> dict[str, str]:
        """Return the JSON form used inside artifacts."""
        return {"path": self.path, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class FrozenContext:
    """A phase's context as it was frozen at its start, verified against the start checkpoint."""

    data: dict[str, Any]
    binding: Binding
    started: Checkpoint


def phase_dir(phase: Phase, revision: int) -> str:
    """Return the folder of a phase's artifacts in one analysis revision."""
    return f"analysis/{phase.value}/{revision:04d}"


def artifact_path(phase: Phase, revision: int, name: str) -> str:
    """Return the package path of artifact `name` of a phase."""
    return f"{phase_dir(phase, revision)}/{name}"


def check_attempt_id(attempt_id: str | None) -> str:
    """Return the attempt id to use.

    Raises:
        InputError: `invalid_attempt_id` for a blank, overlong or unprintable id.
    """
    if attempt_id is None:
        return DEFAULT_ATTEMPT
    if not attempt_id.strip() or len(attempt_id) > MAX_ATTEMPT_ID or not attempt_id.isprintable():
        raise InputError(
            "invalid_attempt_id",
            "the attempt id is blank, longer than 200 characters or unprintable",
            hint="use a short word such as correction-2",
        )
    return attempt_id


def attempt_hash(attempt_id: str) -> str:
    """Return the 16 hex digits that name an attempt in paths."""
    return sha256_hex(attempt_id.encode())[:16]


def place(head: Head, path: str = "") -> str:
    """Return the `where` of an error: case, generation and, when given, the artifact."""
    suffix = f", {path}" if path else ""
    return f"case {head.case_id}, generation {head.generation}{suffix}"


def read_json(store: Store, head: Head, path: str) -> dict[str, Any]:
    """Read one JSON object artifact strictly.

    Raises:
        ContractError: `artifact_missing` or `artifact_invalid`.
    """
    if path not in head.files:
        raise ContractError(
            "artifact_missing", "a named artifact is not in the package", where=place(head, path)
        )
    try:
        value: JsonValue = strict_loads(store.read(head, path))
    except ContractError as error:
        raise ContractError("artifact_invalid", error.message, where=place(head, path)) from error
    if not isinstance(value, dict):
        raise ContractError("artifact_invalid", "the artifact is not a JSON object", where=place(head, path))
    return value


def read_model(store: Store, head: Head, path: str, model: type[M]) -> M:
    """Read one JSON artifact into its pydantic model.

    Raises:
        ContractError: `artifact_missing` or `artifact_invalid`.
    """
    read_json(store, head, path)
    try:
        return model.model_validate_json(store.read(head, path))
    except ValidationError as error:
        raise ContractError("artifact_invalid", _first(error), where=place(head, path)) from error


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{json_pointer(detail['loc']) or '/'}: {detail['msg']}"


def json_pointer(parts: Sequence[str | int]) -> str:
    """Return the RFC 6901 pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def decode(model: type[M], answer: object, prefix: str = "") -> M | tuple[ValidationIssue, ...]:
    """Validate a decoded answer strictly: the model's value, or the issues that reject it."""
    try:
        return model.model_validate_json(canonical_json(answer))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        issues = tuple(
            ValidationIssue(
                path=prefix + json_pointer(detail["loc"]),
                category="schema",
                message=f"{detail['type']}: {detail['msg']}",
                hint="follow the JSON schema of the request",
            )
            for detail in details
        )
        return tuple(sorted(set(issues), key=lambda issue: (issue.path, issue.message)))


def bind(head: Head, path: str) -> Binding:
    """Return the binding of a live artifact.

    Raises:
        ContractError: `artifact_missing`.
    """
    entry = head.files.get(path)
    if entry is None:
        raise ContractError(
            "artifact_missing", "a named artifact is not in the package", where=place(head, path)
        )
    return Binding(path, entry.sha256)


def check_binding(head: Head, binding: Mapping[str, Any]) -> Binding:
    """Verify that a stored binding names a live artifact of exactly these bytes.

    Raises:
        ContractError: `binding_broken`.
    """
    path, digest = binding.get("path"), binding.get("sha256")
    entry = head.files.get(path) if isinstance(path, str) else None
    if entry is None or entry.sha256 != digest:
        raise ContractError(
            "binding_broken",
            "an artifact is not the one that was bound by hash",
            where=place(head, str(path)),
            hint="run `viano case verify` on the case",
        )
    return Binding(str(path), entry.sha256)


def events(head: Head, phase: Phase, event: str, revision: int | None = None) -> list[Checkpoint]:
    """Return the checkpoints `<phase>_<event>` of one revision (default: the current), in order."""
    wanted = head.revision if revision is None else revision
    name = f"{phase.value}_{event}"
    return [c for c in head.checkpoints if c.event == name and c.revision == wanted]


def declared_by(head: Head, path: str) -> list[Checkpoint]:
    """Return the checkpoints that declare `path`, in order."""
    return [checkpoint for checkpoint in head.checkpoints if path in checkpoint.declares]


def frozen_context(store: Store, head: Head, phase: Phase) -> FrozenContext | None:
    """Return the verified frozen context of the current revision, or None when the phase has not started.

    Raises:
        ContractError: `context_unbound` when file, declaration, hash, identity and start checkpoint do
            not agree; a phase never silently starts again over such a state.
    """
    path = artifact_path(phase, head.revision, "context.json")
    started = events(head, phase, "started")
    if not started:
        if path in head.files or declared_by(head, path):
            raise _unbound(head, path, "a context without a start checkpoint")
        return None
    if len(started) != 1 or len(declared_by(head, path)) != 1:
        raise _unbound(head, path, "more than one start")
    digest = started[0].declares.get(path)
    entry = head.files.get(path)
    if entry is None or digest != entry.sha256 or started[0].detail.get("context_sha256") != digest:
        raise _unbound(head, path, "the bytes are not those the start checkpoint bound")
    data = read_json(store, head, path)
    identity = {
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
    }
    if any(data.get(name) != value for name, value in identity.items()):
        raise _unbound(head, path, "the context belongs to another case or revision")
    return FrozenContext(data, Binding(path, entry.sha256), started[0])


def _unbound(head: Head, path: str, why: str) -> ContractError:
    return ContractError(
        "context_unbound",
        f"the frozen context cannot be trusted: {why}",
        where=place(head, path),
        hint="run `viano case verify`; restore the package or reopen the case",
    )


def request_in(context: Mapping[str, Any]) -> ModelRequest:
    """Return the base request a frozen context carries.

    Raises:
        ContractError: `context_unbound` when it holds none.
    """
    try:
        return ModelRequest.model_validate_json(canonical_json(context["request"]))
    except (KeyError, ValidationError) as error:
        raise ContractError(
            "context_unbound",
            "the frozen context holds no request",
            where=f"case {context.get('case_id')}, revision {context.get('analysis_revision')}",
            hint="run `viano case verify`; restore the package or reopen the case",
        ) from error


def require_published(head: Head, phase: Phase, pointers: Sequence[str], waiting: Phase) -> Checkpoint:
    """Return the publication checkpoint of a predecessor, checked against the head's pointers.

    Raises:
        BlockedError: `phase_missing` when the predecessor has not completed in this revision.
        ContractError: `pointer_mismatch` when a pointer was lost or names something else.
    """
    published = events(head, phase, "published")
    if not published:
        raise BlockedError(
            "phase_missing",
            f"{waiting.value} needs a completed {phase.value} of analysis revision {head.revision}",
            where=place(head),
            hint=f"run `viano run {head.case_id} --until {phase.value}` first",
        )
    check_pointers(head, published[-1], pointers)
    return published[-1]


def check_pointers(head: Head, published: Checkpoint, pointers: Sequence[str]) -> None:
    """Verify that the head's pointers name live artifacts that the revision's checkpoints declared.

    Raises:
        ContractError: `pointer_mismatch`.
    """
    declared = {
        p: d for c in head.checkpoints if c.revision == published.revision for p, d in c.declares.items()
    }
    for name in pointers:
        path = head.pointer(name)
        entry = head.files.get(path) if path is not None else None
        if path is None or entry is None or declared.get(path) != entry.sha256:
            raise ContractError(
                "pointer_mismatch",
                f"pointer {name} does not name what the phase published",
                where=place(head, path or ""),
                hint="run `viano case verify`; a completed phase is never rebuilt over a damaged pointer",
            )


def check_targets(head: Head, phase: Phase, targets: Mapping[str, str]) -> None:
    """Verify that pointers name exactly these artifacts of a phase; `targets` is pointer to file name.

    Raises:
        ContractError: `pointer_mismatch`.
    """
    for name, file in targets.items():
        path = artifact_path(phase, head.revision, file)
        if head.pointer(name) != path:
            raise ContractError(
                "pointer_mismatch",
                f"pointer {name} names another artifact than the phase published",
                where=place(head, path),
                hint="run `viano case verify`; a completed phase is never rebuilt over a damaged pointer",
            )


def invalid_attempts(head: Head, phase: Phase) -> int:
    """Count the rejected model answers of a phase in the current revision."""
    return len(events(head, phase, "answer_rejected"))


def rejection_path(phase: Phase, revision: int, attempt_id: str) -> str:
    """Return where the rejection of an attempt is kept."""
    return artifact_path(phase, revision, f"errors/{attempt_hash(attempt_id)}.json")


def record_rejection(
    store: Store,
    head: Head,
    phase: Phase,
    attempt_id: str,
    issues: Sequence[ValidationIssue],
    *,
    code: str = "invalid_answer",
    call: Binding | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Head:
    """Append the audit record of one rejected answer; nothing else is published.

    `extra` adds fields of the phase. Recording the same attempt twice changes nothing.
    """
    path = rejection_path(phase, head.revision, attempt_id)
    if path in head.files:
        return head
    record = {
        **(extra or {}),
        "schema": "rejection-v1",
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "phase": phase.value,
        "attempt_id": attempt_id,
        "number": invalid_attempts(head, phase) + 1,
        "code": code,
        "call": None if call is None else call.as_json(),
        "validation_issues": [issue.model_dump(mode="json") for issue in issues],
    }
    change = Change(
        event=f"{phase.value}_answer_rejected",
        phase=phase.value,
        put={path: canonical_json(record)},
        detail={"attempt": attempt_hash(attempt_id), "code": code, "issues": len(issues)},
    )
    return store.commit(head, change)


def rejection_of(store: Store, head: Head, phase: Phase, attempt_id: str) -> dict[str, Any] | None:
    """Return the rejection record of an attempt, or None."""
    path = rejection_path(phase, head.revision, attempt_id)
    return read_json(store, head, path) if path in head.files else None


def last_rejection(
    store: Store, head: Head, phase: Phase, before: int | None = None
) -> dict[str, Any] | None:
    """Return the newest rejection record of the current revision, or None.

    `before` looks only at generations below it: the state in which an earlier request was made.
    """
    rejected = [c for c in events(head, phase, "answer_rejected") if before is None or c.generation < before]
    if not rejected:
        return None
    (path,) = rejected[-1].declares
    check_binding(head, {"path": path, "sha256": rejected[-1].declares[path]})
    return read_json(store, head, path)


def feedback(store: Store, head: Head, phase: Phase, before: int | None = None) -> list[dict[str, Any]]:
    """Return the validation issues of the newest rejection: the correction section of the next request."""
    record = last_rejection(store, head, phase, before)
    return [] if record is None else list(record["validation_issues"])


def halt(
    store: Store,
    head: Head,
    phase: Phase,
    *,
    kind: Literal["blocked", "deferred"],
    code: str,
    message: str,
    not_before: str | None = None,
    routing: str | None = KEEP,
) -> Head:
    """Lay a halt over the lifecycle; nothing is committed when exactly it already lies there."""
    overlay = Overlay(kind, phase.value, code, message, not_before)
    if head.manifest.overlay == overlay and routing in {KEEP, head.manifest.routing}:
        return head
    change = Change(
        event=f"{phase.value}_{kind}",
        phase=phase.value,
        overlay=overlay,
        routing=routing,
        detail={"code": code} if not_before is None else {"code": code, "not_before": not_before},
    )
    return store.commit(head, change)


def standing_block(head: Head, phase: Phase) -> PhaseResult | None:
    """Return the BLOCKED result of a head on which a block lies, else None."""
    overlay = head.manifest.overlay
    if overlay is None or overlay.kind != "blocked":
        return None
    return PhaseResult(
        phase,
        DispatchStatus.BLOCKED,
        head,
        code=overlay.code,
        message=overlay.message,
        hint=remedy(head),
    )


def blocked(
    store: Store,
    head: Head,
    phase: Phase,
    code: str,
    message: str,
    *,
    hint: str = "",
    routing: str | None = KEEP,
) -> PhaseResult:
    """Block the case durably and return the result."""
    head = halt(store, head, phase, kind="blocked", code=code, message=message, routing=routing)
    return PhaseResult(phase, DispatchStatus.BLOCKED, head, code=code, message=message, hint=hint)


def exhausted(store: Store, head: Head, phase: Phase, limit: int) -> PhaseResult | None:
    """Return the BLOCKED result once `limit` answers of this revision were rejected, else None."""
    if invalid_attempts(head, phase) < limit:
        return None
    return blocked(
        store,
        head,
        phase,
        "invalid_answers_exhausted",
        f"{limit} answers of the model were rejected in {phase.value}",
        hint=f"read errors/ in the package, then: viano case reopen {head.case_id} --again"
        f" && {run_command(head)} --provider OTHER",
    )


def waiting(store: Store, phase: Phase, outcome: CallOutcome) -> PhaseResult:
    """Turn a transport outcome into the dispatch result and keep its halt in the package.

    Retry-pending and deferred both leave a `deferred` overlay with the due time, so that a scheduler
    finds it; the overlay ends with the next publication.
    """
    kinds = {
        "retry_pending": DispatchStatus.RETRY_PENDING,
        "deferred": DispatchStatus.DEFERRED,
        "blocked": DispatchStatus.BLOCKED,
    }
    status = kinds[outcome.status]
    kind: Literal["blocked", "deferred"] = "blocked" if status is DispatchStatus.BLOCKED else "deferred"
    head = halt(
        store,
        outcome.head,
        phase,
        kind=kind,
        code=outcome.code,
        message=outcome.message,
        not_before=outcome.not_before,
    )
    hint = remedy(head) if kind == "blocked" else "dispatch again when due"
    if kind == "blocked" and outcome.call_path is None and outcome.code in NEEDS_RETRY_ID:
        hint = f"nothing was sent, this is what was recorded before; {hint}"
    return PhaseResult(
        phase,
        status,
        head,
        code=outcome.code,
        message=outcome.message,
        hint=hint,
        not_before=outcome.not_before,
    )


def call_binding(outcome: CallOutcome) -> Binding | None:
    """Return the binding of the recorded call of an outcome, or None when nothing was recorded."""
    if outcome.call_path is None or outcome.call_sha256 is None:
        return None
    return Binding(outcome.call_path, outcome.call_sha256)
