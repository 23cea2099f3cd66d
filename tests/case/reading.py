"""Helpers of the reader tests: read a report from bytes, and check what must hold of any reading."""

from __future__ import annotations

import tempfile
from pathlib import Path

from viano_assets.case.model import CaseSource
from viano_assets.case.readers import ReportReading, read_report
from viano_assets.case.redaction import Redactor

REDACTOR = Redactor(bytes(range(32)))


def read(raw: bytes | str, name: str = "report.md", *, comment: bool = False) -> ReportReading:
    """Read a report of these bytes."""
    data = raw.encode() if isinstance(raw, str) else raw
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return read_report(
            path,
            input_path=f"inputs/report/{name}",
            input_sha256="0" * 64,
            redactor=REDACTOR,
            comment=comment,
        )


def brief(reading: ReportReading) -> list[tuple[str, str | None, str]]:
    """Return type, kind and text of every source that is no mention within another."""
    whole = [s for s in reading.sources if not inner(s, reading)]
    return [(s.type.value, s.kind, s.text) for s in whole]


def inner(source: CaseSource, reading: ReportReading) -> bool:
    """True when another source covers more than this one."""
    return any(
        other is not source
        and other.origin.member == source.origin.member
        and other.origin.byte_start <= source.origin.byte_start
        and source.origin.byte_end <= other.origin.byte_end
        and (other.origin.byte_end - other.origin.byte_start)
        > (source.origin.byte_end - source.origin.byte_start)
        for other in reading.sources
    )


def texts(reading: ReportReading, type_: str, kind: str | None = None) -> list[str]:
    """Return the texts of the sources of one type and kind."""
    return [s.text for s in reading.sources if s.type.value == type_ and s.kind == kind]
