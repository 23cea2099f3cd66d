"""Intended and Environment: does what the report takes for granted exist, is it meant, what did the user do?

Three findings count: a named part that a complete search does not find, a passage of the documentation about
the very things of the report that says it is so, and a logged attempt that lies outside what is promised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.code_family import READS, best_places, read_records, signal_level
from resources.llm.providers.offline.config_family import judge_configuration
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.limits import best_reading
from resources.llm.providers.offline.printing import about, printed
from resources.llm.providers.offline.promises import DOCS
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.wording import line_quote, place, say
from viano_assets.phases.wire import Confidence

MAX_ALLEGED = 4
MAX_LOGGED = 3

_OPTION = re.compile(r"(?:^|[\s`(])([a-z][\w.-]*) (--[a-z][a-z0-9-]{1,40})\b", re.MULTILINE)
_KEYWORD = re.compile(r"\b([A-Z]\w+)\(([^()\n]*)\)")
_NAME = re.compile(r"\b([a-z_][a-z0-9_]{3,40})\s*=(?!=)")
_CODE_PATH = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)+[\w-]+\.(?:py|c|cc|cpp|h|hpp|java|js|ts|go|rs|lua|sql))\b"
)
_IDENTIFIER = re.compile(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`")
_MEANT = re.compile(
    r"\b(?:not|never|by design|intended|deliberate\w*|does ?n.t|won.t|cannot|without|by default)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Alleged:
    """Something the report takes for granted: its words, and the search that must find it if it exists."""

    words: str
    pattern: str
    globs: tuple[str, ...] = ()
    holder: str | None = None

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the complete search."""
        found: dict[str, object] = {"pattern": self.pattern, "regex": True, "limit": 20}
        return found | ({"globs": list(self.globs)} if self.globs else {})


def alleged(scene: Scene) -> list[Alleged]:
    """Return the parts of the project that the report names as existing, files first."""
    found: dict[str, Alleged] = {}
    text = "\n".join(s.text for s in scene.case.sources if s.kind != "stack_frame")
    framed = {s.attributes.get("file", "") for s in scene.case.sources if s.kind == "stack_frame"}
    roots = own_roots(scene)
    for match in _CODE_PATH.finditer(text):
        path = match[1]
        if path in framed or path.split("/", 1)[0] not in roots:
            continue
        found.setdefault(path, Alleged(path, ".", (f"**/{path}", path)))
    for match in _OPTION.finditer(text):
        option = match[2]
        bare = re.escape(option.removeprefix("--"))
        pattern = rf"(--{bare}|[\"']{bare}[\"'])([^\w-]|$)"
        found.setdefault(option, Alleged(option, pattern))
    for match in _KEYWORD.finditer(text):
        for name in _NAME.findall(match[2]):
            found.setdefault(name, Alleged(name, rf"\b{re.escape(name)}\b", holder=match[1]))
    return list(found.values())[:MAX_ALLEGED]


def own_roots(scene: Scene) -> set[str]:
    """Return the folders that hold the project's own code, as far as the ranking shows them."""
    roots: set[str] = set()
    for name in ("files", "symbols"):
        for ranking in scene.findings.rankings(name):
            for ranked in ranking.places:
                roots.update(ranked.path.split("/")[:-1][:2])
    return roots


def _holder(name: str) -> dict[str, object]:
    return {"pattern": rf"\b(class|def|struct)\s+{re.escape(name)}\b", "regex": True, "limit": 5}


def plan_intended(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Intended in order."""
    code = scene.id_of("Code")
    if "source.search" in scene.tools:
        for item in alleged(scene):
            yield Wish(
                "source.search",
                item.arguments(),
                say(
                    scene,
                    f"Does {item.words} exist in this version?",
                    f"Gibt es {item.words} in dieser Version?",
                ),
                code,
            )
            if item.holder is not None:
                yield Wish(
                    "source.search",
                    _holder(item.holder),
                    say(
                        scene,
                        f"Is {item.holder} part of this project?",
                        f"Gehört {item.holder} zu diesem Projekt?",
                    ),
                )
        pair = documented_pair(scene)
        if pair is not None:
            yield Wish(
                "source.search",
                {"pattern": _together(*pair), "regex": True, "globs": DOCS, "context": 2, "limit": 10},
                say(
                    scene,
                    f"Does the documentation say how {pair[0]} and {pair[1]} go together?",
                    f"Sagt die Dokumentation, wie {pair[0]} und {pair[1]} zusammengehören?",
                ),
                code,
            )
    if "log.entity" in scene.tools:
        for name in scene.numbers()[:MAX_LOGGED]:
            yield Wish(
                "log.entity",
                {"id": name, "limit": 20},
                say(scene, f"What do the logs say about {name}?", f"Was sagen die Protokolle über {name}?"),
                code,
            )


def documented_pair(scene: Scene) -> tuple[str, str] | None:
    """Return the two identifiers the report speaks of most, if it speaks of two."""
    counts: dict[str, int] = {}
    for source in scene.case.of(
        "observation", "report", "expectation", "reproduction_step", "technical_fact"
    ):
        for match in _IDENTIFIER.finditer(source.text):
            name = match[1].split(".")[-1]
            if len(name) > 3:
                counts[name] = counts.get(name, 0) + 1
    order = list(counts)
    best = sorted(order, key=lambda name: (-counts[name], order.index(name)))[:2]
    return (best[0], best[1]) if len(best) == 2 else None


def _together(one: str, two: str) -> str:
    first, second = re.escape(one), re.escape(two)
    return rf"\b{first}\b.{{0,200}}\b{second}\b|\b{second}\b.{{0,200}}\b{first}\b"


def _found(scene: Scene, arguments: dict[str, object]) -> list[Record] | None:
    """Return the usable records of a search that was made, None when it was not."""
    for look in scene.findings.by("source.search"):
        if look.arguments == arguments:
            return [record for record in look.records if record.usable]
    return None


def missing_premises(scene: Scene) -> list[tuple[str, Record]]:
    """Return what the report takes for granted and a complete search did not find anywhere."""
    missing = []
    for item in alleged(scene):
        records = _found(scene, item.arguments())
        if not records or not all(record.empty for record in records):
            continue
        if item.holder is not None:
            holders = _found(scene, _holder(item.holder)) or []
            if not any(not record.empty for record in holders):
                continue
        missing.append((item.words, records[0]))
    return missing


def judge_intended(scene: Scene) -> Judgement:
    """Judge the family Intended: premise, user's doing, documentation, in this order."""
    missing = missing_premises(scene)
    if missing:
        return _without_premise(scene, missing)
    for judged in (_users_doing(scene), _documented(scene)):
        if judged is not None:
            return judged
    return _promised(scene)


def _without_premise(scene: Scene, missing: list[tuple[str, Record]]) -> Judgement:
    words = ", ".join(quoted(word) for word, _ in missing)
    records = tuple(record for _, record in missing)
    return Judgement(
        "supports",
        Confidence.SUPPORTED,
        support=records,
        tested=records,
        reason=say(
            scene,
            f"A complete search of the source finds no trace of {words}.",
            f"Eine vollständige Suche im Quelltext findet keine Spur von {words}.",
        ),
        summary=say(
            scene,
            f"The report takes {words} for granted; this version has no such thing.",
            f"Der Bericht setzt {words} voraus; in dieser Version gibt es das nicht.",
        ),
    )


def _users_doing(scene: Scene) -> Judgement | None:
    """The logged attempt lies outside the promise, code and configuration being as promised."""
    found = best_reading(scene, best_places(scene, READS))
    if found is None or found.comparison is None or found.limit is None or found.deviates:
        return _other_branch(scene)
    comparison, limit = found.comparison, found.limit
    if comparison.refuses is None:
        return _other_branch(scene)
    for line, value in found.logged():
        admitted = comparison.admits(value, limit)
        inside = found.bound.admits(value) if found.bound and found.bound.number == limit else admitted
        if not admitted and not inside:
            records = (line.log, comparison.record)
            return Judgement(
                "supports",
                Confidence.SUPPORTED,
                support=records,
                tested=records,
                reason=say(
                    scene,
                    f"The logged attempt had {value:g}, the limit is {limit:g}: "
                    f"{line_quote(line.log, line.line)}.",
                    f"Der protokollierte Versuch hatte {value:g}, die Grenze ist {limit:g}: "
                    f"{line_quote(line.log, line.line)}.",
                ),
                summary=say(
                    scene,
                    f"The behaviour is as designed: the attempt with {value:g} lies outside the limit "
                    f"{limit:g}.",
                    f"Das Verhalten ist wie vorgesehen: Der Versuch mit {value:g} liegt außerhalb der Grenze "
                    f"{limit:g}.",
                ),
            )
    return _other_branch(scene)


def _other_branch(scene: Scene) -> Judgement | None:
    """The last logged line of the affected item was written under a condition about its state."""
    reads = [record for _, record in read_records(scene)[:READS]]
    found = best_reading(scene, best_places(scene, READS))
    lines = [line for line in printed(scene, reads) if line.guard]
    if not lines:
        return None
    last = lines[-1]
    if found is not None and found.comparison is not None and found.comparison.line == last.guard:
        return None
    config = judge_configuration(scene)
    clean = config.effect == "contradicts" and last.refuses
    return Judgement(
        "supports" if clean else "neutral",
        Confidence.PLAUSIBLE,
        support=(last.log, last.source),
        tested=(last.log, last.source),
        reason=say(
            scene,
            f"The log line {line_quote(last.log, last.line)} is written under "
            f"{line_quote(last.source, last.guard)}.",
            f"Die Protokollzeile {line_quote(last.log, last.line)} steht unter "
            f"{line_quote(last.source, last.guard)}.",
        ),
    )


def _documented(scene: Scene) -> Judgement | None:
    """A passage of the documentation about both things of the report limits or denies."""
    pair = documented_pair(scene)
    if pair is None or signal_level(scene).rank >= Confidence.SUPPORTED.rank:
        return None
    for look in scene.findings.by("source.search"):
        if look.arguments.get("pattern") != _together(*pair):
            continue
        for record in look.records:
            if record.kind not in {"source", "config"} or not record.usable:
                continue
            lines = [
                line
                for line in record.content.splitlines()
                if _MEANT.search(line) and any(re.search(rf"\b{re.escape(name)}\b", line) for name in pair)
            ]
            about_both = all(re.search(rf"\b{re.escape(name)}\b", record.content) for name in pair)
            if lines and about_both:
                quote = line_quote(record, lines[0])
                return Judgement(
                    "supports",
                    Confidence.PLAUSIBLE,
                    support=(record,),
                    tested=(record,),
                    reason=say(
                        scene,
                        f"The documentation ({place(record)}) speaks of both and limits it: {quote}.",
                        f"Die Dokumentation ({place(record)}) nennt beides und schränkt ein: {quote}.",
                    ),
                )
    return None


def _promised(scene: Scene) -> Judgement:
    searched = [_found(scene, item.arguments()) or [] for item in alleged(scene)]
    found = tuple(record for records in searched for record in records if not record.empty)
    logged = tuple(dict.fromkeys(record for record, _ in about(scene)))
    if found:
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=found[:2],
            tested=found[:2],
            reason=say(
                scene,
                "What the report takes for granted exists in this version.",
                "Was der Bericht voraussetzt, gibt es in dieser Version.",
            ),
        )
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        tested=logged[:2],
        reason=say(
            scene,
            "No passage and no logged attempt shows that this is meant.",
            "Keine Textstelle und kein protokollierter Versuch zeigt, dass es so gemeint ist.",
        ),
    )


def plan_environment(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Environment."""
    if "log.search" in scene.tools and any(
        item.get("kind") == "log" for item in scene.overview.get("logs") or []
    ):
        yield Wish(
            "log.search",
            {
                "pattern": r"\b(error|fatal|exception|warn(ing)?)\b",
                "regex": True,
                "ignore_case": True,
                "limit": 20,
            },
            say(
                scene,
                "Does a log line tie the fault to its surroundings?",
                "Bindet eine Protokollzeile den Fehler an seine Umgebung?",
            ),
        )
    elif "source.search" in scene.tools:
        versions = [s.attributes.get("version") for s in scene.case.sources if s.kind == "version"]
        for version in [v for v in versions if v][:1]:
            yield Wish(
                "source.search",
                {"pattern": str(version), "globs": DOCS, "limit": 10},
                say(
                    scene,
                    "What does the change log say about this version?",
                    "Was sagt das Änderungsprotokoll zu dieser Version?",
                ),
            )


def judge_environment(scene: Scene) -> Judgement:
    """Judge the family Environment: one environment alone decides nothing."""
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        reason=say(
            scene,
            "Only one environment is described; nothing separates it from another.",
            "Nur eine Umgebung ist beschrieben; nichts unterscheidet sie von einer anderen.",
        ),
        limits=(
            say(scene, "No second environment was compared.", "Keine zweite Umgebung wurde verglichen."),
        ),
    )
