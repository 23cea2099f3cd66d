"""Every error Viano raises on purpose, named after who can act on it.

VianoError
├── InputError          a file, report, archive or argument of the user    exit status 2
├── ConfigurationError  a setting, profile or key of the operator          exit status 2
├── BlockedError        nothing is wrong; try later or resume              exit status 3
│   ├── BusyError           another process works on the case
│   └── StaleHeadError      another writer committed the generation first
├── StorageError        the disk is full, read-only, failing or denied       exit status 1
├── PackageError        a stored package is damaged or not what it claims  exit status 1
│   └── NewerFormatError    written by a newer release
├── ContractError       a saved artifact or answer breaks its contract     exit status 1
└── DefectError         an invariant of Viano itself does not hold         exit status 1

`code` is stable and documented in docs/errors.md; `where` names the case, generation, path or line;
`hint` is one remedy. Messages never hold secrets or a traceback.
"""

from __future__ import annotations

from typing import ClassVar


class VianoError(Exception):
    """What happened, where, and what to do next.

    Args:
        code: stable snake_case identifier.
        message: one sentence, without the place.
        where: the case, file, generation or line concerned; empty when there is none.
        hint: one remedy for the person who can act.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, code: str, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(code, message, where, hint)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.code}: {self.message}{place}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.message, self.where, self.hint))


def _rebuild(kind: type[VianoError], code: str, message: str, where: str, hint: str) -> VianoError:
    return kind(code, message, where=where, hint=hint)


class InputError(VianoError):
    """A file, report, archive or argument of the user cannot be used."""

    exit_status = 2


class ConfigurationError(VianoError):
    """A setting, provider profile or key of the operator cannot be used."""

    exit_status = 2


class BlockedError(VianoError):
    """The case cannot move now; a later attempt or a resume can."""

    exit_status = 3


class BusyError(BlockedError):
    """Another process holds the case."""


class StaleHeadError(BlockedError):
    """The generation this writer built on is no longer the head."""


class StorageError(VianoError):
    """The disk refused: full, read-only, failing or not permitted; nothing unacknowledged is stored."""


class PackageError(VianoError):
    """A stored package is damaged, misidentified or forged."""


class NewerFormatError(PackageError):
    """The package was written by a newer release of Viano."""


class ContractError(VianoError):
    """A saved artifact or model answer does not satisfy its contract."""


class DefectError(VianoError):
    """An invariant of Viano itself does not hold; please report it."""
