"""Turns the hand-written server templates into source files and remembers where a planted fault stands.

A template's first line is `//> path` (a leading slash means: not below the source folder). `@name@` is a
word of the world; it may stand for several lines. A line `//? slot=value|text` is kept, as `text`, when the
slot has that value; kept lines of value `bad` are what a fix would touch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TEMPLATES = Path(__file__).parent / "kernel"
TOKEN = re.compile(r"@(\w+?)@")
CONDITION = re.compile(r"//\? (\w+)=(\w+)\|(.*)")
DEFINITION = re.compile(r"^\S[^;]*?((?:\w+::)*\w+)\(")


class Fault(NamedTuple):
    """Where a planted fault stands: path, qualified function, first and last line (1-based)."""

    path: str
    symbol: str | None
    first: int
    last: int


class Rendered(NamedTuple):
    """Files by path, and the planted faults."""

    files: dict[str, str]
    faults: list[Fault]


def fill(text: str, words: Mapping[str, str]) -> str:
    """Replace every `@name@`; an unknown name is a defect of the template.

    Raises:
        KeyError: a word the world does not have.
    """
    return TOKEN.sub(lambda match: words[match.group(1)], text)


def render(words: Mapping[str, str], slots: Mapping[str, str]) -> Rendered:
    """Render all templates; slots not named have the value `good`."""
    files: dict[str, str] = {}
    faults: list[Fault] = []
    for template in sorted(TEMPLATES.glob("*.txt")):
        head, *body = template.read_text(encoding="utf-8").splitlines()
        path = fill(head.removeprefix("//> "), words)
        path = path[1:] if path.startswith("/") else f"{words['src']}/{path}"
        lines: list[str] = []
        marked: list[int] = []
        for line in fill("\n".join(body), words).split("\n"):
            kept = CONDITION.match(line)
            if kept is None:
                lines.append(line)
            elif slots.get(kept[1], "good") == kept[2]:
                lines.append(kept[3])
                if kept[2] == "bad":
                    marked.append(len(lines))
        files[path] = "\n".join(lines) + "\n"
        if marked:
            faults.append(Fault(path, enclosing(lines, marked[0]), marked[0], marked[-1]))
    return Rendered(files, faults)


def enclosing(lines: list[str], number: int) -> str | None:
    """Return the qualified name of the function whose definition stands above line `number`."""
    space = next((line.split()[1] for line in lines if line.startswith("namespace ")), None)
    for line in reversed(lines[: number - 1]):
        found = DEFINITION.match(line)
        if found:
            return f"{space}::{found[1]}" if space else found[1]
    return None
