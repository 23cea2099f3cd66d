"""Documents of every phase replay whatever renderer version wrote them, and only as they were published."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.diagnosis_answers import confirmed, inconclusive, inputs_of
from tests.support.harbour_case import CASE, HarbourToolFactory, investigated
from tests.support.memory_store import MemoryStore
from tests.support.other_release import OtherRelease, stepped, worded
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import ContractError, NewerFormatError, VianoError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.change_request import summary as request_summary
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis import html as diagnosis_page
from viano_assets.phases.diagnosis import summary as diagnosis_summary
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.hypotheses import summary as hypotheses_summary
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation import summary as interpretation_summary
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.investigation import summary as investigation_summary
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.protocols import PhaseResult, Store

Replay = Callable[[Store], PhaseResult]
GOLDEN = Path(__file__).parents[1] / "golden"


def _replays() -> dict[str, Replay]:
    silent = ScriptedGateway([])
    return {
        "interpretation/0001/interpretation.md": lambda store: asyncio.run(
            CaseInterpreter(store, silent).build(CASE)
        ),
        "hypotheses/0001/hypotheses.md": lambda store: asyncio.run(
            HypothesisBuilder(store, silent).build(CASE)
        ),
        "investigation/0001/investigation.md": lambda store: asyncio.run(
            InvestigationBuilder(store, silent, None, HarbourToolFactory()).build(CASE)
        ),
        "diagnosis/0001/diagnosis_result.md": lambda store: asyncio.run(
            DiagnosisBuilder(store, silent).build(CASE)
        ),
        "diagnosis/0001/diagnosis.html": lambda store: asyncio.run(
            DiagnosisBuilder(store, silent).build(CASE)
        ),
        "change_request/0001/change_request.md": lambda store: asyncio.run(
            ChangeRequestBuilder(store).build(CASE)
        ),
    }


REPLAYS = _replays()
VERSIONS = {
    "interpretation.md": interpretation_summary.VERSION,
    "hypotheses.md": hypotheses_summary.VERSION,
    "investigation.md": investigation_summary.VERSION,
    "diagnosis_result.md": diagnosis_summary.VERSION,
    "diagnosis.html": diagnosis_page.VERSION,
    "change_request.md": request_summary.VERSION,
}


def published(store: MemoryStore) -> MemoryStore:
    """Drive the harbour case to its output."""
    head = asyncio.run(investigated(store))
    answer = confirmed(inputs_of(store, head)[1])
    asyncio.run(DiagnosisBuilder(store, ScriptedGateway([answer])).build(CASE))
    asyncio.run(ChangeRequestBuilder(store).build(CASE))
    return store


def at_publication(store: OtherRelease, last: str) -> MemoryStore:
    """Drive as far as the publication named; a later phase would already refuse what was published."""
    try:
        published(store)
    except VianoError:
        assert any(last.endswith(name) for name in store.reworded)
    return store


@pytest.fixture(scope="module")
def earlier() -> OtherRelease:
    store = OtherRelease(worded, stepped(-1))
    published(store)
    return store


@pytest.mark.parametrize("path", sorted(REPLAYS))
def test_what_an_earlier_renderer_wrote_replays_as_it_was_published(earlier: OtherRelease, path: str) -> None:
    before = earlier.latest(CASE)
    assert earlier.read(before, f"analysis/{path}").startswith(b"As an earlier release said it.")
    result = REPLAYS[path](earlier)
    assert result.replayed
    assert result.head.generation == before.generation


def test_an_earlier_failure_report_replays() -> None:
    store = OtherRelease(worded, stepped(-1))
    head = asyncio.run(investigated(store))
    answer = inconclusive(inputs_of(store, head)[1])
    asyncio.run(DiagnosisBuilder(store, ScriptedGateway([answer])).build(CASE))
    assert asyncio.run(DiagnosisBuilder(store, ScriptedGateway([])).build(CASE)).replayed


@pytest.mark.parametrize("path", sorted(REPLAYS))
def test_other_words_under_the_current_version_are_refused(path: str) -> None:
    """The bytes are bound and declared, but the renderer that is named writes others."""
    name = path.rpartition("/")[2]
    store = at_publication(OtherRelease(_only(name), stepped(0)), path)
    with pytest.raises(ContractError, match=name):
        REPLAYS[path](store)


def _only(name: str) -> Callable[[bytes], bytes]:
    marks = {
        "interpretation.md": b"# Interpretation of",
        "hypotheses.md": b"# Hypotheses for",
        "investigation.md": b"# Investigation of",
        "change_request.md": b"# Change request",
        "diagnosis.html": b"<!doctype html>",
        "diagnosis_result.md": b"# Berth 3",
    }
    return lambda text: worded(text) if text.startswith(marks[name]) else text


@pytest.mark.parametrize("path", sorted(REPLAYS))
def test_an_earlier_rendering_that_is_not_the_bound_one_is_refused(path: str) -> None:
    """Both checkpoint and file say one thing, the document another."""

    def unbound(binding: dict[str, Any], text: bytes) -> dict[str, Any]:
        named = text if not text.startswith(b"As an") else text + b"\n"
        return {"version": binding["version"] - 1, "sha256": sha256_hex(named)}

    name = path.rpartition("/")[2]
    store = at_publication(OtherRelease(_only(name), unbound), path)
    with pytest.raises(ContractError, match=f"{name} is not the one it names"):
        REPLAYS[path](store)


@pytest.mark.parametrize("path", sorted(REPLAYS))
def test_an_earlier_rendering_that_was_replaced_is_refused(earlier: OtherRelease, path: str) -> None:
    store = _copy(earlier)
    head = store.latest(CASE)
    tampered = store.read(head, f"analysis/{path}") + b"\nAnd the pilot is to blame.\n"
    store.commit(head, Change(event="forged", put={f"analysis/{path}": tampered}))
    with pytest.raises(ContractError):
        REPLAYS[path](store)


@pytest.mark.parametrize("path", sorted(REPLAYS))
def test_what_a_newer_renderer_wrote_is_refused_as_such(path: str) -> None:
    name = path.rpartition("/")[2]
    store = at_publication(OtherRelease(_only(name), _newer_when_reworded), path)
    with pytest.raises(NewerFormatError) as caught:
        REPLAYS[path](store)
    assert caught.value.code == "newer_format"
    assert name in caught.value.where


def _newer_when_reworded(binding: dict[str, Any], text: bytes) -> dict[str, Any]:
    return stepped(1 if text.startswith(b"As an") else 0)(binding, text)


@pytest.mark.parametrize(
    "bindings",
    [{}, None, {"interpretation.md": {"version": True, "sha256": "0"}}, {"interpretation.md": "1"}],
    ids=["empty", "null", "flag", "text"],
)
def test_a_document_has_to_name_its_renderers(bindings: object) -> None:
    store = MemoryStore()
    asyncio.run(investigated(store))
    head = store.latest(CASE)
    path = "analysis/interpretation/0001/interpretation.json"
    document = {**json.loads(store.read(head, path)), "renderings": bindings}
    store.commit(head, Change(event="forged", put={path: canonical_json(document)}))
    with pytest.raises(ContractError, match="does not name"):
        REPLAYS["interpretation/0001/interpretation.md"](store)


def _copy(store: MemoryStore) -> MemoryStore:
    fresh = MemoryStore()
    fresh._heads = {name: list(heads) for name, heads in store._heads.items()}
    return fresh


def test_every_current_renderer_has_a_golden_package(tmp_path: Path) -> None:
    """A package of the current versions fails to replay when a rendering changes under its version."""
    found: set[tuple[str, int]] = set()
    for folder in sorted(GOLDEN.glob("diagnosis-v*")):
        store = CheckpointStore(tmp_path / folder.name)
        for package in sorted(folder.glob("*.zip")):
            store.import_package(package)
        for case_id in store.case_ids():
            head = store.latest(case_id)
            for path in sorted(head.files):
                if path.startswith("analysis/") and path.endswith(".json"):
                    document = json.loads(store.read(head, path))
                    names = document.get("renderings", {}) if isinstance(document, dict) else {}
                    found |= {(name, binding["version"]) for name, binding in names.items()}
    assert found >= set(VERSIONS.items())
