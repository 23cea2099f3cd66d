"""A limit from all sides: what the report promises, what is set, what the code compares, what was logged.

The same report can come from a wrong comparison, from a value somebody configured and from a user who went
beyond the limit. Which it is, only the four together say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.bounds import Bound, Comparison, comparisons, tail
from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.printing import Printed, printed
from resources.llm.providers.offline.promises import Promise, agreed, promises, stated
from resources.llm.providers.offline.scene import Scene
from resources.llm.providers.offline.settings import (
    Setting,
    exactly,
    in_calls,
    in_force,
    last_part,
    matches,
    named_in,
    of_name,
    plain_name,
    templates,
    words_of,
)
from resources.llm.providers.offline.tracing import traced
from resources.llm.providers.offline.units import may_convert

MAX_KEYS = 3
ENOUGH = 2.5
"""Weight from which on a setting is worth a look."""

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?(?![\w.]*\w)")
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known about one setting; `promise` is what report, documentation or comment agree on."""

    name: str
    force: Setting | None
    default: Setting | None
    comparison: Comparison | None
    bound: Bound | None
    numbers: frozenset[float]
    observed: tuple[Printed, ...]
    in_code: Record | None
    promise: Promise | None = None

    @property
    def limit(self) -> float | None:
        """The value that holds: the one in force, else the default."""
        chosen = self.force or self.default
        return chosen.number if chosen else None

    @property
    def deviates(self) -> bool:
        """True when a value is set and differs from the default."""
        if self.force is None or self.default is None:
            return False
        if self.force.number is not None and self.default.number is not None:
            return self.force.number != self.default.number
        return self.force.value.casefold() != self.default.value.casefold()

    @property
    def telling(self) -> bool:
        """True when a deviating value has to do with the report: a number that is compared or spoken of."""
        numbers = [s.number for s in (self.force, self.default) if s is not None and s.number is not None]
        spoken = any(matches(number, wanted) for number in numbers for wanted in self.numbers if wanted > 0)
        related = self.comparison is not None or self.bound is not None or spoken
        return self.deviates and (related or not numbers)

    def logged(self) -> Iterator[tuple[Printed, float]]:
        """Yield the logged values that the comparison was made with."""
        if self.comparison is None:
            return
        for line in self.observed:
            value = line.number(tail(self.comparison.value))
            if value is not None:
                yield line, value


def expected_numbers(scene: Scene) -> frozenset[float]:
    """Return the numbers of the report that are no ids of things.

    A noun before a number makes it an id only where it always stands there: a report that says "it shows 40"
    and elsewhere "40 points" speaks of a quantity.
    """
    texts = scene.case.text("expectation", "external_expectation", "observation", "report")
    things: set[str] = set()
    for source in scene.case.sources:
        value, label = source.attributes.get("value", ""), source.attributes.get("label", "")
        if source.kind != "id":
            continue
        bare = rf"(?<![\w.])(?<!{re.escape(label)} ){re.escape(value)}(?![\w.]*\w)"
        if not (source.attributes.get("named") == "noun" and label and re.search(bare, texts, re.IGNORECASE)):
            things.update(source.attributes.values())
    found = (m.replace(",", ".") for m in _NUMBER.findall(texts))
    return frozenset(float(m) for m in found if m not in things)


def read_functions(scene: Scene, places: list[Ranked]) -> list[Record]:
    """Return the records of the ranked functions that were read, best first."""
    found: list[Record] = []
    for ranked in places:
        for record in scene.findings.of_kind("source"):
            place = record.location
            if (
                record.tool == "source.read"
                and place.path == ranked.path
                and ranked.line_start <= (place.line_start or 0) <= ranked.line_end
                and record not in found
            ):
                found.append(record)
    return found


def names_for(scene: Scene, key: str) -> frozenset[str]:
    """Return the identifiers through which the code knows a setting."""
    names: set[str] = set()
    wanted = last_part(key)
    for record in scene.findings.of_kind("source"):
        for line in record.content.splitlines():
            if re.search(rf"[\"']{re.escape(key)}[\"']", line):
                before = line.split(key, 1)[0]
                assigned = re.search(r"([A-Za-z_]\w*)\s*(?:=(?!=)|\{|\()[^=]*$", before.split("=")[0] + "=")
                if "=" in before and assigned:
                    names.add(assigned[1])
                names.update(re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", line))
                continue
            for word in re.findall(r"[A-Za-z_]\w{3,}", line):
                if len(wanted) > 5 and plain_name(word).removeprefix("m").endswith(wanted):
                    names.add(word)
    return frozenset({key, *names})


def keys(scene: Scene, places: list[Ranked]) -> list[str]:
    """Return the settings worth a look, the most telling first."""
    force, usual, called = in_force(scene), templates(scene), in_calls(scene)
    functions = read_functions(scene, places)
    numbers = expected_numbers(scene)
    fitting = bool(places) and sum(value >= 0.3 for value in places[0].signals.values()) > 1
    report = {word.casefold() for word in _WORD.findall(scene.report_text())}
    stems = {word[:5] for word in report}
    weights: dict[str, float] = {}
    names = [*force, *usual, *called, *(n for record in functions[:3] for n in sorted(named_in(record)))]
    for name in dict.fromkeys(names):
        known = of_name(force, name), of_name(usual, name) or of_name(called, name)
        if not any(known):
            continue
        weight = 0.0
        for number, record in enumerate(functions[:3]):
            if f'"{name}"' in record.content or f"'{name}'" in record.content or _member(record, name):
                weight += (3.0 if number == 0 else 1.5) if fitting else 1.0
                break
        ours, theirs = known
        weight += 2.0 if ours and theirs and ours.value != theirs.value else 0.0
        weight += _as_stated(scene, theirs, numbers) + 0.5 * _as_stated(scene, ours, numbers)
        weight += min(2.0, 0.7 * sum(word[:5] in stems for word in sorted(words_of(name))))
        weights[name] = weight
    chosen = [name for name in weights if weights[name] >= ENOUGH]
    return sorted(chosen, key=lambda name: (-weights[name], name))


def _as_stated(scene: Scene, setting: Setting | None, numbers: frozenset[float]) -> float:
    """Return 2 for a value that the report states, 1 for one it may state in another unit."""
    if setting is None or setting.number is None or setting.number in {0.0, 1.0}:
        return 0.0
    if exactly(setting.number, numbers):
        return 2.0
    text = scene.case.text()
    scaled = any(matches(setting.number, n) and may_convert(setting.name, text, n) for n in numbers if n > 1)
    return 0.8 if scaled else 0.0


def _member(record: Record, name: str) -> bool:
    wanted = last_part(name)
    return len(wanted) > 5 and any(
        plain_name(word).removeprefix("m").endswith(wanted)
        for word in re.findall(r"[A-Za-z_]\w{4,}", record.content)
    )


def reading(scene: Scene, key: str, places: list[Ranked]) -> Reading:
    """Put together what is known about a setting."""
    usual = of_name(templates(scene), key) or of_name(in_calls(scene), key)
    force = of_name(in_force(scene), key)
    names = names_for(scene, key)
    functions = read_functions(scene, places)
    sources = [*functions, *(r for r in scene.findings.of_kind("source") if r not in functions)]
    found = [c for record in sources if record.tool.startswith("source.") for c in comparisons(record, names)]
    said = stated(scene)
    numbers = [s.number for s in (force, usual) if s is not None]
    exact = [b for b in said if exactly(b.number, [n for n in numbers if n is not None])]
    scaled = [b for b in said if any(matches(n, b.number) for n in numbers)]
    bound = next(iter(exact or scaled), None)
    lines = printed(scene, functions[:3])
    where = next((r for r in sources if key in r.content), None)
    limit = next((s.number for s in (force, usual) if s is not None), None)
    best = _governing(found, lines) or _handed_on(traced(scene, names), limit)
    stated_at = agreed(promises(scene, key, limit))
    return Reading(key, force, usual, best, bound, expected_numbers(scene), tuple(lines), where, stated_at)


def _governing(found: list[Comparison], lines: list[Printed]) -> Comparison | None:
    """Return the comparison that guards a logged line, else the first that refuses, else the first."""
    for comparison in found:
        if any(line.guard and line.guard == comparison.line for line in lines):
            return comparison
    refusing = [c for c in found if c.refuses]
    return next(iter(refusing or found), None)


def _handed_on(found: list[Comparison], limit: float | None) -> Comparison | None:
    """Return the first comparison a limit was handed on to, if all of them decide the limit itself alike."""
    if limit is None or len({c.admits(limit, limit) for c in found}) != 1:
        return None
    return found[0]


def readings(scene: Scene, places: list[Ranked]) -> list[Reading]:
    """Return the readings of the settings worth a look, the most telling first."""
    return [reading(scene, key, places) for key in keys(scene, places)[:MAX_KEYS]]


def best_reading(scene: Scene, places: list[Ranked]) -> Reading | None:
    """Return the reading of the setting that matters most, if one does."""
    return min(
        readings(scene, places),
        key=lambda r: (not r.telling, r.bound is None or r.comparison is None, r.comparison is None),
        default=None,
    )
