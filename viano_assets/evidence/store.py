"""The evidence of one analysis revision: minted once, numbered in order, shared by all hypotheses.

Same content and same provenance is the same record, whoever asks for it and however often; a repeat is
reported as such, because a duplicate earns no reward. The store itself is an ordered list of immutable
records; it is published in append-only pieces, one for each dispatch, and read back from them. Contents
are stored whole up to `MAX_CONTENT_BYTES`; a model is shown at most `SHOWN_BYTES` of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import ContractError
from viano_assets.evidence.model import Completeness, Draft, EvidenceRecord, ToolResult, evidence_identity
from viano_assets.evidence.text import clip, safe_text
from viano_assets.package.model import Head

SHOWN_BYTES = 8_192
"""Most bytes of one record's content that a model is shown."""

MAX_CONTENT_BYTES = 262_144
"""Most bytes of one record's content that are stored; a longer one is stored cut and marked truncated."""

PIECE_SCHEMA = "evidence-piece-v1"
_PIECE = "analysis/investigation/{revision:04d}/evidence-{dispatch:04d}.json"


class Reader(Protocol):
    """Anything that reads an artifact of a head, hashed at the read."""

    def read(self, head: Head, path: str) -> bytes:
        """Return the artifact's bytes."""
        ...


class Minted(NamedTuple):
    """A record that a tool result led to; `new` is False for one that was already stored."""

    record: EvidenceRecord
    new: bool


def piece_path(revision: int, dispatch: int) -> str:
    """Return where the evidence minted by one dispatch is published."""
    return _PIECE.format(revision=revision, dispatch=dispatch)


def usable_absence(record: EvidenceRecord) -> bool:
    """Say whether a record may support or contradict: an empty look only when its scope was complete."""
    return not record.empty or record.completeness is Completeness.COMPLETE


def shown_content(record: EvidenceRecord, limit: int = SHOWN_BYTES) -> str:
    """Return what a model sees of the content, cut at a line where possible, the cut named."""
    text, cut = clip(record.content, limit)
    if not cut:
        return text
    head, newline, _ = text.rpartition("\n")
    kept = head if newline and len(head) > len(text) // 2 else text
    missing = record.bytes - len(kept.encode("utf-8"))
    return f"{kept}\n[… {missing} more bytes of this record are stored]"


class EvidenceStore:
    """The ordered, deduplicated records of one analysis revision.

    Args:
        records: what is already stored, in order of their ids `E1`, `E2`, …

    Raises:
        ContractError: `evidence_broken` when ids do not count up or a content hash does not match.
    """

    def __init__(self, records: Iterable[EvidenceRecord] = ()) -> None:
        self._records: list[EvidenceRecord] = []
        self._by_id: dict[str, EvidenceRecord] = {}
        self._by_identity: dict[str, EvidenceRecord] = {}
        for record in records:
            if record.evidence_id != f"E{len(self._records) + 1}":
                raise ContractError("evidence_broken", f"{record.evidence_id} is out of order")
            if sha256_hex(record.content.encode("utf-8")) != record.content_sha256:
                raise ContractError("evidence_broken", f"{record.evidence_id} does not match its hash")
            self._keep(record)
        self._loaded = len(self._records)

    @classmethod
    def load(cls, reader: Reader, head: Head) -> EvidenceStore:
        """Read the pieces of the head's current analysis revision.

        Raises:
            ContractError: `evidence_broken` when a piece does not read or does not continue the list.
        """
        prefix = _PIECE.split("{", maxsplit=1)[0] + f"{head.revision:04d}/"
        pattern = re.compile(re.escape(prefix) + r"evidence-[0-9]{4}\.json")
        paths = sorted(path for path in head.files if pattern.fullmatch(path))
        return cls(record for path in paths for record in read_piece(reader.read(head, path), path))

    @property
    def records(self) -> Sequence[EvidenceRecord]:
        """All records in order of minting."""
        return tuple(self._records)

    @property
    def fresh(self) -> Sequence[EvidenceRecord]:
        """The records minted since the store was loaded: the next piece."""
        return tuple(self._records[self._loaded :])

    def get(self, evidence_id: str) -> EvidenceRecord | None:
        """Return a record by id; None for an id that was never minted."""
        return self._by_id.get(evidence_id)

    def __contains__(self, evidence_id: object) -> bool:
        return evidence_id in self._by_id

    def __len__(self) -> int:
        return len(self._records)

    def add(self, result: ToolResult) -> tuple[Minted, ...]:
        """Store what a tool brought, in its order; what is known already is returned, not stored again."""
        return tuple(self._mint(result, draft) for draft in result.drafts)

    def piece(self) -> bytes:
        """Return the canonical bytes of the piece that holds `fresh`."""
        records = [record.model_dump(mode="json", by_alias=True) for record in self.fresh]
        return canonical_json({"schema": PIECE_SCHEMA, "records": records})

    def shown(self, evidence_id: str) -> dict[str, Any]:
        """Return what a model sees of one record: id, content, provenance, completeness, places."""
        record = self._by_id[evidence_id]
        return {
            "evidence_id": record.evidence_id,
            "content": shown_content(record),
            "provenance": record.provenance.model_dump(mode="json", exclude_none=True),
            "completeness": record.completeness.value,
            "places": [place.model_dump(mode="json", exclude_none=True) for place in record.places],
        }

    def _mint(self, result: ToolResult, draft: Draft) -> Minted:
        draft, cut = _stored_form(draft)
        identity = evidence_identity(draft)
        known = self._by_identity.get(identity)
        if known is not None:
            return Minted(known, new=False)
        data = draft.content.encode("utf-8")
        record = EvidenceRecord(
            evidence_id=f"E{len(self._records) + 1}",
            tool=result.tool,
            arguments=result.arguments,
            scope=result.scope,
            completeness=draft.completeness,
            content=draft.content,
            content_sha256=sha256_hex(data),
            provenance=draft.provenance,
            places=draft.places,
            bytes=len(data),
            cause="content_cap" if cut else result.cause,
        )
        self._keep(record)
        return Minted(record, new=True)

    def _keep(self, record: EvidenceRecord) -> None:
        self._records.append(record)
        self._by_id[record.evidence_id] = record
        draft = Draft(
            content=record.content,
            provenance=record.provenance,
            completeness=record.completeness,
            places=record.places,
        )
        self._by_identity.setdefault(evidence_identity(draft), record)


def _stored_form(draft: Draft) -> tuple[Draft, bool]:
    content, cut = clip(safe_text(draft.content), MAX_CONTENT_BYTES)
    if content == draft.content:
        return draft, False
    completeness = Completeness.TRUNCATED if cut else draft.completeness
    return draft.model_copy(update={"content": content, "completeness": completeness}), cut


def read_piece(data: bytes, path: str) -> list[EvidenceRecord]:
    """Read one published piece.

    Raises:
        ContractError: `evidence_broken`, naming the path.
    """
    value = strict_loads(data)
    if not isinstance(value, dict) or value.get("schema") != PIECE_SCHEMA:
        raise ContractError("evidence_broken", "not a piece of evidence", where=path)
    records = value.get("records")
    if not isinstance(records, list):
        raise ContractError("evidence_broken", "a piece without records", where=path)
    try:
        return [EvidenceRecord.model_validate(record) for record in records]
    except ValidationError as error:
        raise ContractError(
            "evidence_broken", f"a record does not read: {error.title}", where=path
        ) from error
