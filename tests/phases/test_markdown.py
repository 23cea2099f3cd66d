from __future__ import annotations

import pytest

from viano_assets.phases.markdown import escape, plain, shorten


@pytest.mark.parametrize("mark", ["# a", "- a", "+ a", "= a", "> a", "* a", "| a"])
def test_leading_marks_start_nothing(mark: str) -> None:
    assert escape(mark).startswith("\\")


@pytest.mark.parametrize(("text", "expected"), [("1. a", "1\\. a"), ("12) a", "12\\) a"), ("1 a", "1 a")])
def test_a_leading_number_is_no_list(text: str, expected: str) -> None:
    assert escape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b *c* `d`", "a\\_b \\*c\\* \\`d\\`"),
        ("[a](b) ![c](d)", "\\[a\\](b) !\\[c\\](d)"),
        ("<b> &amp; ~x~", "\\<b\\> \\&amp; \\~x\\~"),
        ("http://a www.b c@d", "http\\://a www\\.b c\\@d"),
        ("plain (text): 1.2, fine.", "plain (text): 1.2, fine."),
    ],
)
def test_foreign_text_is_literal_inside_a_line(text: str, expected: str) -> None:
    assert escape(text) == expected


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\u202e", "\u200b", "\ue000"])
def test_characters_that_steer_are_shown_not_sent(char: str) -> None:
    assert plain(f"a{char}b") == "a\ufffdb"


def test_everything_stands_on_one_line() -> None:
    assert plain(" a\r\n\tb\u2028c ") == "a b c"


@pytest.mark.parametrize(("width", "expected"), [(7, "abc def"), (6, "abc d…"), (5, "abc…"), (1, "a…")])
def test_shortening_says_that_it_shortened(width: int, expected: str) -> None:
    assert shorten("abc  def", width) == expected
