"""Re-resolves stored evidence against the inputs and says what no longer holds.

Used by `viano case verify` and before a diagnosis is trusted. The inputs are opened by a `Resolver`
(the case's tools), which reads the redacted view with the rules pinned in the revision; this module adds
what can be checked without them: hashes, ids and citations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from viano_assets.canonical import sha256_hex
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.evidence.store import EvidenceStore, Reader
from viano_assets.package.model import Head


class Resolver(Protocol):
    """Re-resolves one record against the inputs."""

    def still_holds(self, record: EvidenceRecord) -> str | None:
        """Return what no longer holds, or None."""
        ...


class Broken(NamedTuple):
    """A piece of evidence that does not hold, with the reason as one sentence."""

    evidence_id: str
    reason: str


def verify_records(records: Iterable[EvidenceRecord], head: Head, resolver: Resolver) -> tuple[Broken, ...]:
    """Check each record: its hash, that its raw input is the head's, and that the inputs still say it."""
    inputs = head.raw_inputs()
    broken = []
    for record in records:
        reason = _own_faults(record, inputs) or resolver.still_holds(record)
        if reason is not None:
            broken.append(Broken(record.evidence_id, reason))
    return tuple(broken)


def verify_evidence(
    reader: Reader, head: Head, resolver: Resolver, cited: Iterable[str] | None = None
) -> tuple[Broken, ...]:
    """Re-resolve the evidence of the head's current revision; `cited` limits it to these ids.

    A cited id that was never minted is reported like any other failure.
    """
    store = EvidenceStore.load(reader, head)
    if cited is None:
        return verify_records(store.records, head, resolver)
    wanted = sorted(set(cited), key=lambda name: (len(name), name))
    unknown = tuple(Broken(name, "no such evidence was ever stored") for name in wanted if name not in store)
    known = [record for name in wanted if (record := store.get(name)) is not None]
    return unknown + verify_records(known, head, resolver)


def _own_faults(record: EvidenceRecord, inputs: dict[str, str]) -> str | None:
    if sha256_hex(record.content.encode("utf-8")) != record.content_sha256:
        return "the stored content does not match its hash"
    path, digest = record.provenance.input_path, record.provenance.input_sha256
    if path is None or digest is None:
        return None
    if path not in inputs:
        return f"the input {path} is not in the package"
    return None if inputs[path] == digest else f"the input {path} is another file than the one read"
