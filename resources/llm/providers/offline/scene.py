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
    60 lines); `summary` and `description` word it; `settled` says that no further look would help.
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


@dataclass(slots=True)
class Scene:
    """The case, what is registered and what has been found."""

    case: Case
    interpretation: Json
    hypotheses: list[Json]
    findings: Findings
    overview: Json = field(default_factory=dict)
    tools: frozenset[str] = frozenset()

    def family(self, hypothesis_id: str) -> str:
        """Return the mechanism family of a registered hypothesis."""
        for entry in self.hypotheses:
            if entry["id"] == hypothesis_id:
                return family_of(entry["title"])
        return "Code"

    def id_of(self, family: str) -> str | None:
        """Return the hypothesis of a family, if one is registered."""
        for entry in self.hypotheses:
            if family_of(entry["title"]) == family:
                return str(entry["id"])
        return None

    def report_text(self) -> str:
        """Return the title and all sources as one text, for ranking."""
        text = f"{self.case.title}\n\n{self.case.text()}"
        return text[:RANK_CHARS]

    def numbers(self) -> list[str]:
        """Return the ids the report names, most often named first, then in order of appearance."""
        counts: dict[str, int] = {}
        for source in self.case.sources:
            values = [source.attributes[n] for n in sorted(source.attributes)] if source.kind == "id" else []
            for value in [*values, *_ID.findall(source.text)]:
                if value.isdigit():
                    counts[value] = counts.get(value, 0) + (3 if source.kind == "id" else 1)
        order = list(counts)
        return sorted(counts, key=lambda value: (-counts[value], order.index(value)))


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
