"""Summary and page: the same bytes every time, complete, and deaf to what a case says."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.support.diagnosis_answers import Json, changed, confirmed, inconclusive, inputs_of
from tests.support.harbour_case import CASE, FILES, World, investigated
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.inputs import Inputs

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]
FOLDER = "analysis/diagnosis/0001"
EVIL = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)> [a](javascript:alert(3)) \u202etxt\x1b[31m"
)


def published(store: MemoryStore, answer: Json) -> tuple[str, str]:
    head = asyncio.run(DiagnosisBuilder(store, ScriptedGateway([answer])).build(CASE)).head
    names = ("diagnosis_result.md", "diagnosis.html")
    markdown, page = (store.read(head, f"{FOLDER}/{name}").decode() for name in names)
    return markdown, page


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "link", "br", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_is_whole_and_self_contained(prepared: Prepared) -> None:
    store, inputs, names = prepared
    _, page = published(store, confirmed(names))
    parsed = Page(page)
    assert parsed.open == []
    assert {"script", "img", "link", "iframe", "object", "form"}.isdisjoint(parsed.tags)
    assert not [name for name, _ in parsed.attributes if name.startswith("on") or name in {"src", "style"}]
    assert all((value or "").startswith("#") for name, value in parsed.attributes if name == "href")
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
    for word in (
        "Cause confirmed",
        "Releasing a berth never wakes the queue.",
        "moored_ = false;",
        "carries the cause",
    ):
        assert word in parsed.text
    for end in inputs.investigation.hypotheses:
        assert str(end.entry["title"]) in parsed.text
    assert (
        parsed.text.index("Cause confirmed") < parsed.text.index("Hypotheses") < parsed.text.index("Evidence")
    )


def test_page_numbers_lines_as_the_source_does(prepared: Prepared) -> None:
    store, _, names = prepared
    _, page = published(store, confirmed(names))
    assert "<i>13</i>    moored_ = false;" in page


def test_clipped_code_lines_are_high_enough_for_underscores(prepared: Prepared) -> None:
    """At the normal line height of a monospace font a hidden overflow cut the underscores off."""
    store, _, names = prepared
    _, page = published(store, confirmed(names))
    rule = re.search(r"code\.gist\{([^}]*)\}", page)
    assert rule is not None
    height = re.search(r"line-height:([\d.]+)", rule[1])
    assert "overflow:hidden" not in rule[1] or (height is not None and float(height[1]) >= 1.5)


def test_inconclusive_page_names_the_question_and_the_actions(prepared: Prepared) -> None:
    store, _, names = prepared
    markdown, page = published(store, inconclusive(names))
    text = Page(page).text
    assert "Inconclusive: undecided" in text
    assert "The question that would decide it" in text
    assert inconclusive(names)["review_actions"][0] in text
    assert "a ranking, not a claim" in text
    assert "## The question that would decide it" in markdown
    assert "    nothing found" not in markdown


def test_markdown_holds_every_cited_excerpt_with_its_place(prepared: Prepared) -> None:
    store, _, names = prepared
    markdown, _ = published(store, confirmed(names))
    plain = markdown.replace("\\", "")
    assert f"**{names['Berth::release']}** src/berth.cpp:11-16" in plain
    assert "    moored_ = false;" in markdown
    assert "server.log:3" in plain


def hostile() -> tuple[MemoryStore, dict[str, str]]:
    store = MemoryStore()
    files = {**FILES, "conf/harbour.ini": f"[harbour]\n# {EVIL}\nmin_tide = 4\n"}
    head = asyncio.run(investigated(store, world=World(files=files)))
    return store, inputs_of(store, head)[1]


@pytest.mark.parametrize(
    "place", ["final_reason", "root_cause.summary", "evaluations.0.reason", "review_actions.0"]
)
def test_case_and_model_text_stay_text(place: str) -> None:
    """A report, a table cell or a model may say what it likes: the page shows it and obeys nothing."""
    store, names = hostile()
    answer = changed(confirmed(names), "review_actions", ["x"])
    answer = changed(answer, "evaluations.2.against", [names["conf/harbour.ini"]])
    markdown, page = published(store, changed(answer, place, EVIL.replace("\x1b", "").strip()))
    parsed = Page(page)
    assert {"script", "img"}.isdisjoint(parsed.tags)
    assert "</pre><script>" in parsed.text
    for character in ("\x1b", "\u202e"):
        assert character not in page
        assert character not in markdown
    for line in markdown.splitlines():
        assert line.startswith("    ") or not re.search(r"(?<!\\)(\]\(javascript|<script)", line)


def test_long_records_are_folded_and_bounded() -> None:
    store = MemoryStore()
    looks: Any = {
        "H1": (("source.read", {"path": "src/long.cpp", "line_start": 1, "line_end": 900}),),
        "H2": (),
        "H3": (),
    }
    files = {**FILES, "src/long.cpp": "\n".join(f"int value{n} = {n};" for n in range(900))}
    from tests.support.harbour_case import LOOKS, Investigator

    looks = {**LOOKS, "H1": (*LOOKS["H1"][1:], *looks["H1"])}
    head = asyncio.run(investigated(store, world=World(files=files), investigator=Investigator(looks)))
    inputs, names = inputs_of(store, head)
    long = next(n for n, r in inputs.records.items() if r.provenance.location.path == "src/long.cpp")
    markdown, page = published(store, changed(confirmed(names), "evaluations.2.against", [long]))
    assert "value199 =" in page
    assert "value200 =" not in page
    assert "700 further lines" in page
    assert "880 more lines" in markdown
