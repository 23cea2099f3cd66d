"""Deterministic gates of the hypotheses (seed 001; docs/contracts.md, section 3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from viano_assets.case.model import CaseSource, SourceType
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.interpretation.rules import HUMAN, AliasedStatement
from viano_assets.phases.wire import ValidationIssue

UNGROUNDED: Final = frozenset(
    {SourceType.TESTER_ASSUMPTION, SourceType.EXTERNAL_EXPECTATION, SourceType.IMPLEMENTATION_REFERENCE}
)
"""Source types on which no hypothesis may stand alone, also not in combination."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What candidates may refer to, and the pinned policy they must fit."""

    sources: Mapping[str, CaseSource]
    statements: Mapping[str, AliasedStatement]
    minimum: int
    maximum: int

    @property
    def focus(self) -> tuple[str, ...]:
        """Statements of which the first candidate must cite one: divergence, else stage, else observed."""
        for category in ("first_known_divergence", "failure_stage", "observed_behavior"):
            found = tuple(s.id for s in self.statements.values() if s.category == category)
            if found:
                return found
        return ()


def scope_of(
    sources: Sequence[CaseSource], statements: Sequence[AliasedStatement], policy: Mapping[str, Any]
) -> Scope:
    """Build the scope of a case, an interpretation and a pinned policy."""
    return Scope(
        {source.id: source for source in sources},
        {statement.id: statement for statement in statements},
        policy["min_hypotheses"],
        policy["max_hypotheses"],
    )


def missing_observation(statements: Sequence[AliasedStatement]) -> bool:
    """Return whether the interpretation holds no observed behaviour to explain."""
    return not any(statement.category == "observed_behavior" for statement in statements)


def normalise(text: str) -> str:
    """Reduce a title or mechanism to what is left without presentation, case, punctuation and space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(char for char in folded if unicodedata.category(char)[0] not in "PZC")


def validate(
    candidates: Sequence[Candidate], scope: Scope, prefix: str = "/candidates"
) -> list[ValidationIssue]:
    """Return every reason why the batch cannot be accepted; empty when it can."""
    issues: list[ValidationIssue] = []
    if not scope.minimum <= len(candidates) <= scope.maximum:
        issues.append(
            _issue(
                prefix,
                "count",
                f"{len(candidates)} candidates, allowed are {scope.minimum} to {scope.maximum}",
                "give a number of candidates within the policy",
            )
        )
    for index, candidate in enumerate(candidates):
        issues.extend(check_candidate(candidate, index, scope, f"{prefix}/{index}"))
    issues.extend(issue for _, issue in duplicates(candidates, prefix))
    return issues


def check_candidate(candidate: Candidate, index: int, scope: Scope, path: str) -> Iterator[ValidationIssue]:
    """Yield what is wrong with one candidate by itself."""
    yield from _references(candidate.source_ids, scope.sources, f"{path}/source_ids", "source")
    yield from _references(
        candidate.interpretation_ids, scope.statements, f"{path}/interpretation_ids", "interpretation"
    )
    if not candidate.source_ids:
        yield _issue(f"{path}/source_ids", "source_missing", "cites no case source", "cite at least one")
    elif not _grounded(candidate, scope):
        yield _issue(
            f"{path}/source_ids",
            "ungrounded",
            "stands only on assumptions, external expectations or unread references",
            "cite an observation, a step, a technical fact or a statement that rests on one",
        )
    for name in ("expected_evidence", "falsifying_evidence"):
        if not getattr(candidate, name):
            yield _issue(f"{path}/{name}", "evidence_missing", "names nothing", "name at least one finding")
    if index == 0:
        yield from _first(candidate, scope, path)


def _first(candidate: Candidate, scope: Scope, path: str) -> Iterator[ValidationIssue]:
    human = [source.id for source in scope.sources.values() if source.type in HUMAN]
    if not set(human) & set(candidate.source_ids):
        yield _issue(
            f"{path}/source_ids",
            "first_candidate_source",
            "the first candidate cites nothing a person saw or described",
            f"cite one of: {', '.join(human) or 'none exists'}",
        )
    if not set(scope.focus) & set(candidate.interpretation_ids):
        yield _issue(
            f"{path}/interpretation_ids",
            "first_candidate_focus",
            "the first candidate does not address where behaviour first diverged",
            f"cite one of: {', '.join(scope.focus) or 'none exists'}",
        )


def _grounded(candidate: Candidate, scope: Scope) -> bool:
    cited = set(candidate.source_ids)
    for statement_id in candidate.interpretation_ids:
        if statement_id in scope.statements:
            cited |= set(scope.statements[statement_id].source_ids)
    return any(scope.sources[i].type not in UNGROUNDED for i in cited if i in scope.sources)


def _references(
    ids: Sequence[str], known: Mapping[str, object], path: str, kind: str
) -> Iterator[ValidationIssue]:
    if len(set(ids)) != len(ids):
        yield _issue(path, f"{kind}_duplicate", "cites an id twice", "cite each id once")
    for position, name in enumerate(ids):
        if name not in known:
            yield _issue(
                f"{path}/{position}",
                f"{kind}_unknown",
                f"{name!r} does not exist in this context",
                f"known: {', '.join(known)}",
            )


def duplicates(candidates: Sequence[Candidate], prefix: str) -> Iterator[tuple[int, ValidationIssue]]:
    """Yield index and issue of every title or mechanism that repeats an earlier one after normalisation."""
    for name in ("title", "mechanism"):
        seen: dict[str, int] = {}
        for index, candidate in enumerate(candidates):
            key = normalise(getattr(candidate, name))
            if key in seen:
                yield (
                    index,
                    _issue(
                        f"{prefix}/{index}/{name}",
                        "duplicate",
                        f"the {name} repeats that of candidate {seen[key] + 1}",
                        "propose a different mechanism",
                    ),
                )
            seen.setdefault(key, index)


def _issue(path: str, category: str, message: str, hint: str) -> ValidationIssue:
    return ValidationIssue(path=path, category=category, message=message, hint=hint)
