"""`viano sql` and `viano index`: the evidence index as tables, read-only."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from viano_assets.cli.options import Output, common, counted, one_line, one_line_cell
from viano_assets.errors import PackageError, VianoError

if TYPE_CHECKING:
    from resources.evidence_index import EvidenceIndex


Asked = TypeVar("Asked")


@click.command()
@click.argument("query")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=1_000, show_default=True, help="Rows.")
@common
def sql(out: Output, query: str, as_csv: bool, limit: int) -> None:
    """Answer QUERY (one SELECT) from the evidence index; `SHOW TABLES` lists what is there."""
    from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads duckdb only when asked

    evidence = EvidenceIndex(out.home)
    _complete(evidence, out.home)
    answer = _asked(evidence, out.home, lambda: evidence.query(query, limit=limit))
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


def _complete(evidence: EvidenceIndex, home: Path) -> None:
    """Add what the index lacks, for instance after it was deleted, and say so on standard error."""
    from viano_assets.package.store import CheckpointStore  # noqa: PLC0415

    try:
        done = evidence.complete(CheckpointStore(home))
    except (VianoError, OSError) as error:
        cause = error.message if isinstance(error, VianoError) else error.strerror or "not writable"
        click.echo(f"note: the index may lack cases ({one_line(cause)}); viano index rebuild", err=True)
        return
    if done is None:
        return
    if done.remade:
        click.echo("note: the index was damaged or of another release; made again", err=True)
    added = [counted(n, kind, _PLURAL[kind]) for kind, n in done.added.items() if n]
    if added:
        click.echo(f"note: the index lacked {', '.join(added)} of this home; added", err=True)
    if done.unreadable:
        names = ", ".join(done.unreadable[:5])
        click.echo(f"note: not in the index, cannot be read: {names}; viano case verify CASE", err=True)


_PLURAL = {
    "case revision": "case revisions",
    "corpus": "corpora",
    "run": "runs",
    "snapshot": "calibration snapshots",
}


def _asked(evidence: EvidenceIndex, home: Path, ask: Callable[[], Asked]) -> Asked:
    """Ask the index; one that turns out to be damaged is made again first, which is said."""
    from viano_assets.package.store import CheckpointStore  # noqa: PLC0415

    try:
        return ask()
    except PackageError as error:
        click.echo(f"note: {one_line(str(error))}; the index is made again", err=True)
    evidence.rebuild(CheckpointStore(home))
    return ask()


def _print_table(columns: list[str], rows: list[list[object]]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(one_line_cell(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line_cell(value)) for value in row))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(table)
    console.print(counted(len(rows), "row", "rows"))


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

    evidence = EvidenceIndex(out.home)
    _complete(evidence, out.home)
    written = _asked(evidence, out.home, lambda: evidence.snapshot(target))
    click.echo(json.dumps({"file": str(written)}) if out.json else f"Wrote {written}.")
