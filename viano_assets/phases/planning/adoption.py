"""Takes candidates of a joint plan over into the hypotheses, whole or as retained positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.case.model import CaseSource
from viano_assets.phases.common import decode
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.hypotheses.rules import Scope, check_candidate, duplicates, scope_of, validate
from viano_assets.phases.interpretation.rules import AliasedStatement
from viano_assets.phases.planning.chain import Chain
from viano_assets.phases.planning.contract import PlannedCandidate, PlannedCandidateV1
from viano_assets.phases.planning.reviews import Position, Standing
from viano_assets.phases.planning.rules import check_premises, resolve
from viano_assets.phases.wire import ValidationIssue

_REVIEWED = frozenset({Standing.RETAINED, Standing.REPLACED})


@dataclass(frozen=True, slots=True)
class Adoption:
    """What can be taken over.

    `candidates` is the complete batch, or None. Otherwise `kept` holds explicitly reviewed candidates by
    position and `positions` their fixed number, or nothing is locked (`positions` None); `issues` say why.
    """

    candidates: tuple[Candidate, ...] | None
    positions: int | None
    kept: Mapping[int, Candidate]
    issues: tuple[ValidationIssue, ...]


def adopt(
    chain: Chain,
    version: int,
    statements: Sequence[AliasedStatement],
    sources: Sequence[CaseSource],
    policy: Mapping[str, Any],
) -> Adoption:
    """Check every position again against sources, focus, diversity and count, and say what may be taken."""
    scope = scope_of(sources, statements, policy)
    if chain.positions is None:
        issue = _issue("/hypotheses", "schema", "the plan holds no list of candidates")
        return Adoption(None, None, {}, (issue,))
    good: dict[int, Candidate] = {}
    issues: list[ValidationIssue] = []
    for number, position in enumerate(chain.positions, start=1):
        candidate, found = _check(position, number, version, statements, scope)
        issues.extend(found)
        if candidate is not None:
            good[number] = candidate
    issues.extend(_drop_duplicates(good))
    complete = tuple(good[number] for number in sorted(good))
    if len(good) == len(chain.positions):
        issues.extend(validate(complete, scope, "/hypotheses"))
        if not issues:
            return Adoption(complete, None, {}, ())
    return _partial(chain, good, scope, issues)


def _partial(
    chain: Chain, good: Mapping[int, Candidate], scope: Scope, issues: Sequence[ValidationIssue]
) -> Adoption:
    positions = chain.positions or ()
    kept = {n: c for n, c in good.items() if positions[n - 1].status in _REVIEWED}
    safe = scope.minimum <= len(positions) <= scope.maximum
    if not kept or not safe or len(kept) == len(positions):
        return Adoption(None, None, {}, tuple(issues))
    return Adoption(None, len(positions), kept, tuple(issues))


def _check(
    position: Position, number: int, version: int, statements: Sequence[AliasedStatement], scope: Scope
) -> tuple[Candidate | None, list[ValidationIssue]]:
    path = f"/hypotheses/{number - 1}"
    if position.status is Standing.UNCLEAR:
        return None, [_issue(path, "review_unclear", "no review shows that this candidate still stands")]
    model: type[PlannedCandidateV1] = PlannedCandidate if version >= 2 else PlannedCandidateV1
    planned = decode(model, position.wire, path)
    if not isinstance(planned, PlannedCandidateV1):
        return None, list(planned)
    candidate, issues = resolve(planned, statements, path)
    issues += check_premises(planned, scope.sources, path)
    if candidate is not None:
        issues += check_candidate(candidate, number - 1, scope, path)
    return (None if issues else candidate), issues


def _drop_duplicates(good: dict[int, Candidate]) -> list[ValidationIssue]:
    numbers = sorted(good)
    found = list(duplicates([good[number] for number in numbers], "/hypotheses"))
    issues: list[ValidationIssue] = []
    for index, issue in found:
        number = numbers[index]
        field = issue.path.rsplit("/", 1)[-1]
        issues.append(issue.model_copy(update={"path": f"/hypotheses/{number - 1}/{field}"}))
        good.pop(number, None)
    return issues


def _issue(path: str, category: str, message: str) -> ValidationIssue:
    return ValidationIssue(
        path=path, category=category, message=message, hint="propose this position anew, checked"
    )
