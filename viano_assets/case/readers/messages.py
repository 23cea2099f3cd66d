"""Mails and pasted chats: who wrote what, in which order.

The first author's words are the report, everybody else's are comments. A mail's head and signature are kept
as sources of their own kind; quoted earlier messages stay quotes.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import base64
import binascii
import quopri
import re
from email.errors import HeaderParseError
from email.header import decode_header
from itertools import pairwise

from viano_assets.case.model import SourceType
from viano_assets.case.readers.model import Passage, Reading
from viano_assets.case.text import Text, coarse, decode

_HEADER = re.compile(r"(?P<name>[A-Za-zÄÖÜäöü][A-Za-zÄÖÜäöü-]{1,30}):[ \t]*(?P<value>.*(?:\n[ \t]+\S.*)*)")
_MAIL_NAMES = frozenset({
    "from", "to", "subject", "date", "sent", "cc", "received", "message-id", "mime-version", "content-type", "von", "an",
    "betreff", "datum", "gesendet", "reply-to", "return-path", "content-transfer-encoding",
})  # fmt: skip
_SIGNATURE = re.compile(r"^(?:-- ?|_{5,}|--\s*\n)$", re.MULTILINE)
_ATTRIBUTION = re.compile(
    r"^(?:On .{5,100} wrote:|Am .{5,100} schrieb.{0,60}:|-+ ?(?:Original Message|Ursprüngliche Nachricht|Forwarded message"
    r"|Weitergeleitete Nachricht) ?-+|(?:From|Von): .+\n(?:Sent|Gesendet|Date|Datum): .+)$",
    re.MULTILINE,
)
_CHAT = re.compile(
    r"^(?:\[(?P<time1>[^\]\n]{3,30})\]\s*(?P<name1>[^:\n<>]{1,40}):"
    r"|\[(?P<time4>\d{1,2}:\d\d[^\]\n]{0,6})\]\s*<(?P<name4>[^>\n]{1,40})>"
    r"|(?P<time2>\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?)\s+[-–]\s+(?P<name2>[^:\n]{1,40}):"
    r"|(?P<name3>[^\W\d][\w .'-]{0,38}?)\s{1,4}\[?(?P<time3>\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?)\]?:?\s*(?=\n|$)"
    r"|<(?P<name5>[\w.\- ]{1,40})>\s)",
    re.MULTILINE,
)


_WORD = r"=\?[^?\s]+\?[bqBQ]\?[^?\s]*\?="
_ENCODED_WORDS = re.compile(rf"{_WORD}(?:\s+{_WORD})*")


def is_mail(text: str) -> bool:
    """True when the text begins with the head of a mail."""
    names = [match["name"].lower() for match in _head(text)]
    known = [name for name in names if name in _MAIL_NAMES]
    return (
        len(known) >= 2
        and len(known) >= len(names) / 2
        and bool({"subject", "betreff", "from", "von"} & set(known))
    )


def _head(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    at = len(text) - len(text.lstrip("\ufeff\n"))
    while (match := _HEADER.match(text, at)) is not None:
        found.append(match)
        at = match.end() + 1
    return found


def _words_decoded(run: str) -> str:
    """Return the text of neighbouring encoded words; a character may be split between two of them."""
    try:
        chunks = decode_header(run)
    except (HeaderParseError, binascii.Error, ValueError):
        return run
    found = ""
    for content, charset in chunks:
        data = content if isinstance(content, bytes) else content.encode()
        name = (charset or "").partition("*")[0].lower()
        try:
            # Mailers call Windows text Latin-1, which has no printable characters where it has its quotes.
            found += data.decode("cp1252" if name in {"iso-8859-1", "latin-1", "us-ascii"} else name)
        except (LookupError, UnicodeDecodeError):
            found += decode(data).text
    return "".join(c if c.isprintable() else " " for c in found)


def _plain(value: str) -> str:
    return _ENCODED_WORDS.sub(lambda match: _words_decoded(match[0]), value)


def _undecorated(text: Text) -> Text:
    """Return a header with its encoded words (RFC 2047) as the text they stand for."""
    return text.replace([(*m.span(), _words_decoded(m[0])) for m in _ENCODED_WORDS.finditer(text.text)])


def read_mail(text: Text, reading: Reading) -> None:
    """Add the passages of one mail."""
    head = _head(text.text)
    values = {match["name"].lower(): _plain(match["value"]) for match in head}
    who = {
        "author": values.get("from", values.get("von", "")).strip(),
        "time": values.get(
            "date", values.get("datum", values.get("sent", values.get("gesendet", "")))
        ).strip(),
    }
    for match in head:
        if match["name"].lower() in {"subject", "betreff"} and match["value"].strip():
            reading.passages.append(
                Passage(
                    _undecorated(text.cut(*match.span("value"))),
                    is_title=True,
                    whole=True,
                    kind="title",
                    attributes=who,
                )
            )
    for match in head:
        if match["name"].lower() not in {"subject", "betreff"}:
            reading.passages.append(
                Passage(
                    _undecorated(text.cut(*match.span())),
                    base=SourceType.TECHNICAL_FACT,
                    whole=True,
                    kind="header",
                    attributes={"name": match["name"].lower()},
                )
            )
    start = head[-1].end() if head else 0
    body = text.cut(start, len(text.text))
    for part in _parts(body, values):
        _read_body(part, reading, who)


def _parts(body: Text, headers: dict[str, str]) -> list[Text]:
    """Return the text parts of a body, transfer encodings undone."""
    boundary = re.search(r'boundary="?([^";\n]+)"?', headers.get("content-type", ""), re.IGNORECASE)
    if boundary is None:
        return [_undone(body, headers.get("content-transfer-encoding", ""), headers.get("content-type", ""))]
    found: list[Text] = []
    marks = list(re.finditer(rf"^--{re.escape(boundary[1])}(?:--)?[ \t]*$", body.text, re.MULTILINE))
    for mark, following in pairwise(marks):
        part = body.cut(mark.end() + 1, max(mark.end() + 1, following.start()))
        head = _head(part.text)
        values = {match["name"].lower(): match["value"] for match in head}
        if values.get("content-type", "text/plain").lower().startswith("text/plain"):
            inner = part.cut(head[-1].end() if head else 0, len(part.text))
            found.append(
                _undone(inner, values.get("content-transfer-encoding", ""), values.get("content-type", ""))
            )
    return found or [body]


def _undone(body: Text, transfer: str, content_type: str) -> Text:
    kind = transfer.strip().lower()
    if kind not in {"quoted-printable", "base64"} or not body.text.strip():
        return body
    raw = body.text.encode("utf-8", "replace")
    try:
        data = quopri.decodestring(raw) if kind == "quoted-printable" else base64.b64decode(raw)
    except (binascii.Error, ValueError):
        return body
    charset = re.search(r'charset="?([\w-]+)"?', content_type, re.IGNORECASE)
    try:
        text = data.decode(charset[1]) if charset is not None else decode(data).text
    except (LookupError, UnicodeDecodeError):
        text = decode(data).text
    return coarse(
        text.replace("\x00", "\u2400"), body.span(0, len(body.text)), body.line_starts, body.encoding
    )


def _read_body(body: Text, reading: Reading, who: dict[str, str]) -> None:
    end = len(body.text)
    earlier = _ATTRIBUTION.search(body.text)
    if earlier is not None:
        end = earlier.start()
    signature = _SIGNATURE.search(body.text, 0, end)
    stop = signature.start() if signature is not None else end
    if body.text[:stop].strip():
        reading.passages.append(Passage(body.cut(0, stop), attributes=who))
    if signature is not None and body.text[stop:end].strip("-_ \n"):
        reading.passages.append(
            Passage(body.cut(stop, end), base=SourceType.TECHNICAL_FACT, whole=True, kind="signature")
        )
    if earlier is not None:
        quoted = _unquoted(body.cut(earlier.end(), len(body.text)))
        attributes = {"quoted": " ".join(earlier[0].split())}
        base = SourceType.COMMENT if body.text[:stop].strip() else SourceType.REPORT
        reading.passages.append(Passage(quoted, base=base, attributes=attributes))


def _unquoted(text: Text) -> Text:
    """Take the quote marks off the lines, so that the earlier message is read as one."""
    return text.replace(
        [(m.start(), m.end(), "") for m in re.finditer(r"^(?:>[ \t]?)+", text.text, re.MULTILINE)]
    )


def is_chat(text: str) -> bool:
    """True when the text is a pasted conversation."""
    found = list(_CHAT.finditer(text))
    lines = sum(bool(line.strip()) for line in text.split("\n"))
    names = {_name(match) for match in found}
    return len(found) >= 3 and len(found) >= lines / 6 and len(names) >= 2 and found[0].start() < 200


def _name(match: re.Match[str]) -> str:
    return next((match[f"name{n}"].strip() for n in range(1, 6) if match[f"name{n}"]), "")


def _time(match: re.Match[str]) -> str:
    return next((match[f"time{n}"].strip() for n in range(1, 5) if match[f"time{n}"]), "")


def read_chat(text: Text, reading: Reading) -> None:
    """Add one passage for each run of one author's messages."""
    found = list(_CHAT.finditer(text.text))
    if text.text[: found[0].start()].strip():
        reading.passages.append(Passage(text.cut(0, found[0].start())))
    first = _name(found[0])
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text.text)
        body = text.cut(match.end(), end)
        if not body.text.strip():
            continue
        who = {"author": _name(match), "time": _time(match)}
        base = SourceType.REPORT if who["author"] == first else SourceType.COMMENT
        reading.passages.append(Passage(body, base=base, attributes=who))
