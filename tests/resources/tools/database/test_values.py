"""Literal VALUES at speed: every cell equal, and nothing that is not a literal let through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.tools.database.values import parse_values

text = st.text(
    st.characters(blacklist_categories=["Cs"]) | st.sampled_from("'\\\"(),;\n\0-#/*%_"), max_size=12
)
value = st.none() | st.integers(-(10**20), 10**20) | text
matrix = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(value, min_size=width, max_size=width), min_size=1, max_size=6)
)


def mysql(cell: int | str | None) -> str:
    if not isinstance(cell, str):
        return "NULL" if cell is None else str(cell)
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\0", "\\0"), ("\x1a", "\\Z")):
        cell = cell.replace(plain, escaped)
    return f"'{cell}'"


def ansi(cell: int | str | None) -> str:
    if not isinstance(cell, str):
        return "NULL" if cell is None else str(cell)
    return "'" + cell.replace("'", "''") + "'"


def expected(rows: list[list[int | str | None]]) -> list[bytes | None]:
    return [None if cell is None else str(cell).encode() for row in rows for cell in row]


@given(matrix, st.sampled_from([",", " , ", ",\n"]))
def test_every_cell_of_a_mysql_list_comes_back(rows: list[list[int | str | None]], comma: str) -> None:
    body = comma.join("(" + comma.join(mysql(cell) for cell in row) + ")" for row in rows).encode()
    cells = parse_values(body, backslash=True)
    assert cells is not None
    assert cells.flat == expected(rows)
    assert cells.width == len(rows[0])


@given(matrix)
def test_every_cell_of_a_standard_list_comes_back(rows: list[list[int | str | None]]) -> None:
    body = ",".join("(" + ",".join(ansi(cell) for cell in row) + ")" for row in rows).encode()
    cells = parse_values(body, backslash=False)
    assert cells is not None
    assert cells.flat == expected(rows)


@pytest.mark.parametrize(
    ("body", "cells"),
    [
        (b"(1,'it''s','a\\\\','')", [b"1", b"it's", b"a\\", b""]),
        (b"('NULL',NULL,null)", [b"NULL", None, None]),
        (b"(x'4142',0x41,b'101',_binary 'ab')", [b"0x4142", b"0x41", b"5", b"ab"]),
        (b"(-1.5e-07,+3,.5,1.)", [b"-1.5e-07", b"+3", b".5", b"1."]),
        (b"('50\\%','a\\_b','\\Z\\0\\b')", [b"50\\%", b"a\\_b", b"\x1a\0\b"]),
        (b"('),(','--','/*',';')", [b"),(", b"--", b"/*", b";"]),
        (b"('0000-00-00','\xf0\x9f\x8e\x89','\xe4')", [b"0000-00-00", b"\xf0\x9f\x8e\x89", b"\xe4"]),
    ],
)
def test_literals_of_every_kind(body: bytes, cells: list[bytes | None]) -> None:
    parsed = parse_values(body, backslash=True)
    assert parsed is not None
    assert parsed.flat == cells


@pytest.mark.parametrize(
    "body",
    [
        b"(1,NOW())", b"(@X+1,2)", b"(10+1)", b"(10-1)", b"(DEFAULT)", b"(1,'a' 'b')", b"(CONCAT('a','b'))",
        b"(1 2)", b"(1,)", b"()", b"(1,2),(3)", b"(1,'open)", b"(0x4G)", b"(truex)", b"(-NULL)", b"(--5)",
        b"(1,(2))", b"('a'b)", b"(a'b')", b"1,2", b"(1),(2", b"(NULL NULL)",
    ],
)  # fmt: skip
def test_what_is_no_literal_is_not_guessed(body: bytes) -> None:
    assert parse_values(body, backslash=True) is None


def test_quoted_cells_are_told_from_bare_ones() -> None:
    cells = parse_values(b"('0x41',1),(0x41,'2')", backslash=True)
    assert cells is not None
    assert cells.quoted(0) == [True, False]
    assert cells.quoted(1) == [False, True]


@given(st.binary(max_size=60))
def test_any_bytes_give_cells_or_nothing(noise: bytes) -> None:
    for backslash in (True, False):
        cells = parse_values(b"(" + noise + b")", backslash=backslash)
        assert cells is None or len(cells.flat) % cells.width == 0
