"""A crash in the log: its stack leads to the function that called something on nothing.

The innermost frame names what was called, the next one who called it. If that function calls it on something
it never tests, log and code say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.functions import calls, definition_wish, definitions, short
from resources.llm.providers.offline.printing import log_lines
from resources.llm.providers.offline.scene import Scene, Wish
from resources.llm.providers.offline.wording import say

_SPOKEN = re.compile(
    r"crash|abst[uü]rz|st[uü]rz\w*\b.{0,60}\bab\b|\bgo(?:es)? down|\bwent down|segfault|segmentation|"
    r"\bexception|traceback|fällt aus|\bbeendet sich|\bdies\b|\bdied\b",
    re.IGNORECASE,
)
PATTERN = (
    r"SIGSEGV|SIGABRT|segmentation fault|access violation|caught signal|Traceback \(most recent|"
    r"'NoneType' object has no attribute"
)
_NATIVE = re.compile(r"#(\d+)\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?([A-Za-z_~][\w:~]*)\s*(?:\(|<|$)")
_NOTHING = re.compile(r"\bthis=(?:0x0*[0-9a-fA-F]{1,3}|\(nil\)|nullptr|NULL)\b")
_SCRIPT = re.compile(r"File \"[^\"]+\", line \d+, in ([A-Za-z_]\w*)")
_NONE = re.compile(r"'NoneType' object has no attribute '(\w+)'")


@dataclass(frozen=True, slots=True)
class Stack:
    """What the log says of a crash: the called name, its caller, the log record and the telling line.

    `on_nothing` says that the log itself shows the call to have been made on nothing.
    """

    called: str
    caller: str
    log: Record
    line: str
    on_nothing: bool


@dataclass(frozen=True, slots=True)
class Untested:
    """The call that meets nothing: the stack, the calling function, the line and the untested receiver."""

    stack: Stack
    code: Record
    line: str
    receiver: str


def spoken(scene: Scene) -> bool:
    """Say whether the report speaks of a program that ends."""
    return _SPOKEN.search(f"{scene.case.title}\n{scene.case.text()}") is not None


def plan_crash(scene: Scene) -> Iterator[Wish]:
    """Yield the looks for a crash in the logs and for the functions of its innermost frames."""
    if "log.search" not in scene.tools or not spoken(scene):
        return
    look = {"pattern": PATTERN, "regex": True, "ignore_case": True, "context": 8, "limit": 5}
    yield Wish(
        "log.search",
        look,
        say(
            scene,
            "Does a log hold the stack of the crash?",
            "Steht der Aufrufstapel des Absturzes in einem Protokoll?",
        ),
    )
    for stack in stacks(scene)[:1]:
        for name in (stack.caller, stack.called):
            yield definition_wish(
                name,
                say(scene, f"What does {short(name)} rely on?", f"Worauf verlässt sich {short(name)}?"),
            )


def stacks(scene: Scene) -> list[Stack]:
    """Return the stacks of the logs that were looked at, the last one first."""
    lines: dict[str, list[tuple[Record, str]]] = {}
    for record, line in log_lines(scene):
        lines.setdefault(record.id, []).append((record, line))
    found = [stack for rows in lines.values() for stack in (*_native(rows), *_script(rows))]
    return found[::-1]


def _native(rows: list[tuple[Record, str]]) -> Iterator[Stack]:
    frames = [(match, record, line) for record, line in rows if (match := _NATIVE.search(line))]
    for (inner, record, line), (outer, _, _) in pairwise(frames):
        if (inner[1], outer[1]) == ("0", "1"):
            yield Stack(inner[2], outer[2], record, line.strip(), _NOTHING.search(line) is not None)


def _script(rows: list[tuple[Record, str]]) -> Iterator[Stack]:
    caller = ""
    for record, line in rows:
        frame, nothing = _SCRIPT.search(line), _NONE.search(line)
        caller = frame[1] if frame is not None else caller
        if nothing is not None and caller:
            yield Stack(nothing[1], caller, record, line.strip(), on_nothing=True)


def untested(scene: Scene) -> Untested | None:
    """Return the call of the last crash that was made on something its function never tests."""
    if not spoken(scene):
        return None
    for stack in stacks(scene):
        if not stack.on_nothing:
            continue
        for record in definitions(scene, short(stack.caller)):
            symbol = record.location.symbol or ""
            if "::" in stack.caller and symbol != stack.caller:
                continue
            found = _call(record, stack)
            if found is not None:
                return found
    return None


def _call(record: Record, stack: Stack) -> Untested | None:
    lines = record.content.splitlines()
    for number, line in enumerate(lines):
        for call in calls(line):
            if call.name != short(stack.called) or not call.receiver:
                continue
            held = re.split(r"\.|->|::", call.receiver)[-1]
            if "(" not in held and _tests("\n".join(lines[1 : number + 1]), held, call.receiver):
                continue
            return Untested(stack, record, line.strip(), call.receiver)
    return None


def _tests(text: str, held: str, receiver: str) -> bool:
    """Say whether a text asks if something is there before it is used."""
    name = rf"(?:{re.escape(receiver)}|(?<![\w.>]){re.escape(held)}|[.>]{re.escape(held)})"
    asked = rf"(?:if|while|assert\w*|&&|\|\||!|not|and|or|\?)\s*\(?\s*!?\s*[\w.>()-]*?{name}(?!\w|->|\.|\()"
    compared = rf"{name}\s*(?:==|!=|\bis\b|\?|&&)"
    return re.search(asked, text) is not None or re.search(compared, text) is not None
