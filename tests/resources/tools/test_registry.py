# ruff: noqa: E501 - one look a line
"""The registry: one list of names, arguments checked, failures as results, absence typed in every tool."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.tools.opening import open_inputs
from resources.tools.registry import ALL_SPECS, TOOL_NAMES, CaseToolBox, ToolBoxFactory
from tests.support.data_case import imported
from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.evidence.model import Completeness
from viano_assets.evidence.store import EvidenceStore, usable_absence
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore

DOCS = Path(__file__).parents[3] / "docs" / "tools.md"
Harbour = tuple[CheckpointStore, Head, CaseToolBox]


def test_every_tool_and_cause_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for name in TOOL_NAMES:
        assert f"`{name}`" in text or (name.startswith("source.") and "`source.*`" in text), name
    root = Path(__file__).parents[3] / "resources" / "tools"
    sources = [*root.glob("*.py"), *root.glob("database/*.py"), *root.glob("logs/*.py")]
    causes = {c for p in sources for c in re.findall(r'cause="([a-z_]+)"', p.read_text(encoding="utf-8"))}
    assert causes
    assert not [cause for cause in causes if f"`{cause}`" not in text]


def test_names_are_unique_and_schemas_are_closed() -> None:
    assert len(TOOL_NAMES) == len(ALL_SPECS)
    for spec in ALL_SPECS:
        assert spec.arguments["type"] == "object"
        assert spec.arguments["additionalProperties"] is False
        assert spec.cost > 0
        assert "$ref" not in canonical_json(dict(spec.arguments)).decode()


def test_a_case_without_an_input_does_not_offer_its_tools(tmp_path: Path) -> None:
    from viano_assets.case.intake import import_case

    report = tmp_path / "r.md"
    report.write_text("# It stops\nNothing happens.\n", encoding="utf-8")
    store = CheckpointStore(tmp_path / "home")
    head = import_case(store, case_id="BARE", report=report)
    box = ToolBoxFactory(tmp_path / "cache").open(store, head)
    assert [spec.name for spec in box.specs()] == ["case.read"]
    assert box.check("db.schema", {}) == "db.schema has nothing to look at in this case"
    for name in TOOL_NAMES - {"case.read"}:
        result = box.run(name, {})
        assert (result.completeness, result.empty) == (Completeness.UNAVAILABLE, True)
    assert box.overview()["source"] is None


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("nothing.here", {}),
        ("db.rows", {"table": "crane", "where": "id = 1"}),
        ("db.rows", {"table": "crane", "limit": "3"}),
        ("db.rows", {"table": "crane", "limit": 10_000}),
        ("db.query", {"sql": "SELECT 1", "timeout": 1}),
        ("db.neighbours", {"table": "crane", "key": {}}),
        ("log.search", {"pattern": ""}),
        ("log.search", {}),
        ("case.read", {"source_id": 1}),
        ("source.read", {"path": "../etc/passwd", "line_start": 1, "line_end": 2}),
        ("db.rows", {"table": "crane", "where": [{"column": "id", "op": "has_bits", "value": "x"}]}),
    ],
)
def test_arguments_outside_the_contract_are_refused(
    box: CaseToolBox, tool: str, arguments: dict[str, Any]
) -> None:
    assert box.check(tool, arguments)
    result = box.run(tool, arguments)
    assert result.completeness is Completeness.UNAVAILABLE
    assert result.empty


def test_the_overview_says_what_is_there(box: CaseToolBox) -> None:
    overview = box.overview()
    tables = {t["table"]: t["completeness"] for t in overview["database"]["tables"]}
    assert tables == {
        "account": "full", "berth": "filtered", "contract": "full", "contract_stage": "full", "crane": "full", "pilot": "full",
        "tide": "unknown",
    }  # fmt: skip
    logs = {entry["file"]: entry for entry in overview["logs"]}
    assert logs["logs/gate_tail.log"]["whole"] == "cut"
    assert logs["logs/wide.log"]["encoding"] == "utf-16-le"
    assert overview["source"]["languages"] == {"cpp": 1}
    assert strict_loads(canonical_json(overview)) == overview


def test_secrets_of_the_inputs_reach_no_tool(box: CaseToolBox) -> None:
    found = box.run("log.search", {"pattern": "swordfish"})
    assert found.empty
    assert "swordfish-canary" not in box.run("log.window", {"file": "server.conf"}).model_dump_json()
    account = box.run("db.query", {"sql": "SELECT * FROM account"})
    assert not account.empty
    assert "canary" not in account.model_dump_json()


def test_an_open_case_is_kept_and_a_fresh_process_uses_the_cache(tmp_path: Path) -> None:
    store, head = imported(tmp_path)
    factory = ToolBoxFactory(tmp_path / "cache")
    first = factory.open(store, head)
    assert factory.open(store, head) is first
    told: list[str] = []
    again = ToolBoxFactory(tmp_path / "cache", lambda progress: told.append(progress.text)).open(store, head)
    assert told == []
    assert again.overview() == first.overview()


def test_a_relative_cache_holds_the_tables_too(tmp_path: Path) -> None:
    """The default home is a relative path, and the loader runs in a folder of its own."""
    store, head = imported(tmp_path)
    whole = ToolBoxFactory(tmp_path / "cache").open(store, head).overview()
    with contextlib.chdir(tmp_path):
        relative = ToolBoxFactory(Path("relative/cache")).open(CheckpointStore(Path("home")), head)
        assert relative.overview() == whole
    assert whole["database"]["tables"]


def test_tables_that_could_not_be_loaded_are_said_and_not_left_out(box: CaseToolBox, tmp_path: Path) -> None:
    store, head = imported(tmp_path)
    opened = open_inputs(store, head, tmp_path / "cache", None)
    broken = CaseToolBox(opened._replace(snapshot=None, trouble="the disk is full"))
    assert [spec.name for spec in broken.specs()] == [spec.name for spec in box.specs()]
    result = broken.run("db.rows", {"table": "crane"})
    assert (result.completeness, result.empty) == (Completeness.UNAVAILABLE, True)
    assert "the disk is full" in result.model_dump_json()
    record = EvidenceStore().add(box.run("db.rows", {"table": "crane"}))[0].record
    assert box.still_holds(record) is None
    assert broken.still_holds(record) == "the tables could not be loaded: the disk is full"


PLACES = st.sampled_from(["contract", "contract_stage", "berth", "tide", "pilot", "crane", "nowhere"])
COLUMNS = st.sampled_from(["id", "name", "stage", "contract_id", "depth", "hour", "unknown"])
VALUES = st.sampled_from([-7, 0, 4, 7, 77, 100, "North", "x'; DROP TABLE crane; --", "", "\u00fc", 2**70])
PATTERNS = st.sampled_from(
    ["stage 4", "never written", "Größe", "swordfish", "contract_tow", "Run", "\\d{9}"]
)
TIMES = st.sampled_from(["2031-04-01 10:00", "2031-04-02 10:00", "10:30:00", "2040-01-01", "no time"])
LOOKS = st.one_of(
    st.tuples(st.just("db.rows"), st.fixed_dictionaries({
        "table": PLACES,
        "where": st.lists(st.fixed_dictionaries({
            "column": COLUMNS, "op": st.sampled_from(["=", "!=", "<", "like"]), "value": VALUES,
        }), max_size=2),
    })),
    st.tuples(st.just("db.schema"), st.fixed_dictionaries({"table": PLACES})),
    st.tuples(st.just("db.id"), st.fixed_dictionaries({"id": VALUES})),
    st.tuples(
        st.sampled_from(["db.neighbours", "db.siblings"]),
        st.fixed_dictionaries({"table": PLACES, "key": st.dictionaries(COLUMNS, VALUES, min_size=1, max_size=2)}),
    ),
    st.tuples(st.just("log.search"), st.fixed_dictionaries(
        {"pattern": PATTERNS}, optional={"regex": st.booleans(), "since": TIMES, "until": TIMES, "files": st.lists(st.sampled_from(["*.log", "*.conf", "none"]), max_size=2)},
    )),
    st.tuples(st.just("log.entity"), st.fixed_dictionaries({"id": PATTERNS})),
    st.tuples(st.just("log.timeline"), st.fixed_dictionaries({"since": TIMES, "until": TIMES})),
    st.tuples(st.just("log.templates"), st.fixed_dictionaries({"contains": PATTERNS})),
    st.tuples(st.just("log.window"), st.fixed_dictionaries({"file": st.sampled_from(["Server.log", "x"]), "line": st.integers(1, 500)})),
    st.tuples(st.just("log.capability"), st.fixed_dictionaries({}, optional={"level": st.sampled_from(["debug", "error", "?"]), "pattern": PATTERNS})),
    st.tuples(st.sampled_from(["source.search", "source.references"]).map(lambda n: n), st.fixed_dictionaries({})),
    st.tuples(st.just("source.search"), st.fixed_dictionaries({"pattern": PATTERNS})),
    st.tuples(st.just("source.references"), st.fixed_dictionaries({"name": PATTERNS})),
    st.tuples(st.just("source.symbol"), st.fixed_dictionaries({"name": PATTERNS})),
    st.tuples(st.just("case.read"), st.fixed_dictionaries({"source_id": st.sampled_from(["S1", "S99"])})),
)  # fmt: skip

WHOLE = {"account", "contract", "contract_stage", "crane", "pilot"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LOOKS)
def test_absence_is_typed_in_every_tool(box: CaseToolBox, look: tuple[str, dict[str, Any]]) -> None:
    """An empty look is one absence with its scope; it counts only where all that was looked at is whole."""
    tool, arguments = look
    result = box.run(tool, arguments)
    kinds = {draft.provenance.kind for draft in result.drafts}
    assert result.empty == (kinds == {"absence"})
    assert result.drafts
    store = EvidenceStore()
    records = [minted.record for minted in store.add(result)]
    assert strict_loads(store.piece())
    if not result.empty:
        assert all(usable_absence(r) for r in records if not r.empty)
        return
    (record,) = records
    assert record.completeness is result.completeness
    assert (result.completeness is Completeness.COMPLETE) == usable_absence(record)
    if result.completeness is not Completeness.COMPLETE:
        assert result.cause, "an absence that does not count says why"
    if tool.startswith("db.") and usable_absence(record):
        assert {table["table"] for table in result.scope["tables"]} <= WHOLE
    if tool.startswith("log.") and usable_absence(record):
        assert all(f["whole"] != "cut" for f in result.scope["files"])
    assert box.run(tool, arguments) == result, "the same look gives the same answer"


def test_a_dispatch_worth_of_looks_is_quick_once_open(box: CaseToolBox) -> None:
    arguments = {"table": "contract", "key": {"id": 7}}
    box.run("db.siblings", arguments)
    start = time.process_time()
    for _ in range(5):
        box.run("db.siblings", arguments)
    assert (time.process_time() - start) / 5 < 0.5
