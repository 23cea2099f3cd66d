"""A limit on its way through the code: from the setting to the function that is given it and compares.

`if (!Span(limits.first, limits.last).Holds(day)) refuse` compares nothing itself. The constructor keeps the
limits in members, `Holds` compares with them, and the caller says what an outcome of `Holds` leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from resources.llm.providers.offline.bounds import Comparison, comparisons, outcome, refuses, tail
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.functions import (
    Call,
    body_of,
    body_wish,
    calls,
    definition_wish,
    definitions,
    kept,
    mentions,
    owner,
    parameters,
)
from resources.llm.providers.offline.scene import Scene, Wish
from resources.llm.providers.offline.settings import in_calls, in_force, of_name, templates
from resources.llm.providers.offline.wording import say

MAX_SITES = 2

_DECIDES = re.compile(
    r"^\s*(?:\}?\s*(?:else\s+)?(?:if|elif|while)\b|return\b|(?:const\s+)?(?:bool|auto|let|var)\b)"
)


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit handed to a call; `accepts` says whether a true outcome lets through, None when untold."""

    call: Call
    position: int
    accepts: bool | None
    others: tuple[str, ...]


def uses(scene: Scene, names: frozenset[str]) -> list[Record]:
    """Return the found lines that use a limit in a decision or hand it on, one per function."""
    found: dict[tuple[str | None, str | None], Record] = {}
    for record in scene.findings.of_kind("source"):
        if record.tool != "source.references" or record.location.symbol is None:
            continue
        if any(_DECIDES.match(line) and mentions(line, names) for line in record.content.splitlines()):
            found.setdefault((record.location.path, record.location.symbol), record)
    return list(found.values())[:MAX_SITES]


def plan_trace(scene: Scene, names: frozenset[str]) -> Iterator[Wish]:
    """Yield the looks that follow a limit: the functions that use it, then the functions it is given to."""
    for record in uses(scene, names):
        yield body_wish(
            record,
            say(
                scene,
                "What does the function that uses the limit do with it?",
                "Was macht die Funktion, die die Grenze benutzt, mit ihr?",
            ),
            scene.id_of("Code"),
        )
        body = body_of(scene, record)
        for passed in handed(body, names) if body is not None else ():
            for name in filter(None, (passed.call.name, passed.call.then)):
                yield definition_wish(
                    name,
                    say(
                        scene,
                        f"What does {name} do with the limit it is given?",
                        f"Was macht {name} mit der übergebenen Grenze?",
                    ),
                    scene.id_of("Code"),
                )


def handed(record: Record, names: frozenset[str]) -> list[Passed]:
    """Return the calls of a function that are given a limit as an argument of their own."""
    lines = record.content.splitlines()
    found = []
    for number, line in enumerate(lines):
        if not _DECIDES.match(line) or not mentions(line, names):
            continue
        for call in calls(line):
            for position, argument in enumerate(call.arguments):
                if "(" not in argument and tail(argument) in names:
                    rest = "\n".join([line[call.end + 1 :], *lines[number + 1 : number + 4]])
                    found.append(Passed(call, position, _accepts(call, line, rest), call.arguments))
    return found


def _accepts(call: Call, line: str, rest: str) -> bool | None:
    """Say whether a true outcome of a call lets the attempt through."""
    refused = refuses(line, rest)
    return None if refused is None else refused == call.negated(line)


def traced(scene: Scene, names: frozenset[str]) -> list[Comparison]:
    """Return the comparisons with a limit in the functions it is handed to, told for the attempt itself."""
    found: list[Comparison] = []
    for record in uses(scene, names):
        body = body_of(scene, record)
        for passed in handed(body, names) if body is not None else ():
            if passed.accepts is not None:
                found += _inside(scene, passed)
    return list(dict.fromkeys(found))


def _inside(scene: Scene, passed: Passed) -> Iterator[Comparison]:
    call = passed.call
    for made in definitions(scene, call.name):
        given = parameters(made, call.name)
        if passed.position >= len(given):
            continue
        values = {n: _value(scene, a) for n, a in zip(given, passed.others, strict=False)}
        wanted = given[passed.position]
        if call.then is None:
            yield from _told(made, frozenset({wanted}), values, accepts=bool(passed.accepts))
            continue
        members = kept(made, wanted)
        held = {m: v for n, v in values.items() for m in kept(made, n)}
        for method in definitions(scene, call.then):
            if members and owner(method.location.symbol) == call.name:
                yield from _told(method, frozenset(members), held, accepts=bool(passed.accepts))


def _value(scene: Scene, argument: str) -> float | None:
    """Return the number that a setting with the argument's name has."""
    name = tail(argument)
    for settings in (in_force(scene), templates(scene), in_calls(scene)):
        setting = of_name(settings, name)
        if setting is not None:
            return setting.number
    return None


def _told(
    record: Record, names: frozenset[str], values: dict[str, float | None], *, accepts: bool
) -> Iterator[Comparison]:
    """Yield the comparisons of a function that are reached with the values known."""
    lines = record.content.splitlines()
    for comparison in comparisons(record, names):
        if comparison.refuses is None or values.get(tail(comparison.value)) is not None:
            continue
        if not _reached(lines, comparison.line, values):
            continue
        yield comparison if accepts else replace(comparison, refuses=not comparison.refuses)


def _reached(lines: list[str], line: str, values: dict[str, float | None]) -> bool:
    """Say whether the known values let a line be reached: its guard must not be false by them."""
    number = next((n for n, text in enumerate(lines) if text.strip() == line), 0)
    depth = len(lines[number]) - len(lines[number].lstrip()) if lines else 0
    for text in reversed(lines[:number]):
        if not text.strip() or text.strip() in {"{", "}"}:
            continue
        indent = len(text) - len(text.lstrip())
        if indent < depth:
            guard = re.match(
                r"\s*(?:if|elif)\s*\(?\s*(\w+)\s*(<=|>=|<|>|==|!=)\s*(\w+)\s*\)?\s*[{:]?\s*$", text
            )
            if guard is not None and _false(guard, values):
                return False
            depth = indent
    return True


def _false(guard: re.Match[str], values: dict[str, float | None]) -> bool:
    left, right = values.get(guard[1]), values.get(guard[3])
    return left is not None and right is not None and not outcome(left, guard[2], right)
