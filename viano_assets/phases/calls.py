"""Reads recorded model calls back for a replay, without a gateway and without a model call.

The gateway's call record (docs/models.md) carries more; a replay relies on these fields of it only:
`case_id, package_id, analysis_revision, phase, attempt_id, request_sha256` and `answer`, the strictly
decoded JSON object of an accepted call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from viano_assets.canonical import canonical_json
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.common import Binding, check_binding, declared_by, place, read_json
from viano_assets.phases.protocols import CallOutcome, ModelRequest, Phase, Store


class SavedCall(NamedTuple):
    """An accepted call as it lies in the package."""

    binding: Binding
    request_sha256: str
    attempt_id: str
    answer: dict[str, Any]

    def as_json(self) -> dict[str, str]:
        """Return the binding an artifact keeps of its call."""
        return {
            "path": self.binding.path,
            "sha256": self.binding.sha256,
            "request_sha256": self.request_sha256,
            "attempt_id": self.attempt_id,
        }


def read_call(store: Store, head: Head, bound: Mapping[str, Any], phase: Phase) -> SavedCall:
    """Read and verify the recorded call that an artifact of `phase` names.

    Raises:
        ContractError: `binding_broken`, `call_undeclared` or `call_mismatch`.
    """
    binding = check_binding(head, bound)
    if not any(c.declares[binding.path] == binding.sha256 for c in declared_by(head, binding.path)):
        raise ContractError(
            "call_undeclared", "no checkpoint recorded this call", where=place(head, binding.path)
        )
    record = read_json(store, head, binding.path)
    attempt_id, digest, answer = bound.get("attempt_id"), bound.get("request_sha256"), record.get("answer")
    expected = {
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "phase": phase.value,
        "attempt_id": attempt_id,
        "request_sha256": digest,
    }
    if any(record.get(name) != value for name, value in expected.items()) or not isinstance(answer, dict):
        raise ContractError(
            "call_mismatch",
            "the recorded call is not the one that was accepted",
            where=place(head, binding.path),
        )
    return SavedCall(binding, str(digest), str(attempt_id), answer)


def check_request(head: Head, call: SavedCall, request: ModelRequest) -> None:
    """Verify that the call answered exactly this request.

    Raises:
        ContractError: `request_mismatch`.
    """
    if request.sha256 != call.request_sha256:
        raise ContractError(
            "request_mismatch",
            "the frozen context does not lead to the request that was answered",
            where=place(head, call.binding.path),
        )


def accepted_call(
    store: Store, phase: Phase, outcome: CallOutcome, request: ModelRequest, attempt: str
) -> SavedCall:
    """Return the recorded call of an answered outcome, read back from the package.

    Raises:
        ContractError: `call_mismatch` when the record does not carry the answer that was handed over.
    """
    bound = {
        "path": outcome.call_path,
        "sha256": outcome.call_sha256,
        "request_sha256": request.sha256,
        "attempt_id": attempt,
    }
    call = read_call(store, outcome.head, bound, phase)
    if canonical_json(call.answer) != canonical_json(outcome.answer):
        raise ContractError(
            "call_mismatch",
            "the record does not carry this answer",
            where=place(outcome.head, call.binding.path),
        )
    return call
