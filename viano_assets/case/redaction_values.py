"""Where a secret's value ends and what is no value.

A bare value goes to the next blank. A delimiter (`&`, `;`, `,`) ends it only where it ends a sentence or
where another `name=` follows, as in URLs and connection strings; a quote or bracket ends it unless a letter
or digit follows. Nothing here backtracks: the time is linear in the text.
"""

from __future__ import annotations

import re

QUOTED = (
    r"(?:\"(?P<double>(?:[^\"\\\n]|\\.)++)\"|'(?P<single>(?:[^'\\\n]|\\.)++)'|[\"'](?P<open>[^\s\"'`]++))"
)
"""A value in quotes, or behind a quote that nothing closes; see `value_group`."""

_GOES_ON = r"[&;,](?=[^\s\"'`<)}\]])(?![A-Za-z_][\w.\-\[\]]{0,40}(?: [\w.\-]{1,40})?=)"
BARE = (
    rf"(?P<bare>(?:[^\s\"'`&;,<>(){{}}\[\]]|{_GOES_ON})"
    rf"(?:[^\s\"'`&;,<)}}\]]|{_GOES_ON}|[\"'`)}}\]](?=[A-Za-z0-9]))*+)"
)
"""A value without quotes."""

_GROUPS = ("double", "single", "open", "bare")
_NO_VALUE = frozenset(
    """null none nil true false yes no on off empty undefined required missing invalid incorrect wrong expired
    optional string str pass user username password secret
    token failed error prompt hidden unknown varchar text not the a is
    was""".split()  # noqa: SIM905 - words read better than a list of strings
)
_TEMPLATE = re.compile(
    r"\$[A-Za-z_]+|\$\{[^}]*\}?|\$\([^)]*\)?|%[a-z]|%\([^)]*\)?[a-z]?|%[\w]+%|<[^>]*>?|\{+[^{}]*\}*",
    re.ASCII,
)


def value_group(match: re.Match[str]) -> str:
    """Return the name of the group that holds the value."""
    return next(group for group in _GROUPS if match.groupdict().get(group) is not None)


def is_mixed(value: str) -> bool:
    """True for a value with letters and digits, long enough for a secret."""
    return len(value) >= 8 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def is_value(value: str) -> bool:
    """False for words that say that there is no value, for masks, templates and placeholders."""
    lowered = value.lower().rstrip(".,:;!?")
    if not lowered or lowered in _NO_VALUE or "REDACTED_" in value:
        return False
    if set(value) <= set("*xX.-_?#"):
        return False
    return _TEMPLATE.fullmatch(value) is None
