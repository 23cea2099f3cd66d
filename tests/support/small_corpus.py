"""A small known-bug corpus as case folders: two defects and a control about a crane."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.graph import REPORT, SOURCE

GOLD = {
    "verdict": "defect",
    "locations": [{"path": "crane.cpp", "symbol": "lifts_allowed", "lines": [1, 7]}],
}


def write_corpus(folder: Path) -> Path:
    """Write the case folders and return the folder."""
    for number, gold in enumerate((GOLD, GOLD, {"verdict": "insufficient_information", "locations": []}), 1):
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
