"""Message catalogues of a tree: from the text a person sees to the code that shows it.

Gettext (`.po`), Java properties, Android and .NET resources, Qt Linguist, and JSON or YAML files that lie
where translations lie. They are read when a report is ranked, the report's language first, and only as
far as a fixed number of bytes; nothing of them is indexed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple

from resources.tools.source.text import STOP, WORD

if TYPE_CHECKING:
    from pathlib import Path

    from resources.tools.source.reader import FileRow

MAX_BYTES = 6_000_000
"""How much of all catalogues is read for one report."""
MAX_FILE = 3_000_000


class Entry(NamedTuple):
    """One text of a catalogue.

    text: what is shown. key: what the code says, an identifier or the original text. places: `path:line`
    where the catalogue says it is used.
    """

    text: str
    key: str
    places: tuple[str, ...]


_FOLDERS = frozenset(
    [
        "locale",
        "locales",
        "i18n",
        "l10n",
        "lang",
        "langs",
        "language",
        "languages",
        "translation",
        "translations",
        "messages",
        "nls",
    ]
)
_PLAIN = frozenset({"json", "yml", "yaml"})
_FORMATS = frozenset({"po", "properties", "resx", "ts", "xml"}) | _PLAIN
_TAG = re.compile(r"(?:^|[/_.-])([a-z]{2})(?:[_-][A-Za-z]{2,4})?(?=[/.]|$)")
_NOT_A_TAG = frozenset(["po", "js", "ts", "md", "py", "go", "rs", "in", "is", "io", "db", "ui"])


def language_tag(path: str) -> str:
    """Return the two letters of the language a catalogue's path names, or nothing."""
    found = [t for t in _TAG.findall(path.rsplit(".", 1)[0]) if t not in _NOT_A_TAG]
    return found[-1] if found else ""


def is_catalogue(path: str) -> bool:
    """Say whether a file holds texts of the user interface, from its path alone."""
    *folders, name = path.lower().split("/")
    ending = name.rsplit(".", 1)[-1]
    if ending not in _FORMATS:
        return False
    if ending in {"po", "resx", "properties"}:
        return True
    among = bool(_FOLDERS & set(folders)) or name.rsplit(".", 1)[0] in _FOLDERS
    if ending == "xml":
        return name == "strings.xml" or among
    return among


def chosen(files: Iterable[FileRow], *, german: bool) -> list[FileRow]:
    """Return the catalogues to read: the report's language, then those without one, then English."""
    order = ["de", "", "en"] if german else ["", "en", "de"]
    ranked = []
    for row in files:
        if not is_catalogue(row.path) or row.bytes > MAX_FILE:
            continue
        tag = language_tag(row.path)
        if tag in order:
            ranked.append((order.index(tag), row.path, row))
    result, used = [], 0
    for _, _, row in sorted(ranked, key=lambda r: r[:2]):
        used += row.bytes
        if used > MAX_BYTES:
            break
        result.append(row)
    return result


def read(root: Path, files: Iterable[FileRow]) -> list[Entry]:
    """Return the entries of catalogues; a file that is not what its name says gives none."""
    result: list[Entry] = []
    for row in files:
        target = root / row.path
        if target.is_symlink() or not target.is_file():
            continue
        text = target.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n")
        result += [e for e in _READERS[row.path.rsplit(".", 1)[-1].lower()](text) if e.text and e.key]
    return result


_PO_LINE = re.compile(r'^(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)?\s*"(.*)"\s*$')
_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|[nrt"\\ =:])')


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match.group(1)
        return (
            chr(int(found[1:], 16)) if found[0] == "u" else {"n": "\n", "r": "", "t": " "}.get(found, found)
        )

    return _ESCAPE.sub(one, text)


def _po(text: str) -> Iterator[Entry]:
    for block in re.split(r"\n[ \t]*\n", text):
        parts: dict[str, str] = {}
        places: list[str] = []
        current = ""
        for line in block.split("\n"):
            if line.startswith("#:"):
                places += line[2:].split()
                continue
            found = _PO_LINE.match(line)
            if found:
                current = found.group(1) or current
                parts[current] = parts.get(current, "") + _unescaped(found.group(2))
        key = parts.get("msgid", "")
        for name in ("msgstr", "msgstr[0]", "msgstr[1]"):
            if key and parts.get(name):
                yield Entry(
                    parts[name], parts.get("msgid_plural", key) if "1" in name else key, tuple(places)
                )


_PROPERTY = re.compile(r"^[ \t]*([^#!\s=:][^\s=:]*)[ \t]*[=:][ \t]*(.*)$", re.MULTILINE)


def _properties(text: str) -> Iterator[Entry]:
    for key, value in _PROPERTY.findall(re.sub(r"\\\n[ \t]*", "", text)):
        yield Entry(_unescaped(value).strip(), key, ())


_RESX = re.compile(r'<data\s[^>]{0,300}?name="([^"<>]{1,300})"[^>]{0,300}>\s{0,80}<value>([^<]*)</value>')
_ANDROID = re.compile(
    r'<string\s[^>]{0,300}?name="([^"<>]{1,300})"[^>]{0,300}>(.{0,2000}?)</string>', re.DOTALL
)
_QT = re.compile(
    r"((?:<location\s[^>]{0,300}/>\s{0,80}){0,20})<source>([^<]{0,2000})</source>"
    r"(?:(?!</message>)[\s\S]){0,2000}?<translation[^>]{0,80}>([^<]{1,2000})<"
)
_QT_PLACE = re.compile(r'filename="([^"]+)"\s+line="(\d+)"')


def _marked_up(text: str) -> Iterator[Entry]:
    for key, value in [*_RESX.findall(text), *_ANDROID.findall(text)]:
        yield Entry(unescape(re.sub(r"<[^>]*>", "", value)).strip(), unescape(key), ())
    for places, source, shown in _QT.findall(text):
        where = tuple(f"{path}:{line}" for path, line in _QT_PLACE.findall(places))
        yield Entry(unescape(shown), unescape(source), where)


def _json(text: str) -> Iterator[Entry]:
    try:
        yield from _nested(json.loads(text), ())
    except (ValueError, RecursionError):
        return


def _nested(value: Any, path: tuple[str, ...]) -> Iterator[Entry]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nested(inner, (*path, str(key)))
    elif isinstance(value, str) and path:
        yield Entry(value, ".".join(path), ())


_YAML = re.compile(r"^( *)([\w.-]+|\"[^\"]+\"|'[^']+'):(.*)$", re.MULTILINE)


def _yaml(text: str) -> Iterator[Entry]:
    """Read nested mappings of one-line texts; the topmost key is often the language and left out."""
    stack: list[tuple[int, str]] = []
    for indent, raw, rest in _YAML.findall(text):
        value = rest.strip()
        while stack and stack[-1][0] >= len(indent):
            stack.pop()
        key = raw.strip("\"'")
        if value and value[0] not in "|>&*[{#":
            inner = [k for _, k in stack if not re.fullmatch(r"[a-z]{2}(?:[_-]\w+)?", k)]
            yield Entry(value.strip("\"'"), ".".join([*inner, key]), ())
        stack.append((len(indent), key))


_READERS = {
    "po": _po,
    "properties": _properties,
    "resx": _marked_up,
    "xml": _marked_up,
    "ts": _marked_up,
    "json": _json,
    "yml": _yaml,
    "yaml": _yaml,
}

TOGETHER = 2
PER_WORD = 2


def dictionary(entries: Iterable[Entry], words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return for words of the shown language the original words that stand for them in the catalogues.

    A pair counts when it stands together at least twice and in most of the word's texts (Dice coefficient).
    """
    wanted = frozenset(w.lower() for w in words)
    alone: dict[str, int] = {}
    seen: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for entry in entries:
        original = {w.lower() for w in WORD.findall(entry.key)} - STOP
        for word in original:
            alone[word] = alone.get(word, 0) + 1
        for word in wanted.intersection(w.lower() for w in WORD.findall(entry.text)):
            seen[word] = seen.get(word, 0) + 1
            for other in original:
                pairs[word, other] = pairs.get((word, other), 0) + 1
    found: dict[str, list[tuple[float, str]]] = {}
    for (word, other), count in pairs.items():
        dice = 2.0 * count / (seen[word] + alone[other])
        if count >= TOGETHER and dice >= 0.5 and other != word:
            found.setdefault(word, []).append((-dice, other))
    return {w: tuple(o for _, o in sorted(rated)[:PER_WORD]) for w, rated in sorted(found.items())}
