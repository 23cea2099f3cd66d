"""Hypotheses of another author: what their title claims to be absent is looked for by its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.wording import say
from viano_assets.phases.wire import Confidence

ABSENT = re.compile(
    r"\b(?:missing|absent|lacks?|lacking|never registered|not registered|no|without|not there|does not exist|"
    r"fehlt|fehlend\w*|kein\w*|nicht registriert|nicht vorhanden)\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_COMMON = frozenset(
    {
        "the", "and", "for", "are", "was", "not", "has", "had", "have", "its", "this", "that",
        "with", "from", "into", "than", "too", "only", "last", "first", "missing", "absent", "lack",
        "lacks", "never", "registered", "without", "there", "does", "exist", "fehlt", "kein",
        "keine", "der", "die", "das", "ein", "eine", "ist", "nicht", "vorhanden", "registriert",
    }
)  # fmt: skip


def claimed(title: str) -> list[str]:
    """Return the words of the thing that a title says is absent; empty when it says no such thing."""
    if ABSENT.search(title) is None:
        return []
    words = [word for word in _CONTENT.findall(title) if word.casefold() not in _COMMON]
    return list(dict.fromkeys(words))[:3]


def plan_claim(scene: Scene, title: str) -> Iterator[Wish]:
    """Yield the looks for what a title claims to be absent."""
    if "source.search" not in scene.tools:
        return
    for word in reversed(claimed(title)):
        yield Wish(
            "source.search",
            {"pattern": word},
            say(
                scene,
                f"Is there anything called {word} in the source?",
                f"Gibt es im Quelltext etwas namens {word}?",
            ),
        )


def judge_claim(scene: Scene, title: str) -> Judgement | None:
    """Judge a claimed absence: found present it is contradicted; None when the title claims none."""
    words = claimed(title)
    if not words:
        return None
    looks = [look for look in scene.findings.by("source.search") if look.arguments.get("pattern") in words]
    records = [record for look in looks for record in look.records if record.usable]
    present = [record for record in records if not record.empty and _holds(record, words)]
    if present:
        names = ", ".join(quoted(word) for word in words)
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=tuple(present[:3]),
            tested=tuple(present[:3]),
            reason=say(
                scene,
                f"What is said to be absent is there: the source holds {names}.",
                f"Was fehlen soll, ist da: Der Quelltext enthält {names}.",
            ),
        )
    absent = tuple(record for record in records if record.empty)
    if absent and len(absent) == len(records) and len(looks) == len(words):
        return Judgement(
            "supports",
            Confidence.PLAUSIBLE,
            support=absent,
            tested=absent,
            reason=say(
                scene,
                "A complete search of the source finds no trace of it.",
                "Eine vollständige Suche im Quelltext findet keine Spur davon.",
            ),
        )
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        tested=tuple(records[:2]),
        reason=say(scene, "Not looked for yet.", "Noch nicht gesucht."),
    )


def _holds(record: Record, words: list[str]) -> bool:
    """Say whether one line of a record holds all words, in any case."""
    lines = [line.casefold() for line in record.content.splitlines()]
    return any(all(word.casefold() in line for word in words) for line in lines)
