"""What the model is shown: a stable beginning, an append-only history, then the turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.investigating import whole_loop
from tests.support.turn_answers import action, answer, turn_of
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.scheduling import select
from viano_assets.phases.protocols import ModelRequest

ROOT = Path(__file__).parents[3]


class Recorder:
    """Keeps the requests of a loop in which two hypotheses look at the same lines."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Mapping[str, Any]:
        self.requests.append(request)
        turn = turn_of(request)
        looks = [action("source.search", pattern="hook"), action("log.search", pattern="stage")]
        first = turn["first_turn"]
        return answer(turn, actions=looks[:1] if first else [], finish=not first)


def recorded() -> Recorder:
    script = Recorder()
    whole_loop(script)
    return script


def test_every_request_begins_with_the_whole_of_the_one_before() -> None:
    requests = recorded().requests
    for earlier, later in pairwise(requests):
        stable = earlier.messages[: earlier.stable_messages]
        assert stable == earlier.messages[:-1]
        assert later.messages[: len(stable)] == stable
        assert later.stable_messages == earlier.stable_messages + 1
        assert later.json_schema == earlier.json_schema
    assert [m.role for m in requests[0].messages] == ["system", *["user"] * 5]
    names = ["case", "interpretation", "registry", "tools", "turn"]
    assert [name for name in names if len(requests[0].sections(name)) == 1] == names


def test_the_history_holds_every_result_once_and_one_call_is_made_per_dispatch() -> None:
    requests = recorded().requests
    history = requests[-1].sections("history")
    assert [item["dispatch"] for item in history] == list(range(1, len(requests)))
    items = [item for h in history for a in h["actions"] for item in a["evidence"]]
    shown = [item["evidence_id"] for item in items if "content" in item]
    assert len(shown) == len(set(shown))
    assert [item["evidence_id"] for item in items if item.get("repeated")] == ["E1", "E1"]


def test_the_schema_holds_each_tool_with_its_own_arguments() -> None:
    schema = recorded().requests[0].json_schema
    options = schema["properties"]["next"]["properties"]["actions"]["items"]["anyOf"]
    arguments = {
        option["properties"]["tool"]["const"]: option["properties"]["arguments"] for option in options
    }
    assert sorted(arguments) == ["db.rows", "log.search", "source.read", "source.search"]
    assert arguments["log.search"]["required"] == ["pattern"]
    assert "$ref" not in str(schema)


def test_every_test_named_for_the_seed_exists() -> None:
    table = (ROOT / "docs/contracts/seed-004.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:T|tests)/[\w/]+\.py)::(\w+)`", table)
    assert len(named) > 20
    for path, name in named:
        file = ROOT / path.replace("T/", "tests/phases/investigation/", 1) if path[0] == "T" else ROOT / path
        assert f"def {name}(" in file.read_text(encoding="utf-8"), f"{path}::{name}"


def test_the_documentation_names_every_gate() -> None:
    rules = (ROOT / "viano_assets/phases/investigation/rules.py").read_text(encoding="utf-8")
    page = (ROOT / "docs/investigation.md").read_text(encoding="utf-8")
    categories = set(re.findall(r'_issue\(\s*(?:f?"[^"]*"|path),\s*"(\w+)"', rules))
    assert len(categories) >= 17
    assert {name for name in categories if f"`{name}`" not in page} == set()


def test_the_turn_states_what_is_left() -> None:
    """Two low scores of three, on the last but one and the last dispatch of five."""
    seen: list[dict[str, Any]] = []

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        seen.append(turn["limits"])
        looks = [action("source.search", pattern=f"p{turn['dispatch']}")]
        return answer(turn, score=0, actions=looks if turn["limits"]["max_actions"] else [])

    record = whole_loop(script, InvestigationConfig(dispatch_limit=5), titles=("Only one",))
    assert [item["dispatches_left"] for item in seen] == [4, 3, 2, 1]
    assert [item["max_actions"] for item in seen] == [1, 4, 4, 4]
    assert [item["low_information_left"] for item in seen] == [3, 3, 2, 1]
    assert [item["units"] for item in seen] == [100, 97, 94, 91]
    assert {item["cheapest_action"] for item in seen} == {2}
    assert select(record.loop.state, record.loop.ledger) is None


def test_the_last_dispatch_allows_no_look() -> None:
    limits: list[int] = []

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        limits.append(turn["limits"]["max_actions"])
        looks = [action("source.search", pattern=f"p{turn['dispatch']}")]
        return answer(turn, score=100, actions=looks if limits[-1] else [])

    record = whole_loop(script, InvestigationConfig(dispatch_limit=3), titles=("Only one",))
    assert limits == [1, 4, 0]
    assert record.document.reason == "dispatch_limit"
