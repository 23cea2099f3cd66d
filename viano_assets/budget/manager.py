"""Reads and stages the ledger of a case package.

A settlement is exactly once because it is part of the generation that records the decision causing it:
either that generation is the head's, with all its entries, or it does not exist. Nothing is written here;
`stage` hands the new piece to the caller's atomic change.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from viano_assets.budget.ledger import Ledger
from viano_assets.budget.model import Binding, BudgetSnapshot, LedgerKey, LedgerPiece
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import ContractError
from viano_assets.package.model import Head

POINTER = "budget_ledger"
"""The manifest pointer that names the newest piece of the current revision."""

_PIECE = re.compile(r"analysis/investigation/(?P<revision>[0-9]{4,})/ledger-(?P<piece>[0-9]{4,})\.json")


class LedgerStore(Protocol):
    """The part of a store that the budget needs."""

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        """Return the validated head."""
        ...

    def read(self, head: Head, path: str) -> bytes:
        """Return one artifact's bytes, hashed at the read."""
        ...


class Staged(NamedTuple):
    """One new ledger piece, to be put into the caller's change."""

    path: str
    content: bytes


def piece_path(revision: int, piece: int) -> str:
    """Return the path of one ledger piece."""
    return f"analysis/investigation/{revision:04d}/ledger-{piece:04d}.json"


class BudgetManager:
    """Folds the stored ledger and stages additions.

    Args:
        store: where the case packages lie.
    """

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    def snapshot(
        self, case_id: str, package_id: str | None = None, *, revision: int | None = None
    ) -> BudgetSnapshot:
        """Return all accounts of a revision (default: the current one), every invariant checked.

        Raises:
            ContractError: `ledger_invalid`, `ledger_chain`.
        """
        head = self._store.latest(case_id, package_id)
        return self.ledger(head, revision).snapshot()

    def ledger(self, head: Head, revision: int | None = None) -> Ledger:
        """Read and fold every piece of a revision; an empty ledger when none was written.

        Raises:
            ContractError: `ledger_invalid`, `ledger_chain`.
        """
        wanted = revision or head.revision
        key = LedgerKey(head.case_id, head.manifest.package_id, wanted)
        pieces = self._pieces(head, wanted)
        return Ledger(key, (entry for piece in pieces for entry in piece.entries))

    @staticmethod
    def stage(head: Head, ledger: Ledger) -> Staged | None:
        """Return the piece that holds the ledger's new entries, or None when there are none."""
        if not ledger.staged:
            return None
        paths = _paths(head, ledger.key.analysis_revision)
        previous = Binding(path=paths[-1], sha256=head.files[paths[-1]].sha256) if paths else None
        piece = LedgerPiece(
            case_id=ledger.key.case_id,
            package_id=ledger.key.package_id,
            analysis_revision=ledger.key.analysis_revision,
            piece=len(paths),
            previous=previous,
            entries=tuple(ledger.staged),
        )
        content = canonical_json(piece.model_dump(mode="json", by_alias=True))
        return Staged(piece_path(ledger.key.analysis_revision, len(paths)), content)

    def _pieces(self, head: Head, revision: int) -> list[LedgerPiece]:
        paths = _paths(head, revision)
        pieces: list[LedgerPiece] = []
        previous: Binding | None = None
        for number, path in enumerate(paths):
            content = self._store.read(head, path)
            piece = _parse(content, path)
            named = (piece.case_id, piece.package_id, piece.analysis_revision, piece.piece)
            if path != piece_path(revision, number) or piece.previous != previous:
                raise _chain(path, "a piece is missing or does not follow the one before it")
            if named != (head.case_id, head.manifest.package_id, revision, number):
                raise _chain(path, "the piece belongs to another ledger")
            previous = Binding(path=path, sha256=sha256_hex(content))
            pieces.append(piece)
        if paths and revision == head.revision and head.pointer(POINTER) != paths[-1]:
            raise _chain(head.pointer(POINTER) or POINTER, "the pointer does not name the newest piece")
        return pieces


def _paths(head: Head, revision: int) -> list[str]:
    found: list[tuple[int, str]] = []
    for path in head.files:
        match = _PIECE.fullmatch(path)
        if match and int(match["revision"]) == revision:
            found.append((int(match["piece"]), path))
    return [path for _, path in sorted(found)]


def _parse(content: bytes, path: str) -> LedgerPiece:
    try:
        return LedgerPiece.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _chain(path, f"not a ledger piece: {first['msg']}") from error


def _chain(path: str, message: str) -> ContractError:
    return ContractError(
        "ledger_chain", message, where=path, hint="the package was altered or damaged; restore it"
    )
