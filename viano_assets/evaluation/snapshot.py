"""Calibration snapshots: measured once, kept for ever, quoted by new diagnoses (docs/evaluation.md).

Two subjects are kept: `diagnosis` (confirmed defects and controls, right when the root cause is) and, for
every assessed hypothesis of a defect, `requested` and `effective`, right when its support overlaps the gold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import PackageError
from viano_assets.evaluation.calibration import LEVELS, as_json, calibrate, stored_levels
from viano_assets.evaluation.stored import (
    CHOSEN,
    CorpusFolder,
    read_document,
    stored_corpora,
    write_document,
)

SCHEMA = "calibration-snapshot-v2"
"""Form 1 had no `pooled_*` and the interval of the level alone; `stored_levels` reads both."""

Pairs = Sequence[tuple[str, bool]]
"""(level, right) of each decided case or hypothesis."""


def make_snapshot(
    run: Mapping[str, Any], scores: Sequence[Mapping[str, Any]], hypotheses: Mapping[str, Pairs], made_at: str
) -> dict[str, Any]:
    """Measure one run.

    Args:
        run: its `run.json`.
        scores: rows of the predictor `viano`.
        hypotheses: pairs of the subjects `requested` and `effective`.
        made_at: ISO 8601 time.

    The id is a hash of inputs and result without the time, so that the same run gives the same snapshot.
    """
    diagnosis = [
        (str(row["effective_confidence"]), bool(row["root_cause_correct"]))
        for row in scores
        if row["confirmed"] and row["effective_confidence"] in LEVELS
    ]
    subjects = {"diagnosis": diagnosis, **{name: list(pairs) for name, pairs in hypotheses.items()}}
    body = {
        "schema": SCHEMA,
        **{name: run[name] for name in ("corpus", "corpus_sha256", "run_id", "provider", "prompts_sha256")},
        "code_version": run["code_version"],
        "subjects": {
            name: as_json(calibrate([level for level, _ in pairs], [right for _, right in pairs]))
            for name, pairs in sorted(subjects.items())
        },
    }
    digest = sha256_hex(canonical_json(body))
    return {**body, "snapshot_id": f"{run['corpus']}.c{digest[:12]}", "sha256": digest, "made_at": made_at}


def keep_snapshot(home: Path, snapshot: Mapping[str, Any]) -> Path:
    """Store a snapshot and return its file; an existing one is not rewritten, a damaged one is.

    Only a run of the whole corpus is worth one. New diagnoses of the provider quote it from now on, unless
    another whole run that was judged is newer: judging an old run again takes nobody back. A damaged list of
    what is quoted is made again from the stored snapshots.
    """
    folder = CorpusFolder(home, str(snapshot["corpus"]))
    path = folder.root / "calibration" / f"{snapshot['snapshot_id']}.json"
    if not _is_stored(path, snapshot):
        write_document(path, snapshot)
    chosen = home / "corpora" / CHOSEN
    try:
        names = read_document(chosen) if chosen.is_file() else {}
    except PackageError:
        names = _newest(home)
    if not _is_passed(home, folder, snapshot) or snapshot["provider"] not in names:
        names = {**names, str(snapshot["provider"]): str(path.relative_to(home / "corpora"))}
    write_document(chosen, names)
    return path


def _is_stored(path: Path, snapshot: Mapping[str, Any]) -> bool:
    try:
        return path.is_file() and read_document(path, "snapshot")["sha256"] == snapshot["sha256"]
    except (PackageError, KeyError):
        return False


def _is_passed(home: Path, folder: CorpusFolder, snapshot: Mapping[str, Any]) -> bool:
    """Say whether a whole judged run of the snapshot's provider, of whatever corpus, began later than its."""
    own = folder.run_order(str(snapshot["run_id"]))
    for other in stored_corpora(home):
        judged = set(other.judged_ids())
        for run in other.runs_of(str(snapshot["provider"])):
            order = other.run_order(run["run_id"])
            newer = order > own if other.corpus == folder.corpus else order[0] > own[0]
            if own[0] and newer and run["run_id"] in judged:
                return True
    return False


def _newest(home: Path) -> dict[str, str]:
    """Return per provider profile where the snapshot of its newest run lies."""
    found = [(item, folder) for folder in stored_corpora(home) for item in folder.snapshots()]
    found.sort(key=lambda pair: (pair[1].run_order(pair[0]["run_id"]), pair[0]["made_at"]))
    return {
        item["provider"]: f"{folder.corpus}/calibration/{item['snapshot_id']}.json" for item, folder in found
    }


def snapshot_before(folder: CorpusFolder, run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the snapshot of the last whole run of the same provider before `run`; None without one."""
    earlier = [item["run_id"] for item in folder.runs_of(str(run["provider"]), before=str(run["run_id"]))]
    found = {item["run_id"]: item for item in folder.snapshots()}
    return next((found[run_id] for run_id in reversed(earlier) if run_id in found), None)


def drifted(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the levels whose rate now lies outside the interval that a snapshot gave.

    What another provider's levels were worth says nothing; `snapshot_before` finds the one to compare with.
    """
    if before["provider"] != now["provider"]:
        return []
    old = {item["level"]: item for item in stored_levels(before["subjects"]["diagnosis"])}
    return [
        item["level"]
        for item in stored_levels(now["subjects"]["diagnosis"])
        if item["rate"] is not None
        and (known := old.get(item["level"])) is not None
        and known["rate"] is not None
        and not known["low"] <= item["rate"] <= known["high"]
    ]
