"""The only place where case ids are checked and partition keys are made or parsed.

A key is `CASE@rN`: the case id as the person names it and the analysis revision. Grammar and reasons:
docs/architecture.md, "Partitions". No Dagster here, so that the command line starts quickly.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from viano_assets.errors import InputError

PARTITION_SET = "case_revision"
"""Name of the dynamic partition set."""

_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_KEY = re.compile(r"(?P<case>[A-Za-z0-9][A-Za-z0-9._-]{0,63})@r(?P<revision>[1-9][0-9]{0,5})", re.ASCII)


class CaseRevision(NamedTuple):
    """One analysis revision of one case."""

    case_id: str
    revision: int

    @property
    def key(self) -> str:
        """The partition key, for example `BUG-17@r1`."""
        return f"{self.case_id}@r{self.revision}"


def check_case_id(case_id: str) -> str:
    """Return `case_id` unchanged when it fits the grammar.

    Raises:
        InputError: `invalid_case_id`.
    """
    if not _CASE_ID.fullmatch(case_id) or ".." in case_id:
        raise InputError(
            "invalid_case_id",
            f"{case_id!r} cannot be a case id",
            hint="use 1 to 64 letters, digits, '.', '_', '-'; start with a letter or digit; no '..'",
        )
    return case_id


def parse_key(key: str) -> CaseRevision:
    """Split a partition key.

    Raises:
        InputError: `invalid_partition_key`.
    """
    match = _KEY.fullmatch(key)
    if match is None or ".." in key:
        raise InputError(
            "invalid_partition_key",
            f"{key!r} is not a partition key",
            hint="write CASE@rN, for example BUG-17@r1",
        )
    return CaseRevision(match["case"], int(match["revision"]))
