"""The pages say what the code does: every gate, error code and named test exists, and none is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
TABLE = (ROOT / "docs" / "contracts" / "seed-000.md").read_text(encoding="utf-8")
ROOMS = (ROOT / "viano_assets/phases/diagnosis", ROOT / "viano_assets/phases/change_request")


def _sources(*names: str) -> Iterable[str]:
    for room in ROOMS:
        for path in sorted(room.glob("*.py")):
            if not names or path.name in names:
                yield path.read_text(encoding="utf-8")


def test_every_gate_is_documented() -> None:
    source = (ROOMS[0] / "rules.py").read_text() + (ROOMS[0] / "text_rules.py").read_text()
    categories = set(re.findall(r'_issue\(\s*(?:f?"[^"]*"|path),\s*"([a-z_]+)"', source))
    assert len(categories) > 30
    assert {name for name in categories if f"`{name}`" not in PAGE} == set()


def test_every_error_code_is_documented() -> None:
    codes = {
        code
        for source in (*_sources(), (ROOT / "viano_assets/case/outbox.py").read_text())
        for code in re.findall(
            r'(?:Error|blocked)\(\s*(?:self\._store,\s*head,\s*PHASE,\s*)?"([a-z_]+)"', source
        )
    }
    assert {"phase_missing", "diagnosis_broken", "output_invalid", "outbox_empty"} <= codes
    internal = {"context_lost"}
    assert {code for code in codes - internal if f"`{code}`" not in PAGE} == set()


def test_every_named_test_exists() -> None:
    here = Path(__file__).parent
    files = {
        "rules": here / "test_rules.py",
        "builder": here / "test_builder.py",
        "claims": here / "test_claims.py",
    }
    named = re.findall(r"`([\w./]+?)(?:\.py)?::(test_\w+)(?:\[([^\]]+)\])?", TABLE)
    assert len(named) > 50
    for room, name, case in named:
        path = files.get(room, here / f"{room}.py")
        source = path.read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{room}::{name}"
        if case and case not in {"started", "quote …"}:
            assert f'"{case}"' in source, f"{room}::{name}[{case}]"


def test_every_part_named_after_the_first_exists() -> None:
    source = (Path(__file__).parent / "test_rules.py").read_text(encoding="utf-8")
    for case in re.findall(r", `\[([^\]]+)\]`", TABLE):
        assert f'"{case}"' in source, case
