"""Redaction of a file piece by piece with the line rules alone."""

from __future__ import annotations

import re
from typing import Protocol

from viano_assets.case.redaction import Redactor
from viano_assets.case.redaction_rules import Flavour

_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY", re.ASCII)


class Stream(Protocol):
    """Redacts one file piece by piece."""

    def feed(self, piece: str) -> str:
        """Return the redacted piece; pieces end at line ends, except the last."""
        ...

    def finish(self) -> str:
        """Return what is still held back."""
        ...


class PlainStream:
    """The line rules; a private key may begin in one piece and end in another."""

    def __init__(self, redactor: Redactor, flavour: Flavour) -> None:
        self._redactor = redactor
        self._flavour = flavour
        self._in_key = False

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        head = ""
        if self._in_key:
            end = piece.find("-----END ")
            stop = len(piece) if end < 0 else end
            head = self._redactor.line_placeholders("SECRET", piece[:stop])
            piece = piece[stop:]
        marks = _PEM.findall(piece) if "PRIVATE KEY" in piece else []
        if marks:
            self._in_key = marks[-1] == "BEGIN"
        elif piece:
            self._in_key = False
        return head + self._redactor.redact(piece, self._flavour)

    def finish(self) -> str:
        """See `Stream`."""
        return ""
