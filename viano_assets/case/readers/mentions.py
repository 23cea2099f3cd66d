"""Finds what prose names: files, functions, ids, versions, commits, addresses, quoted output, commands.

A mention is a source of its own, so that it can be cited and looked up. Files and functions that are
merely named are `implementation_reference`: nobody has read them yet.
"""

# ruff: noqa: E501, SIM905 - a pattern, and a list of words, is read in one piece

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from viano_assets.case.readers.embedded import data_mentions
from viano_assets.case.readers.technical import FILE, is_sql, language_of_file, looks_like_command, technical


class Mention(NamedTuple):
    """A half-open slice of the text, its kind and parsed parts."""

    start: int
    end: int
    kind: str
    attributes: dict[str, str]


_CODE_SPAN = re.compile(
    r"(?P<ticks>`{1,2})(?!`)(?P<body>[^\n]{1,1000}?)(?<!`)(?P=ticks)(?!`)|\{\{(?P<jira>[^{}\n]+)\}\}"
)
_QUOTED = re.compile(
    r"\"([^\"\n]{3,200})\"|“([^”\n]{3,200})”|„([^“”\n]{3,200})[“”]|«([^»\n]{3,200})»|»([^«\n]{3,200})«"
)
_URL = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
_PATH = re.compile(rf"(?<![\w/\\.@+-]){FILE}(?::(?P<line>\d+))?")
_COMMIT = re.compile(
    r"(?<![\w/.-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])(?:[0-9a-f]{40}|[0-9a-f]{7,16})(?![\w-])"
)
_COMMIT_WORD = re.compile(
    r"commit|revision|\brev\b|hash|\bsha\b|\bcore\b|\bgit\b|build|stand|@", re.IGNORECASE
)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_VERSION = re.compile(
    r"(?:(?<![A-Za-z0-9_])(?P<name>[A-Za-z][\w+-]{0,60}+(?:[.][A-Za-z][\w+-]{0,60}+){0,6})[ /=]{1,3}(?:version |Version |v\.? ?)?)?(?<![\w.])v?(?P<version>\d+(?:\.\d+){1,4}"
    r"(?:[-+.]?(?:rc|a|b|alpha|beta|dev|post|p|final|snapshot)[.-]?\d*)?)(?![\w])(?!\.\d)",
    re.IGNORECASE,
)
_BARE_VERSION = re.compile(
    r"(?P<name>Python|Java|Node|Ruby|PHP|Windows|Ubuntu|Debian|Fedora|macOS|iOS|Android|Qt|GCC|Clang) (?P<version>\d{1,4})(?![\w.])"
)
_TICKET = re.compile(r"(?<![\w/-])(?:#(?P<number>\d{1,7})|(?P<key>[A-Z][A-Z0-9]{1,9}-\d{1,7}))(?![\w-])")
_ID_WORD = r"(?:id|ids|entry|guid|nr\.?|no\.?|nummer|number|key|schlüssel|kennung|code)"
_TYPED_ID = re.compile(
    rf"(?<![\w.])(?:(?P<label>[A-Za-zÄÖÜäöüß_]{{2,30}})[ _-]{{0,2}})?(?P<word>{_ID_WORD})\s{{0,2}}[:=#]?\s{{0,2}}(?P<value>-?\d{{1,12}})(?![\w.,]\d|\w)",
    re.IGNORECASE,
)
_NOUN_ID = re.compile(
    r"(?<![\w.])(?P<label>[A-Za-zÄÖÜäöüß_]{3,30})\s{1,2}#?(?P<value>\d{2,12})(?![\w]|[.,:/-]\d|\s?(?:%|ms\b|s\b|sec|min|h\b|hours?|days?|times|mal\b|Uhr|kb|mb|gb|bytes?|px|x\b|letters|lines?|zeilen))",
    re.IGNORECASE,
)
_FUNCTION_WORDS = frozenset(
    """the a an in on at to of for with from by and or but is are was were be been have has had not no all any only
    about around after before since until than over under up down per each every least most more less first last
    next within between into onto till below above perhaps maybe probably possibly then if when same other this that
    als in im am an auf aus bei bis das dass den der des die ein eine er es etwa für ist mit nach nicht nur ob oder
    ohne seit sich sie sind um und von vor war was wie wird zu zum zur über unter ab vielleicht vermutlich dann wenn
    diese dieser dieses einen einer einem dem kein keine""".split()
)
_NO_NOUN = _FUNCTION_WORDS | frozenset(
    """line lines version versions port status error errors page year years release zeile zeilen http
    januar februar märz april mai juni juli august september oktober november dezember january february march may june
    july october december""".split()
)
_CALL = re.compile(r"(?<![\w.`/])(?P<name>(?:[A-Za-z_~]\w*+(?:::|\.|->)){0,20}+[A-Za-z_~]\w*+)\(\)")
_QUALIFIED = re.compile(
    r"(?<![\w`/.])(?:[A-Za-z_]\w*+::){1,20}~?[A-Za-z_]\w*|(?<![\w`/.@])(?:[A-Za-z_]\w{1,}\.){1,6}[A-Za-z_]\w{2,}(?![\w(]|\.\w)"
)
_SNAKE = re.compile(r"(?<![\w`/.-])_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w/])")
_CAMEL = re.compile(
    r"(?<![\w`/.-])(?:[A-Z][a-z0-9]++(?:[A-Z]++[a-z0-9]*+)++|[a-z][a-z0-9]*+(?:[A-Z][a-z0-9]++)++)(?![\w/])"
)
_IDENTIFIER = re.compile(r"@?[A-Za-z_~$][\w$]*(?:(?:\.|::|->|#)~?[A-Za-z_$][\w$]*)*(?:\([^()]*\))?")
_ERROR_NAME = re.compile(r"(?:Error|Exception|Warning)$")
_DOMAIN_ENDS = frozenset("com org net edu gov io de html htm".split())

_PLACE = re.compile(rf"(?<![\w/\\.@+-])({FILE}):(\d+)")
_RAISED = re.compile(r"\b([A-Za-z_][\w.]{0,200}(?:Error|Exception))(?:\[\d+\])?:\s+(\S.*)$")

IMPLEMENTATION_KINDS = frozenset({"path", "symbol"})
"""Kinds that name something of the implementation which nobody has read."""


def classify_code(body: str) -> tuple[str, dict[str, str]]:
    """Say what the content of a code mark is."""
    text = body.strip()
    found = technical([text], 0)
    if found is not None and found.kind in {"error", "log_line", "stack_frame"}:
        return found.kind, found.attributes
    for pattern, make in _WHOLE:
        match = pattern.fullmatch(text)
        if match is not None:
            return make(match)
    if is_sql(text):
        return "sql", {}
    if looks_like_command(text):
        return "command", {"command": text}
    place = _PLACE.search(text)
    where = _path(place[1], place[2]) if place is not None else {}
    raised = _RAISED.search(text)
    if raised is not None:
        return "error", {**where, "exception": raised[1], "message": raised[2].strip()}
    return "literal", where


def _identifier(text: str) -> tuple[str, dict[str, str]]:
    name = re.sub(r"\([^()]*\)$", "", text)
    last = re.split(r"\.|::|->|#", name)[-1]
    if _ERROR_NAME.search(last) or last == "error":
        return "error", {"exception": name}
    qualified = "::" in name or "->" in name or "." in name or last.startswith("_")
    if name != text or (qualified and not last.isupper()):
        return "symbol", {"name": name, "last": last}
    return "identifier", {"name": name}


def _path(file: str, line: str | None) -> dict[str, str]:
    found = {"file": file}
    if line:
        found["line"] = line
    language = language_of_file(file)
    if language:
        found["language"] = language
    return found


_WHOLE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, dict[str, str]]]], ...] = (
    (re.compile(rf"({FILE})(?::(\d+))?"), lambda m: ("path", _path(m[1], m[2]))),
    (re.compile(r"v?(\d+(?:\.\d+){1,4}\w*)"), lambda m: ("version", {"version": m[1]})),
    (re.compile(r"-?\d+"), lambda m: ("id", {"value": m[0]})),
    (
        re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"),
        lambda m: ("commit", {"commit": m[0]}),
    ),
    (_IDENTIFIER, lambda m: _identifier(m[0])),
    (re.compile(r"(--?[A-Za-z][\w-]*)(?:[= ]\S+)?"), lambda m: ("identifier", {"name": m[1]})),
)


def mentions(text: str, *, environment: bool = False) -> list[Mention]:
    """Return the mentions in prose, disjoint and in order; earlier rules win.

    `environment` says that the prose lists what was installed, where any word may be a product.
    """
    taken: list[Mention] = []
    free = list(text)

    def add(start: int, end: int, kind: str, attributes: dict[str, str]) -> None:
        # One letter in code marks says too little to be a source of its own.
        if start + 1 < end and "\x00" not in free[start:end]:
            taken.append(Mention(start, end, kind, attributes))
            free[start:end] = ["\x00"] * (end - start)

    for found in (
        _code_spans(text),
        _quotes(text),
        _simple(text),
        _versions(text, environment=environment),
        _ids(text),
        _names(text),
    ):
        for mention in found:
            add(*mention)
    return sorted(taken)


def _code_spans(text: str) -> Iterator[Mention]:
    for match in _CODE_SPAN.finditer(text):
        group = "body" if match["body"] is not None else "jira"
        kind, attributes = classify_code(match[group])
        start, end = match.span(group)
        while start < end and text[start] == " ":
            start += 1
        while end > start and text[end - 1] == " ":
            end -= 1
        yield Mention(start, end, kind, {**attributes, "marked": "code"})


def _quotes(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 1
        found = technical([match[group]], 0)
        kind, attributes = (found.kind, found.attributes) if found is not None else ("literal", {})
        yield Mention(*match.span(group), kind, {**attributes, "marked": "quote"})


def _simple(text: str) -> Iterator[Mention]:
    for start, end, found in data_mentions(text):
        yield Mention(start, end, "data", found)
    for match in _URL.finditer(text):
        yield Mention(*match.span(), "url", {"url": match[0]})
    for match in _UUID.finditer(text):
        yield Mention(*match.span(), "id", {"value": match[0], "label": "uuid"})
    for match in _PATH.finditer(text):
        if match[0].rsplit(".", 1)[-1] not in _DOMAIN_ENDS:
            yield Mention(
                *match.span(),
                "path",
                _path(match[0].split(":")[0] if match["line"] else match[0], match["line"]),
            )
    for match in _COMMIT.finditer(text):
        if len(match[0]) == 40 or _COMMIT_WORD.search(text[max(0, match.start() - 30) : match.start()]):
            yield Mention(*match.span(), "commit", {"commit": match[0]})


def _versions(text: str, *, environment: bool) -> Iterator[Mention]:
    """Yield versions; in prose a name before a short number must look like a product's."""
    for match in _VERSION.finditer(text):
        name = match["name"] or ""
        short = match["version"].count(".") == 1
        if name.lower() in _FUNCTION_WORDS or (short and not environment and not name[:1].isupper()):
            name = ""
        if short and not name and not _near_version(text, match):
            continue
        yield _version(match, name)
    for match in _BARE_VERSION.finditer(text):
        yield _version(match, match["name"])


def _version(match: re.Match[str], name: str) -> Mention:
    found = {"version": match["version"].lstrip("vV")}
    if name:
        found["name"] = name
    return Mention(match.start() if name else match.start("version"), match.end(), "version", found)


def _near_version(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 24) : match.start()].lower()
    return (
        re.search(r"version|release|since|seit|before|until|bis|with|mit|from|ab|in|to|auf|update", before)
        is not None
    )


def _ids(text: str) -> Iterator[Mention]:
    for match in _TICKET.finditer(text):
        yield Mention(*match.span(), "id", {"value": match["number"] or match["key"], "label": "ticket"})
    for match in _TYPED_ID.finditer(text):
        word, label = match["word"].lower(), (match["label"] or "").lower()
        if len(match["value"].lstrip("-")) == 1 and word not in {"id", "ids", "entry", "guid"}:
            continue
        named = bool(label) and label not in _FUNCTION_WORDS
        start = match.start() if named else match.start("word")
        yield Mention(
            start,
            match.end(),
            "id",
            {"value": match["value"], "label": label if named else word, "named": "id"},
        )
    for match in _NOUN_ID.finditer(text):
        if match["label"].lower() not in _NO_NOUN:
            yield Mention(
                *match.span(),
                "id",
                {"value": match["value"], "label": match["label"].lower(), "named": "noun"},
            )


def _names(text: str) -> Iterator[Mention]:
    for match in _CALL.finditer(text):
        yield Mention(
            *match.span(), "symbol", {"name": match["name"], "last": re.split(r"\.|::|->", match["name"])[-1]}
        )
    for pattern in (_QUALIFIED, _SNAKE, _CAMEL):
        for match in pattern.finditer(text):
            if match[0].rsplit(".", 1)[-1].lower() not in _DOMAIN_ENDS and "REDACTED_" not in match[0]:
                kind, attributes = _identifier(match[0])
                yield Mention(*match.span(), kind, attributes)
