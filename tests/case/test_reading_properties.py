from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.case.reading import read
from viano_assets.canonical import strict_loads
from viano_assets.case.text import decode

PIECES = st.sampled_from(
    [
        "# Title",
        "## Observed",
        "**Erwartet**",
        "Steps:",
        "Expected: all rows",
        "It stops. I think the cache is stale, but the log is empty.",
        "Es bricht ab, vermutlich wegen der Sperre (siehe `a/b.py:3`).",
        "1. open the file\n2. press `Save`",
        "- `pkg/mod.py:12`, `load`\n- `KeyError: 'x'`",
        "```python\nx = 1\n\ny = 2\n```",
        "```\n2024-01-01 10:00:00 ERROR broken\n```",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: no',
        "> quoted\n> more",
        "| a | b |\n| - | - |",
        "<!-- template -->",
        "mail me: a.b@example.org, 93.184.216.34",
        "    indented code",
        "---",
        "Umgebung\n========",
        "ä ö ü ß € 新しい 🙂",
        "h2. Soll",
        "{code:sql}\nUPDATE t SET a = 1;\n{code}",
        "",
    ]
)
FREE = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
REPORTS = st.lists(st.one_of(PIECES, FREE), min_size=1, max_size=12).map("\n\n".join)

STRUCTURE = re.compile(r"[\s#*_=~`>|:+.<>{}\[\]()/\\\"'!,;-]*")


@settings(max_examples=250, deadline=None)
@given(REPORTS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_word_of_a_report_belongs_to_a_source_and_spans_are_exact(
    text: str, encoding: str, newline: str
) -> None:
    """Coverage and places hold for any text, any encoding and any line end."""
    raw = text.replace("\r", "\n").replace("\n", newline).encode(encoding)
    reading = read(raw)
    decoded = decode(raw)
    covered = bytearray(len(raw))
    for source in reading.sources:
        origin = source.origin
        assert 0 <= origin.byte_start < origin.byte_end <= len(raw)
        assert 1 <= origin.line_start <= origin.line_end
        covered[origin.byte_start : origin.byte_end] = b"\x01" * (origin.byte_end - origin.byte_start)
        if "REDACTED_" not in source.text:
            assert decode(raw[origin.byte_start : origin.byte_end], decoded.encoding).text == source.text
        section = source.attributes.get("section")
        assert section is None or section in decoded.text
    titles = {s.attributes["section"] for s in reading.sources if "section" in s.attributes}
    left: list[str] = []
    for at, char in enumerate(decoded.text):
        if not covered[decoded.starts[at]]:
            left.append(char)
        elif left and left[-1] != "\n":
            left.append("\n")
    rest = "".join(left)
    for known in titles | {note.split("'")[1] for note in reading.notes if note.startswith("empty_section")}:
        rest = rest.replace(known, "")
    words = [line for line in rest.split("\n") if not STRUCTURE.fullmatch(line)]
    structural = (
        "1.",
        "2.",
        "h2. ",
        "python",
        "code:sql",
        "code",
        "Steps",
        "Expected",
        "Erwartet",
        "Observed",
    )
    assert [w for w in words if not any(s in w for s in structural) and len(w.strip()) > 3] == []


@settings(max_examples=100, deadline=None)
@given(REPORTS)
def test_reading_is_deterministic_and_strict_json(text: str) -> None:
    raw = text.encode()
    first, second = read(raw), read(raw)
    assert first == second
    dumped = json.dumps([s.model_dump(mode="json") for s in first.sources], ensure_ascii=False).encode()
    strict_loads(dumped)
    assert [s.id for s in first.sources] == [f"S{n}" for n in range(1, len(first.sources) + 1)]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["r.md", "r.json", "r.csv", "r.eml", "r.txt"]))
def test_no_bytes_break_a_reader(raw: bytes, name: str) -> None:
    read(raw, name)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=30)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(
                st.sampled_from(["title", "body", "comments", "fields", "user", "description", "x", "issue"]),
                inner,
                max_size=5,
            ),
        ),
        max_leaves=15,
    )
)
def test_every_string_of_a_json_report_that_is_prose_is_read(value: object) -> None:
    """Whatever the shape, a sentence written by a person ends up in some source."""
    marked = json.dumps(
        {"title": "t", "more": value, "odd": {"deep": ["the one sentence that a person wrote here"]}}
    )
    reading = read(marked, "r.json")
    assert any("the one sentence that a person wrote here" in s.text for s in reading.sources)
