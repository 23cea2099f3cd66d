"""The work of a reader grows with the text, whatever stands in it.

A pattern that goes back over what it has read takes minutes at these sizes, a linear one well under a second.
The bound between them is the work for a text half as long, measured in the same run.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

import pytest

from tests.case.reading import read, texts
from viano_assets.case.readers.formats import read_format
from viano_assets.case.readers.prose import read_passage
from viano_assets.case.text import decode

SIZE = 100_000
FACTOR = 3.2
"""Most by which twice the text may cost more; twice is linear, four times quadratic."""
FREE_SECONDS = 0.25
"""Below this a measurement says nothing about growth, only about the machine."""

UNITS = (
    *(
        "x",
        "X",
        "a.",
        "a_",
        "a-",
        "1.",
        "1",
        "/a",
        "\\a",
        ":",
        "@",
        "a@",
        "QUJD",
        "<",
        '"',
        "'",
        "`",
        "[",
        "(",
        "{",
    ),
    *(
        "a::",
        "a->",
        "é",
        "-",
        "*",
        "=",
        "#",
        "~",
        "\\",
        "/",
        ".",
        "_",
        "a/b.",
        "a.py-",
        "::a",
        "(.",
        "{{a",
        "``a",
        "”",
    ),
    *("x" * 900 + " ", "a-" * 900 + " ", "a::" * 300 + " ", "(." * 900 + " ", "Aa" * 900 + "/ "),
    *(
        "a ",
        "a, ",
        "a; ",
        "a. ",
        "! ",
        "[a](",
        "`a ",
        '"a ',
        "E  ",
        "=? ",
        "perhaps 3 ",
        "i ",
        "should ",
        " - ",
        " (",
    ),
    *(
        "a\n",
        "\n",
        " \n",
        "# a\n",
        "- \n",
        "> a\n",
        "a:\n",
        "--\n",
        "```\n",
        "``` \n\n",
        "1. a\n",
        "|a|\n",
        "<!--\n",
    ),
    *("Another bug: a\n\n", "## Bug 1\na\n", "at a(\n", "  1: a::b\n", "#0 a (\n", "2024-01-01 10:00:00 a\n"),
    *(
        "Traceback (most recent call last):\n",
        'File "a.py", line 1, in a\n',
        "KeyError: a\n",
        "system: a\n\n",
        "\r",
    ),
)
SHAPES: dict[str, tuple[str, Callable[[int], str]]] = {
    "long space": ("r.md", lambda n: "a" + " " * n + "b"),
    "space after a time": ("r.md", lambda n: "12:34:56" + " " * n),
    "heading": ("r.md", lambda n: "# " + "# " * (n // 2) + "x"),
    "heading of brackets": ("r.md", lambda n: "# " + "(" * n),
    "wiki heading": ("r.md", lambda n: "== a" + " " * n + "="),
    "panel": ("r.md", lambda n: "{panel:title=" + "a" * n),
    "fence": ("r.md", lambda n: "```" + "a" * n + "`"),
    "tick": ("r.md", lambda n: "`a`" + " " * n + "x"),
    "error": ("r.md", lambda n: "KeyError: a" + " " * n + "b"),
    "commas before a hedge": ("r.md", lambda n: "a, " * (n // 3) + "probably wrong."),
    "go call": ("r.md", lambda n: "(." * n + "\n\t/a.go:1\n"),
    "data": ("r.md", lambda n: "![shot](data:image/png;base64," + "iVBORw0KGgo" * (n // 11) + ")"),
    "one key": ("r.json", lambda n: "{" + ",".join(['"body":"a"'] * (n // 11)) + "}"),
    "long key": ("r.json", lambda n: json.dumps({"title": "a", "(" * n: "a b c d e f g h"})),
    "deep": ("r.json", lambda n: "[" * n),
    "open strings": ("r.json", lambda n: '"' * n),
    "columns": ("r.csv", lambda n: "summary" + ",(" * n + "\n" + "a" + ",b" * n),
    "rows": ("r.csv", lambda n: "summary,description\n" + "a,b\n" * (n // 4)),
    "cells": ("r.csv", lambda n: "summary,description\n" + '"' * n),
    "headers": ("r.eml", lambda n: "From: a\nSubject: b\n" + "To: c\n" * (n // 6) + "\nbody"),
    "folded header": ("r.eml", lambda n: "From: a\nSubject: b" + "\n c" * (n // 3) + "\n\nbody"),
    "encoded words": ("r.eml", lambda n: "From: a\nSubject: " + "=?utf-8?q?a?= " * (n // 14) + "\n\nbody"),
    "half words": ("r.eml", lambda n: "From: a\nSubject: " + "=?a" * (n // 3) + "\n\nbody"),
    "parts": (
        "r.eml",
        lambda n: (
            "From: a\nSubject: b\nContent-Type: multipart/mixed; boundary=x\n\n" + "--x\n\na\n" * (n // 7)
        ),
    ),
    "chat": ("r.txt", lambda n: "".join(f"[10:{i % 60:02}] <a{i % 7}> b\n" for i in range(n // 15))),
    "front matter": ("r.md", lambda n: "---\n" + "a: b\n" * (n // 5)),
}


def cost(text: str, name: str) -> float:
    """Return the processor seconds that cutting and reading take, without redaction.

    The garbage collector is off: in a long test run it walks everything that other tests have left, more
    often the more a reader makes, and that is no work of the reader.
    """
    decoded = decode(text.encode())
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for passage in read_format(name, decoded).passages:
            read_passage(passage, passage.text.text)
        return time.process_time() - start
    finally:
        gc.enable()


def check_growth(half: str, whole: str, name: str) -> None:
    spent = cost(half, name)
    for _ in range(3):
        allowed = max(FREE_SECONDS, FACTOR * spent)
        if cost(whole, name) <= allowed:
            return
        spent = max(spent, cost(half, name))
    raise AssertionError(f"{name}: twice the text costs more than {FACTOR} times as much ({spent:.2f} s)")


@pytest.mark.parametrize("unit", UNITS, ids=[ascii(unit[:12]) for unit in UNITS])
def test_twice_the_text_costs_about_twice_as_much(unit: str) -> None:
    count = SIZE // len(unit) // 2
    check_growth(unit * count, unit * (2 * count), "report.md")


@pytest.mark.parametrize("shape", SHAPES)
def test_every_format_costs_about_twice_as_much_for_twice_the_text(shape: str) -> None:
    name, made = SHAPES[shape]
    check_growth(made(SIZE // 2), made(SIZE), name)


@pytest.mark.parametrize(
    "text",
    [
        "Ab" + "A" * 60 + "_ stops",
        "  0: " + "a::" * 60 + "b!",
        "`Ab" + "A" * 60 + "_`",
        "aB" + "Bb" * 60 + "/",
    ],
)
def test_no_name_is_tried_in_every_way_it_can_be_divided(text: str) -> None:
    """Sixty parts: what tries all divisions never ends."""
    assert cost(text, "report.md") < 1


def test_embedded_data_is_one_short_source_and_no_words() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 5000
    reading = read(f"# Picture is black\n\nIt shows ![this]({picture}) instead of the map.\n")
    (data,) = [s for s in reading.sources if s.kind == "data"]
    assert data.text == f"[embedded image/png, {len(picture)} characters]"
    assert data.attributes["media"] == "image/png"
    assert data.origin.byte_end - data.origin.byte_start == len(picture)
    assert sum(len(s.text) for s in reading.sources) < 300
    assert f"It shows ![this]({data.text}) instead of the map." in texts(reading, "report")


def test_a_long_token_without_a_break_is_one_short_source() -> None:
    reading = read("# Import hangs\n\nThe field holds " + "x" * 50_000 + " and then it stops.\n")
    (data,) = [s for s in reading.sources if s.kind == "data"]
    assert data.text == "[unbroken text, 50000 characters]"
    assert texts(reading, "report") == [f"The field holds {data.text} and then it stops."]


def test_a_long_path_an_address_and_a_hash_are_read_as_before() -> None:
    path = "/srv/" + "deep/" * 150 + "a.py"
    address = "https://example.org/" + "a/b?c=d&" * 200 + "e"
    reading = read(f"It fails in {path} for {address} at commit {'0a1b2c3d4e' * 4}.\n")
    assert {s.kind for s in reading.sources} == {None, "path", "url", "commit"}
