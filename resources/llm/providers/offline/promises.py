"""What is promised about a setting's limit: by the report, by the project's documentation, by a comment.

A promise counts only for the very number that holds, so that a limit of something else is not taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from resources.llm.providers.offline.bounds import Bound, bounds
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene, Wish
from resources.llm.providers.offline.settings import words_of
from resources.llm.providers.offline.wording import say

DOCS = ["docs/**", "doc/**", "**/docs/**", "**/doc/**", "**/*.rst", "**/*.md", "**/*.txt"]
"""Where a project's documentation usually lies."""

_PROSE = re.compile(r"(?:^|/)docs?/|\.(?:rst|md|txt|adoc)$", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?:#|;|//|/?\*|--)\s?(.*)$")
_LEAST = re.compile(r"\bat least\b|\bno less than\b|\bminimum\b|\bmindestens\b|\bwenigstens\b", re.IGNORECASE)
_MOST = re.compile(
    r"\bat most\b|\bno more than\b|\bmaximum\b|\bup to\b|\bhow many\b.{1,60}\b(?:may|can|allowed)\b|"
    r"\bhöchstens\b|\bmaximal\b|\bbis zu\b|\bwie viele\b.{1,60}\b(?:darf|dürfen|kann|können|erlaubt)\b",
    re.IGNORECASE,
)
_FAMILIAR = 5
"""Letters that two words share from their beginning to count as the same."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A limit with the record and the line that state it; without a record it stands in the report."""

    bound: Bound
    record: Record | None = None
    line: str = ""


def promise_wish(scene: Scene, name: str, number: float) -> Wish:
    """Return the look for what the documentation says about a number."""
    return Wish(
        "source.search",
        {
            "pattern": rf"(^|[^\w.,]){number:g}([^\w.,]|$|[.,:]($|\D|0))",
            "regex": True,
            "globs": DOCS,
            "context": 0,
            "limit": 20,
        },
        say(
            scene,
            f"Does the documentation say what {name} means at {number:g}?",
            f"Sagt die Dokumentation, was {name} bei {number:g} bedeutet?",
        ),
    )


def stated(scene: Scene) -> list[Bound]:
    """Return the limits of the report's expectations, or of all its texts when these state none.

    Each source is read by itself: what ends one and begins the next is no phrase.
    """
    expected = scene.case.of("expectation", "external_expectation")
    for texts in ([s.text for s in expected], [scene.case.title, *(s.text for s in scene.case.sources)]):
        found = [bound for text in texts for bound in bounds(text)]
        if found:
            return list(dict.fromkeys(found))
    return []


def promises(scene: Scene, name: str, number: float | None) -> list[Promise]:
    """Return what is promised for a setting whose value is `number`, the report's own words first."""
    if number is None:
        return []
    found = [Promise(bound) for bound in stated(scene) if bound.number == number]
    found += _documented(scene, name, number)
    found += _commented(scene, name, number)
    return found


def _documented(scene: Scene, name: str, number: float) -> Iterator[Promise]:
    """Yield the limits of documentation lines that name the setting or share a word with its name."""
    own = {word[:_FAMILIAR] for word in words_of(name) if len(word) > 3}
    for record in scene.findings.of_kind("source", "config"):
        if record.location.path is None or not _PROSE.search(record.location.path):
            continue
        for line in record.content.splitlines():
            words = {word.casefold()[:_FAMILIAR] for word in re.findall(r"[A-Za-z]{4,}", line)}
            if name not in line and not own & words:
                continue
            for bound in bounds(line):
                if bound.number == number:
                    yield Promise(bound, record, line.strip())


def _commented(scene: Scene, name: str, number: float) -> Iterator[Promise]:
    """Yield the limits that the comment directly above a configuration line words without a number."""
    for record in scene.findings.of_kind("config"):
        lines = record.content.splitlines()
        for index, line in enumerate(lines[1:], 1):
            comment = _COMMENT.match(lines[index - 1])
            if comment is None or not re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=:]", line):
                continue
            text = comment[1]
            for bound in bounds(text):
                if bound.number == number:
                    yield Promise(bound, record, lines[index - 1].strip())
            least, most = _LEAST.search(text), _MOST.search(text)
            if bool(least) != bool(most):
                side = "min" if least else "max"
                words = " ".join(text.split())
                bound = Bound(side, number, inclusive=True, text=words)
                yield Promise(bound, record, lines[index - 1].strip())


def agreed(found: list[Promise]) -> Promise | None:
    """Return the first promise when all of them say the same about the number, else None."""
    if not found:
        return None
    first = found[0]
    same = all(replace(p.bound, text="") == replace(first.bound, text="") for p in found)
    return first if same else None
