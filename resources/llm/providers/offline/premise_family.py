"""Intended and Environment: does what the report takes for granted exist, and is the behaviour meant?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resources.llm.providers.offline.findings import Look, Record
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from viano_assets.phases.wire import Confidence

DOCS = ["docs/**", "doc/**", "*.rst", "*.md", "*.txt", "**/*.rst", "**/*.md"]

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{2,40}\b")
_KEYWORD = re.compile(r"\b[A-Z]\w+\([^()\n]*?\b([a-z_][a-z0-9_]{3,40})\s*=")
_CODE_PATH = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)+[\w-]+\.(?:py|c|cc|cpp|h|hpp|java|js|ts|go|rs|lua|sql))\b"
)


def alleged(scene: Scene) -> list[tuple[str, str]]:
    """Return what the report takes for granted: (words as written, literal to look for), in order."""
    found: dict[str, str] = {}
    roots = set(scene.overview.get("source", {}).get("top_folders", []))
    for source in scene.case.sources:
        for match in _CODE_PATH.finditer(source.text):
            path = match[1]
            if not roots or path.split("/", 1)[0] in roots:
                found.setdefault(path, path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        for match in _OPTION.finditer(source.text):
            found.setdefault(match[0], match[0])
        for match in _KEYWORD.finditer(source.text):
            found.setdefault(match[1], match[1])
    return list(found.items())[:4]


def _premise_wish(scene: Scene, literal: str) -> Wish:
    return Wish(
        "source.search",
        {"pattern": literal, "limit": 20},
        f"Does {literal} exist anywhere in this version?",
        scene.id_of("Code"),
    )


def plan_intended(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Intended in order."""
    if "source.search" not in scene.tools:
        return
    for _, literal in alleged(scene):
        yield _premise_wish(scene, literal)
    if "source.rank" in scene.tools:
        from resources.llm.providers.offline.code_family import best_places  # noqa: PLC0415  # avoids a cycle

        for place in best_places(scene, 1):
            name = (place.symbol or place.path).replace("::", ".").rsplit(".", 1)[-1]
            yield Wish(
                "source.search",
                {"pattern": name, "globs": DOCS, "limit": 20},
                "Does the documentation state this behaviour?",
                scene.id_of("Code"),
            )


def missing_premises(scene: Scene) -> list[tuple[str, Record]]:
    """Return what the report takes for granted and a complete search did not find anywhere."""
    missing = []
    for words, literal in alleged(scene):
        for look in scene.findings.by("source.search"):
            if look.arguments.get("pattern") == literal and not look.arguments.get("globs"):
                missing += [(words, r) for r in look.records if r.empty and r.usable]
    return missing


def _documented(scene: Scene) -> list[Look]:
    return [look for look in scene.findings.by("source.search") if look.arguments.get("globs")]


def judge_intended(scene: Scene) -> Judgement:
    """Judge the family Intended from what a complete search did or did not find."""
    missing = missing_premises(scene)
    if missing:
        words = ", ".join(quoted(word) for word, _ in missing)
        return Judgement(
            "supports",
            Confidence.SUPPORTED,
            support=tuple(record for _, record in missing),
            tested=tuple(record for _, record in missing),
            reason=f"A search of the whole source finds no trace of {words}.",
            summary=f"The report takes {words} for granted; this version has no such thing.",
        )
    looks = [look for look in scene.findings.by("source.search") if look.records]
    records = tuple(r for look in looks for r in look.records if r.usable)
    if not records:
        return Judgement(
            "neutral", Confidence.UNASSESSED, reason="No promise of the behaviour was looked up."
        )
    found = tuple(r for r in records if not r.empty)
    if found:
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=found[:3],
            tested=found[:3],
            reason="What the report relies on exists in this version.",
        )
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        tested=records[:3],
        reason="The documentation says nothing about it.",
        limits=("Documentation outside the archive was not read.",),
    )


def plan_environment(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Environment."""
    if "log.search" in scene.tools and scene.overview.get("logs"):
        yield Wish(
            "log.search",
            {"pattern": "error", "ignore_case": True, "limit": 20},
            "Does a log line tie the fault to its surroundings?",
        )
    elif "source.search" in scene.tools:
        versions = [s.attributes.get("version") for s in scene.case.sources if s.kind == "version"]
        for version in [v for v in versions if v][:1]:
            yield Wish(
                "source.search",
                {"pattern": str(version), "globs": DOCS, "limit": 10},
                "What does the change log say about this version?",
            )


def judge_environment(scene: Scene) -> Judgement:
    """Judge the family Environment: one environment alone decides nothing."""
    del scene
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        reason="Only one environment is described; nothing separates it from another.",
        limits=("No second environment was compared.",),
    )
