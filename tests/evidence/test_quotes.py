"""Quotes: tolerant of lines and white space, intolerant of any changed character."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from viano_assets.canonical import sha256_hex
from viano_assets.evidence.model import Completeness, EvidenceRecord, Provenance
from viano_assets.evidence.quotes import find_quote, normalise, quote_in, quote_stands

CODE = "bool Run(Contract& c) {\n    if (c.stage >= c.stages)\n        return false;\n\treturn Go(c);\n}\n"

words = st.text(st.sampled_from("abcXYZ019_(){};=<>!.,é"), min_size=1, max_size=8)


def record(content: str, kind: str) -> EvidenceRecord:
    return EvidenceRecord(
        evidence_id="E1",
        tool="t",
        arguments={},
        scope={},
        completeness=Completeness.COMPLETE,
        content=content,
        content_sha256=sha256_hex(content.encode()),
        provenance=Provenance.model_validate({"kind": kind}),
        bytes=len(content.encode()),
    )


def test_a_rewrapped_quote_stands_and_an_altered_one_does_not() -> None:
    stored = record(CODE, "source")
    assert quote_stands(stored, "if (c.stage >= c.stages) return false;")
    assert quote_stands(stored, "\t\tif  (c.stage >= c.stages)\r\n return false;")
    assert not quote_stands(stored, "if (c.stage > c.stages) return false;")
    assert not quote_stands(stored, "if(c.stage >= c.stages)")
    assert not quote_stands(stored, "  \n ")


def test_the_json_of_a_row_may_be_spaced_otherwise() -> None:
    stored = record('{"table": "stage", "row": {"id": 4, "delay": null}}', "row")
    assert quote_stands(stored, '"delay":null')
    assert not quote_stands(stored, '"delay":0')


def test_composed_and_decomposed_letters_are_the_same() -> None:
    stored = record("größe überschritten", "log")
    assert quote_stands(stored, unicodedata.normalize("NFD", "größe"))
    assert not quote_stands(stored, "grosse")


@given(st.lists(words, min_size=3, max_size=30), st.data())
def test_any_changed_character_falls(parts: list[str], data: st.DataObject) -> None:
    content = " ".join(parts)
    begin = data.draw(st.integers(0, len(parts) - 1))
    end = data.draw(st.integers(begin + 1, len(parts)))
    quote = "\n  ".join(parts[begin:end])
    assert quote_in(content, quote)
    position = data.draw(st.sampled_from([i for i, char in enumerate(quote) if not char.isspace()]))
    altered = quote[:position] + "\u00b6" + quote[position + 1 :]
    assert not quote_in(content, altered)
    assert not quote_in(content, altered, compact=True)


@given(st.lists(words, min_size=1, max_size=12, unique=True), st.integers(0, 9))
def test_a_drifted_excerpt_is_found_again(parts: list[str], above: int) -> None:
    lines = ["// new"] * above + [f"    {part}" for part in parts] + ["", "end of file"]
    found = find_quote(lines, "\n".join(parts), hint=1)
    assert found == (above + 1, above + len(parts))
    assert find_quote(lines, "never written") is None


def test_the_nearest_of_several_places_is_taken() -> None:
    lines = ["return false;", "x", "", "return false;", "y"]
    assert find_quote(lines, "return false;", hint=5) == (4, 4)
    assert find_quote(lines, "return false;") == (1, 1)
    assert find_quote(lines, "x return false;") == (2, 4)


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
