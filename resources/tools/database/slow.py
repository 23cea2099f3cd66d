"""Statements that are not literal rows: translated by sqlglot and executed on the tables of their own file.

Exactness would need the server that wrote them; so what cannot be translated, refers to a table the file does
not create, or fails, is listed as not applied and never guessed. Statements only ever touch the snapshot:
the connection has no access to files or settings while they run, and only INSERT, REPLACE, UPDATE and DELETE
are translated.
"""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from resources.tools.database.naming import quote
from resources.tools.database.register import Register
from resources.tools.database.script import Dialect, strings_of
from resources.tools.database.sink import TableSink

MAX_STATEMENTS = 20_000
"""Most statements of one import that take this path; it is counted, not timed, so that it is repeatable."""

if TYPE_CHECKING:
    from sqlglot import exp

_SET = re.compile(r"SET\s+(@\w+)\s*:?=\s*([^;]+?)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"@\w+")
_KIND = re.compile(
    r"(INSERT|REPLACE|UPDATE|DELETE)\b(?:\s+(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY))?(\s+IGNORE)?",
    re.IGNORECASE,
)
_MAX_TEXT = 1_000_000


class SlowPath:
    """Executes the remaining statements of one script, in order."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._variables: dict[str, str] = {}
        self.used = 0

    def set_variable(self, text: str) -> bool:
        """Remember `SET @X = literal or expression`; True when the statement was that."""
        found = _SET.match(text.strip())
        if found is None:
            return False
        self._variables[found.group(1).upper()] = f"({self._substitute(found.group(2))})"
        return True

    def apply(self, text: str, tables: Register, touch: Callable[[TableSink], None]) -> str | None:
        """Execute one statement outside any transaction; return why it was not applied, or None.

        `touch` is told of the table that it changed.
        """
        if self.used >= MAX_STATEMENTS:
            return f"more than {MAX_STATEMENTS} statements that are not literal rows"
        if len(text) > _MAX_TEXT:
            return "a statement of more than a megabyte that is not literal rows"
        kind = _KIND.match(text)
        if kind is None:
            return "not a data statement"
        self.used += 1
        return self._translated(text, kind, tables, touch)

    def _substitute(self, text: str) -> str:
        if "@" not in text:
            return text
        return strings_of(text, lambda plain: _VARIABLE.sub(self._value, plain), self._dialect)

    def _value(self, match: re.Match[str]) -> str:
        return self._variables.get(match.group().upper(), match.group())

    def _translated(
        self, text: str, kind: re.Match[str], tables: Register, touch: Callable[[TableSink], None]
    ) -> str | None:
        import sqlglot  # noqa: PLC0415 - heavy, and most scripts never come here
        from sqlglot import exp  # noqa: PLC0415

        verb, ignore = kind.group(1).upper(), kind.group(2) is not None
        plain = self._substitute(text).rstrip().rstrip(";")
        if verb == "REPLACE" or ignore:
            plain = "INSERT" + plain[kind.end() :]
        read = {"mysql": "mysql", "postgres": "postgres", "ansi": "sqlite"}[self._dialect]
        try:
            tree = sqlglot.parse_one(plain, read=read)
        except (sqlglot.errors.SqlglotError, RecursionError) as error:
            return f"cannot be translated: {str(error).splitlines()[0][:120]}"
        if not isinstance(tree, exp.Insert | exp.Update | exp.Delete) or tree.find(
            exp.Parameter, exp.Command
        ):
            return "cannot be translated: unresolved variable or unknown form"
        if tree.args.get("conflict"):
            return "needs the server's key rules (ON DUPLICATE KEY)"
        own: TableSink | None = None
        for table in tree.find_all(exp.Table):
            space = ".".join(part for part in (table.catalog, table.db) if part)
            sink = tables.find(space, table.name, rows=own is None)
            if sink is None or not isinstance(table.this, exp.Identifier):
                return f"table {table.name or '(function)'} is not created by this file"
            own = own or sink
            table.set("this", exp.to_identifier(sink.physical, quoted=True))
            table.set("db", None)
            table.set("catalog", None)
        if own is None:
            return "cannot be translated: no table"
        _hex_as_text(tree)
        merge = "replace" if verb == "REPLACE" else "ignore" if ignore else None
        failed = _execute(own, tree.sql(dialect="duckdb"), merge)
        if failed is None:
            touch(own)
            if isinstance(tree, exp.Insert):
                _left_out(own, tree)
        return failed


def _hex_as_text(tree: exp.Expression) -> None:
    """Write blobs as the fast path does."""
    from sqlglot import exp  # noqa: PLC0415

    for blob in list(tree.find_all(exp.HexString)):
        blob.replace(exp.Literal.string(f"0x{blob.name.upper()}"))


def _left_out(sink: TableSink, insert: exp.Insert) -> None:
    """Note the columns for which an INSERT gave no value, or the word DEFAULT."""
    from sqlglot import exp  # noqa: PLC0415

    given = {item.name.casefold() for item in insert.this.expressions} if insert.this.expressions else None
    words = any(column.name.upper() == "DEFAULT" for column in insert.find_all(exp.Column, exp.Var))
    for name in sink.names:
        if words or (given is not None and name.casefold() not in given):
            sink.left_out(name)


def _execute(sink: TableSink, sql: str, merge: str | None) -> str | None:
    import duckdb  # noqa: PLC0415

    connection = sink.connection
    try:
        if merge is not None and sink.primary_key:
            _merge(sink, sql, merge)
        else:
            connection.execute(sql)
    except (duckdb.Error, OverflowError) as error:
        connection.execute("DROP TABLE IF EXISTS _new")
        return f"failed: {str(error).splitlines()[0][:160]}"
    return None


def _merge(sink: TableSink, sql: str, merge: str) -> None:
    connection, table = sink.connection, quote(sink.physical)
    same = " AND ".join(f"{table}.{quote(key)} = _new.{quote(key)}" for key in sink.primary_key)
    sink.create("_new")
    connection.execute(sql.replace(table, "_new", 1))
    if merge == "replace":
        connection.execute(f"DELETE FROM {table} USING _new WHERE {same}")
        connection.execute(f"INSERT INTO {table} SELECT * FROM _new")
    else:
        connection.execute(
            f"INSERT INTO {table} SELECT * FROM _new WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {same})"
        )
    connection.execute("DROP TABLE _new")
