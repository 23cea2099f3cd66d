"""What the home keeps of its corpora: the built bugs, the runs with their scores, the calibration snapshots.

    corpora/<corpus>/corpus.json               name, content hash, the known bugs with their gold
    corpora/<corpus>/runs/<run>/run.json       what ran: cases, provider, prompts, code
    corpora/<corpus>/runs/<run>/scores.json    the rows of the table `evaluations`
    corpora/<corpus>/runs/<run>/report.md      with its plots beside it
    corpora/<corpus>/calibration/<id>.json     snapshots, never changed

These files are the truth; their rows in the evidence index are derived from them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from viano_assets.canonical import sha256_hex
from viano_assets.errors import InputError, PackageError

Row = Mapping[str, Any]
Unit = tuple[str, int, dict[str, Sequence[Row]]]

QUOTED = "calibration-v2"
CHOSEN = "calibration.json"
"""File in `HOME/corpora` that names the snapshot new diagnoses quote, per provider profile."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)


def check_corpus_name(name: str) -> str:
    """Return a corpus name that fits the grammar.

    Raises:
        InputError: `invalid_corpus_name`.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "invalid_corpus_name",
            f"{name!r} cannot be the name of a corpus",
            hint="use 1 to 40 small letters, digits and hyphens",
        )
    return name


class CorpusFolder:
    """The files of one corpus below a home."""

    def __init__(self, home: Path, corpus: str) -> None:
        self.corpus = check_corpus_name(corpus)
        self.root = home / "corpora" / corpus

    def built(self) -> dict[str, Any] | None:
        """Return `corpus.json`, None before the corpus was built."""
        path = self.root / "corpus.json"
        return read_document(path) if path.is_file() else None

    def run_ids(self) -> list[str]:
        """Return the ids of the runs, oldest first."""
        folder = self.root / "runs"
        return (
            sorted(p.name for p in folder.iterdir() if (p / "run.json").is_file()) if folder.is_dir() else []
        )

    def judged_ids(self) -> list[str]:
        """Return the ids of the runs that were judged, oldest first."""
        return [run_id for run_id in self.run_ids() if self.run(run_id, "scores.json").is_file()]

    def next_run_id(self) -> str:
        """Return the id of a new run, `<corpus>.r0001` and so on."""
        taken = self.run_ids()
        return f"{self.corpus}.r{int(taken[-1].rsplit('r', 1)[1]) + 1 if taken else 1:04d}"

    def run(self, run_id: str, name: str) -> Path:
        """Return the path of a run's file."""
        return self.root / "runs" / run_id / name

    def snapshots(self) -> list[dict[str, Any]]:
        """Return the calibration snapshots, oldest first."""
        folder = self.root / "calibration"
        found = [read_document(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
        return sorted(found, key=lambda item: (item["made_at"], item["snapshot_id"]))


def read_document(path: Path) -> dict[str, Any]:
    """Read a stored JSON object.

    Raises:
        PackageError: `evaluation_damaged`.
    """
    try:
        document: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise PackageError(
            "evaluation_damaged",
            "a stored file of a corpus cannot be read",
            where=str(path),
            hint="remove it and run the corpus again",
        ) from error
    return document


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a stored JSON object in one step, synced to the disk."""
    write_bytes(path, json.dumps(document, ensure_ascii=False, sort_keys=True, allow_nan=False).encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file in one step, synced to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with work.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)


def known_bug_rows(built: Mapping[str, Any]) -> list[Row]:
    """Return the rows of `known_bugs`: one per gold location, one without location for a control."""
    rows: list[Row] = []
    for bug in built["bugs"]:
        plain = {name: bug.get(name) for name in _BUG}
        head = {"corpus": built["corpus"], "corpus_sha256": built["sha256"], **plain}
        for number, place in enumerate(bug["locations"] or [{}], 1):
            start, end = place.get("lines") or (None, None)
            key = place.get("key")
            rows.append(
                {
                    **head,
                    "location": number,
                    "path": place.get("path"),
                    "symbol": place.get("symbol"),
                    "line_start": start,
                    "line_end": end,
                    "table_name": place.get("table"),
                    "row_key": None if key is None else json.dumps(key, ensure_ascii=False, sort_keys=True),
                    "column_name": place.get("column"),
                }
            )
    return rows


_BUG = ("bug_id", "case_id", "title", "kind", "language", "origin", "split", "clue", "verdict")


def calibration_rows(snapshot: Mapping[str, Any]) -> list[Row]:
    """Return the rows of `calibration`: one per subject and level."""
    from viano_assets.evaluation.calibration import stored_levels  # noqa: PLC0415  # loads scipy when needed

    shared = {name: snapshot.get(name) for name in _SNAPSHOT}
    rows: list[Row] = []
    for subject, measured in sorted(snapshot["subjects"].items()):
        figures = {name: measured[name] for name in _FIGURES}
        rows += [{**shared, "subject": subject, **figures, **level} for level in stored_levels(measured)]
    return rows


_SNAPSHOT = ("snapshot_id", "corpus", "corpus_sha256", "run_id", "provider", "prompts_sha256", "made_at")
_FIGURES = ("decided", "ece", "null_high", "brier", "brier_skill", "auroc", "aurc", "top_lower_bound")


def stored_corpora(home: Path) -> list[CorpusFolder]:
    """Return the corpora that a home has files of, by name."""
    folder = home / "corpora"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [CorpusFolder(home, name) for name in names if _NAME.fullmatch(name)]


def stored_units(home: Path) -> Iterator[Unit]:
    """Yield everything stored as units of the evidence index; a damaged file is left out."""
    for corpus in stored_corpora(home):
        with suppress(PackageError):
            built = corpus.built()
            if built is not None:
                yield corpus.corpus, 1, {"known_bugs": known_bug_rows(built)}
        with suppress(PackageError):
            for snapshot in corpus.snapshots():
                yield snapshot["snapshot_id"], 1, {"calibration": calibration_rows(snapshot)}
        yield from judged_units(corpus, corpus.judged_ids())


def judged_units(corpus: CorpusFolder, run_ids: Iterable[str]) -> Iterator[Unit]:
    """Yield the scores of runs as units of the evidence index; a damaged file is left out."""
    for run_id in run_ids:
        with suppress(PackageError, KeyError):
            yield run_id, 1, {"evaluations": read_document(corpus.run(run_id, "scores.json"))["rows"]}


def content_hash(bugs: Sequence[Mapping[str, Any]]) -> str:
    """Return the content hash of a corpus from the hashes of its bugs."""
    lines = sorted(f"{bug['bug_id']} {bug['sha256']}" for bug in bugs)
    return sha256_hex("\n".join(lines).encode())


def quoted_snapshot(home: Path, provider: str) -> dict[str, Any] | None:
    """Return what a new diagnosis of a provider profile freezes; None when nothing has been measured.

    A damaged file counts as nothing measured: a case must not stop for it, and the report names it.
    """
    chosen = home / "corpora" / CHOSEN
    try:
        if not chosen.is_file() or provider not in (names := read_document(chosen)):
            return None
        snapshot = read_document(home / "corpora" / str(names[provider]))
        levels = _quoted_levels(snapshot["subjects"]["diagnosis"])
        return {
            "schema": QUOTED,
            "status": "no known case of this level" if levels else "not measured",
            "snapshot_id": snapshot["snapshot_id"],
            "sha256": snapshot["sha256"],
            "corpus": snapshot["corpus"],
            "provider": provider,
            "levels": levels,
        }
    except (PackageError, KeyError, TypeError):
        return None


def _quoted_levels(measured: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the counts of each level and, from enough cases on, rate and interval of its pooled block."""
    from viano_assets.evaluation.calibration import stored_levels  # noqa: PLC0415  # loads scipy when needed

    return {
        item["level"]: {
            "n": item["n"],
            "right": item["right"],
            "rate": item["rate"],
            "interval": None if item["rate"] is None else [item["low"], item["high"]],
            "pooled": None
            if item["rate"] is None
            else {"n": item["pooled_n"], "right": item["pooled_right"], "with": item["pooled_with"]},
        }
        for item in stored_levels(measured)
        if item["n"]
    }
