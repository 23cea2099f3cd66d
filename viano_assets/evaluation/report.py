"""The report of a corpus run: Markdown with plots, written beside the run and shown in the UI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.errors import PackageError
from viano_assets.evaluation import scoring
from viano_assets.evaluation.calibration import MIN_DECIDED, interval, stored_levels
from viano_assets.evaluation.correctness import RANKS
from viano_assets.evaluation.plots import plots
from viano_assets.evaluation.stored import (
    CorpusFolder,
    is_whole,
    read_document,
    write_bytes,
    write_document,
)
from viano_assets.phases.markdown import code, escape

JUDGED = ("file_any_1", "file_any_5", "symbol_any_1", "symbol_any_5", "row_any_1", "verdict_correct")
"""Columns that two runs are compared in."""

PICTURES = ("reliability", "risk-coverage", "units")
"""Names of the plots: rates per level, risk over coverage, budget versus correctness."""

Rows = Sequence[Mapping[str, Any]]


def share(pair: tuple[int, int]) -> str:
    """Return `right of n`, with the percentage and its 95 % interval from `MIN_DECIDED` cases on."""
    right, n = pair
    if n == 0:
        return "–"
    if n < MIN_DECIDED:
        return f"{right} of {n}"
    low, high = interval(right, n)
    return f"{right} of {n} = {100 * right / n:.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def summary(rows: Rows) -> dict[str, Any]:
    """Return the figures of a run's own rows."""
    defects = [row for row in rows if row["verdict"] == "defect"]
    controls = [row for row in rows if row["verdict"] != "defect"]
    confirmed = [row for row in defects if row["confirmed"]]
    return {
        "cases": len(rows),
        "defects": len(defects),
        "controls": len(controls),
        "failed": sum(row["status"] is None for row in rows),
        "confirmed": len(confirmed),
        "confirmed_right": sum(bool(row["root_cause_correct"]) for row in confirmed),
        "controls_right": sum(bool(row["verdict_correct"]) for row in controls),
        "overclaims": sum(bool(row["overclaim"]) for row in controls),
        "not_grounded": sum(row.get("grounded") is False for row in rows),
        "not_verified": sum(row["status"] is not None and row.get("grounded") is None for row in rows),
        "units": sum(row.get("units") or 0 for row in rows),
    }


def write_report(
    folder: CorpusFolder,
    run: Mapping[str, Any],
    rows: Rows,
    snapshot: Mapping[str, Any],
    unfinished: Sequence[str] = (),
) -> dict[str, Any]:
    """Write `report.md`, its plots and `summary.json`; return the summary.

    `unfinished` are the bugs whose cases could still go on when they were judged.
    """
    own = [row for row in rows if row["predictor"] == scoring.VIANO]
    earlier, before = previous(folder, run)
    compared = compare(before, own)
    whole = is_whole(run)
    figures = {
        **summary(own),
        "run_id": run["run_id"],
        "corpus": run["corpus"],
        "provider": run["provider"],
        "whole": whole,
        "unfinished": list(unfinished),
        "snapshot_id": snapshot["snapshot_id"] if whole else None,
        "compared_with": earlier,
        "worse": sorted(name for name, test in compared.items() if test.is_worse),
    }
    text = _markdown(run, rows, own, snapshot, figures, compared)
    run_id = str(run["run_id"])
    write_bytes(folder.run(run_id, "report.md"), text.encode())
    for name, picture in plots(own, snapshot).items():
        write_bytes(folder.run(run_id, f"{name}.png"), picture)
    write_document(folder.run(run_id, "summary.json"), figures)
    return figures


def previous(folder: CorpusFolder, run: Mapping[str, Any]) -> tuple[str | None, list[Mapping[str, Any]]]:
    """Return the last whole judged run of the same provider before `run`, with Viano's rows.

    One whose scores are damaged is passed over; (None, []) when there is none.
    """
    for earlier in reversed(folder.runs_of(str(run["provider"]), before=str(run["run_id"]))):
        run_id = str(earlier["run_id"])
        try:
            if folder.run(run_id, "scores.json").is_file() and (rows := own_rows(folder, run_id)):
                compare(rows, rows)
                return run_id, rows
        except (PackageError, KeyError):
            continue
    return None, []


def own_rows(folder: CorpusFolder, run_id: str) -> list[Mapping[str, Any]]:
    """Return Viano's rows of a judged run."""
    rows = read_document(folder.run(run_id, "scores.json"))["rows"]
    return [row for row in rows if row["predictor"] == scoring.VIANO]


def compare(before: Rows, own: Rows) -> dict[str, scoring.Paired]:
    """Return the paired test of every judged column; empty without an earlier run."""
    return {name: scoring.paired(before, own, name) for name in JUDGED} if before else {}


def _markdown(
    run: Mapping[str, Any],
    rows: Rows,
    own: Rows,
    snapshot: Mapping[str, Any],
    figures: Mapping[str, Any],
    compared: Mapping[str, scoring.Paired],
) -> str:
    control_rows = [row for row in own if row["verdict"] != "defect"]
    what = (
        f"{counted(figures['cases'], 'case')} "
        f"({counted(figures['defects'], 'defect')}, {counted(figures['controls'], 'control')})"
    )
    versions = f"prompts `{run['prompts_sha256'][:12]}`, Viano {run['code_version']}"
    kept = f"calibration `{figures['snapshot_id']}`" if figures["snapshot_id"] else "no calibration kept"
    hashes = f"corpus `{run['corpus_sha256'][:12]}`, {kept}"
    right = share((figures["confirmed_right"], figures["confirmed"]))
    coverage = share((figures["confirmed"], figures["defects"]))
    confirmed = f"{coverage} of the defects (coverage); right among them: {right}"
    controls = share(scoring.rate(control_rows, "verdict_correct"))
    lines = [
        f"# Corpus {run['corpus']}, run {run['run_id']}",
        "",
        f"{what}, provider {code(str(run['provider']))}, {versions}, {hashes}.",
        "",
        *_reservations(run, figures),
        f"- confirmed: {confirmed if figures['defects'] else 'there is no defect to confirm'}",
        f"- controls judged rightly: {controls}; overclaims: {figures['overclaims']}"
        if figures["controls"]
        else "- controls: there are none",
        f"- without diagnosis: {figures['failed']}; {_evidence(figures)}",
        "",
        "## Places, beside the baselines on the same cases",
        "",
        *_places(rows),
        "",
        "## By kind and by clue (Viano)",
        "",
        *_strata(own),
        "",
        "## Calibration",
        "",
        *_calibration(snapshot),
        "",
        " ".join(f"![{name}]({name}.png)" for name in PICTURES),
    ]
    if compared:
        same = "the last whole run of this provider profile before this one"
        lines += ["", f"## Against {figures['compared_with']} (McNemar, exact)", "", f"It is {same}.", ""]
        lines += ["| column | better | worse | cases | p |", "| --- | --- | --- | --- | --- |"]
        lines += [f"| {n} | {t.better} | {t.worse} | {t.both} | {t.p:.3f} |" for n, t in compared.items()]
    lines += ["", "## Cases", "", *_cases(own)]
    return "\n".join(lines) + "\n"


def _evidence(figures: Mapping[str, Any]) -> str:
    found = f"evidence that does not verify: {figures['not_grounded']}"
    unknown = figures["not_verified"]
    return f"{found}; not verified, since the case has a later revision: {unknown}" if unknown else found


def _reservations(run: Mapping[str, Any], figures: Mapping[str, Any]) -> list[str]:
    lines = []
    if not figures["whole"]:
        lines.append(
            "Partial run (`--only`): no diagnosis quotes its rates and no later run is compared with it."
        )
    if figures["unfinished"]:
        names = ", ".join(map(escape, figures["unfinished"]))
        lines.append(
            f"Judged before its end; not finished: {names}. To judge it again: "
            f"`viano corpus judge {run['corpus']} --run {run['run_id']}`"
        )
    return [part for line in lines for part in (line, "")]


def without_pictures(text: str) -> str:
    """Return a report without its links to picture files, for a page that shows the plots by themselves."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("!["))


def _places(rows: Rows) -> list[str]:
    columns = [f"{k}@{n}" for k in ("file", "symbol", "row") for n in RANKS]
    lines = ["| predictor | gold | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 2) + "|"]
    for predictor in (scoring.VIANO, scoring.BM25, scoring.CONSTANT, scoring.SHUFFLED):
        chosen = [row for row in rows if row["predictor"] == predictor]
        for how in ("any", "all"):
            cells = []
            for kind in ("file", "symbol", "row"):
                for k in RANKS:
                    right, n = scoring.rate(chosen, f"{kind}_{how}_{k}")
                    cells.append(f"{right}/{n}" if n else "–")
            lines.append(f"| {predictor} | {how} | " + " | ".join(cells) + " |")
    return lines


def _strata(own: Rows) -> list[str]:
    lines = [
        "| stratum | cases | confirmed | root cause right | file@1 | symbol@1 | row@1 | verdict right |",
        "| --- " * 8 + "|",
    ]
    for column in ("verdict", "kind", "clue", "language"):
        for value in sorted({str(row[column]) for row in own if row[column] is not None}):
            chosen = [row for row in own if str(row[column]) == value]
            names = ("root_cause_correct", "file_any_1", "symbol_any_1", "row_any_1", "verdict_correct")
            cells = [f"{right}/{n}" if n else "–" for right, n in (scoring.rate(chosen, m) for m in names)]
            confirmed = sum(bool(row["confirmed"]) for row in chosen)
            lines.append(
                f"| {column} {escape(value)} | {len(chosen)} | {confirmed} | " + " | ".join(cells) + " |"
            )
    return lines


def calibration_table(snapshot: Mapping[str, Any], subject: str) -> str:
    """Return one subject of a snapshot as a Markdown page: its levels, then its summary figures."""
    lines = [f"### {subject}", "", *_HEAD, *_levels(snapshot, subject), *_figures(snapshot, subject)]
    return "\n".join(lines) + "\n"


_HEAD = ("| subject | level | right of n | pooled with | rate | 95 % interval |", "| --- " * 6 + "|")


def _calibration(snapshot: Mapping[str, Any]) -> list[str]:
    subjects = sorted(snapshot["subjects"])
    rows = [line for subject in subjects for line in _levels(snapshot, subject)]
    return [*_HEAD, *rows, *(line for subject in subjects for line in _figures(snapshot, subject))]


def _levels(snapshot: Mapping[str, Any], subject: str) -> list[str]:
    lines = []
    for item in stored_levels(snapshot["subjects"][subject]):
        if item["n"]:
            known = item["rate"] is not None
            rate = f"{item['rate']:.2f}" if known else f"n < {MIN_DECIDED}"
            span = f"{item['low']:.2f}–{item['high']:.2f}" if known else "–"
            others = ", ".join(item["pooled_with"])
            block = f"{others}: {item['pooled_right']} of {item['pooled_n']}" if others else "–"
            counts = f"{item['right']} of {item['n']}"
            lines.append(f"| {subject} | {item['level']} | {counts} | {block} | {rate} | {span} |")
    return lines


def _figures(snapshot: Mapping[str, Any], subject: str) -> list[str]:
    measured = snapshot["subjects"][subject]
    if measured["ece"] is None:
        return []
    figures = "; ".join(
        f"{name} {measured[key]:.3f}" if measured[key] is not None else f"{name} –"
        for name, key in (
            ("ECE", "ece"), ("null band up to", "null_high"), ("Brier", "brier"),
            ("skill", "brier_skill"), ("AUROC", "auroc"), ("AURC", "aurc"),
            ("lower bound of supported and above", "top_lower_bound"),
        )
    )  # fmt: skip
    return ["", f"{subject}: {figures}"]


def _cases(own: Rows) -> list[str]:
    lines = ["| bug | gold | answer | confidence | file@1 | symbol@1 | row@1 | units |", "| --- " * 8 + "|"]
    mark = {True: "yes", False: "no", None: "–"}
    for row in own:
        answer = row["error_code"] or row["status"] or "none"
        if row["inconclusive_kind"]:
            answer = f"{answer}: {row['inconclusive_kind']}"
        hits = " | ".join(mark[row[name]] for name in ("file_any_1", "symbol_any_1", "row_any_1"))
        confidence = row["effective_confidence"] or "–"
        lines.append(
            f"| {escape(row['bug_id'])} | {escape(row['verdict'])} | {escape(answer)} | {escape(confidence)} "
            f"| {hits} | {'–' if row.get('units') is None else row['units']} |"
        )
    return lines
