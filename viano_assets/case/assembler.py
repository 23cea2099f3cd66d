"""Turns the raw inputs of a head into the canonical case (`case-v1`) of its analysis revision.

Nothing later reads a raw report. The assembler writes `case/NNNN/case.json`, sets the pointer `case` and
moves the case to `ASSEMBLED`; raw inputs are the live files that no checkpoint declares, whatever they
are called, so that an unknown file is preserved and takes part in the freshness check.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from viano_assets.canonical import canonical_json
from viano_assets.case.inputs import RawInput, is_added, role_of
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.model import CaseDocument, CaseSource, InputFile
from viano_assets.case.ports import CommitStore, ReadStore
from viano_assets.case.readers import ReportReading, check_report, read_report
from viano_assets.case.redaction import RULES, Redactor
from viano_assets.case.view import pins_of
from viano_assets.errors import InputError, PackageError
from viano_assets.package.model import Change, Head

CASE_POINTER = "case"
"""Pointer to the canonical case of the current analysis revision."""

MAX_SHOWN_BYTES = 1_048_576
"""Most that a phase is shown at once; `limits.context_bytes` of the interpretation has it as its default."""

_FRAME_BYTES = 32_768
_SOURCE_BYTES = 56
"""What a context holds besides the sources, and what each id takes in its lists: measured upper bounds."""


def case_path(revision: int) -> str:
    """Return where the canonical case of a revision lies in the package."""
    return f"case/{revision:04d}/case.json"


def load_case(store: ReadStore, head: Head, revision: int | None = None) -> CaseDocument:
    """Return the canonical case of a revision, by default of the head's.

    Raises:
        PackageError: `case_not_assembled`, `case_unreadable`.
    """
    path = head.pointer(CASE_POINTER) if revision is None else case_path(revision)
    if path is None or path not in head.files:
        raise PackageError(
            "case_not_assembled",
            "the package holds no canonical case",
            where=head.case_id,
            hint="import it again",
        )
    try:
        return CaseDocument.model_validate_json(store.read(head, path))
    except ValueError as error:
        raise PackageError("case_unreadable", "case.json breaks its contract", where=path) from error


class CaseAssembler:
    """Assembles and re-assembles canonical cases.

    Args:
        store: where the packages are.
    """

    def __init__(self, store: CommitStore) -> None:
        self._store = store

    def assemble(self, head: Head) -> Head:
        """Publish the canonical case of the head's revision; a head that has it is returned unchanged.

        An import that was interrupted between its two generations is completed by this.

        Raises:
            InputError: the report cannot be read.
        """
        if head.pointer(CASE_POINTER) == case_path(head.revision):
            return head
        document = self.document(head)
        return self._store.commit(
            head,
            Change(
                event="case_assembled",
                put={case_path(head.revision): dump(document)},
                pointers={CASE_POINTER: case_path(head.revision)},
                lifecycle=Lifecycle.ASSEMBLED.value,
                detail={"sources": len(document.sources), "defects": document.defects},
            ),
        )

    def document(
        self, head: Head, *, revision: int | None = None, added: Sequence[RawInput] = ()
    ) -> CaseDocument:
        """Read the raw inputs of `head` and what is added to them into a canonical case; publish nothing.

        Raises:
            InputError: `missing_report`, or what `check_report` refuses.
        """
        pins = pins_of(self._store, head)
        inputs = [*input_files(head), *(item.described() for item in added)]
        local = {item.package_path: item.path for item in added}
        reports = sorted((item for item in inputs if item.role == "report"), key=_report_order)
        if not reports:
            raise InputError(
                "missing_report", "the package holds no report", where=head.case_id, hint="import it again"
            )
        readings: list[ReportReading] = []
        with tempfile.TemporaryDirectory(prefix="viano-report-") as folder:
            for item in reports:
                path = local.get(item.path) or self._copied(head, item.path, Path(folder) / item.sha256)
                readings.append(_reading(item, path, pins.redactor, pins.name_encoding))
        if added:
            _check_shown(readings, head.case_id)
        return _document(
            head, revision or head.revision, readings, sorted(inputs, key=lambda item: item.path)
        )

    def _copied(self, head: Head, path: str, target: Path) -> Path:
        with self._store.open(head, path) as content, target.open("wb") as out:
            shutil.copyfileobj(content, out, 1 << 20)
        return target


def check_readings(inputs: Sequence[RawInput], redactor: Redactor, name_encoding: str | None) -> None:
    """Refuse reports that no phase could be shown whole, before anything is written.

    Raises:
        InputError: `report_too_large`, and what `check_report` refuses.
    """
    reports = [item for item in inputs if item.role == "report"]
    readings = [_reading(item.described(), item.path, redactor, name_encoding) for item in reports]
    _check_shown(readings, ", ".join(item.package_path for item in reports))


def _reading(item: InputFile, path: Path, redactor: Redactor, name_encoding: str | None) -> ReportReading:
    check_report(path, PurePosixPath(item.path).name, where=item.path, name_encoding=name_encoding)
    return read_report(
        path,
        input_path=item.path,
        input_sha256=item.sha256,
        redactor=redactor,
        name_encoding=name_encoding,
        comment=is_added(item.path),
    )


def _check_shown(readings: Sequence[ReportReading], where: str) -> None:
    sources = [source for reading in readings for source in reading.sources]
    shown = [source.model_dump(mode="json", exclude={"origin"}) for source in sources]
    # A request carries its sections as text, so that each quotation mark in them takes a backslash.
    size = len(canonical_json(canonical_json(shown).decode())) + _SOURCE_BYTES * len(sources) + _FRAME_BYTES
    if size > MAX_SHOWN_BYTES:
        raise InputError(
            "report_too_large",
            f"what the report says takes {size} bytes as {len(sources)} sources,"
            f" at most {MAX_SHOWN_BYTES} can be shown to an analysis",
            where=where,
            hint="keep to what was done and seen; put logs, dumps and long lists into --diagnostics",
        )


def _report_order(item: InputFile) -> tuple[bool, str]:
    return is_added(item.path), item.path


def _document(
    head: Head, revision: int, readings: list[ReportReading], inputs: list[InputFile]
) -> CaseDocument:
    first = readings[0]
    sources: list[CaseSource] = []
    for reading in readings:
        for source in reading.sources:
            sources.append(source.model_copy(update={"id": f"S{len(sources) + 1}"}))
    languages = {reading.language for reading in readings if reading.language != "und"}
    return CaseDocument(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=revision,
        title=first.title,
        language=first.language if first.language != "und" or not languages else min(languages),
        sources=tuple(sources),
        inputs=tuple(inputs),
        redaction_rules=RULES,
        defects=max(reading.defects for reading in readings),
        notes=tuple(dict.fromkeys(note for reading in readings for note in reading.notes)),
    )


def input_files(head: Head) -> tuple[InputFile, ...]:
    """Return every raw input of the head with its role, ordered by path.

    A raw file outside the three role folders is preserved; it counts as diagnostics that no reader knows.
    """
    raw = head.raw_inputs()
    return tuple(
        InputFile(path=path, sha256=sha256, bytes=head.files[path].size, role=role_of(path))
        for path, sha256 in sorted(raw.items())
    )


def dump(document: CaseDocument) -> bytes:
    """Return the canonical bytes of a case."""
    return canonical_json(document.model_dump(mode="json", by_alias=True, exclude_none=True))
