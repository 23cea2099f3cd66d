"""The `db.*` tools over one snapshot. Every result says which tables it looked at and how whole they are."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import Field

from resources.tools.contract import Arguments, compact, nothing, spec, unavailable
from resources.tools.database.bridge import Around, Bridge
from resources.tools.database.catalog import Table
from resources.tools.database.cells import is_void
from resources.tools.database.compare import Filter, Scalar, comparison
from resources.tools.database.links import Links
from resources.tools.database.naming import declares_number, quote
from resources.tools.database.rows import (
    RowsArguments,
    completeness,
    count,
    extent_of,
    fetch,
    key_filter,
    location,
    row_draft,
    scope,
    undecided,
    where,
)
from resources.tools.database.sandbox import DEADLINE_S, QueryAnswer, select
from resources.tools.database.siblings import compare
from resources.tools.database.snapshot import QueryTimeoutError, Snapshot
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult

OVERVIEW_TABLES = 300
"""Most tables that an overview lists."""

SECONDS = 8.0
"""Deadline of a tool that reads the snapshot in this process."""


class SchemaArguments(Arguments):
    """Arguments of `db.schema`; without a table the tables are listed."""

    table: str | None = None


class QueryArguments(Arguments):
    """Arguments of `db.query`: one SELECT in DuckDB's dialect."""

    sql: str = Field(min_length=1, max_length=16_384)
    limit: int = Field(default=50, ge=1, le=500)


class IdArguments(Arguments):
    """Arguments of `db.id`; `column_like` keeps only columns whose name holds this text."""

    id: str | int
    column_like: str | None = None
    limit: int = Field(default=10, ge=1, le=50)


class KeyArguments(Arguments):
    """Arguments of `db.neighbours` and `db.siblings`: one row by its key."""

    table: str
    key: dict[str, Scalar] = Field(min_length=1, max_length=8)
    limit: int = Field(default=10, ge=1, le=40)


SPECS = (
    spec(
        "db.schema",
        "tables with rows and completeness; of one table its columns, key and origin",
        SchemaArguments,
        1,
    ),
    spec("db.query", "one SELECT over the shipped tables (DuckDB dialect, read-only)", QueryArguments, 6),
    spec("db.rows", "rows of one table by typed conditions", RowsArguments, 3),
    spec("db.id", "the typed columns that hold an id or exact text", IdArguments, 4),
    spec(
        "db.neighbours",
        "rows that one row refers to and that refer to it, by inferred links",
        KeyArguments,
        5,
    ),
    spec("db.siblings", "what comparable rows have that this one lacks", KeyArguments, 8),
)
MODELS: Mapping[str, type[Arguments]] = {
    "db.schema": SchemaArguments,
    "db.query": QueryArguments,
    "db.rows": RowsArguments,
    "db.id": IdArguments,
    "db.neighbours": KeyArguments,
    "db.siblings": KeyArguments,
}


class DatabaseTools:
    """The database tools of one case.

    Args:
        snapshot: the loaded tables; None when the diagnostics hold none.
        trouble: why there is no snapshot, for people.
        bridge: finds text of the database in the source.
        seconds: deadline of each look.
    """

    def __init__(
        self, snapshot: Snapshot | None, trouble: str | None, bridge: Bridge | None, seconds: float = SECONDS
    ) -> None:
        self.snapshot = snapshot
        self._trouble = trouble
        self._bridge = bridge
        self._seconds = seconds
        self._links = Links(snapshot.catalog) if snapshot else None

    def overview(self) -> dict[str, Any]:
        """Say which tables there are, without contents."""
        if self.snapshot is None:
            return {"tables": [], "trouble": self._trouble}
        catalog = self.snapshot.catalog
        return {
            "tables": [_table_line(table, columns=True) for table in catalog.tables[:OVERVIEW_TABLES]],
            "more_tables": max(0, len(catalog.tables) - OVERVIEW_TABLES),
            "not_applied": len(catalog.not_applied) + catalog.not_applied_more,
            "unread": [
                {"path": file.path, "trouble": file.trouble} for file in catalog.files if file.trouble
            ],
        }

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one tool whose arguments were checked."""
        if self.snapshot is None:
            if self._trouble is not None:
                return unavailable(tool, arguments, "not_loaded", self._trouble)
            return unavailable(tool, arguments, "no_tables", "the diagnostics hold no tables")
        runners: dict[str, Callable[[Snapshot, Mapping[str, Any]], ToolResult]] = {
            "db.schema": self._schema,
            "db.query": self._query,
            "db.rows": self._rows,
            "db.id": self._id,
            "db.neighbours": self._neighbours,
            "db.siblings": self._siblings,
        }
        try:
            return runners[tool](self.snapshot, arguments)
        except QueryTimeoutError as error:
            return nothing(
                tool, arguments, {}, Completeness.TRUNCATED, f"the look was {error}", cause="timeout"
            )

    def _schema(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        catalog = snapshot.catalog
        name = SchemaArguments.model_validate(arguments).table
        if name is None:
            content = {
                "tables": [_table_line(table) for table in catalog.tables],
                "not_applied": [entry.model_dump() for entry in catalog.not_applied[:20]],
                "not_applied_total": len(catalog.not_applied) + catalog.not_applied_more,
            }
            draft = Draft(
                content=_lines(content),
                provenance=Provenance(kind="schema", **_one_input(catalog.tables)),
                completeness=Completeness.COMPLETE,
                places=(),
            )
            return _found(
                "db.schema", arguments, {"tables": len(catalog.tables)}, Completeness.COMPLETE, [draft]
            )
        table = catalog.table(name)
        if table is None:
            return self._no_table("db.schema", arguments, name)
        return _found("db.schema", arguments, scope([table]), completeness([table]), [_schema_draft(table)])

    def _no_table(self, tool: str, arguments: Mapping[str, Any], name: str) -> ToolResult:
        known = self.snapshot.catalog.tables if self.snapshot else ()
        several = [table.name for table in known if table.plain.casefold() == name.casefold()]
        return nothing(
            tool,
            arguments,
            {"tables_shipped": len(known)},
            Completeness.PARTIAL,
            f"no table {name} was shipped; whether the database has it is not known"
            if not several
            else f"several schemas have a table {name}: {', '.join(several)}; ask for one of them",
            cause="table_ambiguous" if several else "table_not_shipped",
            location=Location(table=name),
        )

    def _query(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        asked = QueryArguments.model_validate(arguments)
        answer = select(snapshot, asked.sql, asked.limit, deadline=min(DEADLINE_S, self._seconds))
        if answer.refused is not None:
            return unavailable("db.query", arguments, "refused", answer.refused)
        if answer.timeout:
            return nothing(
                "db.query", arguments, {}, Completeness.TRUNCATED,
                f"the query did not end: {answer.failed}", cause="timeout",
            )  # fmt: skip
        if answer.failed is not None:
            return unavailable("db.query", arguments, "query_failed", answer.failed)
        tables = [table for name in answer.tables if (table := snapshot.catalog.table(name)) is not None]
        return _answered(asked, arguments, answer, tables)

    def _rows(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        asked = RowsArguments.model_validate(arguments)
        table = snapshot.catalog.table(asked.table)
        if table is None:
            return self._no_table("db.rows", arguments, asked.table)
        condition = where(table, asked.where)
        if isinstance(condition, str):
            return unavailable("db.rows", arguments, "unknown_column", condition)
        with snapshot.connect(self._seconds) as connection:
            rows = fetch(connection, table, condition, asked.limit + 1)
            total = len(rows) if len(rows) <= asked.limit else count(connection, table, condition)
            open_rows = undecided(connection, table, condition)
        if not rows:
            return self._absent_rows("db.rows", arguments, table, condition, open_rows)
        drafts = [row_draft(row) for row in rows[: asked.limit]]
        looked = {
            **scope([table]),
            "matching_rows": total,
            "shown": len(drafts),
            **_open(condition, open_rows),
        }
        if total > asked.limit:
            return _found("db.rows", arguments, looked, Completeness.TRUNCATED, drafts, "row_cap")
        state = Completeness.PARTIAL if open_rows else completeness([table], ())
        return _found("db.rows", arguments, looked, state, drafts, "rows_undecided" if open_rows else None)

    def _absent_rows(
        self, tool: str, arguments: Mapping[str, Any], table: Table, condition: Filter, open_rows: int
    ) -> ToolResult:
        state = completeness([table], ())
        if state is Completeness.COMPLETE and open_rows:
            return nothing(
                tool, arguments, {**scope([table]), **_open(condition, open_rows)}, Completeness.PARTIAL,
                f"no row of {table.name} surely fits, and {open_rows} cannot be judged: {condition.reason}",
                cause="rows_undecided", location=location(table),
                origin=(table.input_path, table.input_sha256),
            )  # fmt: skip
        where_ = "in the table" if state is Completeness.COMPLETE else "in the extract that was shipped"
        key = {k: str(v) for k, v in arguments.get("key", {}).items()}
        return nothing(
            tool, arguments, scope([table]), state, f"no such row {where_} ({table.name}, {table.rows} rows)",
            cause=None if state is Completeness.COMPLETE else f"table_{table.extent.kind}",
            location=location(table, key), origin=(table.input_path, table.input_sha256),
        )  # fmt: skip

    def _id(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        asked = IdArguments.model_validate(arguments)
        tables = [table for table in snapshot.catalog.tables if table.rows]
        hits: list[tuple[Table, str, int]] = []
        with snapshot.connect(self._seconds) as connection:
            for table in tables:
                hits.extend((table, name, n) for name, n in _holding(connection, table, asked))
        hits.sort(key=lambda hit: (hit[1] not in hit[0].primary_key, hit[2], hit[0].name, hit[1]))
        literal = self._bridge.places(str(asked.id)) if self._bridge else []
        if not hits:
            return nothing(
                "db.id", arguments, {"tables": len(tables)}, completeness(tables),
                f"no column of the shipped tables holds {asked.id}",
                cause=None if completeness(tables) is Completeness.COMPLETE else "tables_not_complete",
            )  # fmt: skip
        shown = hits[: asked.limit]
        content = _lines({
            "id": asked.id,
            "columns": [
                {
                    "table": t.name, "column": c, "rows": n, "key": c in t.primary_key,
                    "extent": t.extent.kind,
                }
                for t, c, n in hits[:100]
            ],
            "source_literals": [place.model_dump(exclude_none=True) for place in literal[:20]],
        })  # fmt: skip
        state = completeness(tables) if len(hits) <= asked.limit else Completeness.TRUNCATED
        drafts = [
            Draft(
                content=content,
                provenance=Provenance(kind="query", **_one_input(tables)),
                completeness=state,
                places=tuple(location(t, {c: str(asked.id)}, c) for t, c, _ in shown) + tuple(literal[:5]),
            )
        ]
        cause = "row_cap" if len(hits) > asked.limit else None
        return _found("db.id", arguments, {"tables": len(tables), "columns": len(hits)}, state, drafts, cause)

    def _neighbours(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        asked = KeyArguments.model_validate(arguments)
        table = snapshot.catalog.table(asked.table)
        if table is None or self._links is None:
            return self._no_table("db.neighbours", arguments, asked.table)
        condition = key_filter(table, asked.key)
        if isinstance(condition, str):
            return unavailable("db.neighbours", arguments, "unknown_column", condition)
        with snapshot.connect(self._seconds) as connection:
            rows = fetch(connection, table, condition, 1)
            if not rows:
                open_rows = undecided(connection, table, condition)
                return self._absent_rows("db.neighbours", arguments, table, condition, open_rows)
            around = Around(snapshot, self._links, self._bridge)
            found = around.of(connection, rows[0], asked.limit)
        drafts = [found.summary, row_draft(rows[0]), *found.rows]
        state = completeness(found.tables)
        return _found("db.neighbours", arguments, scope(found.tables), state, drafts)

    def _siblings(self, snapshot: Snapshot, arguments: Mapping[str, Any]) -> ToolResult:
        asked = KeyArguments.model_validate(arguments)
        table = snapshot.catalog.table(asked.table)
        if table is None or self._links is None:
            return self._no_table("db.siblings", arguments, asked.table)
        condition = key_filter(table, asked.key)
        if isinstance(condition, str):
            return unavailable("db.siblings", arguments, "unknown_column", condition)
        with snapshot.connect(self._seconds) as connection:
            rows = fetch(connection, table, condition, 1)
            if not rows:
                open_rows = undecided(connection, table, condition)
                return self._absent_rows("db.siblings", arguments, table, condition, open_rows)
            found = compare(connection, snapshot.catalog, self._links, rows[0], asked.limit)
        return _found("db.siblings", arguments, scope(found.tables), completeness(found.tables), found.drafts)


def _answered(
    asked: QueryArguments, arguments: Mapping[str, Any], answer: QueryAnswer, tables: list[Table]
) -> ToolResult:
    """Put the answer of a query together; what shows no row of a table that is not whole proves nothing."""
    used = None if "*" in answer.used else answer.used
    part = [table for table in tables if not _is_whole(table, used)]
    state = Completeness.PARTIAL if part or not tables else Completeness.COMPLETE
    place = location(tables[0]) if len(tables) == 1 else Location()
    if not answer.rows or (
        answer.summing and len(answer.rows) == 1 and all(is_void(cell) for cell in answer.rows[0])
    ):
        shown = "no rows" if not answer.rows else f"one row of nothing: {compact(list(answer.rows[0]))}"
        return nothing(
            "db.query", arguments, scope(tables), state, f"the query gave {shown}",
            cause=None if state is Completeness.COMPLETE else "tables_not_complete",
            location=place, origin=_origin(tables),
        )  # fmt: skip
    hidden = [table.name for table in part if table.name.casefold() not in answer.shown]
    body = {
        "sql": asked.sql,
        "columns": list(answer.columns),
        "types": list(answer.types),
        "rows": len(answer.rows),
        "more": answer.more,
    }
    if answer.more:
        state = Completeness.TRUNCATED
    void = bool(hidden) or not tables
    cause = "row_cap" if answer.more else None
    if void:
        state, cause = Completeness.PARTIAL, "shows_no_row" if hidden else "no_table_read"
        body["statement"] = (
            f"no row of {', '.join(hidden)} is shown, and that is not whole: this proves nothing"
            if hidden
            else "no table was read: this says nothing about the data"
        )
    content = compact(body) + "".join("\n" + compact(list(row)) for row in answer.rows)
    provenance = Provenance(kind="absence" if void else "query", location=place, **_one_input(tables))
    draft = Draft(content=content, provenance=provenance, completeness=state)
    looked = {**scope(tables), **({"rows_not_shown_of": hidden} if hidden else {})}
    found = _found("db.query", arguments, looked, state, [draft], cause)
    return found.model_copy(update={"empty": void})


def _is_whole(table: Table, used: Collection[str] | None) -> bool:
    """Say whether a query over these columns (None: any) of a table sees everything there is."""
    if completeness([table], used) is not Completeness.COMPLETE:
        return False
    mixed = [c.name for c in table.columns if c.type == "VARCHAR" and declares_number(c.declared)]
    return not any(used is None or name.casefold() in used for name in mixed)


def _found(
    tool: str,
    arguments: Mapping[str, Any],
    looked: Mapping[str, Any],
    state: Completeness,
    drafts: list[Draft],
    cause: str | None = None,
) -> ToolResult:
    return ToolResult(
        tool=tool,
        arguments=dict(arguments),
        scope=dict(looked),
        completeness=state,
        drafts=tuple(drafts),
        cause=cause,
    )


def _lines(value: Mapping[str, Any]) -> str:
    """One JSON value a line: a list gets a line for each item, so that a cut loses whole items."""
    lines = []
    for name, part in value.items():
        if isinstance(part, list):
            lines.append(compact({name: len(part)}))
            lines.extend(compact(item) for item in part)
        else:
            lines.append(compact({name: part}))
    return "\n".join(lines)


def _table_line(table: Table, *, columns: bool = False) -> dict[str, Any]:
    line: dict[str, Any] = {"table": table.name, "rows": table.rows, "path": table.path, **extent_of(table)}
    if table.of is not None:
        line.update({"copy_of": table.of, "conflicting_keys": table.conflicts})
    if columns:
        line["columns"] = list(table.column_names)
        line["key"] = list(table.primary_key)
    return line


def _schema_draft(table: Table) -> Draft:
    content = {
        **_table_line(table),
        "key": list(table.primary_key),
        "key_basis": table.key_basis,
        "foreign_keys": [key.model_dump() for key in table.foreign_keys],
        "flags": list(table.flags),
        "columns": [
            {"column": c.name, **c.model_dump(exclude_none=True, exclude={"name"})} for c in table.columns
        ],
    }
    return Draft(
        content=_lines(content),
        provenance=Provenance(
            kind="schema",
            input_path=table.input_path,
            input_sha256=table.input_sha256,
            location=location(table),
        ),
        completeness=completeness([table]),
    )


def _origin(tables: list[Table]) -> tuple[str, str] | None:
    origins = {(table.input_path, table.input_sha256) for table in tables}
    return origins.pop() if len(origins) == 1 else None


def _one_input(tables: list[Table] | tuple[Table, ...]) -> dict[str, Any]:
    origin = _origin(list(tables))
    return {} if origin is None else {"input_path": origin[0], "input_sha256": origin[1]}


def _holding(connection: Any, table: Table, asked: IdArguments) -> list[tuple[str, int]]:
    """Count, in one scan, the rows of each column that hold the id."""
    parts: list[str] = []
    names: list[str] = []
    values: list[Any] = []
    for column in table.columns:
        if asked.column_like and asked.column_like.casefold() not in column.name.casefold():
            continue
        found = comparison(column, "=", asked.id)
        if isinstance(found, str) or found.sql == "false":
            continue
        parts.append(f"count(*) FILTER ({found.sql})")
        values.extend(found.values)
        names.append(column.name)
    if not parts:
        return []
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {quote(table.name)}", values).fetchone()
    return [(name, int(n)) for name, n in zip(names, row, strict=True) if n]


def _open(condition: Filter, rows: int) -> dict[str, Any]:
    return {"undecided_rows": rows, "undecided": condition.reason} if rows else {}
