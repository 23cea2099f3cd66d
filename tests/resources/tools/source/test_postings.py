"""The array-wise cutting of words against the plain definition of a word and of its terms."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from resources.tools.source.postings import FIELDS, Collector
from resources.tools.source.text import WORD, BulkTerms, Terms, split_code

_PIECES = (
    "get_Name", "HTTPServer(", "x", "f(", "12", "3ab", "0x1F", "_", "__init__(", " ", "\n", "(", ".", "-",
    "Größe(", "naïve", "²", "日本", "the", "running", "1_000", "\x00", "„Zoll“", "a1", "9" * 40,
)  # fmt: skip


def _text(dice: random.Random) -> str:
    return "".join(dice.choice(_PIECES) for _ in range(dice.randrange(40)))


def _read(blobs: dict[str, bytes], field: str) -> dict[tuple[int, str], int]:
    terms = blobs["vocabulary"].decode().split("\n")
    starts = np.frombuffer(blobs[f"{field}.starts"], np.int64)
    units = np.frombuffer(blobs[f"{field}.units"], np.int32).tolist()
    counts = np.frombuffer(blobs[f"{field}.counts"], np.uint16).tolist()
    return {
        (units[at], term): counts[at]
        for number, term in enumerate(terms)
        for at in range(starts[number], starts[number + 1])
    }


@pytest.mark.parametrize("seed", range(20))
def test_postings_count_the_terms_of_every_word(seed: int) -> None:
    dice = random.Random(seed)
    collector, terms, want = Collector(), Terms(), {name: Counter[tuple[int, str]]() for name in FIELDS}
    for unit in range(30):
        for field in FIELDS:
            text = _text(dice)
            collector.add(field, unit, text)
            want[field].update((unit, t) for w in WORD.findall(text) for t in terms.of(w))
    blobs = dict(collector.blobs(30, ["f", "get_Name", "HTTPServer", "running"]))
    for field in FIELDS:
        assert _read(blobs, field) == want[field]
        lengths = Counter[int]()
        for (unit, _), count in want[field].items():
            lengths[unit] += count
        assert np.frombuffer(blobs[f"{field}.lengths"], np.int32).tolist() == [lengths[u] for u in range(30)]


def test_calls_are_names_before_a_parenthesis_and_compound_names_anywhere() -> None:
    collector = Collector()
    collector.add("body", 0, "open(path) + load_all")
    collector.add("body", 1, "open path; load (all)")
    collector.add("comment", 1, "load()")
    collector.add("body", 2, "f(f)(12) and x(")
    blobs = dict(collector.blobs(3, ["open", "load", "load_all", "f", "path", "x"]))
    names = blobs["calls.names"].decode().split("\n")
    units = np.frombuffer(blobs["calls.units"], np.int32).tolist()
    callees = [names[c] for c in np.frombuffer(blobs["calls.callees"], np.int32)]
    assert list(zip(units, callees, strict=True)) == [(0, "open"), (0, "load_all"), (2, "f"), (2, "x")]


def test_nothing_gives_empty_arrays() -> None:
    collector = Collector()
    collector.add("body", 0, "12 + 3")
    blobs = dict(collector.blobs(1, []))
    assert blobs["vocabulary"] == b""
    assert blobs["body.units"] == b""


def test_terms_in_bulk_are_those_of_each_identifier() -> None:
    dice = random.Random(11)
    parts = ("Foo", "bar", "_", "12", "X", "HTTP", "é", "ΑΣ", "ß", "İ", "ing", "the", "getters")
    words = sorted({"".join(dice.choices(parts, k=dice.randrange(1, 6))) for _ in range(4_000)})
    words = [w for w in words if WORD.fullmatch(w)]
    bulk, single = BulkTerms(words), Terms()
    for number, word in enumerate(words):
        found = bulk.ids[bulk.starts[number] : bulk.starts[number + 1]].tolist()
        assert sorted(bulk.vocabulary[i] for i in found) == sorted(single.of(word))


_SPLITS: list[tuple[str, str, list[str], list[str], str]] = [
    ("python", 'a = rb"x" # c', ["# c"], ['rb"x"'], "a ="),
    ("python", "r'''one'\nline'''+f'y'", ["r'''one'\nline'''"], ["f'y'"], " + "),
    ("python", "u'it\\'s' 'open", [], ["u'it\\'s'"], "  'open"),
    ("cpp", "a/b /* c // d */ '\"' \"e\\\"f\" // g", ["/* c // d */", "// g"], ["'\"'", '"e\\"f"'], "a/b"),
    ("cpp", "x /* never closed *", ["/* never closed *"], [], "x"),
    ("go", 'a `b"c` // d', ["// d"], ['`b"c`'], "a"),
    ("javascript", "`a ${b}\n` + 'c'", [], ["`a ${b}\n`", "'c'"], "   +"),
    ("lua", "a - b --[[ c\n]] [[d]] -- e", ["--[[ c\n]]", "-- e"], ["[[d]]"], "a - b"),
    ("sql", "a/b--c\n'it''s' # d", ["--c", "# d"], ["'it''s'"], "a/b \n"),
    ("config", "a=1 ; b\n'c'", ["; b"], ["'c'"], "a=1  \n "),
]  # fmt: skip


@pytest.mark.parametrize("case", _SPLITS, ids=lambda c: f"{c[0]}-{c[1][:12]!r}")
def test_comments_and_strings_stand_apart(case: Any) -> None:
    language, text, comments, strings, code = case
    split = split_code(text, language)
    assert (split.comments, split.strings, split.code.split()) == (comments, strings, code.split())
