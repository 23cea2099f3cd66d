"""The outbox: finished outputs that wait to be fetched, each exactly once.

An entry is an artifact of the same generation that makes the output ready, so a crash or a replay can
neither lose nor double it; acknowledging is one more generation. Nothing is kept outside the packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import ContractError, InputError
from viano_assets.package.model import Change, Head

ENTRY_SCHEMA = "outbox-entry-v1"
EVENT_ACKNOWLEDGED = "outbox_acknowledged"


class OutboxStore(Protocol):
    """The part of a store the outbox needs."""

    def case_ids(self) -> Iterable[str]:
        """Return the ids of all cases."""
        ...

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        """Return the validated head."""
        ...

    def read(self, head: Head, path: str) -> bytes:
        """Return one artifact's bytes, hashed at the read."""
        ...

    def commit(self, head: Head, change: Change) -> Head:
        """Publish the next generation."""
        ...


def entry_path(revision: int) -> str:
    """Return where the outbox entry of an analysis revision lies."""
    return f"outbox/{revision:04d}/entry.json"


def acknowledged_path(revision: int) -> str:
    """Return where the acknowledgement of an entry lies."""
    return f"outbox/{revision:04d}/acknowledged.json"


def outbox_entry(head: Head, kind: str, artifact: str, sha256: str) -> bytes:
    """Return the bytes of the entry that announces `artifact`, the same whenever it is made."""
    identity = [head.case_id, head.manifest.package_id, head.revision, kind, sha256]
    return canonical_json(
        {
            "schema": ENTRY_SCHEMA,
            "entry_id": sha256_hex(canonical_json(identity))[:16],
            "case_id": head.case_id,
            "package_id": head.manifest.package_id,
            "analysis_revision": head.revision,
            "kind": kind,
            "artifact": {"path": artifact, "sha256": sha256},
        }
    )


def entries(store: OutboxStore, case_id: str) -> list[dict[str, Any]]:
    """Return every entry of a case, oldest revision first, each with `acknowledged`.

    Raises:
        ContractError: `outbox_entry_invalid` when a stored entry does not name a live artifact.
    """
    head = store.latest(case_id)
    found = []
    for revision in range(1, head.revision + 1):
        path = entry_path(revision)
        if path in head.files:
            entry = _entry(store, head, path)
            found.append({**entry, "acknowledged": acknowledged_path(revision) in head.files})
    return found


def _entry(store: OutboxStore, head: Head, path: str) -> dict[str, Any]:
    entry = strict_loads(store.read(head, path))
    artifact = entry.get("artifact") if isinstance(entry, dict) else None
    named = head.files.get(str(artifact.get("path"))) if isinstance(artifact, dict) else None
    if not isinstance(entry, dict) or not isinstance(artifact, dict) or named is None:
        raise _invalid(head, path)
    if named.sha256 != artifact.get("sha256") or entry.get("case_id") != head.case_id:
        raise _invalid(head, path)
    return entry


def _invalid(head: Head, path: str) -> ContractError:
    return ContractError(
        "outbox_entry_invalid",
        "an outbox entry does not name a live output of this case",
        where=f"case {head.case_id}, generation {head.generation}, {path}",
        hint="run `viano case verify` on the case",
    )


def pending_entries(store: OutboxStore) -> list[dict[str, Any]]:
    """Return the entries of all cases that nobody has acknowledged, in order of case id and revision."""
    waiting = []
    for case_id in sorted(store.case_ids()):
        waiting += [entry for entry in entries(store, case_id) if not entry["acknowledged"]]
    return waiting


def acknowledge(store: OutboxStore, case_id: str, entry_id: str | None = None) -> dict[str, Any]:
    """Acknowledge one entry of a case (default: the newest); doing it twice changes nothing.

    Raises:
        InputError: `outbox_empty` when the case has no such entry.
    """
    known = [e for e in entries(store, case_id) if entry_id is None or e["entry_id"] == entry_id]
    if not known:
        raise InputError(
            "outbox_empty",
            "the case has no finished output to acknowledge",
            where=case_id,
            hint="`viano outbox list` shows what waits",
        )
    entry = known[-1]
    if not entry["acknowledged"]:
        head = store.latest(case_id)
        data = canonical_json({"schema": "outbox-acknowledgement-v1", "entry_id": entry["entry_id"]})
        change = Change(
            event=EVENT_ACKNOWLEDGED,
            put={acknowledged_path(int(entry["analysis_revision"])): data},
            detail={"entry_id": entry["entry_id"]},
        )
        store.commit(head, change)
    return {**entry, "acknowledged": True}
