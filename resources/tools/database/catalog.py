"""What was loaded: every table with its columns, its key, its origin and how much of the source it is.

`completeness` is the heart of it (docs/tools.md): `full` only when the carrier says so, `filtered` with
the predicate when something names one, otherwise `unknown`. An empty answer over anything but `full`
tables proves nothing.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Column(_Frozen):
    """One column: DuckDB type, the type as declared by the source (None when inferred), its comment.

    `doubt` says why some NULLs of it are no NULLs of the source: rows came without a value, and only the
    server knew what they got.
    """

    name: str
    type: str
    declared: str | None = None
    comment: str | None = None
    doubt: str | None = None


class ForeignKey(_Frozen):
    """A declared reference: own columns to columns of another table."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


class Extent(_Frozen):
    """How much of the source table is here.

    `rows_at_source` is what a manifest or comment gives; `basis` says in words where the judgement
    comes from.
    """

    kind: Literal["full", "filtered", "unknown"]
    predicate: str | None = None
    rows_at_source: int | None = None
    basis: str


class Table(_Frozen):
    """One loaded table.

    `space` is the schema or database that its script names; it is part of the name only when the case holds
    tables of that name from several.
    `of` names the table this is another copy of (a second file with rows of the same table); `conflicts`
    counts keys whose rows differ between the copies: none of them wins. `flags` are load remarks, for
    example a column kept as text because a value did not fit its type.
    """

    name: str
    space: str = ""
    of: str | None = None
    path: str
    input_path: str
    input_sha256: str
    line_start: int | None = None
    line_end: int | None = None
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    key_basis: Literal["declared", "inferred", "none"] = "none"
    foreign_keys: tuple[ForeignKey, ...] = ()
    rows: int
    extent: Extent
    conflicts: int | None = None
    flags: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns in order."""
        return tuple(column.name for column in self.columns)

    @property
    def plain(self) -> str:
        """Name without the schema that keeps it apart."""
        prefix = f"{self.space}."
        return self.name[len(prefix) :] if self.space and self.name.startswith(prefix) else self.name

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Columns whose NULLs are not all NULLs of the source."""
        return tuple(column.name for column in self.columns if column.doubt is not None)


class NotApplied(_Frozen):
    """A statement or file part that was not loaded, with its place and the reason."""

    path: str
    line: int | None = None
    reason: str
    text: str


class SourceFile(_Frozen):
    """A data file as it was read; `trouble` says why nothing or not everything was read."""

    path: str
    format: str
    encoding: str
    tables: tuple[str, ...] = ()
    dialect: str | None = None
    trouble: str | None = None


class Catalog(_Frozen):
    """Everything the loader knows, stored beside the DuckDB file."""

    format: Literal["catalog-v1"] = "catalog-v1"
    tables: tuple[Table, ...] = ()
    files: tuple[SourceFile, ...] = ()
    not_applied: tuple[NotApplied, ...] = ()
    not_applied_more: int = 0

    def table(self, name: str) -> Table | None:
        """Find a table by name, exactly or else regardless of letter case."""
        for table in self.tables:
            if table.name == name:
                return table
        folded = name.casefold()
        return next((table for table in self.tables if table.name.casefold() == folded), None)
