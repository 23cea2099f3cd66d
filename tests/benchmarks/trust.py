"""`make bench NAME=trust`: the table and the plot of docs/trust.md from a real run of two corpora.

`generated` (every family, variant and twin of tests/corpus for three seeds) and `pypi-bugs` run through all
phases with the offline provider in `VIANO_TRUST_HOME` (default: a fresh folder; a named one is kept, and an
interrupted run goes on). Where no archive can be had, `pypi-bugs` is left out and the page stays as it is.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resources.corpus_runs import CorpusRuns
from resources.session import Session
from tests.corpus.generate import write_every
from viano_assets.evaluation.calibration import LEVELS, interval
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder, find_corpora
from viano_assets.evaluation.recipes import archive_cache
from viano_assets.evaluation.report import own_rows, share, summary
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.package.store import CheckpointStore

SEEDS = (811, 812, 813)
CORPORA = ("generated", "pypi-bugs")
DOCS = Path(__file__).parents[2] / "docs"
START, END = "<!-- trust:start -->", "<!-- trust:end -->"

Rows = Sequence[Mapping[str, Any]]


def write_bugs(folder: Path) -> Path:
    """Write the generated cases and return the folder."""
    for _ in write_every(SEEDS, folder):
        pass
    return folder


def judged_run(home: Path, name: str) -> str | None:
    """Build and run a corpus as far as it is not yet, and return the id of its judged run."""
    folder = CorpusFolder(home, name)
    if folder.built() is None:
        with tempfile.TemporaryDirectory(prefix="viano-trust-") as bugs:
            generated = name == "generated"
            chosen = corpus_of_folder(name, write_bugs(Path(bugs))) if generated else find_corpora()[name]
            build_corpus(CheckpointStore(home), home, chosen, cache=archive_cache(home), told=_tell)
    built = folder.built()
    if built is None or not built["bugs"]:
        return None
    judged = folder.judged_ids()
    if judged:
        return judged[-1]
    runs = CorpusRuns(Session.open(home), name)
    run_id = runs.open_run() or runs.start()
    outcomes = runs.work(run_id, told=lambda item, done, of: _tell(f"{done} of {of}  {item.bug_id}"))
    runs.judge(run_id, outcomes)
    return run_id


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")


def levels(rows: Rows) -> list[tuple[str, int, int]]:
    """Return per level that was reached: its name, right and all confirmed cases, controls among them."""
    found = []
    for level in reversed(LEVELS):
        chosen = [row for row in rows if row["confirmed"] and row["effective_confidence"] == level]
        if chosen:
            found.append((level, sum(bool(row["root_cause_correct"]) for row in chosen), len(chosen)))
    return found


def table(measured: Mapping[str, Rows]) -> str:
    """Return the Markdown table of the page."""
    heads = (
        "corpus", "cases", "confirmed at", "right, of so many confirmed", "defects confirmed at all",
        "controls confirmed by mistake",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for name, rows in measured.items():
        figures = summary(rows)
        coverage = share((figures["confirmed"], figures["defects"]))
        mistakes = f"{figures['overclaims']} of {figures['controls']}"
        for number, (level, right, n) in enumerate(levels(rows) or [("–", 0, 0)]):
            first = (name, str(figures["cases"]), coverage, mistakes) if number == 0 else ("", "", "", "")
            lines.append(
                f"| {first[0]} | {first[1]} | {level} | {share((right, n))} | {first[2]} | {first[3]} |"
            )
    return "\n".join(lines)


def plot(measured: Mapping[str, Rows]) -> bytes:
    """Plot the share right per level with its 95 % interval, one colour per corpus."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    for number, (name, rows) in enumerate(measured.items()):
        colour, marker = f"C{number}", "os"[number % 2]
        for level, right, n in levels(rows):
            low, high = interval(right, n)
            at, middle = LEVELS.index(level) + (number - 0.5) * 0.18, right / n
            axes.errorbar([at], [middle], [[middle - low], [high - middle]], fmt=marker, color=colour)
            axes.annotate(f"{right} of {n}", (at + 0.04, middle), fontsize=8, va="center")
        axes.plot([], [], marker, color=colour, label=name)
    axes.set_xticks(range(len(LEVELS)), [name.replace("_", "\n") for name in LEVELS], fontsize=8)
    axes.set(ylim=(-0.03, 1.05), xlim=(-0.5, len(LEVELS) - 0.3), ylabel="confirmed cases that are right")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="upper left", fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def main() -> dict[str, object]:
    """Run the corpora, write the page's table and plot, and return the figures."""
    named = os.environ.get("VIANO_TRUST_HOME")
    with tempfile.TemporaryDirectory(prefix="viano-trust-") as fresh:
        home = Path(named or fresh)
        runs = {name: judged_run(home, name) for name in CORPORA}
        measured = {
            name: own_rows(CorpusFolder(home, name), run_id)
            for name, run_id in runs.items()
            if run_id is not None
        }
    if set(measured) == set(CORPORA):
        page = DOCS / "trust.md"
        before, after = page.read_text(encoding="utf-8").split(START)
        text = f"{before}{START}\n{table(measured)}\n\n![share right per level](trust.png)\n{END}"
        page.write_text(text + after.split(END)[1], encoding="utf-8")
        (DOCS / "trust.png").write_bytes(plot(measured))
    return {
        name.replace("-", "_"): {
            **summary(rows),
            "levels": {level: f"{right} of {n}" for level, right, n in levels(rows)},
        }
        for name, rows in measured.items()
    }
