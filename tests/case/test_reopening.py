from __future__ import annotations

from pathlib import Path

import pytest

from viano_assets.canonical import canonical_json
from viano_assets.case.assembler import CaseAssembler, load_case
from viano_assets.case.freshness import check_fresh, differences
from viano_assets.case.intake import KEY_PATH, import_case
from viano_assets.case.model import SourceType
from viano_assets.case.reopening import new_revision, reopen_case, resume_case
from viano_assets.case.view import KEY_POINTER, KEY_SCHEMA, InputView
from viano_assets.errors import InputError
from viano_assets.package.model import Change, Head, Overlay
from viano_assets.package.store import CheckpointStore


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "home")


@pytest.fixture
def head(store: CheckpointStore, tmp_path: Path) -> Head:
    report = tmp_path / "report.md"
    report.write_text("# T\n\n## Observed\nIt stops at 10.1.2.3.\n")
    return import_case(store, case_id="C", report=report)


def test_new_information_starts_the_next_revision_and_the_old_one_stays(
    store: CheckpointStore, head: Head, tmp_path: Path
) -> None:
    log = tmp_path / "new.log"
    log.write_text("2024-05-01 10:00:00 ERROR from 10.1.2.3\n")
    blocked = store.commit(
        head, Change(event="x", overlay=Overlay("blocked", "interpretation", "c", "m"), routing="review")
    )
    new = reopen_case(store, "C", comment="Also with 2.1.0. I think it is the lock.", attachments=[log])
    assert (new.generation, new.revision, new.manifest.lifecycle) == (blocked.generation + 1, 2, "ASSEMBLED")
    assert (new.manifest.overlay, new.manifest.routing) == (None, None)
    assert set(new.manifest.pointers) == {"case", KEY_POINTER}
    assert sorted(new.raw_inputs()) == [
        "inputs/diagnostics/r0002/new.log",
        "inputs/report/r0002/comment.md",
        "inputs/report/report.md",
    ]
    case = load_case(store, new)
    assert case.analysis_revision == 2
    assert case.title == "T"
    assert [s.text for s in case.sources if s.type is SourceType.COMMENT] == ["Also with 2.1.0."]
    assert [s.text for s in case.sources if s.type is SourceType.TESTER_ASSUMPTION] == [
        "I think it is the lock."
    ]
    old = load_case(store, new, 1)
    assert old.analysis_revision == 1
    assert [s.id for s in old.sources] == [s.id for s in load_case(store, head).sources]
    view = InputView.open(store, new, tmp_path / "cache")
    assert [file.path for file in view.files("diagnostics")] == ["r0002/new.log"]
    word = view.redactor.placeholder("IP", "10.1.2.3")
    assert word in view.read("diagnostics", "r0002/new.log").decode()
    assert any(word in s.text for s in case.sources)


def test_reopening_with_nothing_or_nonsense_changes_nothing(
    store: CheckpointStore, head: Head, tmp_path: Path
) -> None:
    for attempt in (
        {"comment": "  "},
        {"attachments": [tmp_path / "nowhere.log"]},
        {"comment": "fine", "attachments": [tmp_path / "nowhere.log"]},
    ):
        with pytest.raises(InputError):
            reopen_case(store, "C", **attempt)
    assert store.latest("C").generation == head.generation


def test_a_minted_revision_reads_the_same_inputs(store: CheckpointStore, head: Head) -> None:
    new = new_revision(store, "C", reason="prompt changed")
    assert new.raw_inputs() == head.raw_inputs()
    first, second = load_case(store, head), load_case(store, new)
    assert second == first.model_copy(update={"analysis_revision": 2})
    assert new.checkpoints[-1].detail["reason"] == "prompt changed"


def test_resume_lifts_a_halt_once(store: CheckpointStore, head: Head) -> None:
    store.commit(
        head, Change(event="x", overlay=Overlay("deferred", "diagnosis", "c", "m", "2030-01-01T00:00:00Z"))
    )
    lifted = resume_case(store, "C")
    assert lifted.manifest.overlay is None
    assert resume_case(store, "C").generation == lifted.generation


def test_an_interrupted_import_is_completed(store: CheckpointStore, tmp_path: Path) -> None:
    """Killed between its two generations, the case has its inputs and no canonical case yet."""
    report = tmp_path / "r.md"
    report.write_text("## Observed\nIt stops.\n")
    head = store.create(
        "D",
        Change(
            event="case_received",
            put={
                "inputs/report/r.md": report,
                KEY_PATH: canonical_json({"schema": KEY_SCHEMA, "key": "00" * 32}),
            },
            raw=frozenset({"inputs/report/r.md"}),
            pointers={KEY_POINTER: KEY_PATH},
            lifecycle="RECEIVED",
        ),
    )
    other = tmp_path / "other.md"
    other.write_text("## Observed\nSomething else.\n")
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="D", report=other)
    assert caught.value.code == "case_exists"
    assert store.latest("D").generation == head.generation
    done = import_case(store, case_id="D", report=report)
    assert (done.generation, done.manifest.lifecycle) == (2, "ASSEMBLED")
    assert CaseAssembler(store).assemble(done) is done
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="D", report=report)
    assert caught.value.code == "case_exists"


def test_freshness_names_the_file(head: Head) -> None:
    bound = head.raw_inputs()
    check_fresh(head, bound)
    for changed, word in (
        ({**bound, "inputs/x": "1" * 64}, "removed"),
        ({}, "added"),
        (dict.fromkeys(bound, "0" * 64), "changed"),
    ):
        with pytest.raises(InputError) as caught:
            check_fresh(head, changed)
        assert caught.value.code == "stale_input"
        assert word in caught.value.message
    assert differences({"a": "1", "b": "1"}, {"b": "2", "c": "1"}) == [
        ("a", "removed"),
        ("b", "changed"),
        ("c", "added"),
    ]
