"""`interpretation-output-v1`: what the model may answer about the report (docs/contracts.md, section 2)."""

from __future__ import annotations

from enum import StrEnum

from viano_assets.phases.wire import ShortText, Text, Wire

CONTRACT = "interpretation-output-v1"


class ExpectationCompleteness(StrEnum):
    """How fully the report says what should have happened."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


class Statement(Wire):
    """One statement with the case sources it rests on."""

    text: Text
    source_ids: tuple[str, ...]


class ExpectedStatement(Statement):
    """An expected behaviour and how completely it is stated."""

    expectation_completeness: ExpectationCompleteness


class Entity(Wire):
    """Something named in the case; `value` stands literally in a cited source."""

    kind: ShortText
    value: ShortText
    label: ShortText
    source_ids: tuple[str, ...]


class LookupCertainty(StrEnum):
    """A lookup that was not done is uncertain."""

    CERTAIN = "certain"
    UNCERTAIN = "uncertain"


class Lookup(Wire):
    """A question about an entity that the investigation would have to look up."""

    question: Text
    entity: ShortText
    certainty: LookupCertainty


class InterpretationAnswer(Wire):
    """The whole answer."""

    summary: Text
    observed_behavior: tuple[Statement, ...]
    expected_behavior: tuple[ExpectedStatement, ...]
    reproduction_steps: tuple[Statement, ...]
    technical_facts: tuple[Statement, ...]
    tester_assumptions: tuple[Statement, ...]
    failure_stage: Statement | None
    first_known_divergence: Statement | None
    entities: tuple[Entity, ...]
    lookups: tuple[Lookup, ...]
    missing_information: tuple[Text, ...]
    open_questions: tuple[Text, ...]
