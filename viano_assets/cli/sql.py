"""`viano sql` and `viano index`: the evidence index as tables, read-only."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from viano_assets.cli.options import Output, common, one_line_cell


@click.command()
@click.argument("query")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=1_000, show_default=True, help="Rows.")
@common
def sql(out: Output, query: str, as_csv: bool, limit: int) -> None:
    """Answer QUERY (one SELECT) from the evidence index; `SHOW TABLES` lists what is there."""
    from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads duckdb only when asked

    answer = EvidenceIndex(out.home).query(query, limit=limit)
    if out.json:
        click.echo(
            json.dumps({"columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated})
        )
    elif as_csv:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
        click.echo(buffer.getvalue(), nl=False)
    else:
        _print_table(answer.columns, answer.rows)
    if answer.truncated and not out.json:
        click.echo(f"Only the first {limit} rows; --limit N shows more.", err=True)


def _print_table(columns: list[str], rows: list[list[object]]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(one_line_cell(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line_cell(value)) for value in row))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(table)
    console.print(f"{len(rows)} rows")


@click.group()
def index() -> None:
    """Rebuild or copy the evidence index."""


@index.command()
@common
def rebuild(out: Output) -> None:
    """Make the index again from the packages; the rows are the same."""
    from resources.session import Session  # noqa: PLC0415

    counts = Session.open(out.home).rebuild_index()
    text = "\n".join(f"{name:<15}{count}" for name, count in counts.items())
    click.echo(json.dumps(counts) if out.json else text)


@index.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@common
def snapshot(out: Output, target: Path) -> None:
    """Write the index as one self-contained DuckDB file TARGET (which must not exist)."""
    from resources.evidence_index import EvidenceIndex  # noqa: PLC0415

    written = EvidenceIndex(out.home).snapshot(target)
    click.echo(json.dumps({"file": str(written)}) if out.json else f"Wrote {written}.")
