"""Judges a corpus run: scores by code, baselines, calibration, report, rows of the index.

Everything that is derived is written before `scores.json`: a run whose judging failed anywhere is not judged
and can be judged again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from resources.corpus_standing import Stage, Standing, standings
from resources.evidence_index import EvidenceIndex
from resources.session import Session
from viano_assets.case.archives import open_role_archive
from viano_assets.case.assembler import load_case
from viano_assets.errors import BlockedError, PackageError, VianoError
from viano_assets.evaluation import scoring
from viano_assets.evaluation.calibration import LEVELS
from viano_assets.evaluation.correctness import evidence_correct
from viano_assets.evaluation.report import write_report
from viano_assets.evaluation.snapshot import keep_snapshot, make_snapshot
from viano_assets.evaluation.stored import (
    CorpusFolder,
    calibration_rows,
    is_whole,
    read_document,
    write_document,
)
from viano_assets.package.model import Head
from viano_assets.partitions import parse_key
from viano_assets.phases.diagnosis.view import case_view

MAX_SOURCE_BYTES = 400_000
"""Largest file the BM25 baseline reads; generated tables above it say nothing about a bug."""

NAMED = 5
"""Most unfinished cases that a refusal names."""

Told = Callable[[str], None]


class Judge:
    """Judges the runs of one built corpus.

    Args:
        session: the opened home.
        folder: the corpus.
        built: its `corpus.json`.
        told: hears in words how far the judging is.
    """

    def __init__(
        self, session: Session, folder: CorpusFolder, built: Mapping[str, Any], told: Told = lambda _: None
    ) -> None:
        self.session = session
        self.folder = folder
        self.bugs = {bug["bug_id"]: bug for bug in built["bugs"]}
        self.told = told
        self._verified: dict[str, Any] = {}

    def judge(
        self, run: Mapping[str, Any], failed: Mapping[str, str], *, as_it_stands: bool
    ) -> dict[str, Any]:
        """Score a run, calibrate it, write its report, publish its rows; return the summary.

        Args:
            run: its `run.json`.
            failed: bugs whose cases were tried to the end and have no diagnosis, with the code.
            as_it_stands: judge although cases could still go on; one in work is waited for all the same.

        Raises:
            BlockedError: `corpus_run_open`.
        """
        run_id = str(run["run_id"])
        stages = standings(self.session.store, run, self.bugs)
        unfinished = self._unfinished(run, stages, failed, as_it_stands=as_it_stands)
        codes = {bug_id: _code(stage, failed.get(bug_id, "")) for bug_id, stage in stages.items()}
        codes |= run["unreadable"]
        self._verified = self._verified_before(run_id)
        views = dict(self._views(run, stages, codes))
        rows = self._all_rows(run, views, codes)
        own = [row for row in rows if row["predictor"] == scoring.VIANO]
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        snapshot = make_snapshot(run, own, self._levels(views), made_at)
        index = EvidenceIndex(self.session.home)
        index.publish(run_id, 1, {"evaluations": rows})
        figures = write_report(self.folder, run, rows, snapshot, unfinished)
        if is_whole(run):
            kept = read_document(keep_snapshot(self.session.home, snapshot), "snapshot")
            index.publish(kept["snapshot_id"], 1, {"calibration": calibration_rows(kept)})
        write_document(self.folder.run(run_id, "scores.json"), {"schema": "corpus-scores-v1", "rows": rows})
        return figures

    def _unfinished(
        self,
        run: Mapping[str, Any],
        stages: Mapping[str, Standing],
        failed: Mapping[str, str],
        *,
        as_it_stands: bool,
    ) -> list[str]:
        """Return the bugs whose cases could still go on; raise when that must not be judged."""
        working = [
            bug_id
            for bug_id, stage in stages.items()
            if stage.stage is not Stage.OUT
            and stage.stage is not Stage.DONE
            and self.session.store.in_work(parse_key(run["cases"][bug_id]).case_id)
        ]
        left = [
            bug_id
            for bug_id, stage in stages.items()
            if not stage.is_settled and not (stage.stage is Stage.OPEN and bug_id in failed)
        ]
        open_ = sorted({*working, *([] if as_it_stands else left)})
        if open_:
            more = f" and {len(open_) - NAMED} more" if len(open_) > NAMED else ""
            name = self.folder.corpus
            goes_on = (
                f"continue it: viano corpus run {name}; or "
                if self.folder.open_run() == run["run_id"]
                else ""
            )
            raise BlockedError(
                "corpus_run_open",
                f"{len(open_)} of {len(stages)} cases are not finished: {', '.join(open_[:NAMED])}{more}",
                where=str(run["run_id"]),
                hint=f"{goes_on}judge what is there: "
                f"viano corpus judge {name} --run {run['run_id']} --as-it-stands",
            )
        return left

    def _all_rows(
        self, run: Mapping[str, Any], views: Mapping[str, Any], codes: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        names = sorted((run["cases"].keys() | run["unreadable"].keys()) & self.bugs.keys())
        rows: list[dict[str, Any]] = []
        for number, bug_id in enumerate(names, 1):
            rows += self._rows(run, self.bugs[bug_id], views, codes.get(bug_id, ""))
            self.told(f"{number} of {len(names)} judged {bug_id}")
        return rows

    def _views(
        self, run: Mapping[str, Any], stages: Mapping[str, Standing], codes: dict[str, str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the views of the readable cases; `codes` gets why another one has none."""
        for bug_id, key in sorted(run["cases"].items()):
            if bug_id not in self.bugs or stages[bug_id].code == "case_not_of_corpus":
                continue
            case_id, revision = parse_key(key)
            try:
                head = self.session.store.latest(case_id)
                yield bug_id, case_view(self.session.store, head, revision)
            except VianoError as error:
                codes[bug_id] = error.code

    def _rows(
        self, run: Mapping[str, Any], bug: Mapping[str, Any], views: Mapping[str, Any], code: str
    ) -> Iterator[dict[str, Any]]:
        bug_id = bug["bug_id"]
        key = run["cases"].get(bug_id)
        shared = {
            **{n: run[n] for n in ("run_id", "corpus", "corpus_sha256", "provider", "prompts_sha256")},
            "code_version": run["code_version"],
            "whole_run": is_whole(run),
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
                "grounded": self._grounded(view, str(key)),
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
            try:
                ranked = scoring.ranked_view(self._bm25(bug))
            except VianoError:
                return
            yield {**shared, "predictor": scoring.BM25, **scoring.result_columns(ranked, bug)}

    def _verified_before(self, run_id: str) -> dict[str, Any]:
        """Return by partition what an earlier judging of the run found out about its evidence."""
        path = self.folder.run(run_id, "scores.json")
        try:
            rows = read_document(path)["rows"] if path.is_file() else []
        except PackageError:
            return {}
        own = [row for row in rows if row["predictor"] == scoring.VIANO]
        return {str(row.get("partition_key")): row.get("grounded") for row in own}

    def _grounded(self, view: Mapping[str, Any], key: str) -> bool | None:
        """Say whether every stored piece of evidence still stands in the inputs.

        Only the newest revision of a case can be verified; an older one keeps what was found out before, None
        when nothing was.
        """
        head = self.session.store.latest(view["case_id"])
        if view["diagnosis"] is None:
            return None
        if head.revision != view["analysis_revision"]:
            known = self._verified.get(key)
            return known if isinstance(known, bool) else None
        try:
            return not self.session.verify(view["case_id"])["problems"]
        except VianoError:
            return False

    def _bm25(self, bug: Mapping[str, Any]) -> list[str]:
        """Return the baseline's files; kept beside the corpus, since report and source do not change."""
        kept = self.folder.root / "baselines" / f"{bug['sha256'][:32]}.json"
        if kept.is_file():
            try:
                return list(map(str, read_document(kept, "baseline")["files"]))
            except PackageError:
                kept.unlink(missing_ok=True)
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

    def _levels(self, views: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, bool]]]:
        """Return the (level, right) pairs of assessed hypotheses, as requested and as effective."""
        found: dict[str, list[tuple[str, bool]]] = {"requested": [], "effective": []}
        for bug_id, view in sorted(views.items()):
            gold = scoring.gold_of(self.bugs[bug_id])
            for item in view["hypotheses"]:
                if not item["support"] and item["effective_confidence"] in {None, "unassessed"}:
                    continue
                right = not gold.is_control and evidence_correct(view, item["support"], gold)
                for name, pairs in found.items():
                    level = item[f"{name}_confidence"]
                    if level in LEVELS:
                        pairs.append((level, right))
        return found


def _code(stage: Standing, failed: str) -> str:
    """Return why a case has no diagnosis: what its work ended with, else what its package says."""
    if stage.stage is Stage.DONE:
        return ""
    return failed or stage.code


def _top_folder(names: Sequence[str]) -> str:
    tops = {name.split("/", 1)[0] for name in names}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""
