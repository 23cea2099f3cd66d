"""Where a limit is promised, and whose numbers a report's numbers are."""

from __future__ import annotations

from typing import TypeAlias

from resources.llm.providers.offline.findings import Findings, Record
from resources.llm.providers.offline.limits import expected_numbers
from resources.llm.providers.offline.promises import agreed, promises, stated
from resources.llm.providers.offline.scene import Scene
from resources.llm.providers.offline.units import may_convert
from resources.llm.providers.offline.view import Case, Source
from viano_assets.evidence.model import Location

Text: TypeAlias = tuple[str, str, dict[str, str]]
KEY = "Harbour.MaxShips"


def scene(records: list[Record], *texts: Text) -> Scene:
    """Return a case of the given sources (type, text, attributes) with what was found."""
    sources = tuple(
        Source(f"S{n}", kind, text, "id" if attributes else None, attributes)
        for n, (kind, text, attributes) in enumerate(texts, 1)
    )
    findings = Findings(records={record.id: record for record in records})
    return Scene(Case("Ship is sent away", "en", sources, frozenset()), {}, [], findings)


def found(name: str, kind: str, path: str, text: str) -> Record:
    """Return a record of a file."""
    return Record(name, "source.search", kind, text, "complete", Location(path=path), ())


def test_documentation_and_comment_promise_the_same() -> None:
    here = scene(
        [
            found(
                "E1", "source", "docs/rules.md", "- The harbour takes up to 7 ships.\n- A crew of up to 7."
            ),
            found("E2", "config", "etc/h.conf", f"# How many ships may lie in the port\n{KEY} = 7"),
        ]
    )
    assert [p.record.id for p in promises(here, KEY, 7) if p.record] == ["E1", "E2"]
    first = agreed(promises(here, KEY, 7))
    assert first is not None
    assert (first.bound.side, first.bound.inclusive, first.line) == (
        "max",
        True,
        "- The harbour takes up to 7 ships.",
    )
    assert promises(here, KEY, 8) == [p for p in promises(here, KEY, 8) if p.record and p.record.id == "E2"]


def test_who_disagrees_promises_nothing() -> None:
    texts = "- Ships: up to 7.\n- Ships of the harbour: less than 7."
    assert agreed(promises(scene([found("E1", "source", "docs/a.md", texts)]), KEY, 7)) is None


def test_a_phrase_ends_with_its_source() -> None:
    here = scene([], ("observation", "Der Hafen lehnt ab", {}), ("observation", "Mit 7 Schiffen", {}))
    assert stated(here) == []


def test_a_noun_before_a_number_does_not_make_it_an_id_everywhere() -> None:
    seen: Text = ("observation", "With 40 points the pilot refuses", {})
    shown = ("technical_fact", "shows 40", {"value": "40", "label": "shows", "named": "noun"})
    assert 40 in expected_numbers(scene([], seen, shown))
    ship: Text = ("observation", "Ship 40 is sent away", {})
    named = ("technical_fact", "Ship 40", {"value": "40", "label": "ship", "named": "noun"})
    assert 40 not in expected_numbers(scene([], ship, named))


def test_a_percentage_is_no_time() -> None:
    assert not may_convert("Session.IdleSeconds", "15 percent on top", 15)
    assert may_convert("Session.IdleSeconds", "after 15 minutes", 15)
    assert may_convert("Session.IdleSeconds", "after 15", 15)
