"""Which places of a rejected interpretation may be corrected, and how patches are put in.

Places are derived from the actual answer and its issues only. A problem that cannot be pinned to one
statement or one field has no place, and then nothing is patched.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from viano_assets.case.model import CaseDocument
from viano_assets.phases.common import decode
from viano_assets.phases.interpretation.context import interpretation_schema
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import ARRAYS, SINGLES, source_enums, validate
from viano_assets.phases.planning.contract import Patch
from viano_assets.phases.schema import Schema
from viano_assets.phases.wire import ValidationIssue

LISTS: Final = (*ARRAYS, "entities", "lookups", "missing_information", "open_questions")
"""Fields of the interpretation that hold a list."""

FIELDS: Final = ("summary", *SINGLES)
"""Fields that hold one value."""

LOCAL: Final = frozenset(
    {
        "schema",
        "source_missing",
        "source_duplicate",
        "source_unknown",
        "source_class",
        "entity_provenance",
        "lookup_certainty",
    }
)
"""Categories of issues that concern one place only."""

_EMPTY: Final[Mapping[str, Any]] = {
    "summary": "-",
    **dict.fromkeys(LISTS, ()),
    **dict.fromkeys(SINGLES),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A correctable place: a list entry (`index` set) or a whole field."""

    path: str
    field: str
    index: int | None
    issues: tuple[ValidationIssue, ...]

    @property
    def may_be_null(self) -> bool:
        """Whether null is a legal patch: it deletes a list entry or empties an optional statement."""
        return self.index is not None or self.field in SINGLES


def inspect(
    raw: object, case: CaseDocument
) -> tuple[InterpretationAnswer | None, tuple[ValidationIssue, ...]]:
    """Return the accepted interpretation, or every issue of the raw one.

    Parts that break the schema do not hide what is wrong with the others: the rules are applied to
    whatever is well-formed.
    """
    decoded = decode(InterpretationAnswer, raw)
    if isinstance(decoded, InterpretationAnswer):
        issues = validate(decoded, case)
        return (None if issues else decoded), issues
    if not isinstance(raw, dict):
        return None, decoded
    rest, indices = _well_formed(raw, decoded)
    partial = decode(InterpretationAnswer, rest)
    if not isinstance(partial, InterpretationAnswer):
        return None, decoded
    found = [_renumber(issue, indices) for issue in validate(partial, case)]
    return None, (*decoded, *found)


def _well_formed(
    raw: Mapping[str, Any], issues: Sequence[ValidationIssue]
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    broken = {tuple(issue.path.split("/")[1:3]) for issue in issues}
    rest: dict[str, Any] = {}
    indices: dict[str, list[int]] = {}
    for name, empty in _EMPTY.items():
        value = raw.get(name, empty)
        if (name,) in broken or (name in FIELDS and any(place[0] == name for place in broken)):
            value = empty
        if name in LISTS:
            indices[name] = [i for i in range(len(value)) if (name, str(i)) not in broken]
            value = [value[i] for i in indices[name]]
        rest[name] = value
    return rest, indices


def _renumber(issue: ValidationIssue, indices: Mapping[str, Sequence[int]]) -> ValidationIssue:
    parts = issue.path.split("/")
    if parts[1] in indices:
        parts[2] = str(indices[parts[1]][int(parts[2])])
    return issue.model_copy(update={"path": "/".join(parts)})


def locate(raw: object, issues: Sequence[ValidationIssue], limit: int) -> tuple[Place, ...] | None:
    """Return the places that cover every issue, or None when localisation is unsafe or they are too many."""
    if not isinstance(raw, dict):
        return None
    found: dict[tuple[str, int | None], list[ValidationIssue]] = {}
    for issue in issues:
        key = _key(raw, issue)
        if key is None:
            return None
        found.setdefault(key, []).append(issue)
    if not 0 < len(found) <= limit:
        return None
    order = sorted(found, key=lambda key: (list(_EMPTY).index(key[0]), key[1] or 0))
    return tuple(
        Place(f"/{field}" if index is None else f"/{field}/{index}", field, index, tuple(found[field, index]))
        for field, index in order
    )


def _key(raw: Mapping[str, Any], issue: ValidationIssue) -> tuple[str, int | None] | None:
    parts = issue.path.split("/")[1:]
    if issue.category not in LOCAL or not parts or parts[0] not in _EMPTY:
        return None
    field = parts[0]
    if field in FIELDS or len(parts) == 1:
        return field, None
    entries = raw.get(field)
    if not isinstance(entries, list) or not parts[1].isdecimal() or int(parts[1]) >= len(entries):
        return None
    return field, int(parts[1])


def value_schema(place: Place, case: CaseDocument) -> Schema:
    """Return the schema of the patch value of a place, with the source enum of its category."""
    whole = interpretation_schema(source_enums(case.sources))["properties"][place.field]
    if place.index is None:
        return dict(whole)
    if whole.get("maxItems") == 0:
        return {"type": "null"}
    return {"anyOf": [whole["items"], {"type": "null"}]}


def check_patches(patches: Sequence[Patch], places: Sequence[Place]) -> list[ValidationIssue]:
    """Return why the patches do not cover exactly the disputed places; empty when they do."""
    wanted = {place.path: place for place in places}
    issues: list[ValidationIssue] = []
    seen: set[str] = set()
    for number, patch in enumerate(patches):
        path = f"/patches/{number}"
        if patch.path not in wanted:
            issues.append(_refuse(path, "patch_foreign", f"{patch.path!r} is not a disputed place"))
        elif patch.path in seen:
            issues.append(_refuse(path, "patch_duplicate", f"{patch.path} is patched twice"))
        elif patch.value is None and not wanted[patch.path].may_be_null:
            issues.append(_refuse(path, "patch_null", f"{patch.path} cannot be removed"))
        seen.add(patch.path)
    issues += [
        _refuse("/patches", "patch_missing", f"{path} was not patched") for path in wanted if path not in seen
    ]
    return issues


def _refuse(path: str, category: str, message: str) -> ValidationIssue:
    return ValidationIssue(
        path=path, category=category, message=message, hint="patch exactly the disputed places, each once"
    )


def apply(raw: Mapping[str, Any], patches: Sequence[Patch], places: Sequence[Place]) -> dict[str, Any]:
    """Return the interpretation with the patches put in; deletions run from the highest index down."""
    result: dict[str, Any] = copy.deepcopy(dict(raw))
    values = {patch.path: patch.value for patch in patches}
    removed: list[Place] = []
    for place in places:
        value = copy.deepcopy(values[place.path])
        if place.index is None:
            result[place.field] = value
        elif value is None:
            removed.append(place)
        else:
            result[place.field][place.index] = value
    for place in sorted(removed, key=lambda item: item.index or 0, reverse=True):
        del result[place.field][place.index]
    return result
