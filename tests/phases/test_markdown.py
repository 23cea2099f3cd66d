from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from viano_assets.phases.markdown import code, escape, inline, plain, shorten


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a_b` is *so*", "`a_b` is \\*so\\*"),
        ("in `` a`b_ `` too", "in ``a`b_`` too"),
        ("`` `x` ``", "`` `x` ``"),
        ("one ` alone_", "one \\` alone\\_"),
        ("` ` blank", "\\` \\` blank"),
        ("- `a`", "\\- `a`"),
        ("see `def __init__(self):`.", "see `def __init__(self):`."),
    ],
)
def test_quotes_are_code_and_the_rest_is_literal(text: str, expected: str) -> None:
    assert inline(text) == expected


def _rendered(markdown: str) -> tuple[set[str], str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    kinds = {token.type for token in tokens}
    inner = [child for token in tokens for child in token.children or ()]
    return kinds | {child.type for child in inner}, "".join(child.content for child in inner)


@given(st.text(alphabet="ab1 `\\*_[]()<>&|~$@#-+=.:/!\"'\n\t\u202e", max_size=40))
def test_no_quote_breaks_out_of_its_code(text: str) -> None:
    kinds, shown = _rendered("x " + inline(text))
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text", "code_inline", "text_special"}
    if "`" not in text:
        assert shown == f"x {plain(text)}".rstrip()


@given(st.text(min_size=1, max_size=30))
def test_code_shows_exactly_its_text(text: str) -> None:
    kinds, shown = _rendered("x " + code(text))
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text", "code_inline"}
    assert shown == f"x {plain(text)}".rstrip()
