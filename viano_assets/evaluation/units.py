"""What the home keeps of its corpora, as units of the evidence index: known bugs, snapshots, runs.

A unit's name is the name of its file, so that what is stored can be compared with what is indexed without
reading anything.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from viano_assets.errors import PackageError
from viano_assets.evaluation.stored import (
    Unit,
    calibration_rows,
    known_bug_rows,
    read_document,
    stored_corpora,
)

CORPUS, SNAPSHOT, RUN = "corpus", "snapshot", "run"

_MALFORMED = (PackageError, KeyError, TypeError, ValueError, AttributeError)
"""What a file that is no longer what was written leads to."""


def unit_names(home: Path) -> dict[str, list[str]]:
    """Return the names of everything stored, by kind (`CORPUS`, `SNAPSHOT`, `RUN`); no file is read."""
    found: dict[str, list[str]] = {CORPUS: [], SNAPSHOT: [], RUN: []}
    for corpus in stored_corpora(home):
        if (corpus.root / "corpus.json").is_file():
            found[CORPUS].append(corpus.corpus)
        found[SNAPSHOT] += [path.stem for path in corpus.snapshot_paths()]
        found[RUN] += corpus.judged_ids()
    return found


def stored_units(home: Path, only: Container[str] | None = None) -> Iterator[Unit]:
    """Yield what is stored; a damaged file is left out by itself.

    Args:
        home: the Viano home.
        only: names to read; None reads everything.
    """
    for corpus in stored_corpora(home):
        if (corpus.root / "corpus.json").is_file() and (only is None or corpus.corpus in only):
            yield from _unit(corpus.corpus, corpus.root / "corpus.json", "known_bugs")
        for path in corpus.snapshot_paths():
            if only is None or path.stem in only:
                yield from _unit(path.stem, path, "calibration")
        for run_id in corpus.judged_ids():
            if only is None or run_id in only:
                yield from _unit(run_id, corpus.run(run_id, "scores.json"), "evaluations")


def _unit(name: str, path: Path, table: str) -> Iterator[Unit]:
    """Yield the unit of one file, nothing when it is damaged or tells of another unit."""
    try:
        document = read_document(path)
        column, rows = _rows(table, document)
        whole = all(row[column] == name for row in rows)
    except _MALFORMED:
        return
    if whole:
        yield name, 1, {table: rows}


def _rows(table: str, document: dict[str, Any]) -> tuple[str, list[Any]]:
    if table == "known_bugs":
        return "corpus", list(known_bug_rows(document))
    if table == "calibration":
        return "snapshot_id", list(calibration_rows(document))
    return "run_id", list(document["rows"])
