"""The changes and results that mean the same in every phase that asks a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viano_assets.canonical import sha256_hex
from viano_assets.errors import ConfigurationError
from viano_assets.package.model import Change, Head
from viano_assets.phases.common import attempt_hash, call_binding, place, record_rejection
from viano_assets.phases.protocols import CallOutcome, DispatchStatus, Phase, PhaseResult, Store
from viano_assets.phases.wire import ValidationIssue


def start_change(
    phase: Phase, context_path: str, put: Mapping[str, bytes], pointers: Mapping[str, str], lifecycle: str
) -> Change:
    """Return the change that enters a phase with its frozen context and policy."""
    return Change(
        event=f"{phase.value}_started",
        phase=phase.value,
        put=dict(put),
        pointers=dict(pointers),
        lifecycle=lifecycle,
        overlay=None,
        detail={"context_sha256": sha256_hex(put[context_path])},
    )


def policy_changed(head: Head, names: Sequence[str]) -> ConfigurationError:
    """Return the refusal of a policy that differs from the one pinned for the revision."""
    return ConfigurationError(
        "policy_changed",
        f"{', '.join(names)} differ from the policy pinned for analysis revision {head.revision}",
        where=place(head),
        hint="restore the old values; new ones take effect with a new revision (`viano case reopen`)",
    )


def changed_keys(frozen: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """Return the sorted names whose wanted value is not the frozen one."""
    return sorted(name for name, value in wanted.items() if frozen.get(name) != value)


def rejected(phase: Phase, head: Head, code: str, issues: Sequence[ValidationIssue]) -> PhaseResult:
    """Return the ERROR result of an answer that was just rejected."""
    first = issues[0]
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    return PhaseResult(
        phase,
        DispatchStatus.ERROR,
        head,
        code=code,
        message=f"the answer was rejected: {first.category} at {first.path or '/'}: {first.message}{more}",
        hint="dispatch again with a new attempt id",
    )


def already_rejected(phase: Phase, head: Head, attempt_id: str) -> PhaseResult:
    """Return the ERROR result of an attempt whose answer has been rejected before; nothing is sent."""
    return PhaseResult(
        phase,
        DispatchStatus.ERROR,
        head,
        code="attempt_rejected",
        message=f"attempt {attempt_id!r} ({attempt_hash(attempt_id)}) was rejected before",
        hint="dispatch again with a new attempt id",
    )


def reject_unreadable(
    store: Store,
    phase: Phase,
    outcome: CallOutcome,
    attempt_id: str,
    extra: Mapping[str, object] | None = None,
) -> PhaseResult:
    """Record and return the rejection of a reply that is not one complete JSON object."""
    code = outcome.code or "invalid_answer"
    issue = ValidationIssue(
        path="",
        category=code,
        message=outcome.message or "the reply is not one complete JSON object",
        hint="answer with exactly one complete JSON object",
    )
    head = record_rejection(
        store, outcome.head, phase, attempt_id, (issue,), code=code, call=call_binding(outcome), extra=extra
    )
    return rejected(phase, head, code, (issue,))
