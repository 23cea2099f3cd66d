"""The controller speaks the report's language, and what others wrote stays as it is."""

from __future__ import annotations

import ast
import asyncio
import re
import string
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.diagnosis_answers import Json, confirmed, inconclusive, inputs_of
from tests.support.harbour_case import CASE, World, finished_store, investigated
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.evidence.model import Completeness
from viano_assets.phases import change_request, diagnosis
from viano_assets.phases.common import read_json
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.contract import InconclusiveKind, Verdict
from viano_assets.phases.diagnosis.derive import limit_text
from viano_assets.phases.diagnosis.wording import GERMAN, GERMAN_WORDS, Wording
from viano_assets.phases.investigation.artifacts import HypothesisStatus, NotExamined, TerminalReason
from viano_assets.phases.protocols import DispatchStatus
from viano_assets.phases.wire import Confidence

FOLDER = "analysis/diagnosis/0001"
SOURCES = [Path(next(iter(package.__path__))) for package in (diagnosis, change_request)]
SPOKEN = re.compile(r'\b(?:t|text\)?)(?:\(| = )\s*((?:"[^"]*"\s*)+)(?!\.)')
VALUES = [
    *(kind.value for enum in (Completeness, InconclusiveKind, Verdict, Confidence) for kind in enum),
    *get_args(HypothesisStatus),
    *get_args(TerminalReason),
    *("confirmed", "inconclusive", "not measured", "status", "inconclusive_kind", "selected_hypothesis"),
    *("file", "symbol", "row", "place", "cited", "retrieved"),
]


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def spoken() -> set[str]:
    """Return every sentence that code and template say."""
    found = set()
    for path in texts():
        for match in SPOKEN.findall(path.read_text(encoding="utf-8")):
            found.add("".join(re.findall(r'"([^"]*)"', match)))
    return found


def texts() -> list[Path]:
    """Return the modules and templates that speak."""
    names = [path for folder in SOURCES for kind in ("*.py", "*.j2") for path in folder.glob(kind)]
    return [path for path in names if path.name != "wording.py"]


def constants() -> set[str]:
    """Return every text constant of the modules, for sentences that are chosen before they are said."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in texts() if path.suffix == ".py"]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {node.value for node in nodes if isinstance(node.value, str)}


def test_every_sentence_has_a_german_one_with_the_same_fields() -> None:
    assert spoken() <= set(GERMAN)
    assert set(GERMAN) <= spoken() | constants()
    for english, german in GERMAN.items():
        assert fields(english) == fields(german), english


@pytest.mark.parametrize("value", VALUES)
def test_every_level_kind_and_state_has_german_words(value: str) -> None:
    assert value in GERMAN_WORDS


@pytest.mark.parametrize(("language", "said"), [("de", "Belege"), ("de-AT", "Belege"), ("und", "Evidence")])
def test_other_languages_are_served_in_english(language: str, said: str) -> None:
    assert Wording(language)("Evidence") == said


def german(answers: list[Json] | None = None, *, confirm: bool = False) -> tuple[Json, str, str]:
    store = MemoryStore()
    head = asyncio.run(investigated(store, world=World(language="de")))
    names = inputs_of(store, head)[1]
    gateway = ScriptedGateway(answers or [confirmed(names) if confirm else inconclusive(names)])
    result = asyncio.run(DiagnosisBuilder(store, gateway).build(CASE))
    while result.status is DispatchStatus.REJECTED:
        result = asyncio.run(DiagnosisBuilder(store, gateway).build(CASE))
    assert asyncio.run(DiagnosisBuilder(store, ScriptedGateway([])).build(CASE)).replayed
    markdown, page = (
        store.read(result.head, f"{FOLDER}/{name}").decode()
        for name in ("diagnosis_result.md", "diagnosis.html")
    )
    return read_json(store, result.head, f"{FOLDER}/diagnosis_result.json"), markdown, page


def test_an_open_german_case_asks_in_german() -> None:
    document, markdown, page = german()
    question = document["deciding_question"]
    assert question.startswith("Ist das zu sehen: „The opposite of: ")
    assert question.endswith("bleibt H1 bestehen.")
    assert document["not_examined"][-1] == "Nicht im Bericht: The tide at the time of the failure."
    for text in (markdown, page):
        for said in (
            "Kein eindeutiges Ergebnis: mehrere Erklärungen",
            "Die Frage, die es entscheiden würde",
            "Hypothesen",
            "Dafür",
        ):
            assert said.lower() in text.lower()
        for other in ("Evidence", "Against", "Countercheck", "Confidence"):
            assert f"## {other}" not in text
            assert f">{other}" not in text
    assert '<html lang="de">' in page


@pytest.mark.parametrize(
    ("kind", "subject", "english", "german_text"),
    [
        ("tool_unused", "db.rows", "db.rows was never asked", "db.rows wurde nie gefragt"),
        (
            "input_unread",
            "inputs/a.zip",
            "nothing was taken from inputs/a.zip",
            "nichts wurde aus inputs/a.zip",
        ),
        ("files_unread", "a.png", "nor as tables: a.png", "noch als Tabellen gelesen: a.png"),
        ("statements_skipped", "3", "not applied: 3", "Anweisungen der Dumps: 3"),
        ("hypothesis_unassessed", "H2", "H2 was never judged", "H2 wurde nie an Belegen beurteilt"),
        ("look_unassessed", "", "were never judged for H", "wurden für H"),
        ("look_limited", "", " was partial (row limit): ", ": teilweise, row limit ("),
    ],
)
def test_limits_of_the_investigation_are_said_in_both(
    kind: Any, subject: str, english: str, german_text: str
) -> None:
    store = finished_store()
    ends = inputs_of(store, store.latest(CASE))[0].investigation.actions
    limited = ends[0].result.model_copy(update={"completeness": Completeness.PARTIAL, "cause": "row limit"})
    action = ends[0].model_copy(update={"result": limited}) if kind.startswith("look_") else None
    item = NotExamined(kind=kind, subject=subject, text="unused")
    for language, said in (("en", english), ("de", german_text)):
        assert said in limit_text(Wording(language), item, action)


def test_a_confirmed_german_case_keeps_quotes_and_model_words() -> None:
    document, markdown, page = german(confirm=True)
    cause = document["diagnosis"]["root_cause"]["summary"]
    assert "Ursache bestätigt" in page
    assert "**bestätigt: H1**" in markdown
    assert "Verlässlichkeit dieser Stufe: nicht gemessen" in markdown
    for text in (markdown, page):
        assert cause.split("`")[0] in text
        assert "moored_ = false;" in text


def test_after_invalid_answers_the_controller_speaks_german() -> None:
    document, markdown, _ = german([{"status": "confirmed"}] * 3)
    assert document["diagnosis"]["inconclusive_kind"] == "invalid_answers"
    assert document["diagnosis"]["final_reason"].startswith("Keine von 3 abschließenden Antworten")
    assert "Antworten des Modells, die die Prüfungen abgelehnt haben: 3." in markdown
