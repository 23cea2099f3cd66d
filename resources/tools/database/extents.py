"""How much of a source table a script holds, by the script's own word."""

from __future__ import annotations

from resources.tools.database.catalog import Extent
from resources.tools.database.sink import TableSink
from resources.tools.database.sqlfile import ScriptReport


def script_extent(report: ScriptReport, sink: TableSink) -> Extent:
    """Judge one table of a script that was read to its end."""
    doubt = _doubt(report, sink)
    if doubt is not None:
        return Extent(kind="unknown", basis=doubt)
    return Extent(kind="full", basis="a dump with its own CREATE TABLE and no condition")


def _doubt(report: ScriptReport, sink: TableSink) -> str | None:
    if report.ended == "cut" and report.cut_table in {None, sink}:
        return "the file ends inside this table"
    if sink.unsure is not None:
        return sink.unsure
    last = report.sinks[-1] if report.sinks else None
    if report.by_tool and report.ended != "closing line" and last is sink:
        return "the dump lacks its closing line; this is its last table"
    if not sink.created:
        return "rows without a CREATE TABLE"
    return _spread(report, sink) or _without_rows(report, sink)


def _spread(report: ScriptReport, sink: TableSink) -> str | None:
    if sink.parts:
        parts = ", ".join(dict.fromkeys(part for part in sink.parts if part != "its partitions"))
        return f"its rows are in its partitions: {parts or 'none is in the file'}"
    whole = next((other for other in report.sinks if other.name == sink.whole), None)
    if whole is not None and whole.rows:
        return f"its rows may be among those of {whole.name}"
    return None


def _without_rows(report: ScriptReport, sink: TableSink) -> str | None:
    """An empty table is whole only when the file says that its rows would stand here."""
    if sink.rows or sink.first_line is not None or sink.marked:
        return None
    if not report.data:
        return "a schema without rows: the file holds no data at all"
    if any(other.marked for other in report.sinks):
        return "the file does not say that this table's rows would follow, as it does for others"
    if report.ended != "closing line":
        return "the file has no rows of this table and does not say that it has none"
    return None
