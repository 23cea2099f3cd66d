"""The tables of one script by schema and name: where a statement's rows go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resources.tools.database.sink import TableSink

_USUAL = frozenset({"", "public", "dbo", "main"})
_SEARCH_PATH = re.compile(
    r"SET\s+(?:SESSION\s+|LOCAL\s+)?search_path\s*(?:=|TO)\s*(?P<set>[^;]*)|"
    r"SELECT\s+(?:pg_catalog\.)?set_config\(\s*'search_path'\s*,\s*'(?P<config>[^']*)'",
    re.IGNORECASE,
)
_USE = re.compile(r"USE\s+[`\"\[]?([^\s`\"\];]+)[`\"\]]?\s*;?\s*$", re.IGNORECASE)
_CONNECT = re.compile(r"\\c(?:onnect)?\s+(?:-\S+\s+)*\"?([\w$.-]+)\"?")


def folded_space(space: str) -> str:
    """Return a schema for comparison; the one a server takes when none is named is empty."""
    parts = [part for part in space.casefold().split(".") if part not in _USUAL]
    return ".".join(parts)


class Register:
    """Finds the table that a name means at this place of the script."""

    def __init__(self) -> None:
        self._sinks: dict[tuple[str, str], TableSink] = {}
        self._database = ""
        self._current = ""

    def __iter__(self) -> Iterator[TableSink]:
        return iter(self._sinks.values())

    def follow(self, text: str) -> bool:
        r"""Follow USE, `\connect` and search_path; True when the statement was one of them."""
        if found := _CONNECT.match(text):
            self._database, self._current = found.group(1), ""
            return True
        if found := _SEARCH_PATH.match(text):
            path = found.group("set") if found.group("set") is not None else found.group("config")
            names = [part.strip().strip("'\"") for part in path.split(",")]
            self._current = next((name for name in names if name not in {"$user", "DEFAULT"}), "")
            return True
        if found := _USE.match(text):
            self._current = found.group(1)
            return True
        return False

    def space(self, written: str) -> str:
        """Return the schema that a name means, as shown."""
        schema = written or self._current
        if not self._database:
            return schema
        return self._database if schema.casefold() in _USUAL else f"{self._database}.{schema}"

    def _key(self, space: str, name: str) -> tuple[str, str]:
        return folded_space(self.space(space)), name.casefold()

    def find(self, space: str, name: str, *, rows: bool = False) -> TableSink | None:
        """Return the table a name means.

        A name with a schema also means the only table of that name that was created without one, and the
        other way round; with `rows` such a table is doubtful, because the rows may be another's.
        """
        key = self._key(space, name)
        exact = self._sinks.get(key)
        if exact is not None:
            return exact
        same = [(found[0], sink) for found, sink in self._sinks.items() if found[1] == key[1]]
        if len(same) != 1 or (same[0][0] and key[0]):
            return None
        if rows:
            same[0][1].doubt("statements name it under another schema than its CREATE TABLE")
        return same[0][1]

    def exact(self, space: str, name: str) -> TableSink | None:
        """Return the table of exactly this schema and name."""
        return self._sinks.get(self._key(space, name))

    def put(self, sink: TableSink, space: str) -> None:
        """Add a table under the schema that its statement names."""
        sink.space = self.space(space)
        self._sinks[self._key(space, sink.name)] = sink

    def remove(self, sink: TableSink) -> None:
        """Forget a table."""
        self._sinks = {key: other for key, other in self._sinks.items() if other is not sink}

    def rename(self, sink: TableSink, space: str, name: str) -> None:
        """Give a table another name, in the same schema when none is named."""
        self.remove(sink)
        sink.name = name
        sink.space = self.space(space) if space else sink.space
        self._sinks[folded_space(sink.space), name.casefold()] = sink

    def last(self) -> TableSink | None:
        """Return the table that was added last."""
        return next(reversed(self._sinks.values())) if self._sinks else None

    def mentioned(self, text: str) -> list[TableSink]:
        """Return the tables whose name stands in a text as a word."""
        words = {word.casefold() for word in re.findall(r"[\w$]+", text)}
        return [sink for sink in self._sinks.values() if sink.name.casefold() in words]
