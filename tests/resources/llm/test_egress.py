from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.llm.config import EgressRules, LLMConfig
from resources.llm.egress import EgressFilter
from resources.llm.gateway import EgressShown, LLMGateway, PreviewGateway
from tests.support.gateway_case import CANARY, config, gateway, new_case, operation, provider, request
from tests.support.model_server import ModelServer, answers
from viano_assets.phases.protocols import Message, ModelRequest, section


def evidence(path: str | None = None, table: str | None = None, content: str = "text") -> dict[str, Any]:
    location = {"path": path, "table": table, "key": {"id": "7", "email": "a@b.example"}}
    return {
        "evidence_id": "E1",
        "content": content,
        "content_sha256": "ab" * 32,
        "provenance": {"kind": "row" if table else "source", "location": location},
    }


def asked(*records: dict[str, Any]) -> ModelRequest:
    messages = (Message(role="system", content="Be exact."), section("evidence", list(records)))
    return request().model_copy(update={"messages": messages})


def leaving(rules: dict[str, Any], *records: dict[str, Any]) -> tuple[list[Any], dict[str, int]]:
    filtered = EgressFilter(EgressRules.model_validate(rules)).apply(asked(*records))
    return filtered.request.sections("evidence")[0], filtered.applied


def test_without_rules_the_request_is_untouched() -> None:
    wanted = asked(evidence("a.c"))
    assert EgressFilter(EgressRules()).apply(wanted).request is wanted


@pytest.mark.parametrize("path", ["conf/keys.pem", "keys.pem", "deep/down/keys.pem"])
def test_contents_of_a_denied_file_stay_and_its_citation_leaves(path: str) -> None:
    (record,), applied = leaving({"deny_files": ["**/*.pem"]}, evidence(path))
    assert record["content"] == "[withheld by egress rule deny_files[0]]"
    assert record["evidence_id"] == "E1"
    assert record["content_sha256"] == "ab" * 32
    assert record["provenance"]["location"]["path"] == path
    assert applied == {"deny_files[0]": 1}


def test_a_file_that_no_rule_names_leaves_whole() -> None:
    (record,), applied = leaving({"deny_files": ["**/*.pem"]}, evidence("a.c"))
    assert record == evidence("a.c")
    assert applied == {}


def test_a_denied_table_is_withheld() -> None:
    (one, two), applied = leaving(
        {"deny_tables": ["account_*"]}, evidence(table="ACCOUNT_data"), evidence(table="quest")
    )
    assert one["content"].startswith("[withheld")
    assert two["content"] == "text"
    assert applied == {"deny_tables[0]": 1}


def test_a_denied_column_is_masked_in_rows_and_keys() -> None:
    rows = json.dumps({"id": 7, "email": "a@b.example"}) + "\n" + json.dumps([{"Email": "c@d.example"}])
    (record,), applied = leaving({"deny_columns": ["account.email"]}, evidence(table="account", content=rows))
    assert "example" not in json.dumps(record)
    assert json.loads(record["content"].split("\n")[0]) == {"id": 7, "email": "[withheld]"}
    assert record["provenance"]["location"]["key"] == {"id": "7", "email": "[withheld]"}
    assert applied["deny_columns"] == 3


def test_a_denied_column_in_a_form_nobody_can_take_apart_withholds_the_content() -> None:
    (record,), _ = leaving({"deny_columns": ["*.email"]}, evidence(table="t", content="id | a@b.example"))
    assert record["content"] == "[withheld by egress rule deny_columns]"


def test_a_pattern_is_replaced_in_every_string_and_counted() -> None:
    rules = {"redact": [{"pattern": r"\d+\.\d+\.\d+\.\d+", "replacement": r"[ip\1]"}]}
    (record,), applied = leaving(rules, evidence("a.c", content="from 10.0.0.1 to 10.0.0.2"))
    assert record["content"] == r"from [ip\1] to [ip\1]"
    assert applied == {"redact[0]": 2}


async def test_the_rules_hold_for_every_provider_and_for_failover(tmp_path: Path) -> None:
    from tests.support.model_server import fails

    store, head = new_case(tmp_path)
    with ModelServer({"a": fails(500), "b": answers()}) as server:
        settings = config(
            {"a": provider(server), "b": provider(server, "b")}, egress={"deny_files": ["*.pem"]}
        )
        wanted = asked(evidence("x.pem", content="PRIVATE"))
        outcome = await gateway(settings).dispatch(store, operation(head, wanted))
        assert [b"PRIVATE" in sent.body for sent in server.requests] == [False, False]
    kept = json.loads(store.read(outcome.head, outcome.call_path or ""))
    assert [attempt["egress"] for attempt in kept["attempts"]] == [{"deny_files[0]": 1}] * 2
    assert all(attempt["sent_sha256"] and attempt["origin"] for attempt in kept["attempts"])


async def test_the_preview_shows_the_exact_bytes_and_sends_nothing(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        settings = config(
            {"a": provider(server), "here": {"type": "offline"}}, egress={"redact": [{"pattern": "hello"}]}
        )
        made = gateway(settings)
        with pytest.raises(EgressShown) as caught:
            await PreviewGateway(made).dispatch(store, operation(head))
        assert server.count() == 0
        await made.dispatch(store, operation(head))
        shown, local = caught.value.previews
        assert shown.body == server.requests[0].body
    assert b"hello" not in shown.body
    assert shown.applied == {"redact[0]": 1}
    assert (shown.key_header, shown.key_variable) == ("authorization", "CANARY_KEY")
    assert CANARY not in json.dumps(shown.as_json())
    assert local.url == ""


def test_a_preview_tells_why_a_provider_could_not_be_asked() -> None:
    settings = LLMConfig.model_validate(
        {"providers": {"x": {"type": "anthropic", "model": "m", "structured": "output_format"}}}
    )
    schema = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}
    (shown,) = LLMGateway(settings, "x", environ={}).egress_preview(request(json_schema=schema))
    assert shown.problem.startswith("inexpressible_schema")
    assert shown.body == b""
