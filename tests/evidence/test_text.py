"""Text from outside: decoded line by line, never lost, never unstorable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.evidence.text import clip, decode_line, safe_text


@given(st.binary(max_size=80))
def test_every_line_of_bytes_becomes_storable_text(raw: bytes) -> None:
    text, _ = decode_line(raw)
    assert strict_loads(canonical_json([text])) == [text]


def test_a_line_that_is_not_utf8_is_read_as_windows_1252() -> None:
    assert decode_line("Größe".encode()) == ("Größe", False)
    assert decode_line("Größe".encode("cp1252")) == ("Größe", True)


@given(st.text(), st.integers(0, 40))
def test_clipping_keeps_a_prefix_within_the_limit(text: str, limit: int) -> None:
    text = safe_text(text)
    kept, cut = clip(text, limit)
    assert text.startswith(kept)
    assert len(kept.encode()) <= limit
    assert cut == (kept != text)
