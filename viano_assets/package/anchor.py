"""Optional hardening against a forger who can write the case directory: a keyed seal and an outside witness.

With an anchor every new generation's trailer is an HMAC, and a small file outside the case directory names
the newest generation with a MAC of its own. Then a well-formed forged generation, a removed newest
generation and a rolled-back case are errors. The key is given by the operator and stored nowhere.

The anchor may be one generation behind (a process died between its commit and moving the anchor); it is
moved forward by the next writer, under the case lock. A case that was written without an anchor is taken in
with `adopt`, which trusts what lies there at that moment; `since` remembers from which generation on the
trailers must be keyed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from viano_assets.canonical import canonical_json
from viano_assets.errors import ConfigurationError, PackageError
from viano_assets.package.files import sync_directory, write_durably
from viano_assets.package.filesystem import FileSystem, OsFileSystem, raise_reading, storage_error

KEY_VARIABLE = "VIANO_INTEGRITY_KEY"
_SCHEMA = "anchor-v1"
_MIN_KEY = 32


class Witness(NamedTuple):
    """What the anchor says: newest generation, its record's hash, first generation with a keyed trailer."""

    generation: int
    record_sha256: str
    since: int


class Anchor:
    """The witnesses of one home.

    Args:
        directory: where they lie; outside every case directory, best outside the home.
        key: at least 32 bytes, kept out of reach of whoever can write the home.
        filesystem: the disk seam.

    Raises:
        ConfigurationError: `weak_integrity_key`.
    """

    def __init__(self, directory: Path, key: bytes, filesystem: FileSystem | None = None) -> None:
        if len(key) < _MIN_KEY:
            raise ConfigurationError(
                "weak_integrity_key",
                f"the integrity key has {len(key)} bytes, at least {_MIN_KEY} are needed",
                where=KEY_VARIABLE,
                hint="make one with: python3 -c 'import secrets; print(secrets.token_hex(32))'",
            )
        self.key = key
        self._directory = str(directory)
        self._filesystem = filesystem or OsFileSystem()

    @classmethod
    def from_environment(cls, directory: Path, environment: Mapping[str, str] | None = None) -> Anchor:
        """Take the key from `VIANO_INTEGRITY_KEY`.

        Raises:
            ConfigurationError: `missing_integrity_key` or `weak_integrity_key`.
        """
        value = (os.environ if environment is None else environment).get(KEY_VARIABLE, "")
        if not value:
            raise ConfigurationError(
                "missing_integrity_key",
                "the anchor is on and no key is given",
                where=KEY_VARIABLE,
                hint=f"set {KEY_VARIABLE}, or switch integrity.anchor off",
            )
        return cls(directory, value.encode())

    def _path(self, case_id: str) -> str:
        return f"{self._directory}/{case_id}.json"

    def _mac(self, fields: dict[str, object]) -> str:
        return hmac.new(self.key, canonical_json(fields), hashlib.sha256).hexdigest()

    def read(self, case_id: str) -> Witness:
        """Return what is witnessed for a case.

        Raises:
            PackageError: `anchor_missing` or `anchor_invalid`.
        """
        path = self._path(case_id)
        if self._filesystem.kind(path) is None:
            raise PackageError(
                "anchor_missing",
                "the anchor is on and has no entry for the case",
                where=path,
                hint="if the case was made without an anchor and is trusted: viano case verify CASE --adopt",
            )
        try:
            descriptor = self._filesystem.open_file(path)
            try:
                raw = self._filesystem.read(descriptor, 4_096, 0)
            finally:
                self._filesystem.close(descriptor)
        except OSError as error:
            raise_reading(error, path)
        witness = self._parse(case_id, raw)
        if witness is None:
            raise PackageError(
                "anchor_invalid", "the anchor's entry is damaged or has another key", where=path
            )
        return witness

    def _parse(self, case_id: str, raw: bytes) -> Witness | None:
        try:
            fields = json.loads(raw)
            mac = fields.pop("mac")
            witness = Witness(fields["gen"], fields["head"], fields["since"])
            same = fields["schema"] == _SCHEMA and fields["case"] == case_id
            return witness if same and hmac.compare_digest(mac, self._mac(fields)) else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, case_id: str, witness: Witness) -> None:
        """Replace the entry of a case durably.

        Raises:
            StorageError: the disk refused.
        """
        fields: dict[str, object] = {
            "schema": _SCHEMA,
            "case": case_id,
            "gen": witness.generation,
            "head": witness.record_sha256,
            "since": witness.since,
        }
        data = canonical_json({**fields, "mac": self._mac(fields)})
        path = self._path(case_id)
        temporary = f"{path}.new"
        try:
            if self._filesystem.kind(self._directory) is None:
                self._filesystem.mkdir(self._directory)
            if self._filesystem.kind(temporary) is not None:
                self._filesystem.unlink(temporary)
            write_durably(self._filesystem, temporary, [data])
            self._filesystem.rename(temporary, path)
        except OSError as error:
            raise storage_error(error, path) from error
        sync_directory(self._filesystem, self._directory)
        self._filesystem.point("anchor.moved")

    def confirm(self, case_id: str, witness: Witness, generation: int, record_sha256: str) -> None:
        """Check a validated head against its witness.

        Raises:
            PackageError: `rollback` (the head is older), `anchor_mismatch` (another head of that number) or
                `anchor_gap` (more than one generation was added unseen).
        """
        where = f"{case_id} generation {generation}"
        if generation < witness.generation:
            raise PackageError(
                "rollback",
                f"the anchor has seen generation {witness.generation}, the case ends with {generation}",
                where=where,
                hint="restore the missing generations from a backup",
            )
        if generation == witness.generation and record_sha256 != witness.record_sha256:
            raise PackageError(
                "anchor_mismatch", "the anchor has seen another head of this number", where=where
            )
        if generation > witness.generation + 1:
            raise PackageError(
                "anchor_gap", f"the anchor has seen only generation {witness.generation}", where=where
            )
