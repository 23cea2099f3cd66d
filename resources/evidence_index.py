"""The evidence index of a home: Parquet files derived from the packages, asked through DuckDB.

`resources.index.layout` says which files count and how that changes while others read; nobody holds a shared
writable database file. The index is derived: `rebuild` makes it again from the packages and the stored runs
of the corpora, and gives the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from resources.index.asking import Answer, ask, check_current
from resources.index.checking import check_files, check_present
from resources.index.copying import copy_index
from resources.index.layout import GRACE_S, Current, Layout, Rows, Segment, View
from resources.index.merging import (
    JOURNAL_LIMIT,
    Tables,
    as_tables,
    fold_journal,
    merge_segments,
    new_name,
    read_units,
    superseded,
    with_dead,
    write_tables_of_unit,
    write_units,
)
from resources.index.rows import CaseRows
from resources.index.tables import TABLES
from viano_assets.errors import BusyError, InputError, PackageError, VianoError
from viano_assets.evaluation.units import stored_units, unit_names
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision
from viano_assets.phases.protocols import Store

__all__ = ["Answer", "EvidenceIndex"]

TableUnit: TypeAlias = tuple[str, int, Tables]
"""Name, generation and tables of a unit."""

CASE = "case revision"
"""Kind of the units that come from packages."""

_LOG = logging.getLogger("viano.index")

_BATCH = 500
"""Units that are written into one segment at once."""

_FEW = 50
"""Up to so many lacking units are added one by one."""

_COMPACTION = "compaction"


class Lacking(NamedTuple):
    """Units that the home has and the index has no rows of, by kind; `empty` says that it has none at all.

    Kinds are `CASE` (revisions, named by partition key) and those of `viano_assets.evaluation.units`.
    """

    units: dict[str, list[str]]
    empty: bool

    @property
    def total(self) -> int:
        """How many units are lacking."""
        return sum(map(len, self.units.values()))


class Completed(NamedTuple):
    """How many units were added, by kind, those that cannot be read, and whether damage was the cause."""

    added: dict[str, int]
    unreadable: list[str]
    remade: bool


class EvidenceIndex:
    """The index below `home/index`.

    Args:
        home: the Viano home.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.layout = Layout(home / "index")

    def update(self, store: Store, head: Head) -> None:
        """Write the rows of the current revision of a head.

        The work is that of the revision; now and then a writer also merges what others left.
        """
        unit = CaseRevision(head.case_id, head.revision).key
        self.publish(unit, head.generation, CaseRows(store, head, head.revision).tables())

    def publish(self, unit: str, generation: int, rows: Rows) -> None:
        """Replace the rows of one unit; an older generation than the published one changes nothing.

        An index that turns out to be damaged is set aside and begun again; the next question makes the rest.

        Raises:
            InputError: `rows_unusable`.
        """
        tables = as_tables(rows)
        try:
            self._publish(unit, generation, tables)
        except (PackageError, NotADirectoryError, FileExistsError, IsADirectoryError):
            self.heal()
            self._publish(unit, generation, tables)

    def _publish(self, unit: str, generation: int, tables: Tables) -> None:
        entry = write_tables_of_unit(self.layout.root, unit, generation, tables)
        with self.layout.lock():
            lines = self.layout.append([entry])
        if lines >= JOURNAL_LIMIT:
            self._compact()

    def compact(self) -> None:
        """Merge small files into larger ones, unless another process is at it; set a damaged index aside."""
        try:
            self._compact()
        except PackageError:
            self.heal()

    def _compact(self) -> None:
        with self.layout.lock(_COMPACTION, wait=False) as mine:
            if not mine:
                return
            with self.layout.lock():
                fold_journal(self.layout)
            while merge_segments(self.layout):
                pass

    def heal(self) -> bool:
        """Set the index aside and begin an empty one when anything in it is damaged; say so in the log.

        Returns whether it was damaged.
        """
        self.layout.prepare()
        with self.layout.lock():
            try:
                view = self.layout.view()
                check_present(self.layout.root, view)
                check_files(self.layout.root, view.sums(), anew=True)
            except PackageError as error:
                self._set_aside(error)
                return True
        return False

    def _set_aside(self, error: PackageError) -> None:
        _LOG.warning(
            "the evidence index was damaged (%s: %s); set aside, to be made again",
            error.where,
            error.message,
        )
        self.layout.set_aside()

    def _readable(self) -> View:
        """Return the state, an empty one when it could not be read; call with the lock held."""
        try:
            return self.layout.view()
        except PackageError as error:
            self._set_aside(error)
        return self.layout.view()

    def rebuild(self, store: CheckpointStore) -> dict[str, int]:
        """Make the index again from all packages and stored runs, and return the rows per table.

        Others may publish and read meanwhile. A damaged package is left out. Whatever is wrong with the index
        is healed.

        Raises:
            BusyError: `index_busy` when another process merges or rebuilds.
        """
        self.layout.prepare()
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
        with self.layout.lock():
            before = self._readable().lines
        units = self._units(store)
        segments: list[Segment] = []
        while batch := list(islice(units, _BATCH)):
            segments.append(write_units(self.layout.root, new_name(len(segments)), _named(batch)))
        with self.layout.lock():
            view = self._readable()
            known = len(before) if view.lines[: len(before)] == before else 0
            late = list(view.lines[known:])
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

    def _units(self, store: CheckpointStore, only: Collection[str] | None = None) -> Iterator[TableUnit]:
        """Yield what packages and corpora hold as units; whatever cannot be read is left out by itself."""
        wanted = store.case_ids()
        if only is not None:
            named = {name.partition("@")[0] for name in only if "@" in name}
            wanted = [case_id for case_id in wanted if case_id in named]
        for unit, generation, rows in chain(
            self._case_units(store, wanted, only), stored_units(self._home, only)
        ):
            with suppress(InputError):
                yield unit, generation, as_tables(rows)

    @staticmethod
    def _case_units(
        store: CheckpointStore, case_ids: Iterable[str], only: Container[str] | None
    ) -> Iterator[tuple[str, int, Rows]]:
        """Yield the revisions of cases, each as its own last generation left it."""
        for case_id in case_ids:
            try:
                head = store.latest(case_id)
            except VianoError:
                continue
            last = {checkpoint.revision: checkpoint.generation for checkpoint in head.checkpoints}
            for number in range(1, head.revision + 1):
                key = CaseRevision(case_id, number).key
                if only is not None and key not in only:
                    continue
                try:
                    then = head if number == head.revision else store.at_generation(case_id, last[number])
                    rows = CaseRows(store, then, number).tables()
                except (VianoError, ValueError, KeyError, TypeError, AttributeError):
                    continue
                yield key, then.generation, rows

    def lacking(self, store: CheckpointStore) -> Lacking:
        """Return what the home has and the index has no rows of; only names are compared.

        Raises:
            PackageError: `index_damaged` when state or names cannot be read or a file is missing,
                `index_outdated`.
        """
        view = self.layout.view()
        check_current(self.layout, view)
        check_present(self.layout.root, view)
        units = set(view.entries)
        for segment in view.current.segments:
            units |= set(read_units(self.layout.root, segment))
        names = {CASE: [key for case_id in store.case_ids() for key in _keys(store, case_id)]}
        names |= unit_names(self._home)
        lacking = {kind: [name for name in found if name not in units] for kind, found in names.items()}
        return Lacking(lacking, not units)

    def complete(self, store: CheckpointStore) -> Completed | None:
        """Add the rows of units that the index lacks; make it again when it is damaged or outdated.

        An index that was deleted, or that somebody else's home never had, is whole afterwards. None when it
        lacked nothing. What cannot be read stays left out.

        Raises:
            BusyError: `index_busy`.
        """
        try:
            lacking = self.lacking(store)
        except PackageError:
            self.rebuild(store)
            return Completed({}, self._unreadable(store), remade=True)
        if not lacking.total:
            return None
        if lacking.empty:
            self.rebuild(store)
        else:
            self._add(store, {name for names in lacking.units.values() for name in names})
        left = self.lacking(store).units
        added = {kind: len(names) - len(left[kind]) for kind, names in lacking.units.items()}
        return Completed(added, sorted(name for names in left.values() for name in names), remade=False)

    def _unreadable(self, store: CheckpointStore) -> list[str]:
        return sorted(name for names in self.lacking(store).units.values() for name in names)

    def _add(self, store: CheckpointStore, names: Collection[str]) -> None:
        units = self._units(store, names)
        while batch := list(islice(units, _BATCH)):
            if len(batch) <= _FEW:
                for unit, generation, tables in batch:
                    self._publish(unit, generation, tables)
            else:
                self._load(batch)

    def _load(self, batch: Sequence[TableUnit]) -> None:
        """Add many units as one segment; those that somebody else published meanwhile do not count in it."""
        segment = write_units(self.layout.root, new_name(0), _named(batch))
        with self.layout.lock():
            view = self.layout.view()
            held = {unit for s in view.current.segments for unit in read_units(self.layout.root, s)}
            segment = with_dead(self.layout.root, segment, held | set(view.entries))
            state = Current(
                view.current.number + 1,
                (*view.current.segments, segment),
                (*view.current.trash, (view.current.journal, time.time())),
            )
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
            InputError: `target_exists`; `target_not_writable` with the reason.
            PackageError: `index_damaged`, `index_outdated`.
        """
        return copy_index(self.layout, target)


def _named(batch: Sequence[TableUnit]) -> list[tuple[str, Tables]]:
    return [(unit, tables) for unit, _, tables in batch]


def _keys(store: CheckpointStore, case_id: str) -> list[str]:
    """Return the partition keys of a case, its first alone when the newest record cannot be read."""
    try:
        newest = store.revision(case_id)
    except VianoError:
        newest = 1
    return [CaseRevision(case_id, number).key for number in range(1, newest + 1)]
