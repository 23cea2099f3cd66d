"""The commands that move a halted case on, whole, so that they can be copied from a hint."""

from __future__ import annotations

from viano_assets.package.model import Head
from viano_assets.phases.rounds import model_rounds

NEEDS_RETRY_ID = frozenset(
    {
        "provider_configuration",
        "provider_refused",
        "request_too_large",
        "rounds_exhausted",
        "outcome_unknown",
    }
)
"""Blocks of a model operation that only a new retry id reopens while the configuration is the same; a key is
no part of the configuration, because no secret reaches a package."""


def run_command(head: Head) -> str:
    """Return the `viano run` that moves the case on.

    It names a retry id that the revision has not used when the last model operation ended in a block that
    `viano case resume` alone does not reopen (seed 000); the id depends on the history only.
    """
    mine = [checkpoint for checkpoint in head.checkpoints if checkpoint.revision == head.revision]
    details = [checkpoint.detail for checkpoint in model_rounds(head, head.revision)]
    used = {str(detail["retry_id"]) for detail in details if detail.get("retry_id")}
    command = f"viano run {head.case_id}"
    for checkpoint in reversed(mine):
        if checkpoint.detail.get("outcome") in {"answered", "invalid"}:
            break
        if checkpoint.event.endswith("_blocked"):
            if checkpoint.detail.get("code") not in NEEDS_RETRY_ID:
                break
            number = next(n for n in range(1, len(used) + 2) if f"retry-{n}" not in used)
            return f"{command} --retry-id retry-{number}"
    return command


def remedy(head: Head) -> str:
    """Return the hint of a block: the commands that lift it and go on."""
    return f"remove the cause, then: viano case resume {head.case_id} && {run_command(head)}"
