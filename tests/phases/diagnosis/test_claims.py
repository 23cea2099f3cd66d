"""What counts as a quote of stored evidence: the same characters, cut without changing what they say."""

from __future__ import annotations

import pytest

from viano_assets.phases.diagnosis.claims import Span, claims_of, find_quote, pair_of, place_of, same_path

CODE = """bool Berth::isFree(int tide) const
{
    if (!moored_ && tide >= minTide_)
        return 25.5;
    delay -= -5;
    // not loaded for npc 7
}"""


@pytest.mark.parametrize(
    "quote",
    [
        pytest.param("if (!moored_ && tide >= minTide_)", id="a line"),
        pytest.param("if   (!moored_ &&  tide >= minTide_)", id="other white space"),
        pytest.param("tide >= minTide_", id="a clean part"),
        pytest.param("moored_", id="a name behind a negation is a name"),
        pytest.param("{\n  if (!moored_ && tide >= minTide_)\n return 25.5;", id="three lines"),
        pytest.param("25.5", id="a whole number"),
        pytest.param("-5", id="a signed number"),
        pytest.param("not loaded for npc 7", id="with its negation"),
        pytest.param("Berth::isFree", id="a qualified name"),
        pytest.param("minTide_)\n        return", id="end of one line and start of the next"),
    ],
)
def test_true_quotes_stand(quote: str) -> None:
    assert find_quote(CODE, quote) is not None


@pytest.mark.parametrize(
    "quote",
    [
        pytest.param("if (moored_ && tide >= minTide_)", id="dropped negation"),
        pytest.param("moored_ && tide >= minTide_", id="cut behind a negation"),
        pytest.param("loaded for npc 7", id="cut behind not"),
        pytest.param("return 25.6;", id="one digit"),
        pytest.param("25", id="half a number"),
        pytest.param("5.5", id="the other half"),
        pytest.param("5;\n    // not loaded", id="a sign lost"),
        pytest.param("tide > minTide_", id="another operator"),
        pytest.param("= minTide_", id="cut through an operator"),
        pytest.param("-= -", id="cut through a number"),
        pytest.param("oored_", id="cut through a word"),
        pytest.param("{ if (!moored_ && tide >= minTide_)", id="two lines joined"),
        pytest.param("{\nreturn 25.5;", id="a line left out"),
        pytest.param("return 25.5;\nif (!moored_ && tide >= minTide_)", id="lines swapped"),
        pytest.param("IF (!moored_", id="other case"),
        pytest.param("if (!moored_ … minTide_)", id="ellipsis"),
        pytest.param("", id="nothing"),
    ],
)
def test_false_quotes_do_not_stand(quote: str) -> None:
    assert find_quote(CODE, quote) is None


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert find_quote("Größe = 3", "Gro\u0308ße = 3") is not None


def test_compact_json_may_be_quoted_with_spaces_but_not_cut() -> None:
    row = '{"delay":25,"note":"a b"}'
    assert find_quote(row, '"delay": 25, "note": "a b"', compact=True) is not None
    assert find_quote(row, '"delay": 25', compact=False) is None
    assert find_quote(row, '"delay": 2', compact=True) is None
    assert find_quote(row, '"note": "ab"', compact=True) is None


def test_form_feed_and_line_separator_end_no_line() -> None:
    """str.splitlines would count them, an editor does not: quoted line numbers must equal the editor's."""
    position = find_quote("a\x0cb\u2028c\r\nd\re", "e")
    assert position is not None
    assert position.line == 2


def test_position_counts_lines_of_the_content() -> None:
    position = find_quote(CODE, "if (!moored_ && tide >= minTide_)\nreturn 25.5;")
    assert position is not None
    assert (position.line, position.lines) == (2, 2)


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("It runs `a(b)` and ``c`d``.", ("a(b)", "c`d")),
        ("```cpp\nreturn 1;\n```", ("return 1;",)),
        ("He wrote “moored_ = true;” there.", ("moored_ = true;",)),
        ("„delay(25)“ steht da", ("delay(25)",)),
        ('the "hook missing" idea', ()),
        ("nothing quoted", ()),
    ],
)
def test_quotes_are_found(text: str, quotes: tuple[str, ...]) -> None:
    assert claims_of(text).quotes == quotes


def test_a_lone_backtick_is_noticed() -> None:
    assert not claims_of("`a` and `b").balanced
    assert claims_of("`a` and `b`").balanced


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("see src/a.cpp:12-14.", (Span("src/a.cpp", 12, 14),)),
        ("see src/a.cpp, lines 12 to 14", (Span("src/a.cpp", 12, 14),)),
        ("in a.py line 7", (Span("a.py", 7, 7),)),
        ("Zeilen 3-4 und line 9", (Span(None, 3, 4), Span(None, 9, 9))),
        ("src/Makefile:8", (Span("src/Makefile", 8, 8),)),
        ("at 12:30 on http://host:80/x", ()),
        ("version 1.2:3 and and/or lines 5", (Span(None, 5, 5),)),
    ],
)
def test_places_are_found(text: str, places: tuple[Span, ...]) -> None:
    assert claims_of(text).places == places


def test_ids_and_pairs_are_found_outside_quotes() -> None:
    claims = claims_of("E3 and E12 show entry = 7, not `E99` or E404x, name='Bo'")
    assert claims.evidence_ids == ("E3", "E12")
    assert claims.pairs == (("entry", "7"), ("name", "Bo"))


def test_a_quote_may_be_a_place_or_a_pair() -> None:
    assert place_of("src/a.cpp:12") == Span("src/a.cpp", 12, 12)
    assert place_of("return 1;") is None
    assert pair_of("entry = 7") == ("entry", "7")
    assert pair_of("entry == 7") is None


def test_paths_match_by_trailing_components() -> None:
    assert same_path("berth.cpp", "src/berth.cpp")
    assert same_path("./src/berth.cpp", "src/berth.cpp")
    assert not same_path("erth.cpp", "src/berth.cpp")
    assert not same_path("", "src/berth.cpp")
