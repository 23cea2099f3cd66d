"""Whether a case was interrupted: a phase is under way and nobody works on it."""

from __future__ import annotations

from viano_assets.case.lifecycle import IN_PHASE, Lifecycle
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.remedies import remedy, run_command


def interrupted(store: CheckpointStore, head: Head, revision: int) -> str | None:
    """Say that the phase under way has no worker, and how to go on; None when that is not so.

    The kernel frees the case lock of a killed process, so the lock tells a dead run from a slow one. An
    earlier revision and a case under a halt are never interrupted.
    """
    if revision != head.revision or head.manifest.overlay is not None:
        return None
    state, last = head.manifest.lifecycle, head.checkpoints[-1]
    received = state == Lifecycle.RECEIVED.value
    if not received and (state not in IN_PHASE or last.event.endswith("_published")):
        return None
    if store.in_work(head.case_id):
        return None
    what = "the import" if received else f"the {last.phase or state.lower()} phase"
    return (
        f"interrupted: {what} is not finished and no process works on the case; nothing published is lost; "
        f"continue with: {run_command(head)}"
    )


def next_step(head: Head) -> str | None:
    """Return the commands that lift the block of a case and go on; None when none lies on it."""
    overlay = head.manifest.overlay
    return remedy(head) if overlay is not None and overlay.kind == "blocked" else None
