"""Gates of joint candidates: premises, references by path, and unchanged inputs of retained ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viano_assets.canonical import canonical_json
from viano_assets.case.model import CaseSource, SourceType
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.interpretation.rules import AliasedStatement
from viano_assets.phases.planning.contract import PlannedCandidate, PlannedCandidateV1, Premise, PremiseKind
from viano_assets.phases.wire import ValidationIssue

_MISSING = object()


def resolve(
    planned: PlannedCandidateV1, statements: Sequence[AliasedStatement], path: str
) -> tuple[Candidate | None, list[ValidationIssue]]:
    """Turn the paths of a planned candidate into interpretation ids, deterministically."""
    by_pointer = {statement.pointer: statement.id for statement in statements}
    issues = [
        _issue(f"{path}/interpretation_paths/{number}", "path_unknown", f"{pointer!r} is not a statement")
        for number, pointer in enumerate(planned.interpretation_paths)
        if pointer not in by_pointer
    ]
    if issues:
        return None, issues
    fields = {name: getattr(planned, name) for name in Candidate.model_fields if name != "interpretation_ids"}
    ids = tuple(by_pointer[pointer] for pointer in planned.interpretation_paths)
    return Candidate(**fields, interpretation_ids=ids), []


def check_premises(
    planned: PlannedCandidateV1, sources: Mapping[str, CaseSource], path: str
) -> Iterator[ValidationIssue]:
    """Yield what is wrong with the premises of a v2 candidate; v1 has none."""
    if not isinstance(planned, PlannedCandidate):
        return
    for number, premise in enumerate(planned.premises):
        yield from _premise(premise, planned, sources, f"{path}/premises/{number}")


def _premise(
    premise: Premise, planned: PlannedCandidate, sources: Mapping[str, CaseSource], path: str
) -> Iterator[ValidationIssue]:
    for kind, cited, declared in (
        ("source_ids", premise.source_ids, planned.source_ids),
        ("interpretation_paths", premise.interpretation_paths, planned.interpretation_paths),
    ):
        for number, reference in enumerate(cited):
            if reference not in declared:
                message = f"{reference!r} is not among the proposal's own {kind}"
                yield _issue(f"{path}/{kind}/{number}", "premise_undeclared", message)
    if premise.kind is not PremiseKind.GROUNDED:
        return
    if not premise.source_ids and not premise.interpretation_paths:
        yield _issue(path, "premise_ungrounded", "a grounded premise cites nothing")
    for number, source_id in enumerate(premise.source_ids):
        source = sources.get(source_id)
        if source is not None and source.type is SourceType.IMPLEMENTATION_REFERENCE:
            yield _issue(
                f"{path}/source_ids/{number}",
                "premise_unread",
                f"{source_id} is named, but nobody has read it",
            )


def inputs_unchanged(planned: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether everything a proposal declares it rests on has the same content as before.

    The content at each path is compared, not the path's existence: a deletion above moves others in.
    """
    paths = planned.get("interpretation_paths")
    if not isinstance(paths, list):
        return False
    return all(isinstance(path, str) and _same(path, before, after) for path in paths)


def _same(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    old, new = at_pointer(before, path), at_pointer(after, path)
    if old is _MISSING or new is _MISSING:
        return False
    return canonical_json(old) == canonical_json(new)


def at_pointer(value: Any, pointer: str) -> Any:
    """Return what stands at a JSON pointer, or a marker that nothing does."""
    for part in pointer.split("/")[1:]:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def exists(value: Any, pointer: str) -> bool:
    """Return whether something stands at a JSON pointer."""
    return at_pointer(value, pointer) is not _MISSING


def _issue(path: str, category: str, message: str) -> ValidationIssue:
    return ValidationIssue(
        path=path,
        category=category,
        message=message,
        hint="a premise cites only what its proposal declares; mark what nothing supports as unverified",
    )
