"""What no tool, model, index or page may see, and the stable placeholders that stand in its place.

The same value gets the same placeholder everywhere in one package (`REDACTED_IP_9f2c01ab34`), so that
"the same host again" can still be said. A placeholder is a keyed hash: without the package's own random
key it cannot be turned back by trying values. Placeholders are plain words, so that code, SQL, JSON and
configuration keep their syntax. Redaction never adds or removes a line.

Three flavours decide how eager the rules are: `prose` (reports), `data` (logs, configuration, dumps,
tables) and `code` (source trees, where only literals that look like a real secret, addresses of people
and unmistakable tokens go, and version numbers, identifiers and syntax stay).

Every pattern is anchored at a literal or has bounded repetition: the time is linear in the text.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from viano_assets.case.redaction_columns import column_kind, is_secret_name
from viano_assets.case.redaction_rules import (
    Finder,
    Flavour,
    Found,
    Rule,
    Screen,
    anchors,
    disjoint,
    needles,
)
from viano_assets.case.redaction_values import BARE, QUOTED, is_mixed, is_value, value_group

RULES = "redaction-v2"
"""Version of the rules; pinned in `case.json` and applied again whenever a quote is verified."""

EARLIER_RULES = frozenset({"redaction-v1"})
"""Rules that these contain: such a case is read under these, which hide more."""

_FLAGS = re.IGNORECASE | re.ASCII


class Replacement(NamedTuple):
    """A half-open slice of the text and the placeholder that takes its place."""

    start: int
    end: int
    new: str


_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{20,64}"
    r"|xox[abposr]-[A-Za-z0-9-]{10,128}|AIza[A-Za-z0-9_-]{35}|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}"
    r"|sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,200}"
    r"|eyJ[A-Za-z0-9_-]{10,4096}\.[A-Za-z0-9_-]{10,4096}\.[A-Za-z0-9_-]{5,4096})",
    re.ASCII,
)
_BEARER = re.compile(r"(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9._~+/=-]{12,})", _FLAGS)
_URL_LOGIN = re.compile(
    r"://([^\s/@:'\"<>\[\](){}*+^$|\\]{0,128}):([^\s/@'\"<>\[\](){}\\]{1,256})@", re.ASCII
)
_LOGIN_WORD = (
    r"(?:password|passwd|passphrase|passwort|kennwort|pwd|sha_pass_hash"
    r"|(?:(?<=db)|(?<=user)|(?<=[A-Za-z][_.\-]))pass)"
)
_KEY_NAME = (
    r"(?:secret|(?:api|access|private|secret|encryption|signing|session|auth|account|storage)[_. -]?key"
    r"|token|credentials?|verifier|session_?id|cookie)"
)
_SEPARATOR = r"[\"'`\]]?[ \t]{0,8}(?:=>|:=|[:=>])[ \t]{0,8}"
_ASSIGNED = re.compile(rf"(?:(?P<pass>{_LOGIN_WORD})|{_KEY_NAME}){_SEPARATOR}(?:{QUOTED}|{BARE})", _FLAGS)
_SPOKEN = re.compile(
    r"(?:password|passwort|kennwort)[ \t]{1,4}(?:ist?|lautet|was|war)(?![a-z])[ \t]{0,2}:?[ \t]{0,4}"
    rf"(?:{QUOTED}|`?{BARE})",
    _FLAGS,
)
_FLAG = re.compile(rf"--(?:password|passwd|token|secret|api-key)[ =]{{1,4}}(?:{QUOTED}|(?!-){BARE})", _FLAGS)
_IDENTIFIED = re.compile(r"identified[ \t]{1,8}by[ \t]{1,8}(?:password[ \t]{1,4})?'([^'\n]+)'", _FLAGS)
_NAMED = re.compile(
    r"(?P<mark>[\"'])(?P<name>[\w.\-:/ \[\]]{2,128})(?P=mark)[ \t]{0,8}"
    r"(?:,?[ \t]{0,8}[\"']?val(?:ue)?[\"']?[ \t]{0,4}[:=][ \t]{0,8}|,[ \t]{0,8})"
    rf"{QUOTED}",
    _FLAGS,
)
_AMAZON = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])", re.ASCII)
_KEY_SPOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:secret|token|api[_ -]?key|access[_ -]?key)[ \t]{1,8}"
    r"(?:(?:is|ist|lautet|was)[ \t]{1,4})?[\"'`]?([A-Za-z0-9/+_.=-]{16,})",
    _FLAGS,
)
_CONNECTION = re.compile(
    r"[\"']([^\"';\s]{1,128});(?:\d{1,5}|[./\w-]{1,64});([^\"';\n]{1,64});([^\"';\n]{0,128});[^\"';\n]{0,64}[;\"']",
    re.ASCII,
)
_ACCOUNT = re.compile(
    r"(?<![A-Za-z])(?:user[_ ]?name|user[_ ]?id|uid|login|account(?:[_ ]?name)?|benutzer(?:name)?|user)"
    r"(?:[\"'][ \t]{0,4}:[ \t]{0,4}\"(?P<json>[^\"\n]{1,64})\""
    r"|[ \t]{0,4}=[ \t]{0,4}(?:\"(?P<double>[^\"\n]{1,64})\"|'(?P<single>[^'\n]{1,64})'"
    r"|(?P<bare>[A-Za-z][\w.\-]{1,63})(?=[\s,;)\]&]|$)))",
    _FLAGS | re.MULTILINE,
)
_HOME = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})([A-Za-z0-9_.\-]{2,64})(?=[/\\])", re.ASCII
)
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", ".", "0.0.0.0"})  # noqa: S104 - named, not bound
_GENERIC_HOMES = frozenset(
    """user users root runner ubuntu vagrant app public default circleci travis jenkins name username me you
    build builder docker node admin shared""".split()  # noqa: SIM905 - words read better than a list of strings
)
_MAIL = re.compile(r"@([A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,4}([A-Za-z]{2,24}))(?![A-Za-z0-9@(])", re.ASCII)
_MAIL_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-")
_CODE_DOMAINS = frozenset(
    """com org net edu gov mil info io de uk fr nl ch eu us ca au jp cn ru pl se br co dev app
    biz""".split()  # noqa: SIM905 - as above
)
_IPV4 = re.compile(r"(?<![\w.\-])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\w|-[A-Za-z0-9])", re.ASCII)
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}|:)(?::[0-9a-f]{1,4}){0,6}(?![\w:])", _FLAGS
)
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])", _FLAGS)
_DOCUMENTATION = tuple(
    ipaddress.IPv4Network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)
_VERSION_WORD = re.compile(
    r"version|release|build|revision|upgrade|section|chapter|kapitel|abschnitt|==|>=|<=|~=|\bv\.?$|\bver\b",
    _FLAGS,
)
_HOST_WORD = re.compile(r"host|addr|\bip\b|server|client|peer|from|connect|://|bind|listen", _FLAGS)
_LINE = re.compile(r"[^\n]+")
_LINE_BODY = re.compile(r"[^\r\n]+")
_ACCESS = re.compile(r"(?:AKIA|ASIA|REDACTED_SECRET_)", re.ASCII)
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----", re.ASCII)
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----", re.ASCII)


def _assigned(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    for match in _ASSIGNED.finditer(text, start, end):
        group = value_group(match)
        value = match[group]
        if is_value(value) and not _kept(text, match, value, flavour, bare=group in {"bare", "open"}):
            yield Found(*match.span(group), "SECRET")


def _kept(text: str, match: re.Match[str], value: str, flavour: Flavour, *, bare: bool) -> bool:
    """True when a value may stay although its name sounds secret."""
    if flavour == "code":
        return bare or not is_mixed(value) or any(c in value for c in " %$/\\<>={") or "::" in value
    if match["pass"] is None:
        return not is_mixed(value)
    spoken = flavour == "prose" and bare and not is_mixed(value)
    return spoken and text[match.end() - len(value) - 1] not in "=>" and not _ends_line(text, match.end())


def _valued(pattern: re.Pattern[str], flavours: frozenset[Flavour]) -> Finder:
    """Make a finder that redacts the value of each match, quoted or bare."""

    def find(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
        if flavour in flavours:
            for match in pattern.finditer(text, start, end):
                group = value_group(match)
                if len(match[group]) > 2 and is_value(match[group]):
                    yield Found(*match.span(group), "SECRET")

    return find


def _named(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    """Find the value beside a quoted name of a secret, in rows, arrays, attributes and objects."""
    if flavour == "code":
        return
    at = start
    while (match := _NAMED.search(text, at, end)) is not None:
        group = value_group(match)
        value = match[group]
        if is_secret_name(match["name"]) and is_value(value) and (is_mixed(value) or len(value) >= 16):
            yield Found(*match.span(group), "SECRET")
        # The value's own mark may open the next pair.
        at = match.end("name") + 1


def _keys(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    """Find the secret key that stands on the line of an access key, or behind the word for it."""
    if flavour == "code":
        return
    for line in _LINE.finditer(text, start, end):
        if _ACCESS.search(line[0]) is not None:
            for match in _AMAZON.finditer(text, *line.span()):
                yield Found(*match.span(), "SECRET")
    for match in _KEY_SPOKEN.finditer(text, start, end):
        if is_mixed(match[1]) and is_value(match[1]):
            yield Found(*match.span(1), "SECRET")


def _ends_line(text: str, at: int) -> bool:
    return text[at : at + 1] in {"", "\n", "\r"}


def _groups(
    pattern: re.Pattern[str], kinds: tuple[str, ...], flavours: frozenset[Flavour] | None = None
) -> Finder:
    """Make a finder that redacts group 1, 2, … of each match (group 0 when the pattern has none)."""

    def find(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
        if flavours is not None and flavour not in flavours:
            return
        first = 1 if pattern.groups else 0
        for match in pattern.finditer(text, start, end):
            for offset, kind in enumerate(kinds):
                value = match[first + offset]
                if value and is_value(value) and value.lower() not in _LOCAL_HOSTS:
                    address = kind == "HOST" and _IPV4.fullmatch(value) is not None
                    yield Found(*match.span(first + offset), "IP" if address else kind)

    return find


def _accounts(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    if flavour == "code":
        return
    for match in _ACCOUNT.finditer(text, start, end):
        group = match.lastgroup
        if group is not None and is_value(match[group]) and not match[group].isdigit():
            yield Found(*match.span(group), "ACCOUNT")


def _homes(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    if flavour == "code":
        return
    for match in _HOME.finditer(text, start, end):
        if match[1].lower() not in _GENERIC_HOMES:
            yield Found(*match.span(1), "ACCOUNT")


def _mails(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    for match in _MAIL.finditer(text, start, end):
        first = match.start()
        floor = max(start, first - 64)
        while first > floor and text[first - 1] in _MAIL_LOCAL:
            first -= 1
        local = text[first : match.start()].lstrip(".%+-")
        if not local or local == "git":
            continue
        if flavour == "code" and match[2].lower() not in _CODE_DOMAINS:
            continue
        yield Found(match.start() - len(local), match.end(), "MAIL")


def _line_around(text: str, start: int, end: int) -> str:
    """Return the line that holds the slice, at most 160 characters on each side."""
    left = text.rfind("\n", max(0, start - 160), start) + 1 or max(0, start - 160)
    right = text.find("\n", end, end + 160)
    return text[left : right if right >= 0 else end + 160]


def _ipv4(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    for match in _IPV4.finditer(text, start, end):
        octets = [int(part) for part in match[0].split(".") if part == "0" or part[0] != "0"]
        if len(octets) < 4 or max(octets) > 255 or octets[0] in {0, 127, 255}:
            continue
        if _VERSION_WORD.search(text, max(0, match.start() - 24), match.start()):
            continue
        if flavour != "data" and not _is_address(text, match, octets[0], flavour):
            continue
        yield Found(*match.span(), "IP")


def _is_address(text: str, match: re.Match[str], first: int, flavour: Flavour) -> bool:
    """Tell a host's address from a version number, and in code from a network and a private address."""
    product = text[max(0, match.start() - 2) : match.start()]
    if len(product) == 2 and product[0].isalpha() and product[1] == "/":
        return False
    line = _line_around(text, *match.span())
    if first < 10 and not _HOST_WORD.search(line):
        return False
    if flavour != "code":
        return True
    if text[match.end() : match.end() + 1] == "/" and text[match.end() + 1 : match.end() + 2].isdigit():
        return False
    address = ipaddress.IPv4Address(match[0])
    public = address.is_global or any(address in net for net in _DOCUMENTATION)
    return public and not _VERSION_WORD.search(line)


def _ipv6(text: str, start: int, end: int, flavour: Flavour) -> Iterator[Found]:
    for match in _MAC.finditer(text, start, end):
        if flavour != "code":
            yield Found(*match.span(), "MAC")
    for match in _IPV6.finditer(text, start, end):
        value = match[0]
        groups = [part for part in value.split(":") if part]
        if len(groups) < (6 if flavour == "code" else 4) and not (
            flavour == "data" and "::" in value and len(groups) > 2
        ):
            continue
        try:
            address = ipaddress.IPv6Address(value)
        except ValueError:
            continue
        if not address.is_loopback:
            yield Found(*match.span(), "IP")


_NOT_CODE: frozenset[Flavour] = frozenset({"prose", "data"})
_ASSIGNMENT_ANCHOR = (
    r"(?:passw|passphrase|pass|kennwort|pwd|secret|key|token|credential|verifier|session|cookie)"
    r"[a-z_]{0,4}[\"'`\]]?[ \t]{0,8}[:=>]"
)
LINE_RULES = (
    Rule(
        anchors(
            "akia",
            "asia",
            "gh[pousr]_",
            "github_pat_",
            "glpat-",
            "xox[abposr]-",
            "aiza",
            "hf_",
            "npm_",
            "sk-",
            "eyj",
        ),
        _groups(_TOKEN, ("SECRET",)),
        needles("akia asia ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox aiza hf_ npm_ sk- eyj"),
    ),
    Rule(anchors(r"bearer\s", r"basic\s"), _groups(_BEARER, ("SECRET",), _NOT_CODE), needles("bearer basic")),
    Rule(anchors("://[^\\s/@]{0,400}@"), _groups(_URL_LOGIN, ("ACCOUNT", "SECRET")), needles("://")),
    Rule(
        anchors(_ASSIGNMENT_ANCHOR),
        _assigned,
        needles("pass kennwort pwd secret key token credential verifier session cookie"),
    ),
    Rule(
        anchors(r"passwor[td]\s", r"kennwort\s"),
        _valued(_SPOKEN, frozenset({"prose"})),
        needles("passwor kennwort"),
    ),
    Rule(
        anchors("--passw", "--token", "--secret", "--api-key"),
        _valued(_FLAG, _NOT_CODE),
        needles("--passw --token --secret --api-key"),
    ),
    Rule(
        anchors(
            r"(?:pass|word|wd|wort|phrase|secret|token|key|credentials?)"
            r"(?:[_.-]?(?:hash|value|[0-9]))?\]?[\"'][ \t]{0,8}(?:,|[\"']?val)"
        ),
        _named,
        needles("pass word wd wort phrase secret token key credential"),
    ),
    Rule(
        anchors("akia", "asia", r"secret[ \t]", r"token[ \t]", r"(?:api|access)[_ -]?key[ \t]"),
        _keys,
        needles("akia asia secret token key"),
    ),
    Rule(anchors(r"identified\s"), _groups(_IDENTIFIED, ("SECRET",)), needles("identified")),
    Rule(
        anchors(";[^;\"'\n]{1,64};"),
        _groups(_CONNECTION, ("HOST", "ACCOUNT", "SECRET"), frozenset({"data"})),
    ),
    Rule(
        anchors("user", "uid", "login", "account", "benutzer"),
        _accounts,
        needles("user uid login account benutzer"),
    ),
    Rule(anchors("/home/", "/users/", r":\\{1,2}users"), _homes, needles("/home/ /users/ users")),
    Rule(anchors("@[a-z0-9]"), _mails),
    Rule(anchors(r"\.\d{1,3}\.\d{1,3}\.\d"), _ipv4),
    Rule(anchors(r":[0-9a-f]{0,4}:[0-9a-f]{0,4}:", r"-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-"), _ipv6),
)


_SCREEN = Screen(LINE_RULES)

_REMEMBERED = 200_000
"""Placeholders kept in memory; more are computed anew."""


class Redactor:
    """The rules with one package's key.

    Args:
        key: the package's secret; it never leaves the package and its raw inputs.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._tokens: dict[tuple[str, str], str] = {}

    @cached_property
    def key_id(self) -> str:
        """Eight hex digits that tell caches of different keys apart without giving the key away."""
        return hmac.new(self._key, b"key-id", hashlib.sha256).hexdigest()[:8]

    def placeholder(self, kind: str, value: str) -> str:
        """Return the placeholder of one value; letter case counts only for secrets."""
        known = self._tokens.get((kind, value))
        if known is None:
            shown = value if kind == "SECRET" else value.lower()
            named = f"{kind}\x00{shown}".encode("utf-8", "surrogatepass")
            known = f"REDACTED_{kind}_{hmac.digest(self._key, named, 'sha256').hex()[:10]}"
            if len(self._tokens) < _REMEMBERED:
                self._tokens[kind, value] = known
        return known

    def line_placeholders(self, kind: str, value: str) -> str:
        """Return the placeholder of every line of a value, so that the lines stay."""
        return _LINE_BODY.sub(lambda line: self.placeholder(kind, line[0]), value)

    def replacements(self, text: str, flavour: Flavour) -> list[Replacement]:
        """Return what `redact` would replace, in order and disjoint."""
        lowered = _ascii_lower(text)
        found: list[Found] = list(_pem_bodies(text)) if "private key-----" in lowered else []
        for rule in _SCREEN.open_rules(lowered):
            for start, end in rule.regions(text, lowered):
                found.extend(rule.find(text, start, end, flavour))
        return [
            Replacement(
                item.start, item.end, self.placeholder(item.kind, _as_text(text[item.start : item.end]))
            )
            for item in disjoint(found)
        ]

    def redact(self, text: str, flavour: Flavour) -> str:
        """Return the text with everything replaced that the rules name."""
        return apply(text, self.replacements(text, flavour))

    def cell(self, table: str, column: str, value: str) -> str:
        """Redact one value of a table whose file could not be redacted as text (SQLite, Parquet)."""
        kind = column_kind(table, column)
        if kind is not None and value and "REDACTED_" not in value:
            return self.placeholder(kind, value)
        return self.redact(value, "data")


def _ascii_lower(text: str) -> str:
    """Return the text in lower case, every character at its place (some letters grow when lowered)."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if char.isascii() else char for char in text)


def _as_text(value: str) -> str:
    """Return the value as UTF-8 text when it is UTF-8 bytes that were read as Latin-1."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _pem_bodies(text: str) -> Iterator[Found]:
    """Yield each line between the marks of a private key on its own, so that the lines stay."""
    at = 0
    while (begin := _PEM_BEGIN.search(text, at)) is not None:
        end = _PEM_END.search(text, begin.end())
        stop = end.start() if end is not None else len(text)
        for line in _LINE_BODY.finditer(text[begin.end() : stop]):
            if "REDACTED_" not in line[0]:
                yield Found(begin.end() + line.start(), begin.end() + line.end(), "SECRET")
        at = end.end() if end is not None else len(text)


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """Return `text` with ordered, disjoint replacements made."""
    parts: list[str] = []
    at = 0
    for start, end, new in replacements:
        parts += [text[at:start], new]
        at = end
    parts.append(text[at:])
    return "".join(parts)
