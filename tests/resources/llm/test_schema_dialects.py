from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from resources.llm.schema_dialects import (
    ANTHROPIC,
    ANTHROPIC_TOOL,
    GEMINI,
    LLAMA,
    OPENAI,
    Dialect,
    InexpressibleSchema,
    drop_nulled,
    transport_schema,
)
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.hypotheses.contract import HypothesesAnswer
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.investigation.contract import InvestigationAnswer

ALL = [OPENAI, LLAMA, ANTHROPIC, ANTHROPIC_TOOL, GEMINI]


def obj(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, Field(min_length=1, max_length=9)]
    note: Annotated[str, Field(max_length=3)] = ""


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: Annotated[list[Part], Field(min_length=2, max_length=4)]
    share: Annotated[float, Field(ge=0, le=1)]
    count: Annotated[int, Field(ge=0, le=5)]
    word: Part | None = None


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "contract", [InterpretationAnswer, HypothesesAnswer, DiagnosisAnswer, InvestigationAnswer]
)
def test_every_contract_is_carried_or_refused_with_a_reason(
    dialect: Dialect, contract: type[BaseModel]
) -> None:
    schema = contract.model_json_schema()
    before = contract.model_json_schema()
    if dialect is ANTHROPIC and contract is InvestigationAnswer:
        with pytest.raises(InexpressibleSchema, match="free properties"):
            transport_schema(schema, dialect)
        return
    sent = transport_schema(schema, dialect)
    assert sent.schema["type"] == "object"
    assert schema == before
    allowed = dialect.keywords | {"type", "properties", "required", "additionalProperties", "items", "enum"}
    if sent.strict:
        allowed |= {"const", "anyOf", "$ref", "title", "description"}
        assert _keywords(sent.schema) <= allowed


def _keywords(schema: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(schema, dict):
        found |= set(schema)
        for key, value in schema.items():
            children = value.values() if key in {"properties", "$defs"} else [value]
            if key not in {"enum", "const", "required"}:
                for child in children:
                    found |= _keywords(child)
    elif isinstance(schema, list):
        for item in schema:
            found |= _keywords(item)
    return found


def test_openai_closes_every_object_and_makes_optional_fields_nullable() -> None:
    sent = transport_schema(Whole.model_json_schema(), OPENAI)
    assert sent.strict
    assert sent.nulled
    assert sent.schema["required"] == ["parts", "share", "count", "word"]
    part = sent.schema["$defs"]["Part"]
    assert part["required"] == ["text", "note"]
    assert part["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert part["additionalProperties"] is False
    assert sent.unenforced == (
        "/$defs/Part/properties/note maxLength",
        "/$defs/Part/properties/text maxLength",
        "/$defs/Part/properties/text minLength",
    )


def test_a_null_that_stands_for_an_absent_field_is_taken_out_and_a_meant_one_stays() -> None:
    answer = {
        "parts": [{"text": "a", "note": None}, {"text": "b", "note": "c"}],
        "share": 0.5,
        "count": 1,
        "word": None,
    }
    cleaned = drop_nulled(Whole.model_json_schema(), answer)
    assert cleaned["parts"] == [{"text": "a"}, {"text": "b", "note": "c"}]
    assert cleaned["word"] is None
    assert Whole.model_validate(cleaned).parts[1].note == "c"
    inside = drop_nulled(Whole.model_json_schema(), {**answer, "word": {"text": "d", "note": None}})
    assert inside["word"] == {"text": "d"}


def test_an_open_object_loses_strictness_at_openai_and_says_so() -> None:
    sent = transport_schema(obj(arguments={"type": "object"}), OPENAI)
    assert not sent.strict
    assert sent.unenforced == ("/ everything: an open object cannot be sent in strict form",)


def test_llama_reads_integer_ranges_and_not_those_of_floats() -> None:
    """Measured: 123 was answered for a number between 0.5 and 0.6."""
    sent = transport_schema(Whole.model_json_schema(), LLAMA)
    assert sent.schema["properties"]["count"] == {"type": "integer", "minimum": 0, "maximum": 5}
    assert sent.schema["properties"]["share"] == {"type": "number"}
    assert sent.unenforced == ("/properties/share maximum", "/properties/share minimum")


def test_llama_keeps_locked_items_without_the_keyword_that_it_answers_with_an_error() -> None:
    """Measured: prefixItems is enforced alone, and `items: false` beside it gives HTTP 400."""
    locked = {"type": "array", "prefixItems": [{"const": 1}], "items": False, "minItems": 1, "maxItems": 1}
    sent = transport_schema(obj(kept=locked), LLAMA)
    assert sent.schema["properties"]["kept"] == {
        "type": "array",
        "prefixItems": [{"const": 1}],
        "minItems": 1,
        "maxItems": 1,
    }
    assert sent.unenforced == ("/properties/kept items",)


def test_gemini_takes_a_constant_as_a_list_of_one() -> None:
    sent = transport_schema(obj(kind={"const": "x"}, name={"type": "string", "pattern": "a"}), GEMINI)
    assert sent.schema["properties"]["kind"] == {"enum": ["x"]}
    assert sent.unenforced == ("/properties/name pattern",)


def test_an_exclusive_choice_becomes_an_open_one_where_the_dialect_has_no_other() -> None:
    choice = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    sent = transport_schema(obj(value=choice), OPENAI)
    assert sent.schema["properties"]["value"] == {"anyOf": choice["oneOf"]}
    assert sent.unenforced == ("/properties/value oneOf",)


def test_anthropic_keeps_at_most_one_minimum_item() -> None:
    sent = transport_schema(obj(a={"type": "array", "items": {"type": "string"}, "minItems": 3}), ANTHROPIC)
    assert sent.schema["properties"]["a"]["minItems"] == 1
    assert sent.unenforced == ("/properties/a minItems",)


TREE = {
    "$defs": {"Node": obj(next={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]})},
    **obj(root={"$ref": "#/$defs/Node"}),
}


@pytest.mark.parametrize(
    ("schema", "dialect", "reason"),
    [
        ({"type": "array", "items": {"type": "string"}}, LLAMA, "not an object"),
        (obj(a={"$ref": "#/$defs/None"}), LLAMA, "leads nowhere"),
        (obj(a={"$ref": "https://elsewhere.example/s"}), GEMINI, "leaves the schema"),
        (obj(a={"enum": []}), OPENAI, "allows no value"),
        (obj(a=False), OPENAI, "allows no value"),
        (TREE, ANTHROPIC, "recursive"),
    ],
)
def test_a_shape_that_no_relaxation_carries_fails_before_sending(
    schema: dict[str, Any], dialect: Dialect, reason: str
) -> None:
    with pytest.raises(InexpressibleSchema, match=reason):
        transport_schema(schema, dialect)


def test_a_recursive_shape_is_carried_where_the_dialect_has_it() -> None:
    assert transport_schema(TREE, OPENAI).strict
