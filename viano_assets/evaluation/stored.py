"""What the home keeps of its corpora: the built bugs, the runs with their scores, the calibration snapshots.

    corpora/<corpus>/corpus.json               name, content hash, the known bugs with their gold
    corpora/<corpus>/runs/<run>/run.json       what ran: cases, provider, prompts, code
    corpora/<corpus>/runs/<run>/report.md      with its plots and summary.json beside it
    corpora/<corpus>/runs/<run>/scores.json    the rows of the table `evaluations`; written last: with it
                                               the run is judged
    corpora/<corpus>/calibration/<id>.json     snapshots, never changed

These files are the truth; their rows in the evidence index are derived from them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from viano_assets.canonical import sha256_hex
from viano_assets.errors import InputError, PackageError, VianoError

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
        """Return `corpus.json`, None before the corpus was built.

        Raises:
            PackageError: `evaluation_damaged`.
        """
        path = self.root / "corpus.json"
        if not path.is_file():
            return None
        document = read_document(path)
        if document["corpus"] != self.corpus:
            raise damaged(path, f"it is the file of the corpus {document['corpus']!r}")
        return document

    def run_ids(self) -> list[str]:
        """Return the ids of the runs, oldest first; other folders are no runs."""
        return [name for name in self._numbered() if self.run(name, "run.json").is_file()]

    def _numbered(self) -> list[str]:
        folder = self.root / "runs"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted((n for n in names if self._number(n) is not None), key=lambda n: self._number(n) or 0)

    def _number(self, name: str) -> int | None:
        found = re.fullmatch(rf"{re.escape(self.corpus)}\.r([0-9]{{4,9}})", name, re.ASCII)
        return int(found[1]) if found else None

    def judged_ids(self) -> list[str]:
        """Return the ids of the runs that were judged, oldest first."""
        return [run_id for run_id in self.run_ids() if self.run(run_id, "scores.json").is_file()]

    def open_run(self) -> str | None:
        """Return the id of the newest run when it was not judged, else None."""
        ids = self.run_ids()
        return ids[-1] if ids and not self.run(ids[-1], "scores.json").is_file() else None

    def next_run_id(self) -> str:
        """Return the id of a new run, `<corpus>.r0001` and so on."""
        taken = self._numbered()
        return f"{self.corpus}.r{(self._number(taken[-1]) or 0) + 1 if taken else 1:04d}"

    def run_document(self, run_id: str) -> dict[str, Any]:
        """Return the `run.json` of a run.

        Raises:
            InputError: `unknown_run`.
            PackageError: `evaluation_damaged`.
        """
        path = self.run(run_id, "run.json")
        if self._number(run_id) is None or not path.is_file():
            raise InputError(
                "unknown_run",
                "the corpus has no such run",
                where=run_id,
                hint=f"known: {', '.join(self.run_ids()) or 'none'}",
            )
        return read_document(path)

    def runs_of(self, provider: str, *, before: str | None = None) -> list[dict[str, Any]]:
        """Return the `run.json` of the readable whole runs of a provider profile, oldest first.

        Args:
            provider: name of the profile.
            before: only runs that are older than this one.
        """
        limit = None if before is None else self._number(before)
        found = []
        for run_id in self.run_ids():
            if limit is None or (self._number(run_id) or 0) < limit:
                with suppress(PackageError):
                    found.append(self.run_document(run_id))
        return [run for run in found if run["provider"] == provider and is_whole(run)]

    def run_order(self, run_id: str) -> tuple[str, int]:
        """Return when a run began (empty when that cannot be read) and its number, to tell which is newer."""
        try:
            return str(self.run_document(run_id)["started_at"]), self._number(run_id) or 0
        except VianoError:
            return "", self._number(run_id) or 0

    def run(self, run_id: str, name: str) -> Path:
        """Return the path of a run's file."""
        return self.root / "runs" / run_id / name

    def snapshots(self) -> list[dict[str, Any]]:
        """Return the calibration snapshots, that of the newest run last; `problems` names damaged ones."""
        found = []
        for path in self.snapshot_paths():
            with suppress(PackageError):
                found.append(read_document(path, "snapshot"))
        return sorted(
            found,
            key=lambda item: (self._number(item["run_id"]) or 0, item["made_at"], item["snapshot_id"]),
        )

    def snapshot_paths(self) -> list[Path]:
        """Return the files of the calibration snapshots by name; hidden files are none."""
        return sorted(p for p in (self.root / "calibration").glob("*.json") if not p.name.startswith("."))

    def problems(self) -> list[PackageError]:
        """Return what is damaged of the corpus: its cases, its runs and scores, its snapshots."""
        found = []
        documents = [(self.root / "corpus.json", "")]
        for run_id in self.run_ids():
            documents += [
                (self.run(run_id, name), "") for name in ("run.json", "scores.json", "summary.json")
            ]
        documents += [(path, "snapshot") for path in self.snapshot_paths()]
        for path, kind in documents:
            try:
                if path.is_file():
                    read_document(path, kind)
            except PackageError as error:
                found.append(error)
        return found


def is_whole(run: Mapping[str, Any]) -> bool:
    """Say whether a run took every case of its corpus; a partial one measures nothing for others."""
    return bool(run.get("whole", True))


_SHAPES: Mapping[str, Mapping[str, type]] = {
    "corpus.json": {"corpus": str, "sha256": str, "bugs": list},
    "run.json": {
        "run_id": str, "corpus": str, "corpus_sha256": str, "provider": str, "prompts_sha256": str,
        "code_version": str, "fingerprint": str, "started_at": str, "cases": dict, "unreadable": dict,
    },
    "scores.json": {"rows": list},
    "baseline": {"files": list},
    "summary.json": {"run_id": str, "cases": int, "failed": int, "worse": list},
    "snapshot": {"snapshot_id": str, "provider": str, "run_id": str, "made_at": str, "subjects": dict},
}  # fmt: skip
"""What the readers of a file rely on."""

_ITEMS: Mapping[str, Mapping[str, type]] = {
    "bugs": {"bug_id": str, "case_id": str, "sha256": str, "locations": list},
    "rows": {"bug_id": str, "predictor": str},
}


def read_document(path: Path, kind: str = "") -> dict[str, Any]:
    """Read a stored JSON object and check what its readers rely on.

    Args:
        path: the file.
        kind: which shape it must have; empty takes its name.

    Raises:
        PackageError: `evaluation_damaged`.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path, type(error).__name__) from error
    problem = _misshapen(document, _SHAPES.get(kind or path.name, {}))
    if problem:
        raise damaged(path, problem)
    return dict(document)


def _misshapen(document: Any, shape: Mapping[str, type]) -> str:
    if not isinstance(document, dict):
        return "it is no object"
    for name, wanted in shape.items():
        if not isinstance(document.get(name), wanted):
            return f"{name!r} is missing or of another type"
        if name in _ITEMS and any(_misshapen(item, _ITEMS[name]) for item in document[name]):
            return f"an entry of {name!r} is incomplete"
    return ""


_REMEDIES: Mapping[str, str] = {
    "corpus.json": "remove it; then build the corpus again: viano corpus build",
    "run.json": "what the run was is lost: move its folder away; then start another: viano corpus run",
}


def damaged(path: Path, what: str) -> PackageError:
    """Return the error `evaluation_damaged` about a stored file of a corpus."""
    return PackageError(
        "evaluation_damaged",
        f"a stored file of a corpus cannot be read: {what}",
        where=str(path),
        hint=_REMEDIES.get(path.name, "remove it; then judge the run again: viano corpus judge"),
    )


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
