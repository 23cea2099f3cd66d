"""Configuration: does a governing setting differ from its default, and does that make the difference?

Looks: every assignment in the archive's configuration, every one in the source's own templates, then of the
one or two settings that matter: the exact line in force and the places where the code reads and compares it.
"""

from __future__ import annotations

from collections.abc import Iterator

from resources.llm.providers.offline.code_family import READS, best_places, rank_wish, read_wishes
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.limits import MAX_KEYS, Reading, best_reading, keys, names_for, reading
from resources.llm.providers.offline.promises import promise_wish
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.settings import (
    ASSIGNMENT,
    TEMPLATES,
    Setting,
    config_files,
    in_force,
    matches,
    templates,
)
from resources.llm.providers.offline.tracing import plan_trace
from resources.llm.providers.offline.units import may_convert, may_mean
from resources.llm.providers.offline.wording import line_quote, place, say
from viano_assets.phases.wire import Confidence

SHORT = 60
"""Lines a record may have to carry a claim."""


def plan_configuration(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Configuration in order."""
    files = config_files(scene)
    if "log.search" not in scene.tools:
        return
    if files:
        yield Wish(
            "log.search",
            {"pattern": ASSIGNMENT, "regex": True, "files": files[:10], "context": 0, "limit": 200},
            say(scene, "Which values are in force?", "Welche Werte gelten?"),
        )
    if "source.search" not in scene.tools:
        return
    yield Wish(
        "source.search",
        {"pattern": ASSIGNMENT, "regex": True, "globs": list(TEMPLATES), "context": 0, "limit": 200},
        say(
            scene,
            "Which values do the source's own templates give?",
            "Welche Werte geben die Vorlagen im Quelltext?",
        ),
    )
    if "source.rank" in scene.tools:
        yield rank_wish(scene)
        for ranked in best_places(scene, 1):
            yield from read_wishes(scene, ranked)
    yield from _about_keys(scene, files)


def _about_keys(scene: Scene, files: list[str]) -> Iterator[Wish]:
    for key in keys(scene, best_places(scene, READS))[:MAX_KEYS]:
        found = reading(scene, key, best_places(scene, READS))
        if files and found.force is not None:
            yield Wish(
                "log.search",
                {"pattern": found.force.name, "files": files[:10], "context": 0, "limit": 20},
                say(
                    scene,
                    f"What exactly is {found.force.name} set to?",
                    f"Worauf genau ist {found.force.name} gesetzt?",
                ),
            )
        yield Wish(
            "source.search",
            {"pattern": key, "limit": 20},
            say(scene, f"Where does the source name {key}?", f"Wo nennt der Quelltext {key}?"),
            scene.id_of("Code"),
        )
        if found.comparison is None:
            for name in sorted(names_for(scene, key) - {key})[:2]:
                yield Wish(
                    "source.references",
                    {"name": name, "limit": 30},
                    say(scene, f"What is {name} compared with?", f"Womit wird {name} verglichen?"),
                    scene.id_of("Code"),
                )
            yield from plan_trace(scene, names_for(scene, key))
        if found.limit is not None and found.limit not in {0.0, 1.0}:
            yield promise_wish(scene, found.name, found.limit)


def _short(record: Record) -> bool:
    return len(record.content.splitlines()) <= SHORT and record.kind != "search"


def _against(scene: Scene, found: Reading | None) -> tuple[Record, ...]:
    if found is not None:
        settings = [s for s in (found.force, found.default) if s is not None]
        return tuple(dict.fromkeys(s.record for s in settings))
    current, usual = in_force(scene), templates(scene)
    return tuple(dict.fromkeys(current[name].record for name in current if name in usual))[:2]


def judge_configuration(scene: Scene) -> Judgement:
    """Judge the family Configuration from the values in force against the templates and the code."""
    found = best_reading(scene, best_places(scene, READS))
    if not in_force(scene) or not (templates(scene) or (found and found.default)):
        return Judgement("neutral", Confidence.UNASSESSED, reason=_unseen(scene))
    if found is None or not found.deviates or found.force is None or found.default is None:
        return _at_default(scene, found)
    return _deviating(scene, found, found.force, found.default)


def _unseen(scene: Scene) -> str:
    return say(
        scene,
        "No configuration in force could be compared with a default.",
        "Keine geltende Konfiguration ließ sich mit einer Vorgabe vergleichen.",
    )


def _at_default(scene: Scene, found: Reading | None) -> Judgement:
    against = _against(scene, found)
    if not against:
        return Judgement("neutral", Confidence.UNASSESSED, reason=_unseen(scene))
    if found is not None and found.force is not None and (found.comparison or found.bound):
        reason = say(
            scene,
            f"{quoted(found.force.name)} is set to its default, {found.force.value}.",
            f"{quoted(found.force.name)} steht auf der Vorgabe {found.force.value}.",
        )
    else:
        reason = say(
            scene,
            "No setting that the report or the best ranked code is concerned with differs from its default.",
            "Keine Einstellung, um die es im Bericht oder im passendsten Code geht, weicht von der "
            "Vorgabe ab.",
        )
    return Judgement(
        "contradicts", Confidence.WEAKENED, against=against[:3], tested=against[:3], reason=reason
    )


def _level(scene: Scene, found: Reading, force: Setting, default: Setting) -> Confidence:
    text = scene.case.text()
    wanted = any(matches(default.number, n) and may_convert(force.name, text, n) for n in found.numbers)
    chosen = force.number is not None and force.number in found.numbers and not wanted
    if chosen:
        return Confidence.PLAUSIBLE
    comparison = found.comparison
    if comparison is not None and force.number is not None and default.number is not None:
        flips = [
            value
            for _, value in found.logged()
            if comparison.admits(value, default.number) != comparison.admits(value, force.number)
        ]
        if flips:
            return Confidence.STRONGLY_SUPPORTED
    if found.in_code is not None and (wanted or comparison is not None):
        return Confidence.SUPPORTED
    return Confidence.SUPPORTED if wanted else Confidence.PLAUSIBLE


def _deviating(scene: Scene, found: Reading, force: Setting, default: Setting) -> Judgement:
    level = _level(scene, found, force, default)
    if found.comparison is None and not may_mean(force.name, scene.case.text(), default.value):
        level = Confidence.PLAUSIBLE
    records = [force.record, default.record]
    if found.comparison is not None:
        records.insert(1, found.comparison.record)
    elif found.in_code is not None:
        records.insert(1, found.in_code)
    logged = next(iter(found.logged()), None)
    support = tuple(dict.fromkeys(records))
    cause = tuple(record for record in support if _short(record)) or support[:1]
    lines = [line_quote(force.record, force.line)]
    description = say(
        scene,
        f"In force is {lines[0] or force.value} ({place(force.record)}); the default is {default.value}.",
        f"In Kraft ist {lines[0] or force.value} ({place(force.record)}); die Vorgabe ist {default.value}.",
    )
    comparison = found.comparison
    if comparison is not None and comparison.record in cause:
        quote = line_quote(comparison.record, comparison.line)
        description += say(
            scene,
            f" The code obeys it: {place(comparison.record)} decides with {quote}." if quote else "",
            f" Der Code befolgt sie: {place(comparison.record)} entscheidet mit {quote}." if quote else "",
        )
    if logged is not None:
        support = (*support, logged[0].log)
        description += say(
            scene,
            f" The affected attempt was logged with the value {logged[1]:g}.",
            f" Der betroffene Versuch wurde mit dem Wert {logged[1]:g} protokolliert.",
        )
    supports = level.rank >= Confidence.SUPPORTED.rank
    return Judgement(
        "supports" if supports else "neutral",
        level,
        support=support,
        cause=cause,
        tested=support,
        reason=say(
            scene,
            f"{quoted(force.name)} is {force.value} in force, {default.value} by default.",
            f"{quoted(force.name)} steht auf {force.value}, die Vorgabe ist {default.value}.",
        ),
        summary=say(
            scene,
            f"A configured value causes it: {quoted(force.name)} is {force.value} instead of "
            f"{default.value}.",
            f"Ein eingestellter Wert ist die Ursache: {quoted(force.name)} steht auf {force.value} "
            f"statt {default.value}.",
        ),
        description=description,
        action=say(
            scene,
            f"Set {quoted(force.name)} to {default.value} in a test installation and repeat the steps.",
            f"{quoted(force.name)} in einer Testinstallation auf {default.value} stellen und die Schritte "
            "wiederholen.",
        ),
        limits=(
            say(
                scene,
                "Whether the running program had read this file was not observed.",
                "Ob das laufende Programm diese Datei gelesen hatte, ist nicht zu sehen.",
            ),
        ),
    )
