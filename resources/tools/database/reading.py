"""What a SELECT reads and what of it its result shows; read from DuckDB's own parse tree.

Two questions are answered here. Does the text depend on the moment or on chance, so that a later look would
answer otherwise? And which rows of which table does the result show as they are: a count, a NOT EXISTS or a
missing partner shows no row, and over a table that is not whole it proves nothing. Whatever the tree holds
that is not understood here counts as not shown. This module imports the standard library only; the query
process loads it by path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MAX_REFERENCES = 400
_TABLE_FUNCTIONS = frozenset({
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree",
    "duckdb_tables", "duckdb_columns", "pragma_table_info", "pragma_show", "values",
    "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_parquet",
    "parquet_scan", "glob",
})  # fmt: skip
_MOMENTS = frozenset({
    "current_date", "current_time", "current_timestamp", "current_localtime", "current_localtimestamp",
    "localtime", "localtimestamp",
})  # fmt: skip
"""Functions that are written without parentheses."""

_ALSO_VOLATILE = {"current_setting": {1}, "age": {1}, "get_block_size": {0, 1}}


class NotUnderstoodError(Exception):
    """The tree holds something whose rows cannot be followed."""


def volatile_functions(catalogue: list[tuple[Any, ...]]) -> dict[str, set[int] | None]:
    """Return the functions whose answer depends on the moment: name to argument counts, None for any.

    Args:
        catalogue: rows of `duckdb_functions()`: name, type, stability, number of parameters, side effects,
            definition of a macro.
    """
    found: dict[str, set[int] | None] = {name: set(counts) for name, counts in _ALSO_VOLATILE.items()}
    for name, kind, stability, parameters, effects, _ in catalogue:
        if kind == "table" or name == "error":
            continue
        if stability == "VOLATILE" or effects:
            found[name] = None
        elif stability == "CONSISTENT_WITHIN_QUERY" and not parameters and found.get(name, set()) is not None:
            counts = found.setdefault(name, set())
            if counts is not None:
                counts.add(0)
    known = -1
    while known != len(found):
        known = len(found)
        for name, kind, _, _, _, definition in catalogue:
            words = set(re.findall(r"\w+(?=\s*\()|\bcurrent_\w+", definition or ""))
            moment = words & (_MOMENTS | (found.keys() - _ALSO_VOLATILE.keys()))
            if kind == "macro" and name not in found and moment:
                found[name] = None
    return found


def what_changes(tree: Any, volatile: dict[str, set[int] | None], columns: set[str]) -> str | None:
    """Return what in the tree makes its answer depend on the moment or on chance, or None.

    Args:
        tree: the statement as JSON.
        volatile: see `volatile_functions`.
        columns: folded names of the columns of the tables it reads; a column wins over a function.
    """
    for node in _nodes(tree):
        name = str(node.get("function_name") or "").casefold()
        if node.get("type") == "TABLE_FUNCTION":
            called = str(node["function"].get("function_name", "")).casefold()
            if called not in _TABLE_FUNCTIONS:
                return f"the table function {called}"
        elif node.get("class") in {"FUNCTION", "WINDOW"} and name in volatile:
            counts = volatile[name]
            if counts is None or len(node.get("arguments") or node.get("children") or []) in counts:
                return f"the function {name}"
        elif node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
            word = str(node["column_names"][0]).casefold()
            if word in _MOMENTS and word not in columns:
                return f"the function {word}"
        if isinstance(node.get("sample"), dict):
            return "a sample"
    return None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def tables_read(tree: Any) -> set[str]:
    """Return the folded names of the tables (and named subqueries) that a statement reads."""
    return {str(node["table_name"]).casefold() for node in _nodes(tree) if node.get("type") == "BASE_TABLE"}


def names_used(tree: Any) -> set[str]:
    """Return the folded names of columns that a statement uses; `*` when it may use any."""
    found: set[str] = set()
    for node in _nodes(tree):
        if node.get("class") == "COLUMN_REF":
            found.update(str(part).casefold() for part in node["column_names"])
        elif node.get("type") == "JOIN":
            found.update(str(name).casefold() for name in node.get("using_columns") or [])
            if node.get("ref_type") == "NATURAL":
                found.add("*")
        elif node.get("class") == "STAR" or node.get("type") == "SHOW_REF":
            found.add("*")
    return found


class Shown:
    """Follows the columns of tables through a SELECT to the columns of its result.

    Args:
        columns: column names of every table, by folded table name.
        aggregates: folded names of the aggregate functions.
    """

    def __init__(self, columns: dict[str, list[str]], aggregates: set[str]) -> None:
        self.references: list[str] = []
        """The table of every reference, in the order in which they were met."""
        self._columns = columns
        self._aggregates = aggregates

    def of(self, tree: Any, width: int) -> list[set[int]]:
        """Return, for every column of the result, the references it is a plain column of.

        Raises:
            NotUnderstoodError: that cannot be said.
        """
        node = tree["statements"][0]["node"]
        self._hidden(node)
        result = [found for _, found in self._node(node, {})]
        if len(result) != width:
            raise NotUnderstoodError
        return result

    def _hidden(self, node: Any) -> None:
        """Count the references in subqueries of expressions: what they read is never shown."""
        for inner in _nodes(node):
            if inner.get("class") == "SUBQUERY":
                read = tables_read(inner["subquery"])
                # A name that is no table is a named subquery, which may read any table of the statement.
                self.references.extend(sorted(read if read <= self._columns.keys() else tables_read(node)))

    def _reference(self, table: str) -> int:
        if len(self.references) >= MAX_REFERENCES:
            raise NotUnderstoodError
        self.references.append(table)
        return len(self.references) - 1

    def _node(self, node: Any, outer: dict[str, Any]) -> list[tuple[str, set[int]]]:
        named = dict(outer)
        for entry in node["cte_map"]["map"]:
            named[str(entry["key"]).casefold()] = (entry["value"], dict(named))
        if node["type"] == "SET_OPERATION_NODE":
            return self._set(node, named)
        if node["type"] != "SELECT_NODE":
            raise NotUnderstoodError
        scope = self._from(node["from_table"], named)
        if self._sums(node):
            return [(name, set()) for name, _ in self._listed(node, scope)]
        return self._listed(node, scope)

    def _set(self, node: Any, named: dict[str, Any]) -> list[tuple[str, set[int]]]:
        sides = node.get("children") or [node["left"], node["right"]]
        results = [self._node(side, named) for side in sides]
        if len({len(result) for result in results}) != 1:
            raise NotUnderstoodError
        first = results[0]
        if node["setop_type"] == "EXCEPT":
            return first
        joined = []
        for index, (name, _) in enumerate(first):
            parts = [result[index][1] for result in results]
            whole = node["setop_type"] == "INTERSECT" or all(parts)
            joined.append((name, set().union(*parts) if whole else set()))
        return joined

    def _sums(self, node: Any) -> bool:
        """Say whether a row of the result stands for several rows, or for none."""
        if node["group_expressions"] or node["having"] or node["qualify"]:
            return True
        return any(
            inner.get("class") == "WINDOW"
            or str(inner.get("function_name", "")).casefold() in self._aggregates
            for item in node["select_list"]
            for inner in _nodes(item)
        )

    def _from(self, node: Any, named: dict[str, Any]) -> list[tuple[str, str, set[int]]]:
        """Return the columns in sight: alias of their table, name, references."""
        kind = node["type"]
        alias = str(node.get("alias") or "").casefold()
        if kind == "EMPTY":
            return []
        if kind == "BASE_TABLE":
            return self._base(node, alias, named)
        if kind == "JOIN":
            return self._join(node, named)
        if kind == "SUBQUERY":
            inner = self._node(node["subquery"]["node"], named)
            return self._renamed(alias, inner, node.get("column_name_alias") or [])
        if kind == "EXPRESSION_LIST":
            return [(alias, "", set()) for _ in node["values"][0]]
        raise NotUnderstoodError

    def _base(self, node: Any, alias: str, named: dict[str, Any]) -> list[tuple[str, str, set[int]]]:
        table = str(node["table_name"]).casefold()
        renamed = node.get("column_name_alias") or []
        if table in named and not node.get("schema_name"):
            value, before = named[table]
            inner = self._node(value["query_node"], before)
            return self._renamed(alias or table, inner, value.get("aliases") or renamed)
        if table not in self._columns:
            raise NotUnderstoodError
        reference = self._reference(table)
        inner = [(name.casefold(), {reference}) for name in self._columns[table]]
        return self._renamed(alias or table, inner, renamed)

    def _renamed(
        self, alias: str, inner: list[tuple[str, set[int]]], names: list[str]
    ) -> list[tuple[str, str, set[int]]]:
        shown = [str(name).casefold() for name in names] + [name for name, _ in inner[len(names) :]]
        return [(alias, name, found) for name, (_, found) in zip(shown, inner, strict=True)]

    def _join(self, node: Any, named: dict[str, Any]) -> list[tuple[str, str, set[int]]]:
        left, right = self._from(node["left"], named), self._from(node["right"], named)
        if node["join_type"] in {"SEMI", "ANTI", "MARK", "SINGLE"}:
            return left
        using = {str(name).casefold() for name in node.get("using_columns") or []}
        if node["ref_type"] == "NATURAL":
            using = {name for _, name, _ in left} & {name for _, name, _ in right}
        if using and node["join_type"] in {"RIGHT", "OUTER", "FULL"}:
            raise NotUnderstoodError
        return left + [column for column in right if column[1] not in using]

    def _listed(self, node: Any, scope: list[tuple[str, str, set[int]]]) -> list[tuple[str, set[int]]]:
        listed: list[tuple[str, set[int]]] = []
        for item in node["select_list"]:
            name = str(item.get("alias") or "").casefold()
            if item["class"] == "STAR":
                listed.extend(self._star(item, scope))
            elif item["class"] == "COLUMN_REF":
                parts = [str(part).casefold() for part in item["column_names"]]
                listed.append((name or parts[-1], _resolve(parts, scope)))
            else:
                listed.append((name, set()))
        return listed

    def _star(self, item: Any, scope: list[tuple[str, str, set[int]]]) -> list[tuple[str, set[int]]]:
        if item.get("columns") or item.get("expr") or item.get("qualified_exclude_list"):
            raise NotUnderstoodError
        if item.get("replace_list") or item.get("rename_list"):
            raise NotUnderstoodError
        table = str(item.get("relation_name") or "").casefold()
        left_out = {str(name).casefold() for name in item.get("exclude_list") or []}
        return [
            (name, found)
            for alias, name, found in scope
            if (not table or alias == table) and name not in left_out
        ]


def _resolve(parts: list[str], scope: list[tuple[str, str, set[int]]]) -> set[int]:
    table = parts[-2] if len(parts) > 1 else None
    found = [shown for alias, name, shown in scope if name == parts[-1] and table in {None, alias}]
    return found[0] if len(found) == 1 else set()


def shown_references(
    tree: Any, columns: dict[str, list[str]], aggregates: set[str], rows: list[list[Any]], width: int
) -> dict[str, bool]:
    """Say of every table that a query reads whether the result shows a row of each reference to it.

    A reference is shown when a column of the result is a plain column of it and holds a value in some row.
    """
    follower = Shown(columns, aggregates)
    try:
        result = follower.of(tree, width)
    except (NotUnderstoodError, KeyError, TypeError, IndexError, RecursionError, ValueError):
        return dict.fromkeys(tables_read(tree), False)
    seen = {
        reference
        for index, found in enumerate(result)
        for reference in found
        if any(row[index] is not None for row in rows)
    }
    shown = dict.fromkeys(tables_read(tree), True)
    for number, table in enumerate(follower.references):
        shown[table] = shown.get(table, True) and number in seen
    return shown
