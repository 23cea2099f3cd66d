"""The places a person is shown: those of the cause first, each once, in one order everywhere."""

from __future__ import annotations

import asyncio
import html
import re
from typing import Any

from tests.support.diagnosis_answers import Json, changed, confirmed, inconclusive
from tests.support.harbour_case import CASE
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.inputs import Inputs
from viano_assets.phases.diagnosis.places import Shown, ranked_places, view_places
from viano_assets.phases.diagnosis.summary import limits_shown, location_text
from viano_assets.phases.diagnosis.view import case_view

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]

CONFIG = Shown(
    "E1",
    "config",
    {"path": "conf/harbour.ini", "line_start": 10, "line_end": 14},
    "a = 1\nmin_tide = 4\nb = 2\nc = 3\nd = 4",
)
LOCALISATION: dict[str, list[Json]] = {
    "files": [
        {"path": "src/berth.cpp", "basis": "cited", "evidence_ids": ["E2"]},
        {"path": "conf/harbour.ini", "basis": "cited", "evidence_ids": ["E1"]},
        {"path": "src/never.cpp", "basis": "retrieved", "evidence_ids": ["E3"]},
    ],
    "symbols": [
        {
            "path": "src/berth.cpp",
            "symbol": "Berth::release",
            "line_start": 11,
            "line_end": 16,
            "basis": "cited",
        }
    ],
    "rows": [],
}


def diagnosis(*ids: str) -> Json:
    cause = {"summary": "`min_tide = 4` is too high.", "technical_description": "", "evidence_ids": list(ids)}
    return {"status": "confirmed", "root_cause": cause}


def texts(places: Any) -> list[str]:
    return [location_text(place.item) for place in places]


def test_a_configured_cause_stands_first_with_its_line() -> None:
    places = ranked_places(LOCALISATION, diagnosis("E1"), [CONFIG])
    assert texts(places) == ["conf/harbour.ini:11", "src/berth.cpp:11-16  Berth::release"]


def test_an_open_result_lists_what_was_retrieved_behind_what_is_cited() -> None:
    places = ranked_places(LOCALISATION, {"status": "inconclusive", "root_cause": None}, [CONFIG])
    assert texts(places) == ["src/berth.cpp:11-16  Berth::release", "conf/harbour.ini", "src/never.cpp"]


def test_a_row_stands_once_with_its_columns() -> None:
    key = {"nr": "1203"}
    rows: list[Json] = [
        {"table": "artikel", "key": key, "column": "nr", "basis": "retrieved"},
        {"table": "artikel", "key": key, "column": None, "basis": "cited"},
        {"table": "artikel", "key": key, "column": "preis", "basis": "retrieved"},
        {"table": "artikel", "key": {"nr": "7"}, "column": None, "basis": "cited"},
    ]
    places = ranked_places({"rows": rows}, {"status": "inconclusive"}, [])
    assert texts(places) == ["artikel.preis [nr=1203]", "artikel [nr=7]"]
    assert {place.item["basis"] for place in places} == {"cited"}


def test_a_record_of_the_log_carries_no_place_of_the_fault() -> None:
    log = Shown("E1", "log", {"path": "conf/harbour.ini", "line_start": 3, "line_end": 3}, "x")
    places = ranked_places(LOCALISATION, diagnosis("E1"), [log])
    assert texts(places) == ["src/berth.cpp:11-16  Berth::release", "conf/harbour.ini"]


def published(store: MemoryStore, answer: Json) -> tuple[list[str], str, str]:
    head = asyncio.run(DiagnosisBuilder(store, ScriptedGateway([answer])).build(CASE)).head
    names = ("diagnosis_result.md", "diagnosis.html")
    markdown, page = (store.read(head, f"analysis/diagnosis/0001/{name}").decode() for name in names)
    shown = [" ".join(text.split()) for text in texts(view_places(case_view(store, head, 1)))]
    return shown, markdown, page


def in_page(page: str) -> list[str]:
    cells = re.findall(r'<td class="place">(.*?)</td>', page)
    return [" ".join(html.unescape(cell).split()) for cell in cells]


def in_markdown(markdown: str) -> list[str]:
    section = markdown.split("## Where", 1)[1].split("\n## ", 1)[0].replace("\\", "")
    return re.findall(r"^- \w+: (.*) \(\w+\)$", section, re.MULTILINE)


def test_view_summary_and_page_list_the_same_places(prepared: Prepared) -> None:
    store, _, names = prepared
    view, markdown, page = published(store, confirmed(names))
    assert view[0].startswith("src/berth.cpp:")
    assert in_markdown(markdown) == view
    assert in_page(page) == view


def test_an_open_result_too(prepared: Prepared) -> None:
    store, _, names = prepared
    view, markdown, page = published(store, inconclusive(names))
    assert len(view) > 1
    assert in_markdown(markdown) == view
    assert in_page(page) == view


def test_a_hypothesis_judged_only_at_the_end_is_said_to_be(prepared: Prepared) -> None:
    """“Never judged by evidence” once stood beside the evidence it was judged by."""
    evaluation = {"support": ["E3"], "against": [], "countercheck": {"evidence_ids": ["E9"]}}
    judged = {"id": "H1", "evaluation": evaluation}
    open_one = {"id": "H2", "evaluation": {"support": [], "against": [], "countercheck": None}}
    limits = [
        "H1 was never judged by evidence",
        "H2 was never judged by evidence",
        "H1 wurde nie an Belegen beurteilt",
        "db.id was never asked",
    ]
    assert limits_shown(limits, [judged, open_one]) == [
        "H1 was never judged in the investigation; the final evaluation cites E3, E9",
        *limits[1:2],
        "H1 wurde in der Untersuchung nie beurteilt; die abschließende Bewertung zitiert E3, E9",
        *limits[3:],
    ]
    seen = {"id": "H1", "verdict": "weakened", **evaluation}
    unseen = {"id": "H1", "verdict": None, **evaluation}
    assert limits_shown(limits[:1], [seen])[0].endswith("cites E3, E9")
    assert limits_shown(limits[:1], [unseen]) == limits[:1]


def test_quoted_code_is_code_in_the_summary(prepared: Prepared) -> None:
    store, _, names = prepared
    answer = changed(confirmed(names), "root_cause.summary", "`moored_ = false;` forgets *the* queue_.")
    _, markdown, _ = published(store, answer)
    assert "\n`moored_ = false;` forgets \\*the\\* queue\\_.\n" in markdown
