"""Runs of a corpus: which revisions belong to a run, working on them in threads, and judging the result.

A run is a file, `HOME/corpora/<corpus>/runs/<run>/run.json`, that fixes the revisions before anything works.
An interrupted run is taken up again: finished cases are read, never repeated; the packages know how far the
others are. One bad case is counted and stops nobody.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from resources.corpus_judge import Judge, Told
from resources.corpus_standing import Standing, standings
from resources.evidence_index import EvidenceIndex
from resources.session import Session
from viano_assets import __version__
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.reopening import new_revision
from viano_assets.data_files import PROMPTS
from viano_assets.errors import BusyError, InputError, StorageError, VianoError
from viano_assets.evaluation.corpus import check_inputs
from viano_assets.evaluation.gold import read_record
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CorpusFolder, known_bug_rows, write_document
from viano_assets.package.filesystem import refusal_of_the_disk
from viano_assets.package.model import Head
from viano_assets.partitions import CaseRevision, parse_key
from viano_assets.phases.diagnosis.view import case_view
from viano_assets.phases.protocols import DispatchStatus, Phase

REASON = "corpus"
"""Reason in the history of a revision that a corpus run minted."""

WAITS = frozenset({DispatchStatus.RETRY_PENDING.value, DispatchStatus.DEFERRED.value})
BUSY = "BUSY"
"""Status of a case that somebody else works on."""

DISK = "DISK"
"""Status of a case that a full or read-only disk stopped: it would stop any other case too."""

DISK_CODES = frozenset({"storage_full", "storage_read_only"})
"""What is wrong with the whole disk; other storage errors may concern one case alone."""


INTERNAL = "internal_error"
"""Code of a case that an exception of Viano's own ended; verdicts are called `defect`, so this is not."""

_SQLITE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "storage_full",
    sqlite3.SQLITE_IOERR: "storage_failed",
    sqlite3.SQLITE_READONLY: "storage_read_only",
}


class Outcome(NamedTuple):
    """What became of one case of a run.

    `code` is empty when it has a diagnosis; `not_before` says until when a provider put it off.
    """

    bug_id: str
    key: str
    status: str
    code: str
    message: str
    repeated: bool
    not_before: str | None = None

    @property
    def is_failed(self) -> bool:
        """True when the case has no diagnosis and trying again at once brings none."""
        return bool(self.code) and self.status not in {BUSY, DISK} and not self.waits

    @property
    def waits(self) -> bool:
        """True when a provider put the case off."""
        return self.status in WAITS


def storage_code(error: BaseException) -> str:
    """Return the code of a failure of the disk, of the file system or of SQLite, empty for any other."""
    if isinstance(error, OSError):
        refused = refusal_of_the_disk(error)
        return refused.code if refused is not None else ""
    if isinstance(error, sqlite3.Error):
        return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    return ""


def prompts_sha256(folder: Path = PROMPTS) -> str:
    """Return the hash of every prompt file."""
    files = sorted(folder.glob("*.txt"))
    return sha256_hex(b"\0".join(p.name.encode() + b"\0" + p.read_bytes() for p in files))


def fingerprint(session: Session, *, prompts: Path = PROMPTS, code: str = __version__) -> str:
    """Return what decides whether a corpus has to be reprocessed: prompts, policy, provider, code version.

    Args:
        session: the opened home; gives settings and provider.
        prompts: folder of the prompt files.
        code: version of the code.
    """
    config = session.config
    files = sorted(config.glob("*.local.toml")) if config.is_dir() else []
    settings = {path.name: sha256_hex(path.read_bytes()) for path in files}
    parts = {
        "prompts": prompts_sha256(prompts),
        "settings": settings,
        "provider": session.gateway.config.fingerprint(session.gateway.profile),
        "code": code,
    }
    return sha256_hex(canonical_json(parts))


class CorpusRuns:
    """Runs one built corpus.

    Args:
        session: the opened home.
        corpus: name of the corpus.
        owner: the ownership of the corpus' runs when the caller holds it already.

    Raises:
        InputError: `corpus_not_built`; `gold_invalid` of a bug in `corpus.json`.
        PackageError: `evaluation_damaged`.
    """

    def __init__(self, session: Session, corpus: str, owner: Owner | None = None) -> None:
        self.session = session
        self.folder = CorpusFolder(session.home, corpus)
        self.owner = owner or Owner(self.folder)
        built = self.folder.built()
        if built is None or not built["bugs"]:
            raise InputError(
                "corpus_not_built",
                "the home holds no case of the corpus",
                where=corpus,
                hint=f"viano corpus build {corpus}",
            )
        self.built = built
        self._bugs = {bug["bug_id"]: bug for bug in built["bugs"]}
        for bug in built["bugs"]:
            read_record(bug, f"{corpus}: {bug['bug_id']}")

    def open_run(self) -> str | None:
        """Return the id of the run that was started and not judged, None when there is none."""
        return self.folder.open_run()

    def start(self, *, only: Sequence[str] = ()) -> str:
        """Mint the revisions of a new run and fix them in its `run.json`; return its id.

        A current revision that nothing has worked on yet is taken as it is, so that a start that died and is
        repeated mints nothing twice. A damaged package, and a case that is not the bug's own, is recorded
        and left out.

        Args:
            only: bug ids; empty takes all. A run that leaves bugs out is a partial one.

        Raises:
            InputError: `unknown_bug`.
            BusyError: `corpus_busy`.
        """
        known = [bug["bug_id"] for bug in self.built["bugs"]]
        check_only(known, only)
        with self.owner.held():
            return self._start(set(only or known), whole=not set(known) - set(only or known))

    def _start(self, chosen: set[str], *, whole: bool) -> str:
        run_id = self.folder.next_run_id()
        cases: dict[str, str] = {}
        unreadable: dict[str, str] = {}
        for bug in self.built["bugs"]:
            if bug["bug_id"] not in chosen:
                continue
            try:
                head = self.session.store.latest(bug["case_id"])
                check_inputs(head, bug)
                cases[bug["bug_id"]] = CaseRevision(head.case_id, self._minted(head).revision).key
            except VianoError as error:
                unreadable[bug["bug_id"]] = error.code
        run = {
            "schema": "corpus-run-v1",
            "run_id": run_id,
            "corpus": self.folder.corpus,
            "corpus_sha256": self.built["sha256"],
            "provider": self.session.gateway.profile,
            "prompts_sha256": prompts_sha256(),
            "code_version": __version__,
            "fingerprint": fingerprint(self.session),
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "whole": whole,
            "cases": cases,
            "unreadable": unreadable,
        }
        write_document(self.folder.run(run_id, "run.json"), run)
        EvidenceIndex(self.session.home).publish(
            self.folder.corpus, 1, {"known_bugs": known_bug_rows(self.built)}
        )
        return run_id

    def _minted(self, head: Head) -> Head:
        opened = [c for c in head.checkpoints if c.event == "case_reopened" and c.revision == head.revision]
        fresh = head.manifest.lifecycle == Lifecycle.ASSEMBLED.value and head.manifest.overlay is None
        if fresh and (head.revision == 1 or opened[-1].detail.get("reason") == REASON):
            return head
        with self.session.store.lock(head.case_id):
            return new_revision(self.session.store, head.case_id, reason=REASON, prior_generations="exclude")

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the `run.json` of a run.

        Raises:
            InputError: `unknown_run`.
            PackageError: `evaluation_damaged`.
        """
        return self.folder.run_document(run_id)

    def standings(self, run: Mapping[str, Any], now: datetime | None = None) -> dict[str, Standing]:
        """Return how far the cases of a run are, by bug id."""
        return standings(self.session.store, run, self._bugs, now)

    def work(
        self, run_id: str, *, threads: int = 2, told: Callable[[Outcome, int, int], None] | None = None
    ) -> list[Outcome]:
        """Carry every case of a run to its diagnosis, or as far as it goes.

        Args:
            run_id: the run.
            threads: cases worked on at once; the gateway bounds the model calls among them.
            told: hears of each finished case, with how many are done of how many.

        Raises:
            BusyError: `corpus_busy`.
            StorageError: the disk stopped a case; the run is left open.
        """
        with self.owner.held():
            outcomes = self._work(run_id, threads, told)
        stopped = next((item for item in outcomes if item.status == DISK), None)
        if stopped is not None:
            raise StorageError(
                stopped.code,
                stopped.message,
                where=f"{run_id}: {stopped.bug_id}",
                hint=f"free space or mend the disk; viano corpus run {self.folder.corpus} then goes on",
            )
        return outcomes

    def _work(
        self, run_id: str, threads: int, told: Callable[[Outcome, int, int], None] | None
    ) -> list[Outcome]:
        cases = sorted(self.run(run_id)["cases"].items())
        outcomes = []
        with ThreadPoolExecutor(max(1, min(threads, len(cases))), thread_name_prefix="corpus") as pool:
            futures = [pool.submit(self._one, bug_id, key) for bug_id, key in cases]
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    outcomes.append(future.result())
                    if told is not None:
                        told(outcomes[-1], number, len(cases))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return sorted(outcomes)

    def _one(self, bug_id: str, key: str) -> Outcome:
        case_id, revision = parse_key(key)
        try:
            head = self.session.store.latest(case_id)
            if bug_id in self._bugs:
                check_inputs(head, self._bugs[bug_id])
            if case_view(self.session.store, head, revision)["diagnosis"] is not None:
                return Outcome(bug_id, key, DispatchStatus.COMPLETED.value, "", "", repeated=False)
            if head.revision != revision:
                return Outcome(
                    bug_id, key, "LEFT", "revision_passed", "a later revision exists", repeated=False
                )
            result = asyncio.run(self.session.run(case_id, until=Phase.DIAGNOSIS))
        except BusyError as error:
            return Outcome(bug_id, key, BUSY, error.code, str(error), repeated=False)
        except Exception as error:  # noqa: BLE001 - one bad case never stops the night
            return _failed(bug_id, key, error)
        code = "" if result.status is DispatchStatus.COMPLETED else result.code or result.status.value.lower()
        return Outcome(
            bug_id,
            key,
            result.status.value,
            code,
            result.message,
            repeated=True,
            not_before=result.not_before,
        )

    def judge(
        self,
        run_id: str,
        outcomes: Sequence[Outcome] = (),
        *,
        as_it_stands: bool = False,
        told: Told = lambda _: None,
    ) -> dict[str, Any]:
        """Score a run, calibrate it, write its report, publish its rows; return the summary.

        A run that was judged before is judged again from what its cases are now.

        Args:
            run_id: the run.
            outcomes: what its work ended with.
            as_it_stands: judge although cases could still go on.
            told: hears in words how far the judging is.

        Raises:
            BlockedError: `corpus_run_open`; BusyError: `corpus_busy`.
        """
        run = self.run(run_id)
        failed = {item.bug_id: item.code for item in outcomes if item.is_failed}
        with self.owner.held():
            return Judge(self.session, self.folder, self.built, told).judge(
                run, failed, as_it_stands=as_it_stands
            )


def _failed(bug_id: str, key: str, error: Exception) -> Outcome:
    if isinstance(error, VianoError):
        code, text = error.code, str(error)
    else:
        code, text = storage_code(error) or INTERNAL, f"{type(error).__name__}: {error}"
    return Outcome(bug_id, key, DISK if code in DISK_CODES else "ERROR", code, text, repeated=True)


def check_only(known: Sequence[str], only: Sequence[str]) -> None:
    """Check that every bug id of `--only` is one of the built corpus.

    Raises:
        InputError: `unknown_bug`.
    """
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise InputError(
            "unknown_bug",
            "the built corpus has no such bug",
            where=", ".join(unknown),
            hint="check --only, or build the bug first",
        )
