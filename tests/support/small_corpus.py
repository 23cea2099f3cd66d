"""A small known-bug corpus as case folders: two defects and a control about a crane."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from resources.corpus_runs import CorpusRuns
from resources.session import Session
from tests.support.graph import REPORT, SOURCE
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.package.store import CheckpointStore

GOLD = {
    "verdict": "defect",
    "locations": [{"path": "crane.cpp", "symbol": "lifts_allowed", "lines": [1, 7]}],
}


def write_corpus(folder: Path, count: int = 3) -> Path:
    """Write the first case folders and return the folder."""
    control = {"verdict": "insufficient_information", "locations": []}
    for number, gold in enumerate((GOLD, GOLD, control)[:count], 1):
        case = folder / f"CRANE-{number}"
        (case / "source").mkdir(parents=True)
        (case / "source" / "crane.cpp").write_text(SOURCE, encoding="utf-8")
        (case / "source" / "main.cpp").write_text("int main() { return 0; }\n", encoding="utf-8")
        text = REPORT if gold is GOLD else "# It stops\n\n## Observed\nSomething stops.\n"
        (case / "report.md").write_text(text.replace("17", f"{16 + number}"), encoding="utf-8")
        (case / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
        (case / "bug.toml").write_text(
            f'id = "CRANE-{number}"\ntitle = "Crane stops"\nkind = "code"\nlanguage = "en"\n'
            'origin = "written"\nsplit = "development"\ncontrol = false\n',
            encoding="utf-8",
        )
    return folder


def build_small(home: Path, bugs: Path, name: str = "small", count: int = 3) -> CorpusFolder:
    """Write the small corpus to `bugs`, build it into a home and return its folder there."""
    chosen = corpus_of_folder(name, write_corpus(bugs, count))
    built = build_corpus(CheckpointStore(home), home, chosen, cache=bugs.parent)
    assert built.skipped == ()
    return CorpusFolder(home, name)


def run_small(
    home: Path, name: str = "small", *, only: Sequence[str] = (), provider: str | None = None
) -> str:
    """Run a built corpus to its end, judge it, and return the run's id."""
    runs = CorpusRuns(Session.open(home, provider=provider), name)
    run_id = runs.start(only=only)
    runs.judge(run_id, runs.work(run_id))
    return run_id
