"""Which columns of a table hold secrets, accounts or addresses, by their names alone."""

from __future__ import annotations

import re

_ACCOUNT_TABLE = re.compile(
    r"(?:^|[_.])(?:accounts?|users?|logins?|credentials?|members?|auth)$", re.IGNORECASE
)
_SECRET = re.compile(
    r"pass(?:word|wd|_?hash|wort)?$|passw|pwd|sha_pass|secret|api_?key|access_?key|private_?key|session_?key"
    r"|verifier$|token(?:_?key|_?secret)?$|kennwort",
    re.IGNORECASE,
)
_MAIL = re.compile(r"e[_-]?mail|^(?:reg_)?mail(?:_?addr(?:ess)?)?$", re.IGNORECASE)
_IP = re.compile(r"(?:^|_)ip(?:_?addr(?:ess)?)?$|^ip_?addr|remote_?addr", re.IGNORECASE)
_IN_ACCOUNT_TABLE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^[sv]$|salt$|session|cookie|totp|otp|pin$", re.IGNORECASE), "SECRET"),
    (
        re.compile(
            r"user_?name|login(?:_?name)?$|account(?:_?name)?$|^name$|benutzer|^user$|real_?name",
            re.IGNORECASE,
        ),
        "ACCOUNT",
    ),
)


def is_account_table(table: str) -> bool:
    """True when the table's name says that it holds accounts."""
    return _ACCOUNT_TABLE.search(table.strip('`"[] ')) is not None


def column_kind(table: str, column: str) -> str | None:
    """Return the placeholder kind for the column's values, or None when they may be seen."""
    name = column.strip('`"[] ')
    if _MAIL.search(name):
        return "MAIL"
    if _SECRET.search(name):
        return "SECRET"
    if _IP.search(name):
        return "IP"
    if is_account_table(table):
        for pattern, kind in _IN_ACCOUNT_TABLE:
            if pattern.search(name):
                return kind
    return None
