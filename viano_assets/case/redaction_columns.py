"""Which columns of a table hold secrets, accounts or addresses, by their names alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

SECRET_COLUMN = "secret"  # noqa: S105 - the name of a column
"""A column name whose values are secrets in any table."""

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


def column_kinds(table: str, columns: Sequence[str]) -> dict[int, str]:
    """Return the placeholder kind of every column that must not be seen, by its position."""
    kinds = {at: column_kind(table, name) for at, name in enumerate(columns)}
    return {at: kind for at, kind in kinds.items() if kind is not None}


def split_cells(row: str, delimiter: str) -> list[str]:
    """Split a row of a delimited table; a delimiter in double quotes, which stay, splits nothing."""
    if '"' not in row:
        return row.split(delimiter)
    cells: list[str] = []
    held = ""
    for part in row.split(delimiter):
        held = f"{held}{delimiter}{part}" if held else part
        if held.count('"') % 2 == 0:
            cells.append(held)
            held = ""
    return [*cells, held] if held else cells


_SECRET_NAME = re.compile(
    r"(?:[\w.\-:/ \[\]]{0,80}(?:[_.\-:/ \]\[]|(?=password|passwd|secret|token|Pass|Key|Pwd)))?"
    r"(?:password|passwd|passphrase|passwort|kennwort|pwd|pass|Pass|Pwd|secret(?:[_.-]?(?:access[_.-]?)?key)?"
    r"|(?:api|access|private|encryption|signing|session|auth|license)[_.-]?key|(?:Api|Access|Private)Key|token"
    r"|credentials?)(?:[_.\-]?(?:hash|value|[0-9]))?[\]]?",
    re.ASCII,
)
_NAMES = re.compile(
    r"(?:\w+_)?(?:name|key|setting|option|property|prop|param(?:eter)?|variable|var|attribute|config|field|k)"
)
_VALUES = re.compile(r"(?:\w+_)?(?:value|val|v|data|content)")


def is_secret_name(text: str) -> bool:
    """True when a text is the name of a setting whose value is a secret (`smtp_password`, `token`)."""
    text = text.strip()
    return len(text) <= 128 and (
        _SECRET_NAME.fullmatch(text) is not None or _SECRET_NAME.fullmatch(text.lower()) is not None
    )


def pair_positions(columns: Sequence[str]) -> tuple[int, int] | None:
    """Return where a table of settings keeps name and value, None for any other table."""
    lowered = [column.strip('`"[] ').lower() for column in columns]
    name = next((at for at, column in enumerate(lowered) if _NAMES.fullmatch(column)), None)
    value = next((at for at, column in enumerate(lowered) if _VALUES.fullmatch(column)), None)
    return None if name is None or value is None else (name, value)
