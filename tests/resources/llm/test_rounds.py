from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.llm.clock import iso
from resources.llm.config import LLMConfig
from resources.llm.gateway import LLMGateway
from tests.support.gateway_case import (
    CANARY,
    TurnedClock,
    config,
    gateway,
    leaks,
    new_case,
    operation,
    provider,
    request,
)
from tests.support.model_server import ModelServer, answers, completion, fails, in_turn
from viano_assets.canonical import strict_loads
from viano_assets.errors import ConfigurationError, ContractError, InputError
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore


def record(store: CheckpointStore, head: Head, path: str | None) -> Any:
    assert path is not None
    return strict_loads(store.read(head, path))


async def test_an_answer_is_recorded_once_and_never_asked_again(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        first = await gateway(config({"a": provider(server)}), tmp_path / "spend").dispatch(
            store, operation(head)
        )
        again = await gateway(config({"a": provider(server)}), tmp_path / "spend").dispatch(
            store, operation(head)
        )
    assert first.status == again.status == "answered"
    assert first.answer == again.answer == {"ok": True}
    assert first.call_sha256 == again.call_sha256
    assert server.count() == 1
    assert again.head.generation == first.head.generation == 2
    kept = record(store, first.head, first.call_path)
    attempt = kept["attempts"][0]
    assert (attempt["tokens_in"], attempt["tokens_cached"], attempt["tokens_out"]) == (100, 40, 20)
    assert attempt["cached_share"] == 0.4
    assert attempt["requested_model"] == "model-a"
    assert attempt["served_model"] == "served-model"
    assert attempt["cost"] is None


async def test_a_saved_answer_is_found_whatever_the_configuration(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers(), "b": answers()}) as server:
        await gateway(config({"a": provider(server)})).dispatch(store, operation(head))
        other = await gateway(config({"b": provider(server, "b")})).dispatch(store, operation(head))
        assert other.status == "answered"
        assert server.count() == 1
        changed = await gateway(config({"b": provider(server, "b")})).dispatch(
            store, operation(head, attempt_id="attempt-2")
        )
    assert changed.status == "answered"
    assert server.count("b") == 1


async def test_failover_asks_each_provider_once_a_round_and_the_next_round_only_when_due(
    tmp_path: Path,
) -> None:
    """B4: a fallback must not restart the retry cycle: six requests after two rounds of three providers."""
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    with ModelServer({name: fails(429) for name in "abc"}) as server:
        settings = config(
            {name: provider(server, name) for name in "abc"}, rounds={"jitter": 0, "max_rounds": 2}
        )
        first = await gateway(settings, tmp_path / "s", clock).dispatch(store, operation(head))
        early = await gateway(settings, tmp_path / "s", clock).dispatch(store, operation(head))
        assert first.status == early.status == "retry_pending"
        assert first.not_before == early.not_before == iso(clock.now().replace(second=2))
        assert [r.route for r in server.requests] == ["a", "b", "c"]
        clock.turn(2)
        last = await gateway(settings, tmp_path / "s", clock).dispatch(store, operation(head))
        clock.turn(3_600)
        after = await gateway(settings, tmp_path / "s", clock).dispatch(store, operation(head))
    assert [r.route for r in server.requests] == ["a", "b", "c"] * 2
    assert last.status == after.status == "blocked"
    assert last.code == after.code == "rounds_exhausted"


async def test_a_stable_retry_id_reopens_an_exhausted_operation_once_and_never_before_it_is_due(
    tmp_path: Path,
) -> None:
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    with ModelServer({"a": fails(500)}) as server:
        settings = config({"a": provider(server)}, rounds={"jitter": 0, "max_rounds": 1})

        async def dispatch(retry_id: str | None = None) -> str:
            made = gateway(settings, tmp_path / "s", clock)
            return (await made.dispatch(store, operation(head, retry_id=retry_id))).status

        assert await dispatch() == "blocked"
        assert await dispatch("again") == "retry_pending"
        assert server.count() == 1
        clock.turn(60)
        assert await dispatch() == "blocked"
        assert server.count() == 1
        assert await dispatch("again") == "blocked"
        assert server.count() == 2
        clock.turn(60)
        assert await dispatch("again") == "blocked"
        assert server.count() == 2
        assert await dispatch("third") == "blocked"
        assert server.count() == 3


async def test_a_retry_id_does_not_reset_an_invalid_answer(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers("no json")}) as server:
        made = gateway(config({"a": provider(server)}))
        first = await made.dispatch(store, operation(head))
        again = await made.dispatch(store, operation(head, retry_id="again"))
    assert first.status == again.status == "invalid"
    assert first.code == "invalid_json"
    assert server.count() == 1


async def test_a_wrong_key_blocks_with_the_variable_and_profile_named_and_is_not_retried(
    tmp_path: Path,
) -> None:
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    refusal = fails(
        401, {"error": {"message": f"Incorrect API key provided: {CANARY}", "code": "invalid_api_key"}}
    )
    with ModelServer({"a": refusal}) as server:
        made = gateway(config({"local": provider(server)}), tmp_path / "s", clock)
        blocked = await made.dispatch(store, operation(head))
        clock.turn(100_000)
        again = await made.dispatch(store, operation(head))
        assert server.count() == 1
        reopened = await made.dispatch(store, operation(head, retry_id="new-key"))
        assert server.count() == 2
    assert blocked.status == again.status == reopened.status == "blocked"
    assert blocked.code == "provider_configuration"
    assert "CANARY_KEY" in blocked.message
    assert "local" in blocked.message
    assert CANARY not in blocked.message
    assert leaks(tmp_path) == []


async def test_a_provider_with_a_broken_configuration_does_not_end_the_chain(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"b": answers()}) as server:
        settings = config({"a": provider(server, api_key_env="ABSENT"), "b": provider(server, "b")})
        outcome = await gateway(settings).dispatch(store, operation(head))
        second = await gateway(settings).dispatch(store, operation(head, attempt_id="attempt-2"))
    assert outcome.status == second.status == "answered"
    kept = record(store, second.head, second.call_path)
    assert [skipped["reason"] for skipped in kept["skipped"]] == ["configuration"]
    assert [attempt["provider"] for attempt in kept["attempts"]] == ["b"]


async def test_a_provider_that_asked_for_time_is_left_alone_by_the_next_operation(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    with ModelServer({"a": fails(429, headers={"retry-after": "600"}), "b": answers()}) as server:
        settings = config({"a": provider(server), "b": provider(server, "b")})
        made = gateway(settings, tmp_path / "s", clock)
        await made.dispatch(store, operation(head))
        await made.dispatch(store, operation(head, attempt_id="attempt-2"))
        assert server.count("a") == 1
        clock.turn(601)
        await made.dispatch(store, operation(head, attempt_id="attempt-3"))
    assert server.count("a") == 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("30", 30),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 2),
        ("86400", 3_600),
        ("1000000000000", 3_600),
        ("-5", 2),
        ("soon", 2),
        ("0", 2),
    ],
)
async def test_retry_after_is_kept_capped_and_survives_a_restart(
    tmp_path: Path, header: str, seconds: int
) -> None:
    """B26: both forms are obeyed up to the policy's maximum; nonsense means the ordinary back-off."""
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    due = TurnedClock()
    due.turn(seconds)
    with ModelServer({"a": fails(429, headers={"retry-after": header})}) as server:
        made = gateway(config({"a": provider(server)}), tmp_path / "s", clock)
        outcome = await made.dispatch(store, operation(head))
        assert outcome.not_before == iso(due.now())
        restarted = gateway(config({"a": provider(server)}), tmp_path / "s", clock)
        assert (await restarted.dispatch(store, operation(head))).not_before == iso(due.now())
        assert server.count() == 1


async def test_a_clock_put_back_makes_a_wait_due_instead_of_holding_the_case(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    clock = TurnedClock()
    with ModelServer({"a": in_turn(fails(503, headers={"retry-after": "60"}), answers())}) as server:
        made = gateway(config({"a": provider(server)}), None, clock)
        assert (await made.dispatch(store, operation(head))).status == "retry_pending"
        clock.turn(-86_400)
        assert (await made.dispatch(store, operation(head))).status == "answered"


@pytest.mark.parametrize(
    "content", ['{"hypotheses":[{"a":1},{"b":2}', '{"ok":true}'], ids=["cut inside", "looks whole"]
)
async def test_an_answer_cut_at_the_limit_is_never_taken(tmp_path: Path, content: str) -> None:
    """B12, B13: a valid short object with stop reason length is a cut answer too; the raw is kept."""
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers(content, finish="length"), "b": answers()}) as server:
        made = gateway(config({"a": provider(server), "b": provider(server, "b")}))
        outcome = await made.dispatch(store, operation(head))
        assert server.count("b") == 0
    assert outcome.status == "invalid"
    assert outcome.code == "truncated_output"
    kept = record(store, outcome.head, outcome.call_path)
    assert kept["answer"] is None
    assert store.read(outcome.head, kept["reply"]["path"]) == content.encode()


async def test_a_time_out_after_sending_is_booked_as_unknown_and_the_next_provider_answers(
    tmp_path: Path,
) -> None:
    """B6: both attempts stand in the ledger; the first at its worst case."""

    async def hang(exchange: Any) -> None:
        await exchange.reader.read()

    store, head = new_case(tmp_path)
    with ModelServer({"a": hang, "b": answers()}) as server:
        settings = config({"a": provider(server, deadline_s=3), "b": provider(server, "b")})
        made = gateway(settings, tmp_path / "s")
        outcome = await made.dispatch(store, operation(head))
        entries = made.ledger.entries("2026-03-01")
    assert outcome.status == "answered"
    kept = record(store, outcome.head, outcome.call_path)
    assert [attempt["outcome"] for attempt in kept["attempts"]] == ["outcome_unknown", "answered"]
    assert kept["attempts"][0]["tokens_in"] > 300
    assert [entry["kind"] for entry in entries] == ["reserve", "settle"] * 2
    assert made.spend(store, outcome.head).tokens_in == kept["attempts"][0]["tokens_in"] + 100


async def test_policy_can_forbid_the_next_provider_after_an_unknown_outcome(tmp_path: Path) -> None:
    async def cut(exchange: Any) -> None:
        exchange.abort()

    store, head = new_case(tmp_path)
    with ModelServer({"a": cut, "b": answers()}) as server:
        settings = config(
            {"a": provider(server), "b": provider(server, "b")}, rounds={"jitter": 0, "after_unknown": "stop"}
        )
        outcome = await gateway(settings).dispatch(store, operation(head))
        assert (outcome.status, outcome.code) == ("blocked", "outcome_unknown")
        assert server.count("b") == 0
        assert (await gateway(settings).dispatch(store, operation(head))).status == "blocked"
        assert server.count("a") == 1


async def test_a_head_that_moved_during_the_call_costs_no_second_call(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)

    async def answer(exchange: Any) -> None:
        now = store.latest("BUG-1")
        store.commit(now, Change(event="note", detail={"n": exchange.number}))
        await exchange.reply(200, completion('{"ok":true}'))

    with ModelServer({"a": answer}) as server:
        outcome = await gateway(config({"a": provider(server)})).dispatch(store, operation(head))
        assert server.count() == 1
    assert outcome.status == "answered"
    assert outcome.head.generation == 3


async def test_the_offline_analyst_answers_without_a_ledger_entry(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    made = LLMGateway(LLMConfig(), spend_folder=tmp_path / "s", offline=lambda _: {"ok": True})
    outcome = await made.dispatch(store, operation(head))
    assert outcome.answer == {"ok": True}
    assert outcome.usage.cost == 0
    assert not (tmp_path / "s").exists()
    assert made.spend(store, outcome.head).cost == 0


async def test_a_record_rewritten_by_a_later_generation_is_refused_and_not_asked_again(
    tmp_path: Path,
) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        made = gateway(config({"a": provider(server)}))
        outcome = await made.dispatch(store, operation(head))
        path = outcome.call_path or ""
        kept = record(store, outcome.head, path)
        kept["answer"] = {"ok": False}
        store.commit(outcome.head, Change(event="forged", put={path: json.dumps(kept).encode()}))
        with pytest.raises(ContractError, match="call_record_mismatch"):
            await made.dispatch(store, operation(head))
        assert server.count() == 1


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as caught:
        LLMGateway(config({}, default_profile="offline", profiles={}), "nowhere")
    assert caught.value.code == "unknown_provider"
    assert "offline" in caught.value.hint
    assert caught.value.exit_status == 2


async def test_spend_adds_up_the_rounds_of_the_revision(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    price = {"provider": "a", "model": "served-model", "input": 2, "cached": 1, "output": 10}
    with ModelServer({"a": answers()}) as server:
        settings = config({"a": provider(server)}, prices=[{**price, "date": "2026-01-01", "source": "test"}])
        made = gateway(settings, tmp_path / "s")
        for number in range(3):
            await made.dispatch(store, operation(head, request(f"case {number}")))
    spent = made.spend(store, store.latest("BUG-1"))
    assert (spent.tokens_in, spent.tokens_cached, spent.tokens_out) == (300, 120, 60)
    assert spent.cost == pytest.approx(3 * (60 * 2 + 40 * 1 + 20 * 10) / 1e6)


@pytest.mark.parametrize("retry_id", ["", "  ", "a\nb", "x" * 201])
async def test_an_unusable_retry_id_is_refused_before_anything_is_sent(tmp_path: Path, retry_id: str) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        with pytest.raises(InputError, match="invalid_retry_id"):
            await gateway(config({"a": provider(server)})).dispatch(store, operation(head, retry_id=retry_id))
        assert server.count() == 0
