"""What the readers hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from viano_assets.case.model import SourceType
from viano_assets.case.readers.vocabulary import Section
from viano_assets.case.text import Text


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a report by one author.

    Args:
        text: what was written, with its places; not yet redacted.
        base: the type of its unmarked prose (`report`, or `comment` for a later remark).
        section: what the passage is about, when the format itself says so.
        attributes: author, time, field or member, as far as known.
        is_title: the passage is the report's title.
        whole: one source of `base` and `kind`, not to be taken apart.
        kind: of the one source when `whole`.
        defect: the number of the defect the passage belongs to, 0 when it is shared.
    """

    text: Text
    base: SourceType = SourceType.REPORT
    section: Section | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    is_title: bool = False
    whole: bool = False
    kind: str | None = None
    member: str | None = None
    defect: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One source before it has an id: a half-open slice of its passage's redacted text."""

    type: SourceType
    text: str
    start: int
    end: int
    kind: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """What a format reader found: passages in order, and notes for people."""

    passages: list[Passage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
