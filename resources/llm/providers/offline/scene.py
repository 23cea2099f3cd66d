"""Everything one turn or one verdict of the analyst looks at, and what it may wish for and conclude."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from resources.llm.providers.offline.findings import Findings, Record
from resources.llm.providers.offline.mechanisms import family_of
from resources.llm.providers.offline.view import Case, Json
from viano_assets.phases.wire import Confidence

RANK_CHARS = 50_000

_ID = re.compile(r"(?<![\w.])\d{2,10}(?![\w.]*\w)")
_MONTH = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch)?|März|Mrz|Apr(?:il)?|May|Mai|June?|Juni|July?|Juli|"
    r"Aug(?:ust)?|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)\b\.?"
)
_NO_IDS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?"
    r"|\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}[-/]\d{1,2}[-/]\d{4}|\d{1,2}/\d{1,2}/\d{2}"
    r"|v?\d+(?:\.\d+){1,4}(?:[-+][\w.]+)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+\d{{4}})?"
    r"|\d{1,2}\s+(?:Uhr\b(?:\s+\d{1,2}\b)?|o'clock\b|[ap]\.?m\b))"
    r"|(?<![\d:])\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?![\d:])",
    re.IGNORECASE,
)
"""Clock times, dates, versions and addresses: their parts are the number of no thing."""


def without_times(text: str) -> str:
    """Return a text without its clock times, dates, versions and network addresses."""
    return _NO_IDS.sub(" ", text)


@dataclass(frozen=True, slots=True)
class Wish:
    """One look the analyst would like; `countercheck` marks it as a test of a rival family."""

    tool: str
    arguments: Json
    purpose: str
    countercheck: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the findings mean for one mechanism family.

    `support` and `against` are ordered, best first; `cause` carries the claim (records of at most
    60 lines); `summary` and `description` word it; `action` says what a person does next to confirm it.
    `direct` says that a promise of the report itself is contradicted, which stands before what only
    sets the affected item apart from others.
    """

    effect: str
    level: Confidence
    support: tuple[Record, ...] = ()
    against: tuple[Record, ...] = ()
    cause: tuple[Record, ...] = ()
    reason: str = ""
    summary: str = ""
    description: str = ""
    tested: tuple[Record, ...] = ()
    limits: tuple[str, ...] = ()
    action: str = ""
    direct: bool = False


@dataclass(slots=True)
class Scene:
    """The case, what is registered and what has been found."""

    case: Case
    interpretation: Json
    hypotheses: list[Json]
    findings: Findings
    overview: Json = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    schemas: dict[str, Json] = field(default_factory=dict)

    def fits(self, tool: str, arguments: Json) -> bool:
        """Say whether a tool offered here takes arguments of these names."""
        schema = self.schemas.get(tool)
        if schema is None:
            return False
        known = set(schema.get("properties", arguments))
        return set(arguments) <= known and set(schema.get("required", ())) <= set(arguments)

    def family(self, hypothesis_id: str) -> str:
        """Return the mechanism family of a registered hypothesis."""
        return family_of(self.title(hypothesis_id))

    def title(self, hypothesis_id: str) -> str:
        """Return the title of a registered hypothesis, empty for an unknown one."""
        return next((str(e["title"]) for e in self.hypotheses if e["id"] == hypothesis_id), "")

    def id_of(self, family: str) -> str | None:
        """Return the hypothesis of a family, if one is registered."""
        for entry in self.hypotheses:
            if family_of(entry["title"]) == family:
                return str(entry["id"])
        return None

    def report_text(self) -> str:
        """Return the title and all sources as one text, for ranking; what another source says stands once."""
        parts = [f"# {self.case.title}"]
        for source in self.case.sources:
            text = source.text.strip()
            if text and not any(text in part for part in parts):
                parts.append(f"```\n{text}\n```" if source.kind == "code_block" else text)
        return "\n\n".join(parts)[:RANK_CHARS]

    def ids(self) -> list[str]:
        """Return the numbers the report gives as ids of things, most often given first."""
        counts: dict[str, int] = {}
        for source in self.case.sources:
            if source.kind == "id":
                text = without_times(source.text)
                for name in sorted(source.attributes):
                    value = source.attributes[name]
                    if value.isdigit() and re.search(rf"(?<![\w.]){value}(?![\w.]*\w)", text):
                        counts[value] = counts.get(value, 0) + 1
        order = list(counts)
        return sorted(counts, key=lambda value: (-counts[value], order.index(value)))

    def numbers(self) -> list[str]:
        """Return the ids the report names, then its other numbers, most often named first."""
        counts: dict[str, int] = {}
        for source in self.case.sources:
            for value in _ID.findall(without_times(source.text)):
                counts[value] = counts.get(value, 0) + 1
        order = list(counts)
        others = sorted(counts, key=lambda value: (-counts[value], order.index(value)))
        return list(dict.fromkeys([*self.ids(), *others]))


def quoted(text: str) -> str:
    """Return `text` as a quote of a technical description."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def first_lines(record: Record, count: int = 1) -> list[str]:
    """Return the first nonblank lines of a record."""
    return [line.strip() for line in record.content.splitlines() if line.strip()][:count]


def ratio(values: dict[str, Any], name: str) -> float:
    """Return a finite number of a shape, 0 when it is missing."""
    value = values.get(name, 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0
