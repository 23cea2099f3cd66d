"""`viano demo` as a newcomer runs it: a real process, an empty home, no configuration."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from viano_assets.data_files import DEMO
from viano_assets.evaluation.correctness import score
from viano_assets.evaluation.gold import read_gold

README = Path(__file__).parents[2] / "README.md"
COMMAND = [sys.executable, "-c", "from viano_assets.cli.main import main; main()", "demo"]


def demo(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run it with the default home, in a terminal of the width that the README was made with."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VIANO_")}
    environment["COLUMNS"] = "112"
    return subprocess.run(
        [*COMMAND, *options],
        capture_output=True,
        text=True,
        env=environment,
        cwd=home.parent,
        check=False,
        timeout=110,
    )


def shown() -> str:
    """Return the output that the README shows."""
    text = README.read_text(encoding="utf-8")
    block = text[text.index("<!-- demo:start -->") : text.index("<!-- demo:end -->")]
    return block.split("```")[1]


def _without_time(text: str) -> str:
    return re.sub(r"[0-9.]+ s$", "N s", text.strip(), flags=re.MULTILINE)


def test_the_demo_ends_in_a_diagnosis_that_verifies_and_replays(tmp_path: Path) -> None:
    home = tmp_path / ".viano"
    first = demo(home)
    assert first.returncode == 0, first.stderr
    for part in ("Diagnosis", "Where", "Evidence", "ruled out", "Not examined", "Spend", "viano sql"):
        assert part in first.stdout
    assert "everything holds" in first.stdout
    assert (home / "reports" / "DEMO-1-r1.html").is_file()

    assert _without_time(first.stdout[first.stdout.index("DEMO-1  revision 1") :]) == _without_time(shown())

    second = demo(home)
    assert second.returncode == 0
    assert "replays it" in second.stdout
    after_head = second.stdout.split("revision 1", 1)[1].split("Spend", 1)[0]
    assert after_head == first.stdout.split("revision 1", 1)[1].split("Spend", 1)[0]
    assert "asking about" not in second.stderr

    view = json.loads(demo(home, "--json").stdout)
    gold = read_gold(json.loads((DEMO / "gold.json").read_text(encoding="utf-8")), "demo")
    scores = score(view, gold)
    assert scores.confirmed
    assert scores.root_cause_correct
    assert any(record["tool"].startswith("db.") for record in view["evidence"])
    stored = b"".join(path.read_bytes() for path in home.rglob("*.html"))
    (canary,) = json.loads((DEMO / "gold.json").read_text(encoding="utf-8"))["canaries"]
    assert canary.encode() not in stored
    assert canary not in first.stdout + first.stderr + json.dumps(view)
