"""Exact search: what is found, what an empty answer covers, and what cuts it."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest

from resources.tools.source import check
from tests.resources.tools.source.conftest import Open
from viano_assets.evidence.model import Completeness, ToolResult


def _listed(result: ToolResult) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.drafts[0].content.splitlines()]


def test_a_match_comes_with_place_symbol_and_exact_lines(open_tree: Open) -> None:
    tree = open_tree({"src/a.py": "import os\n\n\ndef close(door):\n    door.bolt()\n    return 7\n"})
    result = tree.search({"pattern": "door.bolt", "context": 1})
    assert result.completeness is Completeness.COMPLETE
    assert _listed(result) == [
        {"line": 5, "path": "src/a.py", "symbol": "close", "text": "    door.bolt()"},
    ]
    excerpt = result.drafts[1]
    assert excerpt.content == "def close(door):\n    door.bolt()\n    return 7"
    assert excerpt.provenance.byte_start == 12
    assert (excerpt.places[0].line_start, excerpt.places[0].line_end) == (4, 6)


def test_nothing_found_is_a_complete_negative_over_hidden_ignored_and_binary_files(open_tree: Open) -> None:
    files: dict[str, bytes | str] = {
        ".gitignore": "secret.py\n",
        "secret.py": "needle_one\n",
        ".hidden/x.txt": "needle_two\n",
        "blob.bin": b"\x00\x01needle_three\x00\xff",
    }
    tree = open_tree(files)
    for needle in ("needle_one", "needle_two", "needle_three"):
        assert not tree.search({"pattern": needle}).empty
    empty = tree.search({"pattern": "needle_four"})
    assert empty.empty
    assert empty.completeness is Completeness.COMPLETE
    assert empty.drafts[0].provenance.kind == "absence"
    assert empty.scope["files_searched"] == 4


def test_a_minified_line_is_cut_around_the_match_and_says_so(open_tree: Open) -> None:
    """B19: one line of 2 MB; the snippet holds the match, the answer is small and truncated."""
    line = "x" * 1_500_000 + "NEEDLE" + "y" * 500_000
    result = open_tree({"dist/app.min.js": line}).search({"pattern": "NEEDLE"})
    assert result.completeness is Completeness.TRUNCATED
    assert result.cause == "long_line"
    entry = _listed(result)[0]
    assert "NEEDLE" in str(entry["text"])
    assert entry["clipped"] is True
    assert sum(len(d.content) for d in result.drafts) < 9_000


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_pattern_meets_text_in_either_normal_form(open_tree: Open, form: str) -> None:
    """B21: the body is decomposed, the question composed, or the other way round; both are found."""
    other = "NFD" if form == "NFC" else "NFC"
    body = unicodedata.normalize(other, "die Größen sind falsch\n")  # type: ignore[arg-type]
    name = unicodedata.normalize(other, "größen.log")  # type: ignore[arg-type]
    query = unicodedata.normalize(form, "Größen")  # type: ignore[arg-type]
    assert not open_tree({name: body}).search({"pattern": query}).empty


def test_a_pattern_with_umlauts_meets_windows_1252(open_tree: Open) -> None:
    tree = open_tree({"a.cpp": "// prüft die Größe\n".encode("cp1252")})
    result = tree.search({"pattern": "Größe"})
    assert not result.empty
    assert result.drafts[1].content == "// prüft die Größe"


LATIN = "eins\n// prüft die Größe\nint grösse = 1;\n".encode("cp1252")


@pytest.mark.parametrize(
    "asked",
    [
        {"pattern": "Gr.{1,2}e", "regex": True},
        {"pattern": "Gr[öo]ße", "regex": True},
        {"pattern": r"pr\w+ die", "regex": True},
        {"pattern": "GRÖßE", "ignore_case": True},
        {"pattern": "PRÜFT die", "ignore_case": True},
        {"pattern": "größe$", "regex": True, "ignore_case": True},
    ],
)
@pytest.mark.parametrize("rest", [b"", "für UTF-8: Größer\n".encode() * 9], ids=["latin", "mixed"])
def test_patterns_meet_the_letters_of_windows_1252(
    open_tree: Open, asked: dict[str, object], rest: bytes
) -> None:
    """A dot, a class or a comparison without case meets characters; the bytes of an umlaut were none."""
    tree = open_tree({"sub/a.cpp": LATIN + rest, "b.txt": "ß\n", "logo.bin": bytes(range(256)) * 9})
    result = tree.search(asked | {"context": 0, "globs": ["*.cpp"]})
    assert 2 in [p.line_start for p in result.drafts[0].places]
    assert "// prüft die Größe" in [d.content for d in result.drafts[1:]] or rest
    assert tree.search(asked | {"globs": ["*.py"]}).empty


def test_lines_of_utf_8_are_not_read_another_way(open_tree: Open) -> None:
    tree = open_tree({"a.txt": LATIN + "Größe\n".encode() * 3})
    assert tree.search({"pattern": "GrÃ.", "regex": True}).empty
    places = tree.search({"pattern": "Gr..e", "regex": True, "context": 0}).drafts[0].places
    assert [p.line_start for p in places] == [2, 4, 5, 6]


def test_two_lines_are_found_across_mixed_line_ends_and_counted_like_an_editor(open_tree: Open) -> None:
    """B22: LF, CRLF and CR in one file."""
    data = b"one\r\ntwo\rthree\nfour\r\nfive"
    tree = open_tree({"a.txt": data})
    for query, first, last in (("one\ntwo", 1, 2), ("two\nthree", 2, 3), ("three\nfour", 3, 4)):
        result = tree.search({"pattern": query, "context": 0})
        place = result.drafts[0].places[0]
        assert (place.line_start, place.line_end) == (first, last), query
    read = tree.read({"path": "a.txt", "line_start": 2, "line_end": 4})
    assert read.drafts[0].content == "two\rthree\nfour"


def test_utf_16_and_byte_order_marks_do_not_shift_lines(open_tree: Open) -> None:
    tree = open_tree(
        {"a.log": "eins\nzwei Nadel\n".encode("utf-16"), "b.log": b"\xef\xbb\xbfeins\nzwei Nadel\n"}
    )
    result = tree.search({"pattern": "Nadel", "context": 0})
    assert [(p.path, p.line_start) for p in result.drafts[0].places] == [("a.log", 2), ("b.log", 2)]
    assert [d.content for d in result.drafts[1:]] == ["zwei Nadel", "zwei Nadel"]


def test_catastrophic_patterns_are_linear_or_refused(open_tree: Open) -> None:
    tree = open_tree({"a.txt": "a" * 5_000 + "b\n"})
    started = time.monotonic()
    assert tree.search({"pattern": "(a+)+$", "regex": True}).completeness is not Completeness.UNAVAILABLE
    refused = tree.search({"pattern": "(?<=a)b", "regex": True})
    assert refused.completeness is Completeness.UNAVAILABLE
    assert "look-around" in str(refused.cause)
    assert time.monotonic() - started < 5


def test_more_matches_than_asked_for_are_the_first_by_path(open_tree: Open) -> None:
    tree = open_tree({f"d{n:03}.txt": "needle\n" * 40 for n in range(200)})
    result = tree.search({"pattern": "needle", "limit": 5})
    assert result.completeness is Completeness.TRUNCATED
    assert result.cause == "limit"
    assert {p.path for p in result.drafts[0].places} == {"d000.txt"}
    assert result == tree.search({"pattern": "needle", "limit": 5})


def test_members_that_were_not_extracted_make_a_negative_partial(tmp_path: object, open_tree: Open) -> None:
    from pathlib import Path

    from resources.tools.source import SourceTree

    opened = open_tree({"a.txt": "x\n"})
    tree = SourceTree(
        opened.root, "inputs/source/t.zip", "cd" * 32, Path(str(tmp_path)) / "c2", omitted=("link",)
    )
    assert tree.search({"pattern": "nothing"}).completeness is Completeness.PARTIAL


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("source.search", {"pattern": ""}),
        ("source.search", {"pattern": "x", "globs": ["../*"]}),
        ("source.search", {"pattern": "x", "surprise": 1}),
        ("source.search", {"pattern": "x", "limit": 0}),
        ("source.read", {"path": "/etc/passwd"}),
        ("source.read", {"path": "a/../../b"}),
        ("source.read", {"path": "a", "line_start": 5, "line_end": 2}),
        ("source.read", {"path": "a", "line_start": 5, "symbol": "f"}),
        ("source.rank", {"text": 5}),
        ("source.nothing", {}),
    ],
)
def test_arguments_outside_the_contract_are_named(tool: str, arguments: dict[str, object]) -> None:
    assert check(tool, arguments)


def test_references_are_whole_words_with_the_function_around(open_tree: Open) -> None:
    tree = open_tree({"a.py": "def bolt():\n    pass\n\n\ndef close():\n    bolt()\n    unbolted = 1\n"})
    listed = _listed(tree.references({"name": "Door.bolt"}))
    assert [(e["line"], e.get("symbol")) for e in listed] == [(1, "bolt"), (6, "close")]


def test_a_file_too_large_to_be_searched_is_named(open_tree: Open) -> None:
    tree = open_tree({"a.py": "x = 1\n"})
    with (tree.root / "huge.py").open("wb") as stream:
        stream.write(b"needle = 1\n")
        stream.truncate((512 << 20) + 1)
    for result in (tree.search({"pattern": "needle"}), tree.symbol({"name": "needle"})):
        assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
        assert "huge.py" in str(result.cause)


def test_wide_text_without_a_mark_makes_an_absence_partial(open_tree: Open) -> None:
    tree = open_tree(
        {"a.cs": "class Needle { }\n".encode("utf-16-le"), "b.cs": "class B { }\n".encode("utf-16")}
    )
    for result in (tree.search({"pattern": "Needle"}), tree.symbol({"name": "Needle"})):
        assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
        assert "a.cs" in str(result.cause)
