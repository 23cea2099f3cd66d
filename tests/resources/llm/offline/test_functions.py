"""Calls, parameters and kept members as text of several languages, and what a function cannot do without."""

from __future__ import annotations

import pytest

from resources.llm.providers.offline.functions import calls, kept, owner, parameters, short, split_arguments
from resources.llm.providers.offline.sequence import questions
from tests.resources.llm.offline.test_limits import code
from viano_assets.evidence.model import Location

CPP = "class Tide {\npublic:\n    Tide(int low, int high) : low_(low), high_{high} {}\n};"
PYTHON = (
    "class Tide(Base):\n    def __init__(self, low, high=9):\n        self.low = low\n        self.top = high"
)


def test_calls_of_a_line() -> None:
    line = "    if (!Tide(cfg.low, cfg.high).Covers(HourOf(now)))"
    made, hour = [call for call in calls(line) if call.name in {"Tide", "HourOf"}]
    assert (made.arguments, made.then, made.negated(line)) == (("cfg.low", "cfg.high"), "Covers", True)
    assert (hour.arguments, hour.then, hour.negated(line)) == (("now",), None, False)


def test_the_receiver_is_the_whole_chain() -> None:
    line = "    if (not self.crew().roster.fits(limits.least)):"
    call = next(call for call in calls(line) if call.name == "fits")
    assert call.receiver == "self.crew().roster"
    assert call.negated(line)


@pytest.mark.parametrize(("text", "path"), [(CPP, "a.h"), (PYTHON, "a.py")])
def test_a_constructor_keeps_its_parameters(text: str, path: str) -> None:
    record = code(text)
    record = type(record)("E1", "source.symbol", "source", text, "complete", Location(path=path), ())
    assert parameters(record, "Tide") == ["low", "high"]
    assert kept(record, "high") == ({"high_"} if path == "a.h" else {"top"})


def test_names_and_arguments() -> None:
    assert (short("port::Tide::Covers"), owner("port::Tide::Covers")) == ("Covers", "Tide")
    assert (short("Tide.covers"), owner("Tide.covers"), owner("covers")) == ("covers", "Tide", "")
    assert split_arguments("a, f(b, c), std::map<int, int>()") == ("a", "f(b, c)", "std::map<int, int>()")


ASKING = """int Toll::Rebate(int now) const
{
    const auto since = book_.EntryOf(ship.id);
    if (since == 0)
        return 0;
    return ship.dues * rate / 100;
}"""


def test_what_a_function_cannot_do_without() -> None:
    found = questions(code(ASKING))
    assert [(q.call.receiver, q.call.name, q.guard) for q in found] == [
        ("book_", "EntryOf", "if (since == 0)")
    ]


@pytest.mark.parametrize(
    "text",
    [
        ASKING.replace("if (since == 0)\n        return 0;", "log(since);"),
        ASKING.replace("return 0;", "since = now;"),
        ASKING.replace("since == 0", "other == 0"),
    ],
)
def test_no_early_end_no_question(text: str) -> None:
    assert questions(code(text)) == []
