"""Recognises stack frames, errors, log lines, SQL, commands and patches line by line.

Frames of Python (traceback, list and pytest forms), C++ (gdb, sanitizers, Windows dumps), Java, .NET,
JavaScript, Go, Rust, Lua, PHP and Ruby. What a line is called decides nothing about its truth: it is text
that stands in the input.
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Found(NamedTuple):
    """What a run of lines is: `lines` lines from the one asked for, a kind and its parsed parts."""

    kind: str
    lines: int
    attributes: dict[str, str]


_EXTENSIONS = (
    r"(?:py[xi]?|cpp|cxx|cc|hpp|hxx|hh|inl|inc|java|kt|scala|cs|fs|vb|jsx|js|mjs|cjs|tsx|ts|vue|go|rs|lua|rb|php|pl|pm"
    r"|swift|mm|sql|c|h|m|erl|ex|exs|hs|ml|clj|dart|r|jl|sh|bash|ps1|bat|cmake|proto|html|xml|yaml|yml|json|toml|ini|cfg"
    r"|conf|cnf|properties|txt|log|rst|md|css|scss|csv|tsv|dbc|dump)"
)
FILE = rf"(?:[A-Za-z]:[\\/])?[\w.@+\-/\\]*[\w+\-]\.{_EXTENSIONS}(?![\w])"
"""A file name with a known ending, with or without folders."""

_LISTED_FRAME = (
    rf"\s*(?:[-*•]\s+)?(?:\d+[.)]\s+)?(?:at\s+)?[`'\"]?(?P<file>{FILE})(?::(?P<line>\d+)|,? (?:line|Zeile) (?P<line2>\d+))?[`'\"]?"
    r",?\s*(?:in |->|–|-)?\s*(?:[`'\"](?P<function>[\w.<>:~]+)(?:\(\))?[`'\"]|(?P<function2>(?:[A-Za-z_][\w.:<>~]*)\(\)))\s*$"
)
_FRAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (language, re.compile(pattern))
    for language, pattern in (
        ("python", r'\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$'),
        ("java", r"\s*(?:-\s+)?at (?P<function>[\w$.<>/@]+)\((?P<file>[\w$-]+\.(?:java|kt|scala|groovy)):(?P<line>\d+)\)"),
        ("java", r"\s*at (?P<function>[\w$.<>/]+)\((?:Native Method|Unknown Source)\)\s*$"),
        ("javascript", r"\s*at (?:async )?(?P<function>[\w$.<>\[\] ]+?) \((?P<file>[^()\n]+?):(?P<line>\d+):\d+\)\s*$"),
        ("javascript", r"\s*at (?:async )?(?P<file>[^()\s]+?):(?P<line>\d+):\d+\s*$"),
        ("javascript", r"\s*(?P<function>[\w$.<>/*]*)@(?P<file>[^@\s]+?\.[cm]?[jt]sx?[^@\s]*?):(?P<line>\d+):\d+\s*$"),
        ("cpp", r"\s*#\d+\s+(?:0x[0-9a-fA-F]+ )?(?:in )?(?P<function>[^\s(][^(\n]*?)\s*\([^\n]*?\)(?: const)? at (?P<file>[^\s:]+):(?P<line>\d+)"),
        ("cpp", r"\s*#\d+ 0x[0-9a-fA-F]+ in (?P<function>.+?)(?:\([^()\n]*\))?(?: const)? (?P<file>/?[^\s:()]+):(?P<line>\d+)(?::\d+)?\s*$"),
        ("cpp", r"\s*#\d+\s+0x[0-9a-fA-F]+ in (?P<function>[^\s(]+)"),
        ("dotnet", r"\s*(?:at|bei) (?P<function>[\w.<>`\[\], +]+?)\([^)\n]*\)(?: in (?P<file>.+?):(?:line|Zeile) (?P<line>\d+))?\s*$"),
        ("php", r"\s*#\d+ (?P<file>[^\s(]+)\((?P<line>\d+)\): (?P<function>[\w\\:>-]+)"),
        ("cpp", r"\s*(?:0x)?[0-9A-Fa-f]{8,16}\s+(?:[0-9A-Fa-f]{8,16}\s+)?(?P<function>[A-Za-z_~][\w:~<>]*)\+\S+\s+(?P<file>\S+?\.\w+)\s+line (?P<line>\d+)"),
        ("cpp", r"\s*[\w.-]+!(?P<function>[\w:~<>]+)(?:\+0x[0-9a-fA-F]+)?(?: \[(?P<file>[^\]@]+?) @ (?P<line>\d+)\])?\s*$"),
        ("go", r"\t(?P<file>/?\S+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?\s*$"),
        ("rust", r"\s+at (?P<file>\S+\.rs):(?P<line>\d+)(?::\d+)?\s*$"),
        ("rust", r"\s*\d+: +(?:0x[0-9a-f]+ - )?(?=[^\n]*[\w>}]::[\w<{])(?P<function>[\w<>:{}$ #,&]++)$"),
        ("rust", r"\s{2,}\d+: +(?:0x[0-9a-f]+ - )?(?P<function>[A-Za-z_]\w*)$"),
        ("lua", r"\s*(?P<file>\S+?\.lua):(?P<line>\d+): in (?:(?:function|method|local|upvalue|field) )?[<'`]?(?P<function>[\w.:]+)"),
        ("ruby", r"\s*(?:from )?(?P<file>\S+\.rb):(?P<line>\d+):in [`'](?P<function>[^']+)'"),
        ("python", rf"\s*(?P<file>{FILE}):(?P<line>\d+): in (?P<function>\w+)\s*$"),
        ("", _LISTED_FRAME),
        ("", rf"\s*(?:[-*•]\s+)[`'\"]?(?P<file>{FILE}):(?P<line>\d+)[`'\"]?\s*$"),
    )
)  # fmt: skip
_MAX_LINE = 2_000
_LONG_SPACE = re.compile(r"\s{40,}")
_RUST_PLACE = re.compile(r"\s+at (?P<file>\S+\.rs):(?P<line>\d+)(?::\d+)?\s*$")
_GO_CALL = re.compile(r"(?=[^\n]*\.)(?P<function>[\w./*()-]+)\([^()]*\)\s*$")
_TRACE_HEAD = re.compile(
    r"\s*(?:Traceback \(most recent call last\)|stack traceback|goroutine \d+ \[|stack backtrace|Stack trace|Call stack"
    r"|During handling of the above exception|The above exception was the direct cause)",
    re.IGNORECASE,
)
_TRACE_REST = re.compile(
    r"\s*(?:\.\.\. \d+ (?:more|common frames omitted|frames? elided)|#\d+ \{main\}|\[Previous line repeated \d+ more times?\]"
    r"|note: (?:run with `RUST_BACKTRACE|Some details are omitted)|Node\.js v\d|exit status \d+$|\(Session info:|--- End of .{0,60}trace)"
)
_NODE_HEAD = re.compile(r"(?:file://)?\S+\.[cm]?[jt]sx?:\d+$")
_ERROR = re.compile(
    r"\s*(?:[-*•]\s+)?[`'\"]?(?:(?:Caused by|Unhandled exception[.:]|Uncaught|Exception in thread \"[^\"]*\"|E\s{2,})[:\s]*)?"
    r"(?P<exception>(?:[A-Za-z_][\w$]*(?:\.|::|\\))*\w*?(?:Error|Exception|Warning|Fault|Panic|Interrupt|Exit|error))"
    r"(?:\[[\w]+\])?(?:`?\s*\((?:no message|keine Meldung)\)|:\s*(?P<message>\S.*?))?[`'\"]?\s*$"
)
_PANIC = re.compile(
    r"\s*(?:[-*•]\s+)?[`'\"]?(?:(?P<exception>panic|fatal error|fatal|Segmentation fault|Access violation|Bus error|Aborted"
    r"|Assertion(?: `[^']*')? failed|INTERNAL ERROR|SIGSEGV|SIGABRT|SIGILL|SIGFPE|core dumped)\b[:!.]?\s*(?P<message>.*?)"
    r"|thread '[^']*' panicked at (?P<file>[^\s:]+)(?::(?P<line>\d+))?.*|(?:ERROR|error|Fehler) \d{3,5}(?: \([^)]*\))?.*"
    r"|[A-Z]{2,4}-\d{3,5}: .*)[`'\"]?\s*$",
)
_DIED = re.compile(
    r"\s*(?:(?:libc\+\+abi: )?(?:terminate called|terminating (?:due to|with) uncaught)(?: after throwing an instance of '(?P<exception>[^'\n]+)'|\b[^\n]*)"
    r"|(?:Program|Thread \d+[^\n]{0,80}?) (?:received|terminated with) signal (?P<exception2>SIG[A-Z]+)(?:, (?P<message2>[^\n]*))?"
    r"|={2,}\d+={2,}\s?ERROR: (?P<exception3>\w+Sanitizer): (?P<message3>[^\n]*)"
    r"|(?:PHP )?Fatal error: (?P<message4>[^\n]*))$"
)
_LUA_ERROR = re.compile(r"\s*(?:lua\S*: )?(?P<file>\S+?\.lua):(?P<line>\d+): (?!in )(?P<message>[^\n]+)$")
_WHAT = re.compile(r"\s*what\(\):\s*(?P<message>\S[^\n]*)$")
_PANIC_HEAD = re.compile(r"\s*thread '[^']*' (?:\(\d+\) )?panicked at [^\s:]+:\d+:\d+:$")
_COMPILER = re.compile(
    rf"\s*(?P<file>{FILE})[:(](?P<line>\d+)(?:[:,]\d+)?\)?:?\s+(?:fatal )?(?:error|warning|Error)\b:?\s*(?P<message>.*)$"
)
_ASSERTION = re.compile(
    rf"\s*(?:[\w./-]+: )?(?P<file>{FILE}):(?P<line>\d+): (?P<message>(?P<function>[^:]*): Assertion .*)$"
)
_TIME = (
    r"(?:\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?"
    r"|\d\d[./]\d\d[./]\d{2,4},? \d\d:\d\d(?::\d\d(?:[.,]\d+)?)?|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2} \d\d:\d\d:\d\d"
    r"|\d\d:\d\d:\d\d(?:[.,]\d+)?)"
)
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC)"
_LOG = re.compile(
    rf"\s*(?:\[?(?P<time>{_TIME})\]?[\s,:|-]*)(?:(?:\[(?P<level>{_LEVEL})\]|(?P<level4>{_LEVEL})\b)[\s:|-]*)?(?P<message>\S.*)$"
    rf"|\s*(?:\[(?P<level2>{_LEVEL})\]|(?P<level3>{_LEVEL}):)\s*(?P<message2>\S.*)$"
)
_CARETS = re.compile(r"\s+[~^]+\s*$")
_COMMAND = re.compile(r"\s*(?:[\w.@~/:-]*[$#%]|PS [^>]*>|C:\\[^>]*>|>>>)\s+(?P<command>\S.*)$")
_COMMAND_WORD = re.compile(
    r"\s*(?:sudo |python3? |pip3? |pytest\b|make\b|cmake |git |docker |npm |yarn |cargo |go (?:run|test|build)|mvn |gradle"
    r"|java |curl |wget |mysql |psql |sqlite3 |mkdir |cd |rm |cp |mv |ls |cat |echo |export |set |umask |bash |sh |node |npx "
    r"|\./|\.\\|[a-z][\w.-]*(?: [a-z][\w-]*){0,2} --?[A-Za-z])"
)
_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(?:SELECT\b.+\bFROM\b|INSERT\s+(?:IGNORE\s+)?INTO\b|UPDATE\s+\S+\s+SET\b|DELETE\s+FROM\b|REPLACE\s+INTO\b"
    r"|CREATE\s+(?:TABLE|VIEW|INDEX|PROCEDURE)\b|ALTER\s+TABLE\b|DROP\s+TABLE\b|WITH\s+\w+\s+AS\s*\(|TRUNCATE\s+TABLE\b)",
    re.IGNORECASE | re.DOTALL,
)
_PATCH = re.compile(r"^(?:diff --git |--- (?:a/|\S+\.\w+)|\+\+\+ (?:b/|\S+\.\w+)|@@ -\d+)", re.MULTILINE)


_LINE_KINDS = (
    ("error", _ASSERTION),
    ("error", _COMPILER),
    ("log_line", _LOG),
    ("error", _ERROR),
    ("error", _PANIC),
    ("error", _DIED),
    ("error", _LUA_ERROR),
    ("trace_rest", _TRACE_REST),
)


def is_trace_head(line: str) -> bool:
    """True for a line that announces a trace, or with which a runtime ends one."""
    return _TRACE_HEAD.match(line) is not None or _TRACE_REST.match(line) is not None


def is_sql(text: str) -> bool:
    """True when the text is a SQL statement."""
    return _SQL.match(text) is not None


def is_patch(text: str) -> bool:
    """True when the text is a diff of files: a ready-made change."""
    return len(_PATCH.findall(text)) >= 2


def command_of(line: str) -> str | None:
    """Return the command of a prompt line (`$ make`), or None."""
    match = _COMMAND.match(line)
    return None if match is None else match["command"].strip()


def looks_like_command(line: str) -> bool:
    """True for a line that a shell would be given, with or without a prompt."""
    return command_of(line) is not None or _COMMAND_WORD.match(line) is not None


def technical(lines: Sequence[str], at: int) -> Found | None:
    """Return what begins at line `at`, or None when the line is prose or code."""
    line = _bounded(lines[at])
    if not line:
        return None
    if _TRACE_HEAD.match(line):
        return Found("trace_head", 1, {})
    frame = _frame(line, lines, at)
    if frame is not None:
        return frame
    if _NODE_HEAD.match(line) and any(_CARETS.match(below) for below in lines[at + 1 : at + 3]):
        return Found("trace_head", 2 if _CARETS.match(lines[at + 1]) else 3, {})
    for kind, pattern in _LINE_KINDS:
        match = pattern.match(line)
        if match is not None:
            return _with_message(Found(kind, 1, _parts(match)), lines, at)
    return None


def _with_message(found: Found, lines: Sequence[str], at: int) -> Found:
    """Add the next line to an error whose runtime prints its message there (C++, Rust)."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if found.kind != "error" or not following.strip():
        return found
    if _PANIC_HEAD.match(lines[at]):
        return Found("error", 2, {**found.attributes, "message": following.strip()})
    what = _WHAT.match(following) if lines[at].lstrip().startswith("terminate called") else None
    return found if what is None else Found("error", 2, {**found.attributes, **_parts(what)})


def _bounded(line: str) -> str:
    """Return what of a line decides what it is, so that no line costs more than its length times a constant."""
    return _LONG_SPACE.sub(lambda match: match[0][:40], line[:_MAX_LINE]).rstrip()


def _frame(line: str, lines: Sequence[str], at: int) -> Found | None:
    for language, pattern in _FRAMES:
        match = pattern.match(line)
        if match is None:
            continue
        parts = _parts(match)
        count = 1
        if language == "python" and line.lstrip().startswith("File "):
            count += _code_lines(lines, at)
            if count > 1:
                parts["code"] = lines[at + 1].strip()
        if language == "rust" and "file" not in parts and at + 1 < len(lines):
            below = _RUST_PLACE.match(lines[at + 1][:_MAX_LINE])
            if below is not None:
                parts |= _parts(below)
                count = 2
        parts.setdefault("language", language or _language(parts.get("file", "")))
        return Found("stack_frame", count, {key: value for key, value in parts.items() if value})
    following = lines[at + 1] if at + 1 < len(lines) else ""
    where = re.match(r"\t(?P<file>/?\S+\.go):(?P<line>\d+)", following)
    call = _GO_CALL.match(line) if where is not None else None
    if call is not None and where is not None:
        return Found("stack_frame", 2, {**_parts(call), **_parts(where), "language": "go"})
    return None


def _code_lines(lines: Sequence[str], at: int) -> int:
    """Return how many lines of code and carets follow a Python frame."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    count = 0
    for line in lines[at + 1 : at + 4]:
        deeper = len(line) - len(line.lstrip()) > indent
        if (
            not line.strip()
            or not deeper
            or line.lstrip().startswith('File "')
            or (count and not _CARETS.match(line))
        ):
            break
        count += 1
    return count


def _parts(match: re.Match[str]) -> dict[str, str]:
    return {
        name.rstrip("234"): value.strip()
        for name, value in match.groupdict().items()
        if value and value.strip()
    }


_LANGUAGES = {
    "py": "python", "pyx": "python", "pyi": "python", "cpp": "cpp", "cxx": "cpp", "cc": "cpp", "hpp": "cpp", "hh": "cpp",
    "h": "cpp", "c": "c", "java": "java", "kt": "java", "cs": "dotnet", "js": "javascript", "jsx": "javascript",
    "ts": "javascript", "tsx": "javascript", "go": "go", "rs": "rust", "lua": "lua", "rb": "ruby", "php": "php",
}  # fmt: skip


def _language(file: str) -> str:
    return _LANGUAGES.get(file.rsplit(".", 1)[-1].lower(), "")


def language_of_file(file: str) -> str:
    """Return the language that a file name's ending stands for, empty when unknown."""
    return _language(file)
