"""Configuration: does a governing setting differ from its default or from what the report expects?

Looks: the configuration files of the archive whole, every assignment in the source's own configuration
templates in one search, and the places where the source names the settings that differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from viano_assets.phases.wire import Confidence

MAX_FILES = 2
MAX_KEYS = 3
TEMPLATES = ["**/*.dist", "**/*.conf*", "**/*.cfg*", "**/*.ini*", "**/*.toml*", "**/*.yaml*", "**/*.yml*"]
ASSIGNMENT = r"^\s*[A-Za-z][A-Za-z0-9_.\-]*\s*[=:]\s*\S"

_LINE = re.compile(r"^\s*([A-Za-z][\w.\-]*)\s*[=:]\s*(\"[^\"]*\"|'[^']*'|[^#;]*?)\s*(?:[#;].*)?$")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?(?![\w.]*\w)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One assignment: name, value as written, the record and the line it stands on."""

    name: str
    value: str
    record: Record
    line: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """A setting whose value in force differs from the template's."""

    setting: Setting
    default: Setting
    expected: bool
    read: bool

    @property
    def weight(self) -> tuple[bool, bool]:
        """Strength against others: the report expects the default; the ranked code reads it."""
        return (self.expected, self.read)


def config_files(scene: Scene) -> list[str]:
    """Return the configuration files of the diagnostics, as the overview names them."""
    logs = scene.overview.get("logs") or []
    return [str(item["file"]) for item in logs if item.get("kind") == "config" and "file" in item]


def plan_configuration(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Configuration in order."""
    if "log.window" not in scene.tools:
        return
    files = config_files(scene)
    for file in files[:MAX_FILES]:
        for start in (1, 152):
            yield Wish(
                "log.window",
                {"file": file, "line": start, "before": 0, "after": 150},
                "Which values are in force?",
            )
    if files and "source.search" in scene.tools:
        yield Wish(
            "source.search",
            {"pattern": ASSIGNMENT, "regex": True, "globs": TEMPLATES, "context": 0, "limit": 200},
            "Which values do the source's own templates give?",
        )
        for deviation in deviations(scene)[:MAX_KEYS]:
            yield Wish(
                "source.search",
                {"pattern": deviation.setting.name, "limit": 20},
                f"Where does the code read {deviation.setting.name}?",
                scene.id_of("Code"),
            )


def _settings(record: Record) -> Iterator[Setting]:
    for line in record.content.splitlines():
        match = _LINE.match(line)
        if match is not None and match[2]:
            yield Setting(match[1], match[2].strip("\"' "), record, line.strip())


def in_force(scene: Scene) -> dict[str, Setting]:
    """Return the settings of the archive's configuration, the last assignment of a name winning."""
    found: dict[str, Setting] = {}
    for look in scene.findings.by("log.window", "log.search"):
        for record in look.records:
            if record.kind == "config" and record.usable:
                found.update({setting.name: setting for setting in _settings(record)})
    return found


def defaults(scene: Scene) -> dict[str, Setting]:
    """Return the settings of the source's templates, the first assignment of a name winning."""
    found: dict[str, Setting] = {}
    for record in scene.findings.of_kind("config", "source"):
        if record.tool.startswith("source.") and record.location.path is not None:
            for setting in _settings(record):
                found.setdefault(setting.name, setting)
    return found


def _expected_numbers(scene: Scene) -> set[str]:
    text = scene.case.text("expectation", "external_expectation", "observation", "report")
    return {match.replace(",", ".") for match in _NUMBER.findall(text)}


def deviations(scene: Scene) -> list[Deviation]:
    """Return the settings that differ from their template, the most telling first."""
    usual, wanted = defaults(scene), _expected_numbers(scene)
    read = "\n".join(r.content for r in scene.findings.of_kind("source") if r.tool == "source.read")
    found = [
        Deviation(
            setting=setting,
            default=usual[name],
            expected=usual[name].value in wanted,
            read=name in read,
        )
        for name, setting in in_force(scene).items()
        if name in usual and usual[name].value != setting.value
    ]
    return sorted(found, key=lambda item: (not item.expected, not item.read, item.setting.name))


def judge_configuration(scene: Scene) -> Judgement:
    """Judge the family Configuration from the values in force against the templates."""
    current, usual = in_force(scene), defaults(scene)
    if not current or not usual:
        return Judgement("neutral", Confidence.UNASSESSED, reason="No setting was compared.")
    found = deviations(scene)
    telling = [item for item in found if any(item.weight)]
    if not telling:
        same = tuple(dict.fromkeys(setting.record for name, setting in current.items() if name in usual))
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=same[:2],
            tested=same[:2],
            reason="The values in force are the templates' own where the report is concerned.",
        )
    best = telling[0]
    setting, default = best.setting, best.default
    level = Confidence.SUPPORTED if all(best.weight) or best.expected else Confidence.PLAUSIBLE
    support = (setting.record, default.record)
    return Judgement(
        "supports" if level is not Confidence.PLAUSIBLE else "neutral",
        level,
        support=support,
        cause=support,
        tested=support,
        reason=f"{setting.name} is {setting.value} in force; the template gives {default.value}.",
        summary=f"The setting {quoted(setting.name)} is {quoted(setting.value)} in the affected installation.",
        description=(
            f"In force stands {quoted(setting.line)}; the source's template has {quoted(default.line)}. "
            "The code obeys the value in force."
        ),
        limits=("Whether the running program had read this file was not observed.",),
    )
