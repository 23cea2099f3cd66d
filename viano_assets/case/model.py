"""`case.json` (schema `case-v1`): typed sources, read by every phase instead of the report."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class SourceType(StrEnum):
    """What a piece of the input is, which decides what it may ground (docs/contracts.md, section 1)."""

    OBSERVATION = "observation"
    REPORT = "report"
    COMMENT = "comment"
    REPRODUCTION_STEP = "reproduction_step"
    EXPECTATION = "expectation"
    EXTERNAL_EXPECTATION = "external_expectation"
    TESTER_ASSUMPTION = "tester_assumption"
    TECHNICAL_FACT = "technical_fact"
    ENVIRONMENT = "environment"
    IMPLEMENTATION_REFERENCE = "implementation_reference"


class Origin(_Frozen):
    """Where a source stands in the raw input; lines 1-based inclusive, bytes half-open.

    `member` is the file inside the input when that is an archive; lines and bytes count within it.
    """

    input_path: str
    input_sha256: str
    member: str | None = None
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int


class CaseSource(_Frozen):
    """One typed source.

    `kind` refines technical facts: stack_frame, log_line, error, sql, id, command,
    version, commit, code_block, path, identifier; None otherwise. `attributes` holds parsed parts as text
    (for a frame: file, line, function, language).
    """

    id: str
    type: SourceType
    text: str
    origin: Origin
    kind: str | None = None
    attributes: dict[str, str] = {}


class InputFile(_Frozen):
    """One raw input file of the package: its role and what it is."""

    path: str
    sha256: str
    bytes: int
    role: Literal["report", "diagnostics", "source"]


class CaseDocument(_Frozen):
    """The canonical case.

    `language` is that of the report (`en`, `de`, `und`); `defects` counts the
    separate defects the report describes.
    """

    schema_: Literal["case-v1"] = Field(default="case-v1", alias="schema")
    case_id: str
    package_id: str
    analysis_revision: int
    title: str
    language: str
    sources: tuple[CaseSource, ...]
    inputs: tuple[InputFile, ...]
    redaction_rules: str
    defects: int = 1
    notes: tuple[str, ...] = ()
