"""Contradictions that can be read in the code: a limit compared wrongly, a state changed before its test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.bounds import Bound, Comparison
from resources.llm.providers.offline.crash import Untested, untested
from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.limits import Reading, readings
from resources.llm.providers.offline.printing import Printed
from resources.llm.providers.offline.registration import Hole, holes, shown
from resources.llm.providers.offline.scene import Scene, quoted
from resources.llm.providers.offline.sequence import Removed, removed_before
from resources.llm.providers.offline.wording import line_quote, place, say
from viano_assets.phases.wire import Confidence

_ASSIGNED = re.compile(r"^\s*([A-Za-z_][\w]*(?:(?:\.|->)\w+)*)\s*=(?!=)\s*(.+?);?\s*$")
_CONDITION = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|elif|while)\b(.*)")
_LITERAL = re.compile(r"(?:0|false|true|False|True|None|nullptr|NULL|\"\"|[A-Z][A-Z0-9_]{2,})$")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One contradiction with its level, the records that show it (best first) and its words.

    `direct` says that the report's own number or promise is what the code contradicts.
    """

    level: Confidence
    records: tuple[Record, ...]
    logs: tuple[Record, ...]
    reason: str
    summary: str
    description: str
    direct: bool = False


def anomalies(scene: Scene, places: list[Ranked], reads: list[Record]) -> Iterator[Anomaly]:
    """Yield the contradictions in the functions that were read, the strongest kind first."""
    if "diagnostics" not in scene.case.roles:
        return
    dropped = untested(scene)
    if dropped is not None:
        yield _on_nothing(scene, dropped)
    for found in readings(scene, places):
        if not found.deviates and found.comparison is not None:
            contradiction = _boundary(scene, found, found.comparison)
            if contradiction is not None:
                yield contradiction
    for removed in removed_before(scene, places):
        yield _taken_away(scene, removed)
    for hole in holes(scene)[:1]:
        yield from _unregistered(scene, hole)
    for record in reads:
        yield from _order(scene, record)


def _unregistered(scene: Scene, hole: Hole) -> Iterator[Anomaly]:
    absence, lines = shown(scene, hole)
    if absence is None or lines is None:
        return
    name, example = quoted(hole.named.name), quoted(hole.siblings[0])
    yield Anomaly(
        level=Confidence.SUPPORTED,
        records=(lines, hole.named.row),
        logs=(absence,),
        reason=say(
            scene,
            f"{hole.path} names {len(hole.siblings)} siblings like {example}, but never {name}.",
            f"{hole.path} nennt {len(hole.siblings)} Geschwister wie {example}, aber nie {name}.",
        ),
        summary=say(
            scene,
            f"{name} is not registered in {hole.path}, where its siblings are.",
            f"{name} ist in {hole.path} nicht eingetragen, wo seine Geschwister stehen.",
        ),
        description=say(
            scene,
            f"The row of {quoted(hole.named.table)} holds {name}. {hole.path} names its siblings, "
            f"for example {example}; a complete search of that file does not find {name}.",
            f"Die Zeile von {quoted(hole.named.table)} enthält {name}. {hole.path} nennt die Geschwister, "
            f"etwa {example}; eine vollständige Suche in dieser Datei findet {name} nicht.",
        ),
    )


def _boundary(scene: Scene, found: Reading, comparison: Comparison) -> Anomaly | None:
    limit = found.limit
    if limit is None or comparison.refuses is None:
        return None
    bound = found.bound
    refused = [
        (line, value)
        for line, value in found.logged()
        if comparison.refuses and comparison.true_for(value, limit)
    ]
    if bound is not None and bound.number == limit:
        return _against_bound(scene, found, comparison, bound, limit, refused)
    promise = found.promise
    spoken = {limit, limit - 1} if comparison.counted else {limit}
    if bound is None and promise is not None and spoken & found.numbers:
        return _against_bound(scene, found, comparison, promise.bound, limit, refused)
    if bound is None and limit in found.numbers and comparison.op in {"<=", ">="} and comparison.refuses:
        at_limit = [pair for pair in refused if pair[1] == limit]
        if at_limit:
            return _worded(scene, found, comparison, Confidence.SUPPORTED, at_limit, None)
    return None


def _against_bound(
    scene: Scene,
    found: Reading,
    comparison: Comparison,
    bound: Bound,
    limit: float,
    refused: list[tuple[Printed, float]],
) -> Anomaly | None:
    if not comparison.breaks(bound, limit):
        return None
    hit = [pair for pair in refused if bound.admits(pair[1])]
    outside = [pair for pair in refused if not bound.admits(pair[1])]
    if outside and not hit:
        return None
    named = found.force is not None and limit in found.numbers
    level = Confidence.STRONGLY_SUPPORTED if hit or named else Confidence.SUPPORTED
    return _worded(scene, found, comparison, level, hit, bound)


def _worded(
    scene: Scene,
    found: Reading,
    comparison: Comparison,
    level: Confidence,
    hit: list[tuple[Printed, float]],
    bound: Bound | None,
) -> Anomaly:
    record = comparison.record
    quote = line_quote(record, comparison.line)
    limit = f"{found.limit:g}"
    promised = bound.text if bound is not None else limit
    logs = tuple(line.log for line, _ in hit)[:1]
    promise = found.promise
    written = promise.record if promise is not None and bound == promise.bound else None
    if written is not None:
        logs = (*logs, written)
    expects = _expects(scene, written)
    seen = ""
    if hit:
        seen = say(
            scene,
            f" The log shows an attempt with {hit[0][1]:g} that was turned away.",
            f" Das Protokoll zeigt einen abgewiesenen Versuch mit {hit[0][1]:g}.",
        )
    return Anomaly(
        level=level,
        direct=True,
        records=(record,),
        logs=logs,
        reason=say(
            scene,
            f"{place(record)} compares with {quote}, which does not fit the promise ({promised}).",
            f"{place(record)} vergleicht mit {quote}, das passt nicht zur Zusage ({promised}).",
        ),
        summary=say(
            scene,
            f"The comparison in {place(record)} draws the limit wrongly: {quote}.",
            f"Der Vergleich in {place(record)} zieht die Grenze falsch: {quote}.",
        ),
        description=say(
            scene,
            f"{place(record)} decides with {quote}. {expects} {promised}. At {limit}, the "
            f"value that "
            f"is configured and is the default, the comparison decides the other way.{seen}",
            f"{place(record)} entscheidet mit {quote}. {expects} {promised}. Bei {limit}, dem "
            f"eingestellten und vorgegebenen Wert, entscheidet der Vergleich anders.{seen}",
        ),
    )


def _expects(scene: Scene, written: Record | None) -> str:
    if written is not None:
        where = place(written)
        return say(scene, f"{where} promises:", f"{where} sagt zu:")
    return say(scene, "The report expects:", "Der Bericht erwartet:")


def _on_nothing(scene: Scene, found: Untested) -> Anomaly:
    call, seen = line_quote(found.code, found.line), line_quote(found.stack.log, found.stack.line)
    receiver, where = quoted(found.receiver), place(found.code)
    return Anomaly(
        level=Confidence.STRONGLY_SUPPORTED,
        direct=True,
        records=(found.code, found.stack.log),
        logs=(),
        reason=say(
            scene,
            f"The stack in the log leads to {where}, which uses {receiver} without a test.",
            f"Der Aufrufstapel im Protokoll führt zu {where}, das {receiver} ungeprüft benutzt.",
        ),
        summary=say(
            scene,
            f"{where} uses {receiver} although nothing may be there; that ends the program.",
            f"{where} benutzt {receiver}, auch wenn dort nichts ist; das beendet das Programm.",
        ),
        description=say(
            scene,
            f"The log shows the crash: {seen}. The caller does {call} and never asks whether {receiver} "
            "is there.",
            f"Das Protokoll zeigt den Absturz: {seen}. Der Aufrufer macht {call} und fragt nie, ob es "
            f"{receiver} gibt.",
        ),
    )


def _taken_away(scene: Scene, found: Removed) -> Anomaly:
    one, two = line_quote(found.caller, found.first), line_quote(found.caller, found.then)
    guard = line_quote(found.user, found.guard)
    member, where = quoted(found.member), place(found.caller)
    level = Confidence.STRONGLY_SUPPORTED if found.named else Confidence.SUPPORTED
    return Anomaly(
        level=level,
        direct=found.named,
        records=(found.caller, *found.shown, found.user),
        logs=(),
        reason=say(
            scene,
            f"{where} removes from {member} before {place(found.user)} looks there.",
            f"{where} entfernt aus {member}, bevor {place(found.user)} dort nachsieht.",
        ),
        summary=say(
            scene,
            f"The order of steps in {where} is wrong: what is needed later is removed first.",
            f"Die Reihenfolge in {where} ist falsch: Was später gebraucht wird, ist schon entfernt.",
        ),
        description=say(
            scene,
            f"{where} first does {one}, then {two}. The first removes the entry from {member}; the second "
            f"looks it up there and gives up at {guard}. It always takes that way.",
            f"{where} macht erst {one}, dann {two}. Das Erste entfernt den Eintrag aus {member}; das Zweite "
            f"sucht ihn dort und gibt bei {guard} auf. So geht es immer aus.",
        ),
    )


def _order(scene: Scene, record: Record) -> Iterator[Anomaly]:
    """A member is overwritten with a value, and only then compared with that very value."""
    lines = record.content.splitlines()
    for number, line in enumerate(lines):
        match = _ASSIGNED.match(line)
        if match is None or not re.search(r"\.|->|^m_|_$", match[1]):
            continue
        target, value = match[1], match[2].strip()
        indent = len(line) - len(line.lstrip())
        for later in lines[number + 1 :]:
            if later.strip() and len(later) - len(later.lstrip()) < indent:
                break
            if _ASSIGNED.match(later) and later.strip().startswith(f"{target} "):
                break
            condition = _CONDITION.match(later)
            if condition is None or not re.search(rf"(?<![\w.>]){re.escape(target)}(?![\w(])", condition[1]):
                continue
            word = re.fullmatch(r"[A-Za-z_][\w.>-]*", value)
            same = word is not None and re.search(rf"(?<![\w.]){re.escape(value)}(?!\w)", condition[1])
            if same or (_LITERAL.fullmatch(value) and value in condition[1]):
                yield _ordered(scene, record, line.strip(), later.strip(), target)
            break


def _ordered(scene: Scene, record: Record, first: str, then: str, target: str) -> Anomaly:
    one, two = line_quote(record, first), line_quote(record, then)
    return Anomaly(
        level=Confidence.SUPPORTED,
        records=(record,),
        logs=(),
        reason=say(
            scene,
            f"{place(record)} sets {quoted(target)} before it tests it.",
            f"{place(record)} setzt {quoted(target)}, bevor es geprüft wird.",
        ),
        summary=say(
            scene,
            f"{place(record)} changes {quoted(target)} before the test that depends on its old value.",
            f"{place(record)} ändert {quoted(target)} vor der Prüfung, die vom alten Wert abhängt.",
        ),
        description=say(
            scene,
            f"First {one}, then {two}: the test sees the new value, so its outcome no longer depends on what "
            "was there before.",
            f"Erst {one}, dann {two}: Die Prüfung sieht den neuen Wert und hängt nicht mehr vom alten ab.",
        ),
    )
