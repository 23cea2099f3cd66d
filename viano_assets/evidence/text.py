"""The one way in which text from outside becomes text that every store, model and page can hold.

JSON that others write is refused when it holds NUL or a lone surrogate (docs/contracts.md, S3); evidence
must not be lost for that reason. Both are written as a visible escape, once and always the same way, so
that a re-resolved excerpt compares equal.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00\ud800-\udfff]")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return "\\x00" if code == 0 else f"\\u{code:04x}"


def safe_text(text: str) -> str:
    r"""Return `text` with NUL written as `\x00` and a lone surrogate as `\udddd`."""
    return _UNSAFE.sub(_escape, text)


def decode_line(raw: bytes) -> tuple[str, bool]:
    """Decode one line of unknown origin; the flag says that it was not UTF-8 and was read as Windows-1252.

    Bytes that Windows-1252 does not define become a visible hexadecimal escape.
    """
    try:
        return safe_text(raw.decode("utf-8")), False
    except UnicodeDecodeError:
        return safe_text(raw.decode("cp1252", errors="backslashreplace")), True


def clip(text: str, limit: int) -> tuple[str, bool]:
    """Cut `text` to at most `limit` bytes of UTF-8 at a character; the flag says that it was cut."""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text, False
    return data[:limit].decode("utf-8", errors="ignore"), True
