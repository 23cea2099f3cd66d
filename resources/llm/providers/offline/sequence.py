"""A state that is taken away before it is needed: what removes it is called above what reads it.

Four functions show it together: one that calls a remover and then a user, the remover, the user, which gives
up without the state, and what the user asks for it. Remover and question must touch the same member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.functions import (
    Call,
    body_of,
    body_wish,
    calls,
    definition_wish,
    definitions,
    mentions,
    owner,
    parameters,
    short,
)
from resources.llm.providers.offline.limits import MAX_KEYS, expected_numbers, keys, names_for
from resources.llm.providers.offline.scene import Scene, Wish
from resources.llm.providers.offline.settings import in_force, of_name
from resources.llm.providers.offline.wording import say

MOST = 2
"""Users of a setting, questions of a user and callers that are followed."""

_NEUTRAL = r"(?:0(?:\.0)?[uUlLfF]*|false|False|nullptr|NULL|None|null|nil|\{\}|\"\"|-1)"
_VERB = r"(?:[Ee]rase|[Cc]lear|[Rr]eset|[Rr]emove\w*|[Dd]elete|[Pp]op\w*|[Dd]iscard)"
_EMPTIES = (
    re.compile(rf"\b([A-Za-z_]\w*)\s*(?:\.|->)\s*{_VERB}\s*\("),
    re.compile(r"\bdel\s+(?:self\.)?([A-Za-z_]\w*)\s*\["),
    re.compile(rf"(?:\bself\.|\bthis(?:\.|->))([A-Za-z_]\w*)\s*=\s*{_NEUTRAL}\s*;?\s*$", re.MULTILINE),
    re.compile(rf"^\s*(m_\w+|[A-Za-z]\w*_)\s*=\s*{_NEUTRAL}\s*;\s*$", re.MULTILINE),
)
_ASSIGNED = re.compile(r"^\s*(?:[\w:<>*&]+\s+)*?([A-Za-z_]\w*)\s*:?=(?!=)\s*(.+?);?\s*$")
_GIVES_UP = re.compile(rf"\breturn\s*(?:{_NEUTRAL})?\s*;?\s*$", re.MULTILINE)
_CALL_ONLY = re.compile(r"^\s*(?:await\s+)?[A-Za-z_][\w.:>()\s-]*\(.*\)\s*;?\s*$")


@dataclass(frozen=True, slots=True)
class Question:
    """What a function asks for, and the line that gives up when there is no answer."""

    call: Call
    line: str
    guard: str


@dataclass(frozen=True, slots=True)
class Removed:
    """The whole finding: the lines `first` and `then` of `caller`, and what shows that they go together.

    `named` says that the report names the value of the setting that the user computes with.
    """

    caller: Record
    first: str
    then: str
    member: str
    user: Record
    guard: str
    shown: tuple[Record, ...]
    named: bool


def plan_sequence(scene: Scene, places: list[Ranked]) -> Iterator[Wish]:
    """Yield the looks that follow the users of a setting to their callers, and what both ask and remove."""
    code = scene.id_of("Code")
    for found in _users(scene, places):
        user = body_of(scene, found)
        if user is None:
            yield body_wish(
                found,
                say(
                    scene,
                    "What does the function that uses the setting depend on?",
                    "Wovon hängt die Funktion ab, die die Einstellung benutzt?",
                ),
            )
            continue
        asked = questions(user)
        if not asked:
            continue
        name = short(user.location.symbol)
        yield Wish(
            "source.references",
            {"name": name, "limit": 20},
            say(scene, f"Who calls {name}, and when?", f"Wer ruft {name} auf, und wann?"),
            code,
        )
        for site in _callers(scene, user):
            caller = body_of(scene, site)
            if caller is None:
                yield body_wish(
                    site,
                    say(
                        scene,
                        f"What happens before {name} is called?",
                        f"Was geschieht, bevor {name} aufgerufen wird?",
                    ),
                )
                continue
            for _, removing, _, _ in _before(caller, user, asked):
                yield definition_wish(removing.name, say(scene, "What does it change?", "Was ändert es?"))
                for question in asked:
                    needed = question.call.name
                    yield definition_wish(needed, say(scene, "What does it need?", "Was braucht es?"))


def _users(scene: Scene, places: list[Ranked]) -> list[Record]:
    """Return the found lines that compute with a setting, one per function."""
    found: dict[tuple[str | None, str | None], Record] = {}
    for key in keys(scene, places)[:MAX_KEYS]:
        names = sorted(names_for(scene, key) - {key})
        for record in scene.findings.of_kind("source"):
            symbol, line = record.location.symbol, record.content
            if record.tool != "source.references" or not symbol or key in line:
                continue
            if any(re.search(rf"(?<!\w){re.escape(n)}(?!\w)(?!\s*=[^=])", line) for n in names):
                found.setdefault((record.location.path, symbol), record)
    bodies = [r for r in found.values() if _is_code(r.content)]
    return bodies[:MOST]


def _is_code(line: str) -> bool:
    """Say whether a line decides or computes; a declaration does neither."""
    return re.search(r"\breturn\b|\bif\b|[-+*/%<>]|\w\s*\(", re.sub(r"//.*|#.*", "", line)) is not None


def _callers(scene: Scene, user: Record) -> list[Record]:
    name, place = short(user.location.symbol), user.location
    found: dict[str, Record] = {}
    for look in scene.findings.by("source.references"):
        if look.arguments.get("name") != name:
            continue
        for record in look.records:
            symbol = record.location.symbol
            if (
                record.kind == "source"
                and symbol
                and symbol != place.symbol
                and short(symbol) != owner(place.symbol)
            ):
                found.setdefault(symbol, record)
    return list(found.values())[:MOST]


def questions(record: Record) -> list[Question]:
    """Return what a function asks for and cannot do without: no answer ends it early."""
    lines = record.content.splitlines()
    found = []
    for number, line in enumerate(lines):
        assigned = _ASSIGNED.match(line)
        call = next(calls(line), None)
        if call is None or not call.receiver:
            continue
        if assigned is not None:
            guard = _empty(lines[number + 1 : number + 4], assigned[1], call.receiver)
        else:
            direct = re.match(r"\s*if\b", line) and call.negated(line)
            guard = line if direct and _GIVES_UP.search("\n".join(lines[number : number + 3])) else ""
        if guard:
            found.append(Question(call, line.strip(), guard.strip()))
    return found[:MOST]


def _empty(lines: list[str], name: str, receiver: str) -> str:
    """Return the line that tests `name` for emptiness and gives up, empty when there is none."""
    word, holder = re.escape(name), re.escape(receiver)
    lacking = re.compile(
        rf"^\s*if\b.*(?:!\s*{word}\b(?!\s*=)|\bnot\s+{word}\b|(?<!\w){word}(?:\.empty\(\)|\s*(?:==|\bis)\s*"
        rf"(?:{_NEUTRAL}|{holder}\s*\.\s*end\(\))))"
    )
    for number, line in enumerate(lines):
        if lacking.match(line) and _GIVES_UP.search("\n".join(lines[number : number + 3])):
            return line
    return ""


def _before(caller: Record, user: Record, asked: list[Question]) -> Iterator[tuple[str, Call, str, Question]]:
    """Yield the calls above the user's own that go to what the user asks, with the lines and the question."""
    lines = caller.content.splitlines()
    name = short(user.location.symbol)
    for number, line in enumerate(lines):
        using = next((call for call in calls(line) if call.name == name), None)
        if using is None or number == 0:
            continue
        given = dict(zip(parameters(user, name), using.arguments, strict=False))
        together = owner(caller.location.symbol) == owner(user.location.symbol)
        for text in _unconditional(lines, number):
            removing = next(calls(text), None)
            if removing is None or not removing.receiver or not _CALL_ONLY.match(text):
                continue
            for question in asked:
                receiver = given.get(question.call.receiver, question.call.receiver if together else "")
                arguments = tuple(given.get(item, item) for item in question.call.arguments)
                if removing.receiver == receiver and removing.arguments in {(), arguments}:
                    yield text.strip(), removing, line.strip(), question


def _unconditional(lines: list[str], number: int) -> Iterator[str]:
    """Yield the lines above one that are always run before it, in the same block."""
    depth = len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[1:number]):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < depth:
            return
        if indent == depth and line.strip() not in {"{", "}"}:
            yield line


def removed_before(scene: Scene, places: list[Ranked]) -> Iterator[Removed]:
    """Yield the states that are removed before the function that needs them is called."""
    for found in _users(scene, places):
        user = body_of(scene, found)
        if user is None:
            continue
        asked = questions(user)
        for site in _callers(scene, user) if asked else ():
            caller = body_of(scene, site)
            if caller is None:
                continue
            for first, removing, then, question in _before(caller, user, asked):
                same = _same_member(scene, removing, question)
                if same is not None:
                    member, shown = same
                    named = _named(scene, places, user)
                    yield Removed(caller, first, then, member, user, question.guard, shown, named)


def _named(scene: Scene, places: list[Ranked], user: Record) -> bool:
    """Say whether the report names the value of a setting that a function computes with."""
    force, numbers = in_force(scene), expected_numbers(scene)
    for key in keys(scene, places)[:MAX_KEYS]:
        setting = of_name(force, key)
        spoken = setting is not None and setting.number in numbers
        if spoken and mentions(user.content, names_for(scene, key) - {key}):
            return True
    return False


def _same_member(
    scene: Scene, removing: Call, question: Question
) -> tuple[str, tuple[Record, Record]] | None:
    """Return the member that a remover is seen to empty and the question reads, and the two functions."""
    for remover in definitions(scene, removing.name):
        for asked in definitions(scene, question.call.name):
            if owner(remover.location.symbol) != owner(asked.location.symbol):
                continue
            for member in sorted({m[1] for pattern in _EMPTIES for m in pattern.finditer(remover.content)}):
                if mentions(asked.content, (member,)):
                    return member, (remover, asked)
    return None
