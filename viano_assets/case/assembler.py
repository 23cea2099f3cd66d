"""Turns the raw inputs of a head into the canonical case (`case-v1`) of its analysis revision.

Nothing later reads a raw report. The assembler writes `case/NNNN/case.json`, sets the pointer `case` and
moves the case to `ASSEMBLED`; raw inputs are the live files that no checkpoint declares, whatever they
are called, so that an unknown file is preserved and takes part in the freshness check.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path, PurePosixPath

from viano_assets.canonical import canonical_json
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.model import CaseDocument, CaseSource, InputFile
from viano_assets.case.ports import CaseStore, ReadStore
from viano_assets.case.readers import ReportReading, check_report, read_report
from viano_assets.case.redaction import RULES
from viano_assets.case.view import Role, pins_of, raw_paths
from viano_assets.errors import ContractError, InputError, PackageError
from viano_assets.package.model import Change, Head

CASE_POINTER = "case"
"""Pointer to the canonical case of the current analysis revision."""


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

    def __init__(self, store: CaseStore) -> None:
        self._store = store

    def assemble(self, head: Head) -> Head:
        """Publish the canonical case of the head's current revision.

        Raises:
            InputError: the report cannot be read.
            ContractError: `case_already_assembled`.
        """
        if head.pointer(CASE_POINTER) == case_path(head.revision):
            raise ContractError(
                "case_already_assembled", "this revision has its canonical case", where=head.case_id
            )
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

    def document(self, head: Head, *, revision: int | None = None) -> CaseDocument:
        """Read the raw inputs of `head` into a canonical case, without publishing it."""
        pins = pins_of(self._store, head)
        reports = raw_paths(head, "report")
        if not reports:
            raise InputError(
                "missing_report", "the package holds no report", where=head.case_id, hint="import it again"
            )
        readings: list[ReportReading] = []
        with tempfile.TemporaryDirectory(prefix="viano-report-") as folder:
            for number, path in enumerate(reports):
                copy = Path(folder) / str(number)
                with self._store.open(head, path) as content, copy.open("wb") as target:
                    shutil.copyfileobj(content, target, 1 << 20)
                check_report(copy, PurePosixPath(path).name, where=path, name_encoding=pins.name_encoding)
                readings.append(
                    read_report(
                        copy,
                        input_path=path,
                        input_sha256=head.files[path].sha256,
                        redactor=pins.redactor,
                        name_encoding=pins.name_encoding,
                    )
                )
        return _document(head, head.revision if revision is None else revision, readings)


def _document(head: Head, revision: int, readings: list[ReportReading]) -> CaseDocument:
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
        inputs=input_files(head),
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
        InputFile(path=path, sha256=sha256, bytes=head.files[path].size, role=_role(path))
        for path, sha256 in sorted(raw.items())
    )


def _role(path: str) -> Role:
    if path.startswith("inputs/report/"):
        return "report"
    return "source" if path.startswith("inputs/source/") else "diagnostics"


def dump(document: CaseDocument) -> bytes:
    """Return the canonical bytes of a case."""
    return canonical_json(document.model_dump(mode="json", by_alias=True, exclude_none=True))
