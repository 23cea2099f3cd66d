"""Secrets: read from the environment by name, bound to one origin, and taken out of every text.

A key is looked up when a request is built and never stored. `Redactor` replaces it by value, also in the
spellings in which a server or a log may repeat it, and always before a text is cut.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import urllib.parse
from collections.abc import Iterable, Mapping

MASK = "[secret]"
_KEY = re.compile(r"[\x21-\x7e]+")
_LOGGERS = (
    "httpx",
    "httpcore",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
    "httpcore.socks",
)


class Redactor:
    """Replaces secret values in texts and bytes.

    Args:
        secrets: the values to hide; values shorter than four characters hide nothing, because they
            would mutilate ordinary text.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= 4:
                forms |= _spellings(secret)
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def text(self, value: str) -> str:
        """Return `value` without the secrets."""
        for form in self._forms:
            value = value.replace(form, MASK)
        return value

    def data(self, value: bytes) -> bytes:
        """Return `value` without the secrets."""
        for form in self._forms:
            value = value.replace(form.encode(), MASK.encode())
        return value


def _spellings(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        json.dumps(secret)[1:-1],
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(),
    }


def usable_key(value: str) -> bool:
    """Say whether `value` can stand in a header: printable ASCII without blanks."""
    return _KEY.fullmatch(value) is not None


def read_key(environ: Mapping[str, str], name: str) -> str | None:
    """Return the key held by environment variable `name`, or None when it is unset or blank."""
    value = environ.get(name, "").strip()
    return value or None


class _LogFilter(logging.Filter):
    """Hides the keys of running calls in what the HTTP libraries log, headers included."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if self.secrets:
            record.msg = Redactor(self.secrets).text(record.getMessage())
            record.args = ()
        return True


_FILTER = _LogFilter()


def guard_logs(secret: str | None) -> None:
    """Hide `secret` from now on in the log records of the HTTP libraries."""
    if secret is None:
        return
    _FILTER.secrets.add(secret)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _FILTER not in logger.filters:
            logger.addFilter(_FILTER)
