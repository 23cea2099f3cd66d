"""The evidence index of a home: Parquet files derived from the packages, asked through DuckDB.

`resources.index.layout` says which files count and how that changes while others read; nobody holds a shared
writable database file. The index is derived: `rebuild` makes it again from the packages and the stored runs
of the corpora, and gives the same rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from resources.index.asking import Answer, ask, fresh_views, view_sql
from resources.index.layout import GRACE_S, Current, Layout, Rows, Segment
from resources.index.merging import (
    JOURNAL_LIMIT,
    fold_journal,
    merge_segments,
    new_name,
    read_units,
    superseded,
    with_dead,
    write_rows,
    write_segment,
)
from resources.index.rows import CaseRows
from resources.index.tables import TABLES
from viano_assets.errors import BusyError, InputError, VianoError
from viano_assets.evaluation.stored import judged_units, stored_corpora, stored_units
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision
from viano_assets.phases.protocols import Store

__all__ = ["Answer", "EvidenceIndex"]

_BATCH = 500
"""Units a rebuild writes into one segment."""

_FEW = 50
"""Up to so many lacking cases are added one by one; for more the index is made again."""

_COMPACTION = "compaction"


class Lacking(NamedTuple):
    """What the home has and the index has no rows of; `empty` says that it has none at all."""

    cases: list[str]
    runs: list[str]
    empty: bool


class Completed(NamedTuple):
    """How many cases and runs were added, and the cases that cannot be read."""

    cases: int
    runs: int
    unreadable: list[str]


class EvidenceIndex:
    """The index below `home/index`.

    Args:
        home: the Viano home.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.layout = Layout(home / "index")

    def update(self, store: Store, head: Head, revision: int | None = None) -> None:
        """Write the rows of one revision (default: the current) of a head.

        The work is that of the revision; now and then a writer also merges what others left.
        """
        number = revision or head.revision
        unit = CaseRevision(head.case_id, number).key
        self.publish(unit, head.generation, CaseRows(store, head, number).tables())

    def publish(self, unit: str, generation: int, rows: Rows) -> None:
        """Replace the rows of one unit; an older generation than the published one changes nothing."""
        entry = write_rows(self.layout.root, unit, generation, rows)
        with self.layout.lock():
            lines = self.layout.append([entry])
        if lines >= JOURNAL_LIMIT:
            self.compact()

    def compact(self) -> None:
        """Merge small files into larger ones, unless another process is at it."""
        with self.layout.lock(_COMPACTION, wait=False) as mine:
            if not mine:
                return
            with self.layout.lock():
                fold_journal(self.layout)
            while merge_segments(self.layout):
                pass

    def rebuild(self, store: CheckpointStore) -> dict[str, int]:
        """Make the index again from all packages and stored runs, and return the rows per table.

        Others may publish and read meanwhile. A damaged package is left out.

        Raises:
            BusyError: `index_busy` when another process merges or rebuilds.
        """
        with self.layout.lock(_COMPACTION, wait=False) as mine:
            if not mine:
                raise BusyError(
                    "index_busy",
                    "another process is merging the index",
                    where=str(self.layout.root),
                    hint="try again in a moment",
                )
            self._rebuild(store)
            while merge_segments(self.layout):
                pass
        return self.counts()

    def _rebuild(self, store: CheckpointStore) -> None:
        start = len(self.layout.view().lines)
        units = self._units(store)
        segments: list[Segment] = []
        while batch := list(islice(units, _BATCH)):
            rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in TABLES}
            for _, _, tables in batch:
                for table, content in tables.items():
                    rows[table] += content
            name = new_name(len(segments))
            segments.append(write_segment(self.layout.root, name, [u for u, _, _ in batch], rows))
        with self.layout.lock():
            view = self.layout.view()
            late = list(view.lines[start:])
            replaced = {entry.unit for entry in late}
            now = time.time()
            trash = [*view.current.trash, (view.current.journal, now)]
            for old in view.current.segments:
                trash += [(file, now) for file in superseded(old)]
            kept = {file for entry in late for file in entry.files.values()}
            trash += [(f, now) for e in view.lines for f in e.files.values() if f not in kept]
            fresh = tuple(with_dead(self.layout.root, s, replaced) for s in segments)
            state = Current(view.current.number + 1, fresh, self.layout.emptied(trash))
            self.layout.flip(state, late)
        self._sweep()

    def _sweep(self) -> None:
        """Delete files that nothing names any more, left by writers that died."""
        view = self.layout.view()
        used = {name for entry in view.lines for name in entry.files.values()}
        used |= {name for segment in view.current.segments for name in superseded(segment)}
        used |= {name for name, _ in view.current.trash}
        for folder in ("parts", "segments"):
            for path in sorted((self.layout.root / folder).rglob("*.parquet")):
                name = str(path.relative_to(self.layout.root))
                if name not in used and time.time() - path.stat().st_mtime > GRACE_S:
                    path.unlink(missing_ok=True)

    def _units(self, store: CheckpointStore) -> Iterator[tuple[str, int, Rows]]:
        yield from self._case_units(store, store.case_ids())
        yield from stored_units(self._home)

    @staticmethod
    def _case_units(store: CheckpointStore, case_ids: Iterable[str]) -> Iterator[tuple[str, int, Rows]]:
        for case_id in case_ids:
            try:
                head = store.latest(case_id)
                found = [
                    (
                        CaseRevision(case_id, number).key,
                        head.generation,
                        CaseRows(store, head, number).tables(),
                    )
                    for number in range(1, head.revision + 1)
                ]
            except VianoError:
                continue
            yield from found

    def lacking(self, store: CheckpointStore) -> Lacking:
        """Return which cases and stored runs of the home have no rows; only names are compared.

        Raises:
            PackageError: `index_damaged`.
        """
        view = self.layout.view()
        units = set(view.entries)
        for segment in view.current.segments:
            units |= set(read_units(self.layout.root, segment))
        known = {unit.partition("@")[0] for unit in units if "@" in unit}
        runs = [run_id for corpus in stored_corpora(self._home) for run_id in corpus.judged_ids()]
        return Lacking(
            [case_id for case_id in store.case_ids() if case_id not in known],
            sorted(run_id for run_id in runs if run_id not in units),
            not units,
        )

    def complete(self, store: CheckpointStore) -> Completed | None:
        """Add the rows of cases that the index lacks, or make it again when it lacks many or a run.

        An index that was deleted, or that somebody else's home never had, is whole afterwards. None when it
        lacked nothing. A damaged package stays left out.

        Raises:
            BusyError: `index_busy`.
            PackageError: `index_damaged`, `index_outdated` at the next question.
        """
        lacking = self.lacking(store)
        if not lacking.cases and not lacking.runs:
            return None
        if lacking.empty or len(lacking.cases) + len(lacking.runs) > _FEW:
            self.rebuild(store)
        else:
            judged = (
                judged_units(corpus, [run for run in corpus.judged_ids() if run in lacking.runs])
                for corpus in stored_corpora(self._home)
            )
            for unit, generation, rows in chain(self._case_units(store, lacking.cases), *judged):
                self.publish(unit, generation, rows)
        left = self.lacking(store)
        return Completed(len(lacking.cases) - len(left.cases), len(lacking.runs) - len(left.runs), left.cases)

    def load(self, units: Iterable[tuple[str, int, Rows]]) -> None:
        """Add many units at once as one segment; for bulk loads of units the index does not hold yet."""
        batch = list(units)
        rows = {name: [row for _, _, tables in batch for row in tables.get(name, ())] for name in TABLES}
        segment = write_segment(self.layout.root, new_name(0), [unit for unit, _, _ in batch], rows)
        with self.layout.lock():
            view = self.layout.view()
            state = Current(view.current.number + 1, (*view.current.segments, segment), view.current.trash)
            self.layout.flip(state, list(view.entries.values()))

    def counts(self) -> dict[str, int]:
        """Return the rows per table."""
        union = " UNION ALL ".join(f"SELECT '{t}' AS name, count(*) AS rows FROM {t}" for t in TABLES)  # noqa: S608
        found = {str(name): int(rows) for name, rows in self.query(union).rows}
        return {name: found[name] for name in TABLES}

    def query(self, sql: str, *, limit: int = 1_000) -> Answer:
        """Answer one SELECT, `SHOW TABLES`, `DESCRIBE table` or `EXPLAIN SELECT`.

        Raises:
            InputError: `sql_refused` or `sql_failed`.
            BlockedError: `sql_limit` when time or memory ran out.
            PackageError: `index_damaged`, `index_outdated`.
        """
        return ask(self.layout, sql, limit=limit)

    def snapshot(self, target: Path) -> Path:
        """Copy the index into one self-contained DuckDB file.

        Raises:
            InputError: `target_exists`, `target_not_writable`.
        """
        if target.exists():
            raise InputError("target_exists", "the file exists", where=str(target), hint="name a new file")
        work = target.with_name(f".{target.name}.{os.getpid()}")
        root = self.layout.root.resolve()
        try:
            for view in fresh_views(self.layout):
                work.unlink(missing_ok=True)
                try:
                    with duckdb.connect(work) as connection:
                        for table in TABLES:
                            select = view_sql(view, table, prefix=f"{root}/")
                            connection.execute(f"CREATE TABLE {table} AS {select}")
                    break
                except duckdb.IOException:
                    if not target.parent.is_dir():
                        raise _not_writable(target) from None
            os.link(work, target)
        except FileExistsError:
            raise InputError(
                "target_exists", "the file exists", where=str(target), hint="name a new file"
            ) from None
        except OSError as error:
            raise _not_writable(target) from error
        finally:
            work.unlink(missing_ok=True)
        return target


def _not_writable(target: Path) -> InputError:
    return InputError(
        "target_not_writable", "the file cannot be written", where=str(target), hint="name another place"
    )
