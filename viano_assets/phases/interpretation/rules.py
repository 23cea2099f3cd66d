"""Deterministic gates of the interpretation (docs/contracts.md, sections 1 and 2; seed 003).

Which source types may ground which category is decided here once; the schema sent to a provider and the
acceptance check both read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from viano_assets.case.model import CaseDocument, CaseSource, SourceType
from viano_assets.phases.interpretation.contract import InterpretationAnswer, LookupCertainty, Statement
from viano_assets.phases.wire import ValidationIssue

HUMAN: Final = frozenset({SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT})
"""What a person saw or described: grounds observed behaviour, failure stage and first candidates."""

CATEGORY_TYPES: Final[Mapping[str, frozenset[SourceType]]] = {
    "observed_behavior": HUMAN,
    "expected_behavior": frozenset({SourceType.EXPECTATION, SourceType.EXTERNAL_EXPECTATION}),
    "reproduction_steps": frozenset({SourceType.REPRODUCTION_STEP}),
    "technical_facts": frozenset({SourceType.TECHNICAL_FACT, SourceType.ENVIRONMENT}),
    "tester_assumptions": frozenset({SourceType.TESTER_ASSUMPTION}),
    "failure_stage": HUMAN,
    "first_known_divergence": HUMAN | {SourceType.REPRODUCTION_STEP},
    "entities": frozenset(SourceType),
}
"""Allowed source types per category. An entity claims nothing but its literal occurrence."""

ARRAYS: Final = (
    "observed_behavior",
    "expected_behavior",
    "reproduction_steps",
    "technical_facts",
    "tester_assumptions",
)
"""Categories that hold a list of statements, in the order of their aliases."""

SINGLES: Final = ("failure_stage", "first_known_divergence")
"""Categories that hold one statement or nothing, aliased after the lists."""


class AliasedStatement(NamedTuple):
    """An accepted statement under the name by which later phases refer to it."""

    id: str
    pointer: str
    category: str
    text: str
    source_ids: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the form stored and shown."""
        return {
            "id": self.id,
            "pointer": self.pointer,
            "category": self.category,
            "text": self.text,
            "source_ids": list(self.source_ids),
        }


def allowed_ids(sources: Sequence[CaseSource], category: str) -> list[str]:
    """Return the ids of the sources that may ground `category`, in catalogue order."""
    types = CATEGORY_TYPES[category]
    return [source.id for source in sources if source.type in types]


def source_enums(sources: Sequence[CaseSource]) -> dict[str, list[str]]:
    """Return the allowed source ids of every category."""
    return {category: allowed_ids(sources, category) for category in CATEGORY_TYPES}


def statements_of(answer: InterpretationAnswer) -> Iterator[tuple[str, str, Statement]]:
    """Yield pointer, category and statement in alias order."""
    for category in ARRAYS:
        for index, statement in enumerate(getattr(answer, category)):
            yield f"/{category}/{index}", category, statement
    for category in SINGLES:
        single = getattr(answer, category)
        if single is not None:
            yield f"/{category}", category, single


def aliases(answer: InterpretationAnswer) -> tuple[AliasedStatement, ...]:
    """Name the statements of an accepted answer I1, I2 and so on."""
    return tuple(
        AliasedStatement(f"I{number}", pointer, category, statement.text, statement.source_ids)
        for number, (pointer, category, statement) in enumerate(statements_of(answer), start=1)
    )


def check_sources(
    pointer: str, category: str, ids: Sequence[str], sources: Mapping[str, CaseSource]
) -> Iterator[ValidationIssue]:
    """Yield what is wrong with the source ids of one place of one category."""
    allowed = allowed_ids(list(sources.values()), category)
    hint = (
        f"allowed here: {', '.join(allowed)}"
        if allowed
        else "no source allows such a statement: leave it out"
    )
    if not ids:
        yield ValidationIssue(
            path=f"{pointer}/source_ids", category="source_missing", message="cites no source", hint=hint
        )
    if len(set(ids)) != len(ids):
        yield ValidationIssue(
            path=f"{pointer}/source_ids",
            category="source_duplicate",
            message="cites a source twice",
            hint=hint,
        )
    for position, source_id in enumerate(ids):
        path = f"{pointer}/source_ids/{position}"
        if source_id not in sources:
            yield ValidationIssue(
                path=path, category="source_unknown", message=f"{source_id!r} is not a source", hint=hint
            )
        elif source_id not in allowed:
            kind = sources[source_id].type.value
            yield ValidationIssue(
                path=path,
                category="source_class",
                message=f"{source_id} is {kind}, not allowed here",
                hint=hint,
            )


def validate(answer: InterpretationAnswer, case: CaseDocument) -> tuple[ValidationIssue, ...]:
    """Return every reason why the answer cannot be accepted; empty when it can."""
    sources = {source.id: source for source in case.sources}
    issues: list[ValidationIssue] = []
    for pointer, category, statement in statements_of(answer):
        issues.extend(check_sources(pointer, category, statement.source_ids, sources))
    for index, entity in enumerate(answer.entities):
        pointer = f"/entities/{index}"
        issues.extend(check_sources(pointer, "entities", entity.source_ids, sources))
        cited = [sources[source_id].text for source_id in entity.source_ids if source_id in sources]
        if cited and not any(entity.value in text for text in cited):
            issues.append(
                ValidationIssue(
                    path=f"{pointer}/value",
                    category="entity_provenance",
                    message="the value does not stand literally in a cited source",
                    hint="copy the value exactly from a cited source, or leave the entity out",
                )
            )
    issues.extend(_lookups(answer, sources))
    return tuple(issues)


def _lookups(answer: InterpretationAnswer, sources: Mapping[str, CaseSource]) -> Iterator[ValidationIssue]:
    named = {entity.value for entity in answer.entities}
    for index, lookup in enumerate(answer.lookups):
        if lookup.certainty is not LookupCertainty.UNCERTAIN:
            yield ValidationIssue(
                path=f"/lookups/{index}/certainty",
                category="lookup_certainty",
                message="nothing has been looked up yet",
                hint="a lookup that was not done is uncertain",
            )
        if lookup.entity not in named and not any(
            lookup.entity in source.text for source in sources.values()
        ):
            yield ValidationIssue(
                path=f"/lookups/{index}/entity",
                category="entity_provenance",
                message="the entity does not stand literally in the case",
                hint="copy it exactly from an entity or a source",
            )
