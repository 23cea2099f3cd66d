"""Runs of a corpus: which revisions belong to a run, working on them in threads, and judging the result.

A run is a file, `HOME/corpora/<corpus>/runs/<run>/run.json`, that fixes the revisions before anything works.
An interrupted run is taken up again: finished cases are read, never repeated; the packages know how far the
others are. One bad case is counted and stops nobody.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from resources.evidence_index import EvidenceIndex
from resources.session import Session
from viano_assets import __version__
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.archives import open_role_archive
from viano_assets.case.assembler import load_case
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.reopening import new_revision
from viano_assets.data_files import PROMPTS
from viano_assets.errors import InputError, VianoError
from viano_assets.evaluation import scoring
from viano_assets.evaluation.calibration import LEVELS
from viano_assets.evaluation.correctness import evidence_correct
from viano_assets.evaluation.report import write_report
from viano_assets.evaluation.snapshot import keep_snapshot, make_snapshot
from viano_assets.evaluation.stored import (
    CorpusFolder,
    calibration_rows,
    known_bug_rows,
    read_document,
    write_document,
)
from viano_assets.package.model import Head
from viano_assets.partitions import CaseRevision, parse_key
from viano_assets.phases.diagnosis.view import case_view
from viano_assets.phases.protocols import DispatchStatus, Phase

REASON = "corpus"
"""Reason in the history of a revision that a corpus run minted."""

MAX_SOURCE_BYTES = 400_000
"""Largest file the BM25 baseline reads; generated tables above it say nothing about a bug."""


class Outcome(NamedTuple):
    """What became of one case of a run; `code` is empty when it has a diagnosis."""

    bug_id: str
    key: str
    status: str
    code: str
    message: str
    repeated: bool


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

    Raises:
        InputError: `corpus_not_built`.
    """

    def __init__(self, session: Session, corpus: str) -> None:
        self.session = session
        self.folder = CorpusFolder(session.home, corpus)
        built = self.folder.built()
        if built is None or not built["bugs"]:
            raise InputError(
                "corpus_not_built",
                "the home holds no case of the corpus",
                where=corpus,
                hint=f"viano corpus build {corpus}",
            )
        self.built = built

    def open_run(self) -> str | None:
        """Return the id of the run that was started and not judged, None when there is none."""
        ids = self.folder.run_ids()
        return ids[-1] if ids and ids[-1] not in self.folder.judged_ids() else None

    def start(self, *, only: Sequence[str] = ()) -> str:
        """Mint the revisions of a new run and fix them in its `run.json`; return its id.

        A current revision that nothing has worked on yet is taken as it is, so that a start that died and is
        repeated mints nothing twice. A damaged package is recorded and left out.
        """
        run_id = self.folder.next_run_id()
        cases: dict[str, str] = {}
        unreadable: dict[str, str] = {}
        for bug in self.built["bugs"]:
            if only and bug["bug_id"] not in only:
                continue
            try:
                head = self.session.store.latest(bug["case_id"])
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
        """Return the `run.json` of a run."""
        return read_document(self.folder.run(run_id, "run.json"))

    def work(
        self, run_id: str, *, threads: int = 2, told: Callable[[Outcome, int, int], None] | None = None
    ) -> list[Outcome]:
        """Carry every case of a run to its diagnosis, or as far as it goes.

        Args:
            run_id: the run.
            threads: cases worked on at once; the gateway bounds the model calls among them.
            told: hears of each finished case, with how many are done of how many.
        """
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
            if case_view(self.session.store, head, revision)["diagnosis"] is not None:
                return Outcome(bug_id, key, DispatchStatus.COMPLETED.value, "", "", repeated=False)
            if head.revision != revision:
                return Outcome(
                    bug_id, key, "LEFT", "revision_passed", "a later revision exists", repeated=False
                )
            result = asyncio.run(self.session.run(case_id, until=Phase.DIAGNOSIS))
        except VianoError as error:
            return Outcome(bug_id, key, "ERROR", error.code, str(error), repeated=True)
        except Exception as error:  # noqa: BLE001 - one bad case never stops the night
            return Outcome(bug_id, key, "ERROR", "defect", f"{type(error).__name__}: {error}", repeated=True)
        code = "" if result.status is DispatchStatus.COMPLETED else result.code or result.status.value.lower()
        return Outcome(bug_id, key, result.status.value, code, result.message, repeated=True)

    def judge(self, run_id: str, outcomes: Sequence[Outcome] = ()) -> dict[str, Any]:
        """Score a run, calibrate it, write its report, publish its rows; return the summary."""
        run = self.run(run_id)
        codes = {item.bug_id: item.code for item in outcomes} | run["unreadable"]
        bugs = {bug["bug_id"]: bug for bug in self.built["bugs"]}
        views = {bug_id: view for bug_id, view in self._views(run) if bug_id in bugs}
        rows: list[dict[str, Any]] = []
        for bug_id in sorted(run["cases"].keys() | run["unreadable"].keys()):
            if bug_id in bugs:
                rows += self._rows(run, bugs[bug_id], views, codes.get(bug_id, ""))
        write_document(self.folder.run(run_id, "scores.json"), {"schema": "corpus-scores-v1", "rows": rows})
        own = [row for row in rows if row["predictor"] == scoring.VIANO]
        snapshot = make_snapshot(run, own, self._levels(views, bugs), run["started_at"])
        keep_snapshot(self.session.home, snapshot)
        index = EvidenceIndex(self.session.home)
        index.publish(run_id, 1, {"evaluations": rows})
        index.publish(snapshot["snapshot_id"], 1, {"calibration": calibration_rows(snapshot)})
        return write_report(self.folder, run, rows, snapshot)

    def _views(self, run: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        for bug_id, key in sorted(run["cases"].items()):
            case_id, revision = parse_key(key)
            try:
                head = self.session.store.latest(case_id)
                yield bug_id, case_view(self.session.store, head, revision)
            except VianoError:
                continue

    def _rows(
        self, run: Mapping[str, Any], bug: Mapping[str, Any], views: Mapping[str, Any], code: str
    ) -> Iterator[dict[str, Any]]:
        bug_id = bug["bug_id"]
        key = run["cases"].get(bug_id)
        shared = {
            **{n: run[n] for n in ("run_id", "corpus", "corpus_sha256", "provider", "prompts_sha256")},
            "code_version": run["code_version"],
            "bug_id": bug_id,
            "case_id": bug["case_id"],
            "partition_key": key,
            "analysis_revision": parse_key(key).revision if key else None,
            **{n: bug.get(n) for n in ("kind", "clue", "language", "verdict")},
        }
        empty: dict[str, Any] = {"diagnosis": None, "localisation": scoring.EMPTY, "evidence": []}
        view = views.get(bug_id)
        own: dict[str, Any] = {"state": None, "error_code": code or None}
        if view is not None:
            spend = view["spend"]
            own |= {
                "package_id": view["package_id"],
                "state": view["state"],
                "grounded": self._grounded(view),
                **{name: spend[name] for name in ("units", "tokens_in", "tokens_out", "cost", "seconds")},
            }
        yield {
            **shared,
            "predictor": scoring.VIANO,
            **scoring.result_columns(view or empty, bug),
            **own,
        }
        yield {
            **shared,
            "predictor": scoring.CONSTANT,
            **scoring.result_columns(scoring.constant_view(), bug),
        }
        names = sorted(views)
        if view is not None and len(names) > 1:
            other = views[names[(names.index(bug_id) + 1 + len(names) // 3) % len(names)]]
            yield {**shared, "predictor": scoring.SHUFFLED, **scoring.result_columns(other, bug)}
        if view is not None:
            ranked = scoring.ranked_view(self._bm25(bug))
            yield {**shared, "predictor": scoring.BM25, **scoring.result_columns(ranked, bug)}

    def _grounded(self, view: Mapping[str, Any]) -> bool | None:
        """Say whether every stored piece of evidence still stands in the inputs; None for old revisions."""
        head = self.session.store.latest(view["case_id"])
        if view["diagnosis"] is None or head.revision != view["analysis_revision"]:
            return None
        return not self.session.verify(view["case_id"])["problems"]

    def _bm25(self, bug: Mapping[str, Any]) -> list[str]:
        """Return the baseline's files; kept beside the corpus, since report and source do not change."""
        kept = self.folder.root / "baselines" / f"{bug['sha256'][:32]}.json"
        if kept.is_file():
            return list(read_document(kept)["files"])
        head = self.session.store.latest(bug["case_id"])
        report = "\n".join(source.text for source in load_case(self.session.store, head, 1).sources)
        files = scoring.bm25_files(report, self._source(head))
        write_document(kept, {"files": files})
        return files

    def _source(self, head: Head) -> Iterator[tuple[str, str]]:
        paths = sorted(path for path in head.raw_inputs() if path.startswith("inputs/source/"))
        for path in paths:
            with tempfile.NamedTemporaryFile(suffix=Path(path).name) as copy:
                with self.session.store.open(head, path) as file:
                    while piece := file.read(1 << 20):
                        copy.write(piece)
                copy.flush()
                with open_role_archive(Path(copy.name), "source", path) as archive:
                    names = [entry.name for entry in archive.entries]
                    top = _top_folder(names)
                    for entry, content in archive.members():
                        if entry.size <= MAX_SOURCE_BYTES:
                            data = content.read()
                            if b"\0" not in data[:1024]:
                                yield entry.name.removeprefix(top), data.decode("utf-8", "replace")

    def _levels(
        self, views: Mapping[str, Mapping[str, Any]], bugs: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, list[tuple[str, bool]]]:
        """Return the (level, right) pairs of assessed hypotheses, as requested and as effective."""
        found: dict[str, list[tuple[str, bool]]] = {"requested": [], "effective": []}
        for bug_id, view in sorted(views.items()):
            gold = scoring.gold_of(bugs[bug_id])
            for item in view["hypotheses"]:
                if not item["support"] and item["effective_confidence"] in {None, "unassessed"}:
                    continue
                right = not gold.is_control and evidence_correct(view, item["support"], gold)
                for name, pairs in found.items():
                    level = item[f"{name}_confidence"]
                    if level in LEVELS:
                        pairs.append((level, right))
        return found


def _top_folder(names: Sequence[str]) -> str:
    tops = {name.split("/", 1)[0] for name in names}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""
