"""The tables sentence → test name every rule of the list, and every test they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.deep._planning_rules import RULES, SEED_001, SEED_003, Rule

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d{3}-\d{2}) \| .+ \| `([a-z_.]+)` \| `([a-z0-9_./]+)::(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize(("seed", "rules"), [("001", SEED_001), ("003", SEED_003)])
def test_the_table_lists_exactly_the_rules(seed: str, rules: tuple[Rule, ...]) -> None:
    text = (ROOT / "docs" / "contracts" / f"seed-{seed}.md").read_text(encoding="utf-8")
    rows = [(i, f"viano_assets.{m}", f"tests/phases/{f}::{t}") for i, m, f, t in ROW.findall(text)]
    assert rows == [(rule.id, rule.module, rule.test) for rule in rules]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_rule_stands_in_the_code_and_its_test_exists(rule: Rule) -> None:
    source = (ROOT / (rule.module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
    assert source.count(rule.old) == 1
    file, name = rule.test.split("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
